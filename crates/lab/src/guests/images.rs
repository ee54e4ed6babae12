//! The files that guests boot from.

use std::path::{Path, PathBuf};

/// Where the launcher puts them.
#[derive(Clone, Debug)]
pub struct Images {
    /// Debian's kernel.
    pub kernel: PathBuf,
    /// That kernel with the port by which it tells of its locks (`guests/linux-own`). The launcher
    /// builds it only when it is asked for.
    pub own_kernel: PathBuf,
    /// What it runs.
    pub initramfs: PathBuf,
    /// FreeRTOS.
    pub rtos: PathBuf,
    /// The bare-metal guest that tests virtual time.
    pub metronome: PathBuf,
    /// The bare-metal guest that measures any hypervisor.
    pub waker: PathBuf,
    /// Xen, as Debian has it. The launcher fetches it only when it is asked for, as it makes the next.
    pub xen: PathBuf,
    /// The initramfs in which Linux is Xen's first domain or KVM's host.
    pub peers: PathBuf,
    /// The initramfs of a Linux that is the real-time guest beside that.
    pub peers_guest: PathBuf,
    /// `peers` with a Linux that KVM is to start. The launcher makes it only when it is asked for.
    pub peers_kvm: PathBuf,
    /// FreeRTOS as a guest of Xen's.
    pub rtos_xen: PathBuf,
    /// What runs a guest under KVM.
    pub vmm: PathBuf,
    /// The bare-metal guest that tests the hypervisor.
    pub probe: PathBuf,
    /// The probe for a board with a GICv2.
    pub probe_gicv2: PathBuf,
    /// The probe for a VM whose memory begins at 0x8000_0000: no address of it is one of the board's memory.
    pub probe_high: PathBuf,
    /// U-Boot, as Debian has it.
    pub u_boot: PathBuf,
    /// The initramfs in which Linux is tested with its authors' tests.
    pub selftests: PathBuf,
    /// The initramfs in which Linux builds a part of Linux. The launcher makes it only when it is asked
    /// for.
    pub kbuild: PathBuf,
    /// Debian's kernel with PREEMPT_RT. The launcher fetches it only when it is asked for.
    pub rt_kernel: PathBuf,
    /// What is timed in Linux, a directory of initramfs. The launcher makes them only when they are asked for.
    programs: PathBuf,
    /// What others wrote, and what tells its versions.
    others: PathBuf,
}

impl Images {
    /// Returns them for the project at `root`.
    #[must_use]
    pub fn of(root: &Path) -> Self {
        let guests = root.join("build/guests");
        Self {
            kernel: guests.join("linux/Image"),
            own_kernel: guests.join("linux-own/Image"),
            initramfs: guests.join("linux/initramfs.cpio.gz"),
            rtos: guests.join("freertos.elf"),
            metronome: guests.join("metronome.elf"),
            waker: guests.join("waker.bin"),
            xen: guests.join("peers/xen.bin"),
            peers: guests.join("peers/initramfs.cpio.gz"),
            peers_guest: guests.join("peers/linux.cpio.gz"),
            peers_kvm: guests.join("peers/kvm-linux.cpio.gz"),
            rtos_xen: guests.join("peers/freertos-xen.bin"),
            vmm: guests.join("peers/vmm"),
            probe: guests.join("probe.elf"),
            probe_gicv2: guests.join("probe-gicv2.elf"),
            probe_high: guests.join("probe-high.elf"),
            u_boot: guests.join("others/u-boot.bin"),
            selftests: guests.join("others/selftests.cpio.gz"),
            kbuild: guests.join("others/kbuild.cpio.gz"),
            rt_kernel: guests.join("programs/rt.Image"),
            programs: guests.join("programs"),
            others: guests.join("others"),
        }
    }

    /// Returns the initramfs whose only work is the program called so (`guests/programs/build`).
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name).with_extension("cpio.gz")
    }

    /// Returns a kernel that others wrote, by that name. The launcher fetches it only when it is asked for.
    #[must_use]
    pub fn kernel_of(&self, name: &str) -> PathBuf {
        self.others.join(name).with_extension("Image")
    }

    /// Returns the file that names the packages of what others wrote, one a line, with its version
    /// (`guests/others/build` has the names).
    #[must_use]
    pub fn packages_of(&self, name: &str) -> PathBuf {
        self.others.join(name).with_extension("packages")
    }
}
