//! What a measurement depends on besides its point.

use crate::bench::store::checksum;
use crate::bench::vtime::case::Images;
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
    /// The hypervisor's ELF file.
    pub hypervisor: String,
    /// Linux and its user space.
    pub linux: String,
    /// FreeRTOS.
    pub rtos: String,
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
            hypervisor: format!("{:08x}", crc32fast::hash(bench.hypervisor)),
            linux: checksum(&[&images.kernel, &images.initramfs])?,
            rtos: checksum(&[&bench.root.join("build/guests/freertos.elf")])?,
        })
    }
}
