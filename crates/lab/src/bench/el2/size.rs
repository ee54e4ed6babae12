//! How large the hypervisor is.

use super::features::{self, Feature};
use crate::source::{self, Linked};
use miette::{IntoDiagnostic, Result, WrapErr};
use std::path::Path;
use system::pack::image_size;

/// Size of the hypervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Bytes of its image that are loaded.
    pub image: u64,
    /// The crates that the image is made of.
    pub source: Vec<Linked>,
    /// The same by what it is for.
    pub features: Vec<Feature>,
}

impl Size {
    /// Measures the ELF file `image` and its source below the project's `root`.
    pub fn measure(image: &[u8], root: &Path) -> Result<Self> {
        let source = source::measure(root).wrap_err("cannot count the hypervisor's source")?;
        let features = features::measure(image, root)?;
        let image = image_size(image).into_diagnostic()?;
        Ok(Self { image, source, features })
    }

    /// Returns how many lines run at EL2.
    pub fn lines(&self) -> u64 {
        self.source.iter().map(|linked| linked.lines).sum()
    }
}
