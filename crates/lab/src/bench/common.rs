//! What measurements of Linux in virtual time depend on, whatever the bench.

use super::store::checksum;
use super::vtime::case::Images;
use crate::results::Outcome;
use crate::suite::Bench;
use miette::Result;
use serde::{Deserialize, Serialize};

/// A version, and checksums (CRC-32) of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Common {
    /// QEMU's version.
    pub qemu: String,
    /// The instrument's shared object.
    pub instrument: String,
    /// Linux and its user space.
    pub linux: String,
}

impl Common {
    /// The present ones.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn of(bench: &Bench) -> Result<Self> {
        let images = Images::of(&bench.root);
        Ok(Self {
            qemu: bench.qemu.version().to_string(),
            instrument: checksum(&[bench.instrument.path()])?,
            linux: checksum(&[&images.kernel, &images.initramfs])?,
        })
    }

    /// Notes them beside the figures.
    pub fn record(&self, outcome: &mut Outcome) {
        outcome.parameter("qemu", self.qemu.clone());
        outcome.parameter("instrument_crc32", self.instrument.clone());
        outcome.parameter("linux_crc32", self.linux.clone());
    }
}
