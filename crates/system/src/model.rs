//! A system that has been checked.

use crate::board::{Board, Device, Trigger};
use crate::image::{Bytes, Kernel};
use crate::inputs::Input;
use crate::problem::{Report, Span};
use abi::system::{HYPERVISOR_SIZE, Region};
use sched::Members;
use sched::policy::Kind;
use std::path::PathBuf;

/// A system whose description has no error, laid out in memory; what is left
/// is to put a hypervisor into it ([`crate::pack`]).
#[derive(Debug)]
pub struct Checked {
    /// Where the description was read from.
    pub path: PathBuf,
    /// The physical machine.
    pub machine: Machine,
    /// See [`abi::system::flags::PRIORITY_SEPARATION`].
    pub priority_separation: bool,
    /// See [`abi::system::flags::OFF_WHEN_DONE`].
    pub off_when_done: bool,
    /// The virtual machines.
    pub vms: Vec<Vm>,
    /// Budgets and tasks, for an analysis; none when none are described. EL2 does
    /// not enforce budgets yet.
    pub timing: Option<analysis::model::System>,
    /// Which pCPUs may be powered down.
    pub consolidation: Consolidation,
    /// All files it is made of, its description first.
    pub inputs: Vec<Input>,
    /// What looks wrong but does not keep the system from being built.
    pub warnings: Report,
    pub(crate) plan: crate::plan::Plan,
}

/// The part of a physical machine that a system uses.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// What kind of machine it is.
    pub board: &'static Board,
    /// How many of its pCPUs are used.
    pub pcpus: usize,
    /// Bytes of RAM it has.
    pub memory: u64,
}

/// Which pCPUs may be powered down while there is little to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consolidation {
    /// Where the vCPUs of each pCPU go; its own index if it stays on.
    pub shelters: Vec<usize>,
    /// How often cores look at what they did, microseconds.
    pub window_us: u64,
}

impl Consolidation {
    /// The pCPUs that may be powered down, each with its shelter.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.shelters.iter().copied().enumerate().filter(|(pcpu, shelter)| pcpu != shelter)
    }
}

/// A virtual machine.
#[derive(Clone, Debug)]
pub struct Vm {
    /// Unique, 1 to 15 of a-z, 0-9 and `-`.
    pub name: String,
    /// Its kernel.
    pub kernel: Kernel,
    /// Its initramfs; only with a Linux kernel.
    pub initramfs: Option<Bytes>,
    /// Its kernel's command line.
    pub cmdline: String,
    /// Bytes of memory.
    pub ram_size: u64,
    /// Where memory begins for the guest; `None` when it is where the layout
    /// finds room (identity without an address).
    pub ram_ipa: Option<u64>,
    /// Whether guest-physical addresses are physical ones.
    pub identity: bool,
    /// Its vCPUs.
    pub vcpus: Vec<Vcpu>,
    /// Whether it has a console.
    pub console: bool,
    /// Whether its interrupts have the upper half of the priorities.
    pub realtime: bool,
    /// Bytes of its report area, 0 for none.
    pub report: u64,
    /// Whether it starts again when it cannot go on.
    pub restart_on_fault: bool,
    /// What the random numbers are made of that its device tree hands over;
    /// none: it hands over none.
    pub seed: Option<u64>,
    /// What becomes of its vCPUs when others take their pCPUs.
    pub policy: Kind,
    /// How long others wait for its vCPUs at most, microseconds; only with a
    /// policy that makes them wait.
    pub delay_limit_us: u64,
    /// Its vCPUs may be moved to fewer pCPUs while there is little to do.
    pub consolidate: bool,
    /// Devices passed through.
    pub devices: Vec<&'static Device>,
    /// Interrupts passed through, those of its devices included.
    pub interrupts: Vec<PassedInterrupt>,
    pub(crate) spans: VmSpans,
}

/// A virtual CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vcpu {
    /// Index of the pCPU it starts on.
    pub pcpu: usize,
    /// Larger is higher.
    pub priority: u16,
    /// Round-robin quantum, microseconds.
    pub quantum_us: u64,
    /// Index of the pCPU it goes to while another vCPU has its own; that one
    /// itself if it stays.
    pub refuge: usize,
    /// All pCPUs (bit set by index) where it may be besides `pcpu`.
    pub havens: u16,
    /// Those of its havens (bit set) where it takes turns with its siblings: while it
    /// shares the pCPU it is on, it goes round among them.
    pub tour: u16,
    /// See [`abi::system::vcpu_flags::URGENT`].
    pub urgent: bool,
    /// How long before its timer fires it gets its core, microseconds; 0: not
    /// before.
    pub timer_lead_us: u32,
}

impl Vcpu {
    /// All pCPUs (bit set by index) where it may be.
    #[must_use]
    pub fn places(&self) -> u16 {
        1 << self.pcpu | self.havens
    }

    /// The pCPUs, besides its own, where it may be.
    pub fn havens(&self) -> impl Iterator<Item = usize> + use<> {
        Members(self.havens.into())
    }

    /// Those of them that it goes round, while it shares the pCPU it is on.
    pub fn tour(&self) -> impl Iterator<Item = usize> + use<> {
        Members(self.tour.into())
    }
}

/// An interrupt passed through to a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedInterrupt {
    /// Physical INTID.
    pub physical: u32,
    /// INTID the guest sees.
    pub virtual_: u32,
    /// How its device signals it.
    pub trigger: Trigger,
}

/// Where to point when the layout fails.
#[derive(Clone, Debug)]
pub(crate) struct VmSpans {
    pub(crate) memory: Span,
    pub(crate) kernel: Span,
    pub(crate) initramfs: Span,
    pub(crate) migration: Span,
    pub(crate) consolidate: Span,
}

impl Machine {
    /// The hypervisor's own memory.
    #[must_use]
    pub const fn hypervisor(&self) -> Region {
        Region::new(self.board.hypervisor_pa, HYPERVISOR_SIZE)
    }
}

impl Checked {
    /// Name of the description's file, without directory and extension.
    #[must_use]
    pub fn name(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl Vm {
    /// What messages call it.
    pub(crate) fn title(&self) -> String {
        format!("VM `{}`", self.name)
    }
}
