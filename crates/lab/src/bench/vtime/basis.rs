//! What a measurement depends on besides its case.

use super::case::Images;
use crate::bench::store::checksum;
use crate::suite::Bench;
use miette::Result;
use serde::{Deserialize, Serialize};

/// Versions, and checksums (CRC-32) of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// QEMU's version.
    pub qemu: String,
    /// The instrument's shared object.
    pub instrument: String,
    /// Linux and its user space.
    pub linux: String,
    /// The bare-metal guest.
    pub metronome: String,
}

impl Basis {
    /// The present one.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn of(bench: &Bench) -> Result<Self> {
        let images = Images::of(&bench.root);
        Ok(Self {
            qemu: bench.qemu.version().to_string(),
            instrument: checksum(&[bench.instrument.path()])?,
            linux: checksum(&[&images.kernel, &images.initramfs])?,
            metronome: checksum(&[&images.metronome])?,
        })
    }
}
