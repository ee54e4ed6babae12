//! The state of the machine, and which of its cores executes.

use super::interrupts::{Distributor, Private};
use super::registers::{COUNT, Register, TTBR0_EL2};
use super::smmu::Smmu;
use crate::arch::cpu;
use abi::MAX_VMS;
use abi::system::Board;
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// Ticks between two looks at the counter; a tick is a nanosecond.
pub const TICKS_PER_LOOK: u64 = 40;

/// What a core has.
pub struct Core {
    /// System registers, by [`Register`].
    pub registers: [u64; COUNT],
    /// Floating-point registers, of which one is enough.
    pub float: u128,
    /// Private interrupts.
    pub private: Private,
    /// Priorities of interrupts that were acknowledged and not dropped.
    pub running: Vec<u8>,
    /// Switched on.
    pub on: bool,
    /// It has FEAT_XNX.
    has_xnx: bool,
    /// The word on top of its stack.
    pub stack_top: u64,
    /// What it reads until the next synchronization, if it has written since the latest.
    pub stale: Option<Stale>,
    /// The root by which it has translated an alias of guest memory, as long as its TLB may know.
    pub alias: Option<u64>,
    /// A system error that was not taken yet.
    pub error: Option<SystemError>,
    /// By VMID: which vCPU its TLB holds stage-1 translations of.
    pub translations: [Option<u64>; MAX_VMS + 1],
}

/// A system error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemError {
    /// The VM whose guest has caused it; none: the boot loader or firmware.
    pub cause: Option<usize>,
    /// It pends; else what causes it is not complete yet.
    pub pends: bool,
}

/// What registers show of others, as of the latest synchronization.
#[derive(Clone, Copy)]
pub struct Stale {
    /// ICH_ELRSR_EL2.
    pub empty: u32,
    /// The virtual timer's registers: CNTV_CTL_EL0, CNTV_CVAL_EL0.
    pub timer: (u64, u64),
}

impl Core {
    /// Translates the alias of an address of guest memory. Returns the root.
    pub fn translate_alias(&mut self) -> u64 {
        *self.alias.insert(self.registers[TTBR0_EL2.0])
    }

    /// The TLB forgets, unless what it forgets can come back at once.
    pub fn forget_root(&mut self) {
        self.alias = self.alias.filter(|&root| root == self.registers[TTBR0_EL2.0]);
    }

    /// As after reset; what is pending at its redistributor stays.
    fn reset(&mut self, affinity: u64) {
        self.registers = [0; COUNT];
        self.running.clear();
        (self.stale, self.alias) = (None, None);
        for (name, value) in [
            // EL2.
            ("currentel", 2 << 2),
            // RES1 bit included.
            ("mpidr_el1", 1 << 31 | affinity),
            ("cntfrq_el0", 1_000_000_000),
            // ID_AA64MMFR1_EL1.XNX, without which policies with views are refused.
            ("id_aa64mmfr1_el1", u64::from(self.has_xnx) << 28),
            // FEAT_RAS.
            ("id_aa64pfr0_el1", 1 << 28),
            ("ich_vtr_el2", 4 << 26 | 3),
            // ID_AA64DFR0_EL1: six breakpoints, two of them of contexts, four watchpoints, PMUv3 for
            // Armv8.5. What the breakpoints hold after reset is unknown.
            ("s3_0_c0_c5_0", 1 << 28 | 3 << 20 | 5 << 12 | 6 << 8 | 8),
            ("dbgbvr5_el1", 0xdead),
            ("dbgbcr5_el1", 1),
            ("dbgwcr3_el1", 1),
        ] {
            self.registers[Register::named(name).0] = value;
        }
    }
}

/// See the module.
pub struct Machine {
    /// The counter.
    pub now: u64,
    /// The core that executes.
    pub current: usize,
    /// The cores, of which `pcpus` exist.
    pub cores: Vec<Core>,
    /// Shared interrupts.
    pub distributor: Distributor,
    /// Where the interrupt controller's frames are.
    pub board: Board,
    /// Memory that EL2 accesses, by physical address.
    memory: Vec<(Range<u64>, Vec<u128>)>,
    /// Switched off as a whole.
    pub off: bool,
    /// It was reset, which ends it here.
    pub was_reset: bool,
    /// Bits of a register that are one on every core, whatever is written.
    pub fixed: Vec<(Register, u64)>,
    /// True if ISR_EL1 shows an interrupt that is withdrawn before it can be acknowledged, as a level
    /// may fall.
    pub withdraws: fn() -> bool,
    /// Where aliases of guest memory are, and by which roots.
    pub aliases: Vec<(Range<u64>, u64)>,
    /// Errors of guests that EL2 has ended while none of them ran.
    pub errors_ended: u64,
    /// By VMID: the epoch of the guest that TLBs hold translations of.
    pub translations: [Option<u32>; MAX_VMS + 1],
    /// The SMMU, if there is one.
    pub smmu: Option<Smmu>,
}

/// Why a core pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// It is about to access a register or another core's memory.
    Access,
    /// It is about to execute its guest.
    Guest,
    /// It waits for an interrupt.
    Wait,
    /// It was switched off, or halted: it does not go on.
    Off,
}

type Hook = fn(Pause);

thread_local! {
    static MACHINE: RefCell<Option<Machine>> = const { RefCell::new(None) };
    static NUMBER: Cell<u64> = const { Cell::new(0) };
    static HOOK: Cell<Hook> = const { Cell::new(|_| {}) };
}

/// Returns the number of this thread's machine: statics of another one are made
/// anew.
pub fn number() -> u64 {
    NUMBER.get()
}

/// Lets `hook` decide at each pause of the executing core which core goes on.
pub fn pause_with(hook: Hook) {
    HOOK.set(hook);
}

/// The executing core may give way to another here.
#[inline]
pub fn pause(why: Pause) {
    (HOOK.get())(why);
}

/// Does something with this thread's machine.
pub fn with<T>(act: impl FnOnce(&mut Machine) -> T) -> T {
    MACHINE.with_borrow_mut(|machine| act(machine.as_mut().expect("a machine was installed")))
}

/// Puts a new machine in the place of this thread's: as the firmware leaves it,
/// with one core on.
pub fn install(board: Board) {
    NUMBER.set(NUMBER.get() + 1);
    let core = |affinity| {
        let mut core = Core {
            registers: [0; COUNT],
            float: 0,
            private: Private::default(),
            running: Vec::new(),
            on: false,
            has_xnx: true,
            stack_top: 0,
            stale: None,
            alias: None,
            error: None,
            translations: [None; MAX_VMS + 1],
        };
        core.reset(affinity);
        core
    };
    let mut cores: Vec<_> = board.pcpu_mpidr.into_iter().map(core).collect();
    cores[0].on = true;
    let distributor = Distributor::default();
    let (memory, off, fixed) = (Vec::new(), false, Vec::new());
    MACHINE.set(Some(Machine {
        now: 1,
        current: 0,
        cores,
        distributor,
        board,
        memory,
        off,
        was_reset: false,
        fixed,
        withdraws: || false,
        aliases: Vec::new(),
        errors_ended: 0,
        translations: [None; MAX_VMS + 1],
        smmu: None,
    }));
}

impl Machine {
    /// The core that executes.
    pub fn core(&self) -> &Core {
        &self.cores[self.current]
    }

    /// The core that executes.
    pub fn core_mut(&mut self) -> &mut Core {
        &mut self.cores[self.current]
    }

    /// A register of any core, as it stands there.
    pub fn register(&self, core: usize, register: Register) -> u64 {
        self.cores[core].registers[register.0]
    }

    /// Adds memory at a physical address.
    pub fn add_memory(&mut self, pa: u64, bytes: &[u8]) {
        let mut words = std::vec![0_u128; bytes.len().div_ceil(16)];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(16)) {
            let mut whole = [0; 16];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u128::from_le_bytes(whole);
        }
        self.memory.push((pa..pa + bytes.len() as u64, words));
    }

    /// Where the memory at a physical address is.
    ///
    /// # Panics
    /// If there is none.
    pub fn pointer(&mut self, pa: u64) -> *mut u8 {
        let found = self.memory.iter_mut().find(|(range, _)| range.contains(&pa));
        let Some((range, words)) = found else { panic!("no memory at {pa:#x}") };
        words.as_mut_ptr().cast::<u8>().wrapping_add((pa - range.start) as usize)
    }

    /// What the core that executes has accessed is complete: the error that it causes pends.
    pub fn errors_arrive(&mut self) {
        if let Some(error) = &mut self.core_mut().error {
            error.pends = true;
        }
    }

    /// EL2 ends the error of the core that executes, which pends.
    pub fn end_error(&mut self) {
        let error = self.core_mut().error.take().expect("there is an error");
        assert!(error.pends, "an error is ended that has not come");
        self.errors_ended += u64::from(error.cause.is_some());
    }

    /// Makes it a machine of cores without FEAT_XNX, before the first of them begins.
    pub fn lack_xnx(&mut self) {
        for (core, affinity) in self.cores.iter_mut().zip(self.board.pcpu_mpidr) {
            core.has_xnx = false;
            core.reset(affinity);
        }
    }

    /// A core begins, its registers as after reset, but that its assembly has turned the MMU on.
    pub fn switch_on(&mut self, core: usize) {
        self.cores[core].reset(self.board.pcpu_mpidr[core]);
        self.cores[core].registers[TTBR0_EL2.0] = self.board.stage1_pa;
        self.cores[core].registers[Register::named("sctlr_el2").0] = cpu::SCTLR;
        self.cores[core].on = true;
    }
}
