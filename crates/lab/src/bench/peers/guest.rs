//! The real-time guest of a run: what it boots from, and what it is told.

use super::system::System;
use super::waker::Parameters;
use crate::guests::Images;
use std::path::{Path, PathBuf};

/// A real-time guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guest {
    /// The bare-metal guest, into whose image its parameters are written.
    Waker(Parameters),
    /// FreeRTOS with these arguments.
    Freertos(String),
    /// Linux with PREEMPT_RT and these arguments.
    Linux(String),
}

impl Guest {
    /// Returns a name for descriptions.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Waker(_) => "waker",
            Self::Freertos(_) => "freertos",
            Self::Linux(_) => "control",
        }
    }

    /// Returns how many cores it has.
    pub const fn vcpus(&self) -> u32 {
        match self {
            Self::Waker(parameters) => parameters.vcpus(),
            Self::Freertos(_) | Self::Linux(_) => 1,
        }
    }

    /// Returns its memory, MiB, where it is Cassata's or Xen's.
    pub const fn mib(&self) -> u64 {
        match self {
            Self::Waker(_) | Self::Freertos(_) => 32,
            Self::Linux(_) => 128,
        }
    }

    /// Returns its command line; nothing where what it is told is in its image.
    pub fn told(&self) -> &str {
        match self {
            Self::Waker(_) => "",
            Self::Freertos(told) | Self::Linux(told) => told,
        }
    }

    /// Returns what it boots from under `system`: its image, and an initramfs. `waker` is the file with its
    /// parameters.
    pub fn files(
        &self,
        system: System,
        images: &Images,
        waker: &Path,
    ) -> (PathBuf, Option<PathBuf>) {
        match self {
            Self::Waker(_) => (waker.to_path_buf(), None),
            Self::Freertos(_) if matches!(system, System::Xen(_)) => {
                (images.rtos_xen.clone(), None)
            }
            Self::Freertos(_) => (images.rtos.clone(), None),
            Self::Linux(_) => (images.kernel_of("rt"), Some(images.peers_guest.clone())),
        }
    }

    /// Returns what KVM's host is told of it (`guests/peers/init`).
    pub fn told_host(&self) -> String {
        let mib = self.mib();
        match self {
            Self::Waker(parameters) => {
                format!("peers.vmm=\"{} {}\"", parameters.vcpus(), parameters.text())
            }
            Self::Freertos(told) => format!("peers.boot=\"/peers/freertos.bin {mib} - {told}\""),
            Self::Linux(told) => {
                format!("peers.boot=\"/peers/rt.Image {mib} /peers/linux.cpio.gz {told}\"")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::system::Scheduler;
    use super::*;

    #[test]
    fn xens_freertos_is_another_file_and_linux_has_an_initramfs() {
        let (images, waker) = (Images::of(Path::new("/x")), Path::new("/waker"));
        let rtos = Guest::Freertos("load=0".into());
        let of = |guest: &Guest, system| guest.files(system, &images, waker);
        assert_eq!(of(&rtos, System::PLAIN), (images.rtos.clone(), None));
        assert_eq!(of(&rtos, System::Xen(Scheduler::Credit2)), (images.rtos_xen.clone(), None));
        let linux = Guest::Linux("quiet".into());
        assert_eq!(of(&linux, System::KVM).1, Some(images.peers_guest.clone()));
        let host = "peers.boot=\"/peers/rt.Image 128 /peers/linux.cpio.gz quiet\"";
        assert_eq!(linux.told_host(), host);
        assert_eq!(rtos.told_host(), "peers.boot=\"/peers/freertos.bin 32 - load=0\"");
    }
}
