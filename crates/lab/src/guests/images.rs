//! The files that guests boot from.

use std::path::{Path, PathBuf};

/// Where the launcher puts them.
#[derive(Clone, Debug)]
pub struct Images {
    /// Debian's kernel.
    pub kernel: PathBuf,
    /// What it runs.
    pub initramfs: PathBuf,
    /// FreeRTOS.
    pub rtos: PathBuf,
    /// The bare-metal guest that tests virtual time.
    pub metronome: PathBuf,
    /// The bare-metal guest that tests the hypervisor.
    pub probe: PathBuf,
}

impl Images {
    /// Returns them for the project at `root`.
    #[must_use]
    pub fn of(root: &Path) -> Self {
        let guests = root.join("build/guests");
        Self {
            kernel: guests.join("linux/Image"),
            initramfs: guests.join("linux/initramfs.cpio.gz"),
            rtos: guests.join("freertos.elf"),
            metronome: guests.join("metronome.elf"),
            probe: guests.join("probe.elf"),
        }
    }
}
