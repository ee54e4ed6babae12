//! A system that has been checked.

use crate::board::{Board, Device, SlotKind, Trigger};
use crate::calibration::Calibration;
use crate::image::{Bytes, Kernel};
use crate::inputs::Input;
use crate::problem::{Report, Span};
use crate::topology;
use abi::platform::{
    LINK_INTID, LINK_MAX_SIZE, LINK_MEMORY_BASE, LINK_STRIDE, LINKS_BASE, VIRTIO_BACK_BASE,
    VIRTIO_BACK_INTID, VIRTIO_BASE, VIRTIO_INTID, VIRTIO_MEMORY_BASE, VIRTIO_MEMORY_MAX_SIZE,
    VIRTIO_SIZE, VIRTIO_STRIDE,
};
use abi::system::{HYPERVISOR_SIZE, Region, parts};
use analysis::overheads::{Overheads, Paces};
use sched::Members;
use sched::policy::{MigrationPolicy, PolicySet, Request};
use sched::server::ServerKind;
use sched::topology::Topology;
use std::path::PathBuf;

/// A system whose description has no error, laid out in memory; what is left
/// is to put a hypervisor into it ([`crate::pack()`]).
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
    /// See [`abi::system::flags::RESET_ON_FAULT`].
    pub reset_on_fault: bool,
    /// See [`abi::system::Header::watchdog_ns`].
    pub watchdog_ns: u32,
    /// See [`abi::system::Header::sibling_grace_ns`].
    pub sibling_grace_ns: u64,
    /// See [`abi::system::flags::DIRECTED_YIELD`].
    pub directed_yield: bool,
    /// The virtual machines.
    pub vms: Vec<Vm>,
    /// Budgets and tasks; none when none are described.
    pub timing: Option<analysis::model::System>,
    /// How tasks share global resources.
    pub protocol: Protocol,
    /// Which pCPUs may be powered down.
    pub consolidation: Consolidation,
    /// Bytes of the ring in which each pCPU records what it does; 0: there is none.
    pub trace: u32,
    /// What is plugged into the board.
    pub plugged: Plugged,
    /// What was measured on the board; none: its file says how long an instruction takes.
    pub calibration: Option<Calibration>,
    /// All files it is made of, its description first.
    pub inputs: Vec<Input>,
    /// What looks wrong but does not keep the system from being built.
    pub warnings: Report,
    pub(crate) plan: crate::plan::Plan,
}

/// What is plugged into slots of the board when `cassata` runs it. It is no part of what is packed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plugged {
    /// The disks.
    pub disks: Vec<Disk>,
    /// The slot of the network card; none: there is none.
    pub network: Option<Slot>,
}

/// Where something is plugged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// What QEMU calls it.
    pub bus: &'static str,
    /// What it is.
    pub kind: SlotKind,
}

/// A disk of the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The slot.
    pub slot: Slot,
    /// The file that has what is on it, byte for byte.
    pub file: PathBuf,
    /// Bytes of that file.
    pub size: u64,
    /// True if the file keeps what a guest writes, false if that is gone when the machine ends.
    pub keep: bool,
}

/// How tasks share global resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The vCPU of a task that holds one is raised, and queues are by vCPU first (vMPCP, RTSS
    /// 2014, Section III-A).
    Vmpcp,
    /// No vCPU is raised, and queues are by task first: the baseline, which knows nothing of
    /// vCPUs. No bounds are known for it.
    Mpcp,
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
    /// For each pCPU, the pCPU that takes over its vCPUs; its own index if it is
    /// never powered down.
    pub targets: Vec<usize>,
    /// How often cores look at their load, nanoseconds.
    pub window_ns: u64,
}

impl Consolidation {
    /// Returns the pCPUs that may be powered down, each with its target.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.targets.iter().copied().enumerate().filter(|(pcpu, target)| pcpu != target)
    }
}

/// Where a guest finds its device tree, besides the register that says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DevicetreePlace {
    /// In the first 64 KiB of its memory, where QEMU has it.
    Start,
    /// In the last 64 KiB.
    #[default]
    End,
}

/// A virtual machine.
#[derive(Clone, Debug)]
pub struct Vm {
    /// Unique, 1 to 15 of a-z, 0-9 and `-`.
    pub name: String,
    /// The kernel.
    pub kernel: Kernel,
    /// The initramfs; only with a Linux kernel.
    pub initramfs: Option<Bytes>,
    /// The kernel's command line.
    pub cmdline: String,
    /// Bytes of memory.
    pub ram_size: u64,
    /// Where memory begins for the guest; `None` when it is where the layout
    /// finds room (identity without an address).
    pub ram_ipa: Option<u64>,
    /// True if guest-physical addresses are physical ones.
    pub identity: bool,
    /// True if it finds zeros at each start where nothing is loaded.
    pub clear_memory: bool,
    /// Where it finds its device tree.
    pub devicetree: DevicetreePlace,
    /// The vCPUs.
    pub vcpus: Vec<Vcpu>,
    /// The tasks that its device tree declares, those of one vCPU after those of another.
    pub tasks: Vec<DeclaredTask>,
    /// True if it has a console.
    pub console: bool,
    /// True if its interrupts have higher priorities than those of other VMs.
    pub realtime: bool,
    /// Bytes of its report area, 0 for none.
    pub report: u64,
    /// Memory that it shares with other VMs.
    pub shared_memory: Vec<SharedMemory>,
    /// The VM's ends of links.
    pub links: Vec<LinkEnd>,
    /// The virtio devices that it gets from another VM.
    pub virtio: Option<Front>,
    /// The virtio devices that it gives other VMs.
    pub backs: Vec<Back>,
    /// True if its tasks use mutexes of the hypervisor.
    pub has_mutexes: bool,
    /// True if it starts again when it cannot go on.
    pub restart_on_fault: bool,
    /// What the random numbers are made of that its device tree hands over;
    /// none: it hands over none.
    pub seed: Option<u64>,
    /// What happens to its vCPUs when others take their pCPUs.
    pub migration_policy: MigrationPolicy,
    /// See [`abi::system::Vm::other_policies`].
    pub other_policies: PolicySet,
    /// How long others wait for its vCPUs at most, nanoseconds, or
    /// [`abi::system::NO_DELAY_LIMIT`]; 0 unless its policy makes them wait.
    pub delay_limit_ns: u64,
    /// How far behind the beginning of a thread's `thread_info` its kernel counts what keeps the thread
    /// from being preempted, bytes.
    pub preempt_count_at: u64,
    /// See [`abi::system::vm_flags::YIELD`]. Such a VM has lines of preemption.
    pub yields: bool,
    /// The vCPUs may be moved to fewer pCPUs while there is little to do.
    pub consolidate: bool,
    /// Devices passed through.
    pub devices: Vec<&'static Device>,
    /// Interrupts passed through, those of its devices included.
    pub interrupts: Vec<PassedInterrupt>,
    /// The pCPU to which they come, wherever its vCPUs are; none: to that of its first vCPU.
    pub interrupts_to: Option<usize>,
    pub(crate) spans: VmSpans,
}

/// Memory that a VM shares with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMemory {
    /// Which one it is, in the order of the description.
    pub number: usize,
    /// Unique, 1 to 15 of a-z, 0-9 and `-`.
    pub name: String,
    /// Where every VM that has it finds it: guest-physical.
    pub guest: Region,
    /// True if this VM may only read it.
    pub read_only: bool,
}

/// A VM's end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkEnd {
    /// Which link it is, in the order of the description.
    pub number: usize,
    /// 0 for the VM that `between` names first, else 1.
    pub side: usize,
    /// Unique, 1 to 15 of a-z, 0-9 and `-`.
    pub name: String,
    /// The VM at the other end.
    pub peer: String,
    /// Bytes of the link's memory, both halves.
    pub size: u64,
    /// The memory may be cached, if both guests map it so.
    pub cached: bool,
}

impl LinkEnd {
    /// Returns where the registers are ([`abi::link`]): guest-physical.
    #[must_use]
    pub const fn registers(&self) -> Region {
        Region::new(LINKS_BASE + LINK_STRIDE * self.number as u64, LINK_STRIDE)
    }

    /// Returns where the guest finds what a side writes: guest-physical, and in both VMs the same.
    #[must_use]
    pub const fn half(&self, side: usize) -> Region {
        let memory = LINK_MEMORY_BASE + LINK_MAX_SIZE * self.number as u64;
        Region::new(memory + self.size / 2 * side as u64, self.size / 2)
    }

    /// Returns the doorbell's interrupt.
    #[must_use]
    pub const fn intid(&self) -> u32 {
        LINK_INTID + self.number as u32
    }
}

/// The virtio devices that a VM gets from another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// The VM's own index.
    pub number: usize,
    /// The VM that gives them.
    pub back: String,
    /// Bytes of the memory that both have.
    pub size: u64,
    /// What they are, by number.
    pub devices: Vec<VirtioKind>,
}

/// The virtio devices that a VM gives another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Back {
    /// The VM that gets them.
    pub name: String,
    /// What that gets.
    pub front: Front,
}

/// What a virtio device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VirtioKind {
    /// A disk.
    Block,
    /// A terminal.
    Console,
    /// A network card.
    Network,
}

impl VirtioKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Block, Self::Console, Self::Network];

    /// Returns the kind with a name of a description.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the name in a description.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Console => "console",
            Self::Network => "network",
        }
    }
}

impl Front {
    /// Returns where the memory is that both VMs have: guest-physical, in both of them.
    #[must_use]
    pub const fn memory(&self) -> Region {
        let start = VIRTIO_MEMORY_BASE + VIRTIO_MEMORY_MAX_SIZE * self.number as u64;
        Region::new(start, self.size)
    }

    /// Returns where the registers of a device are: guest-physical.
    #[must_use]
    pub const fn registers(&self, device: usize) -> Region {
        Region::new(VIRTIO_BASE + VIRTIO_STRIDE * device as u64, VIRTIO_STRIDE)
    }

    /// Returns a device's interrupt.
    #[must_use]
    pub const fn intid(&self, device: usize) -> u32 {
        VIRTIO_INTID + device as u32
    }

    /// Returns where the registers of the VM are that gives them ([`abi::virtio`]): guest-physical.
    #[must_use]
    pub const fn back_registers(&self) -> Region {
        Region::new(VIRTIO_BACK_BASE + VIRTIO_SIZE * self.number as u64, VIRTIO_SIZE)
    }

    /// Returns the doorbell of the VM that gives them.
    #[must_use]
    pub const fn back_intid(&self) -> u32 {
        VIRTIO_BACK_INTID + self.number as u32
    }
}

/// A virtual CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vcpu {
    /// Index of the pCPU it starts on.
    pub pcpu: usize,
    /// Larger is higher; what it has while it is marked, if its guest may mark it.
    pub priority: u16,
    /// The priority while it is not marked, if its guest may mark it as real-time.
    pub unmarked_priority: Option<u16>,
    /// Round-robin quantum, nanoseconds.
    pub quantum_ns: u64,
    /// Index of the pCPU it migrates to by default while another vCPU has `pcpu`;
    /// `pcpu` if it stays.
    pub fallback: usize,
    /// See [`abi::system::Vcpu::affinity`].
    pub affinity: u16,
    /// See [`abi::system::Vcpu::rotation`].
    pub rotation: u16,
    /// See [`abi::system::vcpu_flags::URGENT`].
    pub urgent: bool,
    /// See [`abi::system::vcpu_flags::LOWER`].
    pub lower: bool,
    /// How long before its timer fires it is given its core, or is boosted, nanoseconds; 0: not
    /// before.
    pub timer_advance_ns: u32,
    /// See [`abi::system::vcpu_flags::ADAPTS`].
    pub adapts_timer_advance: bool,
    /// What limits it; none: nothing but other vCPUs.
    pub server: Option<Server>,
    /// What boosts it; none: nothing does.
    pub boost: Option<Boost>,
}

/// A second, higher priority, and for how long a vCPU has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boost {
    /// Above its own.
    pub priority: u16,
    /// How long it may run at that in each period, nanoseconds; the whole period: as long as it likes.
    pub budget_ns: u32,
    /// The period, nanoseconds.
    pub period_ns: u32,
    /// For how long an interrupt boosts it, nanoseconds; 0: interrupts do not boost it.
    pub window_ns: u32,
}

/// A task that a vCPU's guest is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredTask {
    /// Unique in its VM.
    pub name: String,
    /// Index of its vCPU in the VM.
    pub vcpu: usize,
    /// Larger is higher; those of a vCPU differ.
    pub priority: u8,
    /// From one release to the next, nanoseconds.
    pub period_ns: u64,
    /// When its first period begins, nanoseconds.
    pub offset_ns: u64,
    /// How late a release may come after its period has begun, nanoseconds.
    pub jitter_ns: u64,
    /// What each job executes.
    pub segments: Vec<DeclaredSegment>,
}

/// A stretch of a task's execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredSegment {
    /// How long it executes at most, nanoseconds.
    pub wcet_ns: u64,
    /// The resource that it holds, and whether that is a global one; none: it holds none.
    pub resource: Option<(String, bool)>,
}

/// A budget, and how it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// What happens to what is not used.
    pub kind: ServerKind,
    /// What the vCPU may run in each period, nanoseconds.
    pub budget_ns: u64,
    /// From one replenishment to the next, nanoseconds.
    pub period_ns: u64,
    /// What its global critical sections may take beyond the budget in each period,
    /// nanoseconds.
    pub overrun_ns: u64,
    /// When its first period begins, nanoseconds after the instant that all servers count
    /// from.
    pub offset_ns: u64,
}

impl Vcpu {
    /// Returns all pCPUs where its policy may place it, `pcpu` included.
    pub fn affinity(&self) -> impl Iterator<Item = usize> + use<> {
        Members(self.affinity.into())
    }

    /// Returns the pCPUs that it moves round while it shares the one it is on.
    pub fn rotation(&self) -> impl Iterator<Item = usize> + use<> {
        Members(self.rotation.into())
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
    pub(crate) migration_policy: Span,
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
    /// Returns true if VMs are linked: then its hypervisor needs that part.
    #[must_use]
    pub fn has_links(&self) -> bool {
        self.vms.iter().any(|vm| !vm.links.is_empty())
    }

    /// Returns true if a VM has a device behind the board's SMMU: then its hypervisor needs that part.
    #[must_use]
    pub fn has_smmu(&self) -> bool {
        self.vms.iter().flat_map(|vm| &vm.devices).any(|device| device.streams.is_some())
    }

    /// Returns true if a VM gets virtio devices from another one: then its hypervisor needs that part.
    #[must_use]
    pub fn has_virtio(&self) -> bool {
        self.vms.iter().any(|vm| vm.virtio.is_some())
    }

    /// Returns true if a vCPU may be boosted: then its hypervisor needs that part.
    #[must_use]
    pub fn has_boosts(&self) -> bool {
        self.vms.iter().flat_map(|vm| &vm.vcpus).any(|vcpu| vcpu.boost.is_some())
    }

    /// Returns true if tasks share resources: then its hypervisor needs the part for sections.
    #[must_use]
    pub fn has_sections(&self) -> bool {
        self.shared_resources().next().is_some()
    }

    /// Returns true if pCPUs may be powered down: then its hypervisor needs that part.
    #[must_use]
    pub fn has_consolidation(&self) -> bool {
        self.consolidation.pairs().next().is_some()
    }

    /// Returns the parts that the system needs of its hypervisor, and that not every build for its board
    /// has: each with its bit of [`abi::system::parts`].
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, u32)> {
        let all = [
            (self.has_boosts(), "boosts", parts::BOOSTS),
            (self.has_consolidation(), "consolidation", parts::CONSOLIDATION),
            (self.has_links(), "links", parts::LINKS),
            (self.has_sections(), "sections", parts::SECTIONS),
            (self.has_smmu(), "smmu", parts::SMMU),
            (self.has_virtio(), "virtio", parts::VIRTIO),
        ];
        all.into_iter().filter(|(needed, ..)| *needed).map(|(_, name, bit)| (name, bit))
    }

    /// Returns what EL2 takes, for bounds; measured times are multiplied by so many
    /// thousandths.
    #[must_use]
    pub fn overheads(&self, margin_permille: u64) -> Overheads {
        let paces = paces(self.calibration.as_ref(), self.machine.board);
        overheads(&paces, &self.vms, self.watchdog_ns > 0, margin_permille)
    }

    /// Returns how long EL2 takes for an instruction at most, picoseconds: as the board was calibrated, or
    /// else as its file says.
    #[must_use]
    pub fn instruction_ps(&self) -> u64 {
        let calibrated = self.calibration.as_ref().map(|calibration| calibration.instruction_ps);
        calibrated.unwrap_or(self.machine.board.instruction_ps)
    }

    /// Returns what bounds can be computed for: what is described, but not under MPCP.
    #[must_use]
    pub fn promised(&self) -> Option<&analysis::model::System> {
        self.timing.as_ref().filter(|_| self.protocol == Protocol::Vmpcp)
    }

    /// Returns the names of the resources that have a mutex, in the order of the tables: those
    /// that tasks use globally.
    pub fn mutexes(&self) -> impl Iterator<Item = &str> {
        self.shared_resources().map(|(_, name)| name)
    }

    /// Returns the resources that have a mutex, each with its index among all.
    pub(crate) fn shared_resources(&self) -> impl Iterator<Item = (usize, &str)> {
        self.timing.iter().flat_map(|timing| {
            let all = timing.resources.iter().map(String::as_str).enumerate();
            all.filter(|(resource, _)| timing.tasks.iter().any(|task| task.uses(*resource)))
        })
    }

    /// Returns how many of each there are that EL2's loops go round for.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let claimants = |resource: usize| {
            let tasks = self.timing.iter().flat_map(|timing| &timing.tasks);
            tasks.filter(|task| task.uses(resource)).count()
        };
        Counts {
            vms: self.vms.len(),
            vcpus: self.vms.iter().map(|vm| vm.vcpus.len()).sum(),
            siblings: self.vms.iter().map(|vm| vm.vcpus.len()).max().unwrap_or(0),
            pcpus: self.machine.pcpus,
            list_registers: self.machine.board.list_registers,
            mutexes: self.shared_resources().count(),
            claimants: self.shared_resources().map(|(at, _)| claimants(at)).max().unwrap_or(0),
            device_interrupts: self.vms.iter().map(|vm| vm.interrupts.len()).sum(),
            features: self.features(),
        }
    }

    fn features(&self) -> Features {
        let placed = topology::all_placed(&self.vms, &self.consolidation.targets);
        let topology = Topology::new(&placed, self.machine.pcpus);
        let vcpus = || self.vms.iter().flat_map(|vm| &vm.vcpus);
        let servers = vcpus().filter(|vcpu| vcpu.server.is_some()).count();
        let marks = vcpus().filter(|vcpu| vcpu.unmarked_priority.is_some()).count();
        let boosts = vcpus().filter(|vcpu| vcpu.boost.is_some()).count();
        Features {
            migrants: topology.migrants().len(),
            candidates: topology.candidates().len(),
            extras: servers + marks + boosts + topology.stop_others().len(),
            // Only vCPUs with declared tasks have sections, and those have servers.
            sections: if self.timing.is_some() { servers } else { 0 },
            advances: vcpus().filter(|vcpu| vcpu.timer_advance_ns > 0).count(),
            leavers: self.consolidation.pairs().count(),
            watched: if self.watchdog_ns > 0 { self.machine.pcpus } else { 0 },
            lines: self.vms.iter().filter(|vm| vm.yields).map(|vm| vm.vcpus.len()).sum(),
            peeks: self.vms.iter().filter(|vm| vm.is_peeked()).count(),
            marks,
            boosts,
        }
    }

    /// Name of the description's file, without directory and extension.
    #[must_use]
    pub fn name(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// How many of each there are that EL2's loops go round for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// VMs.
    pub vms: usize,
    /// vCPUs of all VMs.
    pub vcpus: usize,
    /// vCPUs of the VM with most.
    pub siblings: usize,
    /// pCPUs that are used.
    pub pcpus: usize,
    /// List registers of each pCPU; none: not known.
    pub list_registers: Option<usize>,
    /// Mutexes.
    pub mutexes: usize,
    /// Tasks that may lock the mutex with most.
    pub claimants: usize,
    /// Physical interrupts that are passed through.
    pub device_interrupts: usize,
    /// What EL2 does only for systems that have it.
    pub features: Features,
}

/// How many of each there are for which EL2 does something that it does for no other system. The
/// constants of the crate `notes` have the same names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// vCPUs that may be handed over to another core.
    pub migrants: usize,
    /// Those, and the vCPUs whose policy decides something when they are displaced.
    pub candidates: usize,
    /// vCPUs that have a server, may be boosted or marked, or whose siblings are held back.
    pub extras: usize,
    /// vCPUs that may have global critical sections.
    pub sections: usize,
    /// vCPUs that get their core before their timers fire.
    pub advances: usize,
    /// pCPUs that may be powered down.
    pub leavers: usize,
    /// pCPUs that a watchdog watches.
    pub watched: usize,
    /// vCPUs that have a line of preemption.
    pub lines: usize,
    /// VMs whose preemption count is read.
    pub peeks: usize,
    /// vCPUs whose guest may mark them as real-time.
    pub marks: usize,
    /// vCPUs that may be boosted.
    pub boosts: usize,
}

/// Returns how fast a board is at EL2: as it was calibrated, or else as its file says.
pub(crate) fn paces(calibration: Option<&Calibration>, board: &Board) -> Paces {
    calibration.map_or_else(|| Paces::all(board.instruction_ps), Calibration::paces)
}

/// Returns what EL2 takes at these paces on a board that runs these VMs. `watched`: there is a watchdog.
pub(crate) fn overheads(
    paces: &Paces,
    vms: &[Vm],
    watched: bool,
    margin_permille: u64,
) -> Overheads {
    let measured = Overheads::measured(paces, margin_permille);
    let measured = match watched {
        true => measured.watched(paces, margin_permille),
        false => measured,
    };
    let measured = match vms.iter().any(|vm| !vm.interrupts.is_empty()) {
        true => measured.with_devices(paces, margin_permille),
        false => measured,
    };
    let migrates =
        |vm: &Vm| vm.consolidate || vm.vcpus.iter().any(|vcpu| vcpu.affinity().count() > 1);
    let served = vms.iter().flat_map(|vm| &vm.vcpus).filter(|vcpu| vcpu.server.is_some());
    let advance = served.map(|vcpu| vcpu.timer_advance_ns).max().unwrap_or(0);
    Overheads {
        departure_ns: if vms.iter().any(migrates) { measured.departure_ns } else { 0 },
        timer_advance_ns: advance.into(),
        ..measured
    }
}

impl Vm {
    /// What messages call it.
    pub(crate) fn title(&self) -> String {
        format!("VM `{}`", self.name)
    }

    fn is_peeked(&self) -> bool {
        self.migration_policy.policy().request() == Request::Peek
    }
}
