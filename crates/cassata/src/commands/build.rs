//! `cassata build`.

use super::{description, say};
use crate::cli::Build;
use lab::quantity::file_size;
use miette::{Result, miette};
use std::fs;

/// Packs a system into one bootable image.
pub fn build(arguments: &Build) -> Result<u8> {
    spare_the_description(arguments)?;
    let bundle = description::pack(&arguments.system, &arguments.output)?;
    let size = bundle.image.metadata().map_or(0, |metadata| metadata.len());
    say(&format!("{} ({})", bundle.image.display(), file_size(size)));
    Ok(0)
}

/// A slip of the hand must not cost anybody the description.
fn spare_the_description(arguments: &Build) -> Result<()> {
    let place = |path| fs::canonicalize(path).ok();
    if place(&arguments.output).is_some_and(|output| Some(output) == place(&arguments.system)) {
        return Err(miette!(
            help = "name another file behind `-o`",
            "{} is the description itself",
            arguments.output.display()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let system = directory.path().join("a.toml");
        fs::write(&system, "x").unwrap();
        let output = directory.path().join(".").join("a.toml");
        assert!(build(&Build { system: system.clone(), output }).is_err());
        assert_eq!(fs::read_to_string(&system).unwrap(), "x");
        let output = directory.path().join("b.elf");
        assert!(spare_the_description(&Build { system, output }).is_ok());
    }
}
