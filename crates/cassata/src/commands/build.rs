//! `cassata build`.

use super::{description, say};
use crate::cli::Build;
use lab::quantity::file_size;
use miette::Result;

/// Packs a system into one bootable image.
pub fn build(arguments: &Build) -> Result<u8> {
    let checked = description::load(&arguments.system)?;
    description::spare_inputs(&checked, &arguments.output, "-o")?;
    let bundle = description::pack(&checked, &arguments.output)?;
    let size = bundle.image.metadata().map_or(0, |metadata| metadata.len());
    say(&format!("{} ({})", bundle.image.display(), file_size(size)));
    Ok(0)
}
