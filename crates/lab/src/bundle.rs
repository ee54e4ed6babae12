//! A system that is ready to boot: one image, and the tables inside it.

use crate::executed;
use crate::machine::{self, MachineConfig, Time};
use crate::observe::Layout;
use crate::paths::Paths;
use crate::promises::Promises;
use abi::system::System;
use miette::Result;
use std::ops::Range;
use std::path::{Path, PathBuf};
use system::board::{Board, QemuImage, UartKind};
use system::{Checked, ImageFormat, Packed, Plugged, SigningKey};

/// The hypervisor's ELF files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builds {
    /// The build without optional parts that records nothing.
    pub silent: &'static [u8],
    /// The build with all of them, but for UARTs, that records nothing.
    pub with_parts: &'static [u8],
    /// The build with all of them that records what it does ([`abi::trace`]), and drives any UART.
    pub tracing: &'static [u8],
    /// The build for a board with a GICv2, with all but an SMMU, which does both, too.
    pub gic_v2: &'static [u8],
    /// These are the checked build, whose paths have no bound.
    pub is_checked: bool,
}

impl Builds {
    /// Makes one file all of them.
    #[must_use]
    pub const fn one(file: &'static [u8], is_checked: bool) -> Self {
        Self { silent: file, with_parts: file, tracing: file, gic_v2: file, is_checked }
    }

    /// Returns all files.
    #[must_use]
    pub const fn all(&self) -> [&'static [u8]; 4] {
        [self.silent, self.with_parts, self.tracing, self.gic_v2]
    }

    /// Returns the build for a system.
    #[must_use]
    pub fn of(&self, checked: &Checked) -> &'static [u8] {
        choose(checked, self.all())
    }
}

/// Returns what belongs to the build for a system, out of those of the silent one, the one with parts, the
/// tracing one, and that for a GICv2: a trace and parts cost something only where they are asked for.
pub fn choose<T>(checked: &Checked, [silent, with_parts, tracing, gic_v2]: [T; 4]) -> T {
    let board = checked.machine.board;
    match checked {
        _ if board.gic.is_v2() => gic_v2,
        Checked { trace: 1.., .. } => tracing,
        // It drives them, and does nothing for a trace that is not asked for.
        _ if board.uart != UartKind::Pl011 => tracing,
        _ if checked.parts().next().is_some() => with_parts,
        _ => silent,
    }
}

/// What the packer made.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The bootable file.
    pub image: PathBuf,
    /// The tables in it.
    pub tables: Box<System>,
    /// Names of the mutexes, which the tables have as hashes.
    pub mutexes: Vec<String>,
    /// What was computed for its tasks.
    pub promises: Promises,
    /// The longest paths of its hypervisor; none if it has none.
    pub paths: Option<Paths>,
    /// What is plugged into the machine.
    pub plugged: Plugged,
    /// The board.
    board: &'static Board,
    /// The hypervisor's ELF file.
    hypervisor: &'static [u8],
    /// Where the code is in that, addresses from its beginning.
    code: Range<u64>,
}

impl Bundle {
    /// Packs a checked system with the build of the hypervisor that it wants into `image`.
    ///
    /// # Errors
    /// When the hypervisor's file is not what it must be, or `image` cannot be
    /// written.
    pub fn pack(checked: &Checked, builds: &Builds, image: &Path) -> Result<Self> {
        let hypervisor = builds.of(checked);
        Self::write(checked, hypervisor, system::pack(checked, hypervisor)?, image)
    }

    /// Packs a checked system with a build of the hypervisor that checks signatures into `image`,
    /// and signs it.
    ///
    /// # Errors
    /// As [`Bundle::pack`].
    pub fn pack_signed(
        checked: &Checked,
        hypervisor: &'static [u8],
        key: &SigningKey,
        image: &Path,
    ) -> Result<Self> {
        Self::write(checked, hypervisor, system::pack_signed(checked, hypervisor, key)?, image)
    }

    fn write(
        checked: &Checked,
        hypervisor: &'static [u8],
        packed: Packed,
        image: &Path,
    ) -> Result<Self> {
        let code = executed::code(hypervisor)?;
        let format = match checked.machine.board.qemu.image {
            QemuImage::Elf => ImageFormat::Elf,
            QemuImage::Image => ImageFormat::Image,
        };
        packed.write_file(format, image)?;
        Ok(Self {
            image: image.into(),
            paths: Some(Paths::of(hypervisor, Some(checked))),
            hypervisor,
            code,
            ..Self::unstarted(checked, packed.tables)
        })
    }

    /// What was packed of a checked system whose machine is never started: what such a machine would
    /// leave in its memory comes from elsewhere.
    #[must_use]
    pub fn unstarted(checked: &Checked, tables: Box<System>) -> Self {
        Self {
            image: PathBuf::new(),
            tables,
            mutexes: checked.mutexes().map(str::to_owned).collect(),
            promises: Promises::of(checked),
            paths: None,
            plugged: checked.plugged.clone(),
            board: checked.machine.board,
            hypervisor: &[],
            code: 0..0,
        }
    }

    /// The machine it was packed for, with time as `time` says. The instrument
    /// of virtual time counts instructions and visits in the hypervisor's
    /// memory, and records what is executed of its code if `time` asks for that.
    #[must_use]
    pub fn machine_in(&self, time: &Time) -> MachineConfig {
        let board = &self.tables.board;
        let base = board.hypervisor_pa;
        let code = base + self.code.start..base + self.code.end;
        let time = match time {
            Time::Real => Time::Real,
            Time::Virtual(time) => {
                let time = time.clone().counting(base..base + board.hypervisor_size);
                Time::Virtual(time.of_hypervisor(self.hypervisor, code))
            }
        };
        let machine = MachineConfig::new(&self.image, board.pcpu_count, board.ram_size);
        let extra_args = machine::plugged(&self.plugged).map(Into::into).collect();
        let smmu = self.tables.smmu.registers_pa != 0;
        MachineConfig { board: self.board, smmu, time, extra_args, ..machine }
    }

    /// Where there is something to see.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout::of(&self.tables)
    }
}

/// The console channel of the hypervisor itself.
pub const HYPERVISOR: u8 = abi::console::HYPERVISOR;

/// The console channel of VM `vm`.
///
/// # Panics
/// When there cannot be such a VM.
#[must_use]
pub fn channel(vm: usize) -> u8 {
    u8::try_from(vm + 1).expect("no system has so many VMs")
}
