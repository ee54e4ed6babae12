//! How large the hypervisor is.

use super::features::{self, Feature};
use super::parts::Parts;
use crate::bundle::Builds;
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
    /// What not every image has.
    pub parts: Parts,
}

impl Size {
    /// Measures the image without optional parts, what is in the others, and their source below the
    /// project's `root`.
    pub fn measure(builds: &Builds, root: &Path) -> Result<Self> {
        let source = source::measure(root).wrap_err("cannot count the hypervisor's source")?;
        let features = features::measure(builds.with_parts, root)?;
        let parts = Parts::measure(builds, root)?;
        let image = image_size(builds.silent).into_diagnostic()?;
        Ok(Self { image, source, features, parts })
    }

    /// Returns how many lines run at EL2, with every optional part.
    pub fn lines(&self) -> u64 {
        self.source.iter().map(|linked| linked.lines).sum()
    }

    /// Returns how many of these are code.
    pub fn code_lines(&self) -> u64 {
        self.source.iter().map(|linked| linked.code).sum()
    }
}
