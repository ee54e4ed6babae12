//! What the guest beside the real-time one does.

use super::pair::{self, Guest};
use super::{COMPUTES, INIT, PROGRAMS_INIT, SLEEPS, command_line};
use crate::guests::{Images, LinuxProgress};
use crate::machine::{AT_ONCE, MODERN};
use serde::{Deserialize, Serialize};

/// What Linux does where `hackbench` runs without end.
const HACKBENCH: &str = "cassata.run=demo cassata.repeat=1000000";
/// The disk's place on the board.
const DISK: &str = "virtio-mmio-31";
const DISK_BUS: &str = "virtio-mmio-bus.31";
const DISK_BYTES: u64 = 4 << 30;
/// How long it takes for a request.
const DISK_LATENCY_NS: u32 = 1_000_000;

/// What the other guest does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// It sleeps.
    Idle,
    /// `sha256sum` on each CPU; the slower counts.
    Compute,
    /// `hackbench`, whose processes wait for one another.
    Hackbench,
    /// Input and output on a disk, on each CPU: as bonnie does it.
    Disk,
    /// What stands for the paper's six of SPEC CPU2000, on each CPU: 164.gzip,
    Gzip,
    /// 176.gcc,
    Cc1,
    /// 197.parser,
    Parser,
    /// 255.vortex,
    Sqlite,
    /// 256.bzip2,
    Bzip2,
    /// 300.twolf.
    Placer,
}

impl Program {
    /// What takes time.
    pub const TIMED: [Self; 9] = [
        Self::Compute,
        Self::Hackbench,
        Self::Disk,
        Self::Gzip,
        Self::Cc1,
        Self::Parser,
        Self::Sqlite,
        Self::Bzip2,
        Self::Placer,
    ];

    /// Returns those that `guests/programs` packs, each with an initramfs of its own.
    pub fn packed() -> impl Iterator<Item = Self> {
        Self::TIMED.into_iter().filter(|program| program.is_packed())
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Compute => "compute",
            Self::Hackbench => "hackbench",
            Self::Disk => "disk",
            Self::Gzip => "gzip",
            Self::Cc1 => "cc1",
            Self::Parser => "parser",
            Self::Sqlite => "sqlite",
            Self::Bzip2 => "bzip2",
            Self::Placer => "placer",
        }
    }

    const fn is_packed(self) -> bool {
        !matches!(self, Self::Idle | Self::Compute | Self::Hackbench)
    }

    /// Returns true for one of the six.
    pub const fn is_application(self) -> bool {
        self.is_packed() && !matches!(self, Self::Disk)
    }

    /// Returns the Linux that runs it on core 0 and core `second`, from the uptime `begin` on, or at once.
    pub fn guest(self, images: &Images, second: u32, begin: Option<&str>) -> Guest {
        let from = |of: &str| begin.map(|begin| format!(" {of}.begin={begin}")).unwrap_or_default();
        let told = match self {
            Self::Idle => command_line(INIT, SLEEPS),
            Self::Compute => command_line(INIT, &(COMPUTES.to_owned() + &from("cassata"))),
            Self::Hackbench => command_line(INIT, &(HACKBENCH.to_owned() + &from("cassata"))),
            _ => command_line(PROGRAMS_INIT, from("programs").trim_start()),
        };
        let initramfs =
            if self.is_packed() { images.program(self.name()) } else { images.initramfs.clone() };
        let image = pair::linux_image(&images.kernel, &initramfs);
        let vcpus = format!("{}, {}", pair::equal(0), pair::equal(second));
        // The disk's DMA knows no other addresses than the board's.
        let has_disk = self == Self::Disk;
        let more = if has_disk { format!("devices = [\"{DISK}\"]\n") } else { String::new() };
        Guest { image, identity: has_disk, more, vcpus, told }
    }

    /// Returns QEMU's arguments for what the board has besides: the disk, which keeps nothing.
    pub fn qemu_arguments(self) -> Vec<String> {
        if self != Self::Disk {
            return Vec::new();
        }
        let disk = format!(
            "node-name=disk,driver=null-co,size={DISK_BYTES},latency-ns={DISK_LATENCY_NS},read-zeroes=on"
        );
        // With a geometry. QEMU would guess one from the first block, and wait for it before time begins.
        let place =
            format!("virtio-blk-device,drive=disk,bus={DISK_BUS},cyls=8322,heads=16,secs=63");
        ["-global", MODERN, "-global", AT_ONCE, "-blockdev", &disk, "-device", &place]
            .map(str::to_owned)
            .to_vec()
    }

    /// Returns the time of each of its runs that the guest has told of, seconds.
    pub fn times_s(self, linux: &LinuxProgress) -> &[f64] {
        match self {
            Self::Idle => &[],
            Self::Hackbench => &linux.hackbench_s,
            _ => &linux.work_s,
        }
    }
}
