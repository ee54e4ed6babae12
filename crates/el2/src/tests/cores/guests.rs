//! What guests execute: anything that they may do to EL2, in no order.
//!
//! All that a guest remembers is in its registers, so that it notices when it
//! gets back others than its own.

use super::drive::{chance, tell};
use crate::arch::context::{General, Syndrome};
use crate::arch::fake::machine::{self, Machine, Pause, SystemError};
use crate::arch::fake::registers::Register;
use crate::arch::memory;
use crate::arch::sysreg::{ec, hcr};
use crate::arch::vectors::Vector;
use crate::exits;
use crate::pcpu::Pcpu;
use crate::tables;
use abi::MAX_VMS;
use abi::link;
use abi::platform::ppi::{GRANT, PHYSICAL_TIMER, VIRTUAL_TIMER};
use abi::platform::{
    GICD_BASE, GICR_BASE, GICR_STRIDE, LINE_STRIDE, LINK_STRIDE, LINKS_BASE, UART_BASE, UART_INTID,
    VIRTIO_BACK_BASE, VIRTIO_BASE, VIRTIO_SIZE, VIRTIO_STRIDE,
};
use abi::service::{self, psci};
use abi::system::{System, vm_flags};
use abi::virtio::{self, Request};
use std::cell::Cell;

/// Where a guest keeps what: its identity, once it has set itself up; whether its breakpoints act;
/// the address of one; how far it has got with setting itself up; interrupts it has taken and not
/// ended, and how many; what it has put into its floating-point registers; which of its cycle
/// counter's two switches are on, how far that has come, whether it has just read it, and what it
/// read.
const ME: usize = 28;
const SWITCHES: usize = 13;
/// What it loads of a virtio device, an address, until it has an answer; and the answer, or [`UNANSWERED`].
const ASKED: usize = 11;
const ANSWER: usize = 12;
/// No word that a load can read.
const UNANSWERED: u64 = 1 << 40;
const CYCLES: usize = 14;
const HAS_READ: usize = 15;
const READ: usize = 16;
const DEBUGS: usize = 17;
const BREAKPOINT: usize = 18;
const SET_UP: usize = 19;
const TAKEN: usize = 20;
const DEPTH: usize = 26;
const FLOAT: usize = 27;
/// Interrupts a guest takes before it ends one.
const DEEPEST: u64 = 5;

/// How rarely a guest that is away from its base resets its VM: one act in so many.
const RARELY_AWAY: u32 = 300;

/// How rarely a guest that has devices writes to one what the bus refuses: one act in so many.
const RARELY_REFUSED: u32 = 50;

/// What the identity of a guest's vCPU looks like: an address of its kernel, and of a table in its memory.
const MAGIC: u64 = 0xffff_0000_4000_0000;
/// SPSR_EL2.M at EL1 and EL0.
const KERNEL: u64 = 5;
const USER: u64 = 0;
/// MDSCR_EL1.MDE.
const MDE: u64 = 1 << 15;

/// The fields op0, op1, CRn, CRm and op2 of a system register's name.
pub type Name = (u64, u64, u64, u64, u64);

/// Returns ESR.ISS of a write to a system register from X0.
pub fn access_to((op0, op1, crn, crm, op2): Name) -> u64 {
    op0 << 20 | op2 << 17 | op1 << 14 | crn << 10 | crm << 1
}

/// What a VM's guest is like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Character {
    /// It does anything that a guest can do.
    Any,
    /// It sleeps from period to period and computes a little in between, as FreeRTOS.
    Periodic,
    /// It has programs beside its kernel, a timer that ticks and siblings that it wakes,
    /// as Linux.
    Busy,
    /// It switches its vCPUs on and off and starts itself again, and has interrupts meanwhile.
    Restless,
}

thread_local! {
    static FINISH: Cell<bool> = const { Cell::new(false) };
    /// By VM: as an epoch, the life after the latest that a guest has asked to end, or ended by a
    /// fault.
    static NEXT_LIFE: Cell<[u32; MAX_VMS]> = const { Cell::new([0; MAX_VMS]) };
    static CHARACTERS: Cell<[Character; MAX_VMS]> = const { Cell::new([Character::Any; MAX_VMS]) };
}

/// Gives each VM of a machine a character: a third of them do anything.
pub fn cast(system: &System) {
    let mut characters = [Character::Any; MAX_VMS];
    for (vm, character) in system.vms().iter().zip(&mut characters) {
        let usual = if vm.is(vm_flags::REALTIME) { Character::Periodic } else { Character::Busy };
        match chance(6) {
            0..3 => *character = usual,
            3 => *character = Character::Restless,
            _ => {}
        }
    }
    CHARACTERS.set(characters);
    NEXT_LIFE.set([0; MAX_VMS]);
}

/// From now on guests only end what they began, and sleep; or do anything again.
pub fn only_finish(finish: bool) {
    FINISH.set(finish);
}

/// Returns true if the guest with these registers has asked for something of a virtio device, and has no answer.
pub fn waits_for_answer(general: &General) -> bool {
    general.x[ASKED] != 0 && general.x[ANSWER] == UNANSWERED
}

/// Returns true if the guest with these registers has taken an interrupt that it has not ended.
pub fn has_taken(general: &General, intid: u32) -> bool {
    let deepest = TAKEN + general.x[DEPTH].min(DEEPEST) as usize;
    general.x[TAKEN..deepest].contains(&u64::from(intid))
}

/// Runs guests on a core for ever: each goes on until it comes to EL2.
pub fn run(core: u64) -> ! {
    // SAFETY: the address on the core's stack, as `start` wrote it there; it uses
    // the core in exceptions only from now on, which begin below.
    let core = unsafe { &mut *(core as *mut Pcpu) };
    loop {
        core.check();
        let vector = until_exit(core);
        exits::take(core, vector);
    }
}

fn until_exit(core: &mut Pcpu) -> Vector {
    let index = core.index();
    loop {
        machine::pause(Pause::Guest);
        if machine::with(|machine| machine.signalled(index)).is_some() {
            tell(|| "interrupt".into());
            return Vector::Interrupt;
        }
        let id = u64::from(core.loaded().expect("a guest runs").id().0);
        let vcpus = core.system().vms[core.loaded().expect("a guest runs").vm()].vcpu_count;
        let epoch = core.loaded().expect("a guest runs").epoch();
        let general = core.loaded_mut().expect("a guest runs").general();
        let mut guest = Guest { core: index, id, epoch, vcpus: u32::from(vcpus), general };
        guest.recognise_itself();
        guest.count_a_cycle();
        guest.translate();
        let next = NEXT_LIFE.get()[guest.vm()];
        assert!(epoch <= next, "life {epoch}, though life {next} did not ask for its end");
        if guest.errs() {
            return Vector::Serror;
        }
        if let Some(vector) = guest.act() {
            return vector;
        }
    }
}

struct Guest<'a> {
    core: usize,
    id: u64,
    /// Which life of its VM this is.
    epoch: u32,
    vcpus: u32,
    general: &'a mut General,
}

/// A system register of the executing core, by name.
macro_rules! register {
    ($name:literal) => {
        Register::named($name)
    };
}

impl Guest<'_> {
    fn set(&self, register: Register, value: u64) {
        self.machine(|machine| machine.cores[self.core].registers[register.0] = value);
    }

    fn get(&self, register: Register) -> u64 {
        self.machine(|machine| machine.register(self.core, register))
    }

    fn machine<T>(&self, act: impl FnOnce(&mut Machine) -> T) -> T {
        machine::with(act)
    }

    fn me(&self) -> u64 {
        MAGIC | self.id << 3
    }

    /// The registers are this guest's, or as after reset.
    fn recognise_itself(&self) {
        let expected = self.general.x[ME];
        assert!(expected == 0 || expected == self.me(), "{expected:#x} at {:#x}", self.me());
        for register in [register!("tpidr_el1"), register!("sp_el0"), register!("ttbr1_el1")] {
            let found = self.get(register);
            assert_eq!(found, expected, "vCPU {}: another guest's registers", self.id);
        }
        let deferred = self.get(register!("s3_4_c12_c1_1"));
        assert!(deferred == 0 || deferred == self.me(), "another guest's deferred error");
        let debugs = self.get(register!("mdscr_el1")) & MDE != 0;
        assert_eq!(debugs, self.general.x[DEBUGS] != 0, "another guest's MDSCR_EL1");
        if debugs {
            let registers = [register!("dbgbvr5_el1"), register!("dbgbcr5_el1")];
            let [address, control] = registers.map(|register| self.get(register));
            let expected = (self.general.x[BREAKPOINT], 0);
            assert_eq!((address, control), expected, "vCPU {}: another's breakpoint", self.id);
            assert_eq!(self.get(register!("dbgwcr3_el1")), 0, "another's watchpoint");
        }
        let sre = self.get(register!("icc_sre_el1"));
        assert_eq!(sre, 0x7, "a guest took the core's interrupt interface away");
        let own = self.general as *const _ as u64;
        assert_eq!(self.get(register!("tpidr_el2")), own, "the vectors would save elsewhere");
    }

    /// Executes something, which takes a cycle.
    fn count_a_cycle(&mut self) {
        let registers = &mut self.general.x;
        if core::mem::take(&mut registers[HAS_READ]) != 0 {
            assert_eq!(registers[READ], registers[CYCLES], "vCPU {}: another's cycles", self.id);
        }
        registers[CYCLES] += u64::from(registers[SWITCHES] == 3);
        let cycles = register!("pmccntr_el0");
        self.machine(|machine| machine.cores[self.core].registers[cycles.0] += 1);
    }

    /// Turns one of its cycle counter's switches, or reads that.
    fn monitor(&mut self) -> Vector {
        let turn = u64::from(chance(4) > 0);
        match chance(4) {
            // PMCR_EL0.E; PMCNTENSET_EL0.C, PMCNTENCLR_EL0.C.
            0 => {
                self.general.x[SWITCHES] = self.general.x[SWITCHES] & 2 | turn;
                self.write_system_register((3, 3, 9, 12, 0), turn)
            }
            1 => {
                self.general.x[SWITCHES] = self.general.x[SWITCHES] & 1 | turn << 1;
                self.write_system_register((3, 3, 9, 12, 2 - turn), 1 << 31)
            }
            _ => {
                self.general.x[HAS_READ] = 1;
                self.read_system_register((3, 3, 9, 13, 0), READ)
            }
        }
    }

    /// Fills the TLBs, in which no earlier life of its VM may have left anything, and in that of
    /// its core no sibling: that may use the same ASID for other tables (DDI 0487, D8.16).
    fn translate(&self) {
        let (vmid, epoch) = (self.vm() + 1, self.epoch);
        self.machine(|machine| {
            let of = machine.translations[vmid].replace(epoch);
            assert!(of.is_none_or(|of| of == epoch), "translations of an earlier life");
            let of = machine.cores[self.core].translations[vmid].replace(self.id);
            assert!(
                of.is_none_or(|of| of == self.id),
                "vCPU {}: a sibling's translations",
                self.id
            );
        });
    }

    /// Returns true if a system error comes, which only this guest can have caused.
    fn errs(&self) -> bool {
        let Some(error) = self.machine(|machine| machine.cores[self.core].error) else {
            return false;
        };
        assert_eq!(error.cause, Some(self.vm()), "vCPU {}: another guest's error", self.id);
        let comes = error.pends || chance(8) == 0;
        if comes {
            tell(|| "its system error".into());
            self.machine(|machine| machine.cores[self.core].error = None);
        }
        comes
    }

    /// Writes to a device what the bus will refuse.
    fn write_refused(&self) {
        tell(|| format!("vCPU {} writes what is refused", self.id));
        self.ends_life();
        let error = SystemError { cause: Some(self.vm()), pends: false };
        self.machine(|machine| machine.cores[self.core].error = Some(error));
    }

    fn act(&mut self) -> Option<Vector> {
        if self.general.x[ME] == 0 {
            self.begin();
        }
        if self.general.x[SET_UP] < 4 {
            return Some(self.set_up());
        }
        if self.general.x[DEPTH] > 0 && (FINISH.get() || chance(3) > 0) {
            return self.end_interrupt();
        }
        if (chance(2) == 0 || FINISH.get())
            && let Some(vector) = self.take_interrupt()
        {
            return vector;
        }
        if FINISH.get() {
            return Some(self.finish());
        }
        if self.general.x[ASKED] != 0 {
            if self.general.x[ANSWER] == UNANSWERED {
                return Some(self.load_answer(self.general.x[ASKED], 2));
            }
            self.general.x[ASKED] = 0;
        }
        if self.is_away() && chance(RARELY_AWAY) == 0 {
            // Its VM ends while not all its vCPUs are where they are halted.
            return Some(self.hypervisor_call(psci::SYSTEM_RESET, [0; 3]));
        }
        if tables::find().vms[self.vm()].is(vm_flags::DEVICES) && chance(RARELY_REFUSED) == 0 {
            self.write_refused();
        }
        let may_have_sections = tables::find().vcpus[self.id as usize].mutexes > 0;
        match CHARACTERS.get()[self.vm()] {
            Character::Any if may_have_sections && chance(2) == 0 => Some(self.section()),
            Character::Any => self.anything(),
            Character::Periodic => self.periodic(),
            Character::Busy => self.busy(),
            Character::Restless => self.restless(),
        }
    }

    fn begin(&mut self) {
        const MASK: u64 = 0xf8 << 24;
        self.general.x[ME] = self.me();
        for register in [register!("tpidr_el1"), register!("sp_el0"), register!("ttbr1_el1")] {
            self.set(register, self.me());
        }
        // Some say where a count of theirs is, as Linux does, some what is no translation.
        let tcr = if chance(3) > 0 { 2 << 30 | 16 << 16 } else { chance(u32::MAX).into() };
        self.set(register!("tcr_el1"), tcr);
        self.set(register!("vbar_el1"), 0xffff_0000_0000_0000);
        self.set(register!("ich_vmcr_el2"), MASK | 3);
    }

    /// Enables its interrupts, an access for each register.
    fn set_up(&mut self) -> Vector {
        self.general.x[SET_UP] += 1;
        let redistributor = GICR_BASE + self.index() * GICR_STRIDE + 0x1_0000;
        let (address, value) = match self.general.x[SET_UP] {
            1 => (GICD_BASE, 3),
            2 => (redistributor + 0x080, u64::MAX),
            3 => (
                redistributor + 0x100,
                0xffff | 1 << VIRTUAL_TIMER | 1 << PHYSICAL_TIMER | 1 << GRANT,
            ),
            _ => (GICD_BASE + 0x104, 0xffff_ffff),
        };
        self.store(address, 2, value)
    }

    fn index(&self) -> u64 {
        self.get(register!("vmpidr_el2")) & 0xff
    }

    /// Takes the most urgent interrupt. Some if there was one; what follows may
    /// need EL2.
    fn take_interrupt(&mut self) -> Option<Option<Vector>> {
        if self.general.x[DEPTH] >= DEEPEST {
            return None;
        }
        let intid = self.machine(|machine| machine.virtual_acknowledge(self.core))?;
        let depth = &mut self.general.x[DEPTH];
        let at = TAKEN + *depth as usize;
        *depth += 1;
        self.general.x[at] = u64::from(intid);
        tell(|| format!("vCPU {} takes {intid}", self.id));
        Some(match intid {
            VIRTUAL_TIMER => {
                self.set(register!("cntv_ctl_el0"), 0);
                None
            }
            PHYSICAL_TIMER => Some(self.write_system_register((3, 3, 14, 2, 1), 0)),
            // IMSC
            UART_INTID => Some(self.store(UART_BASE + 0x38, 2, 0)),
            _ => None,
        })
    }

    fn end_interrupt(&mut self) -> Option<Vector> {
        self.general.x[DEPTH] -= 1;
        let intid = self.general.x[TAKEN + self.general.x[DEPTH] as usize] as u32;
        tell(|| format!("vCPU {} ends {intid}", self.id));
        self.machine(|machine| machine.virtual_end(self.core, intid));
        None
    }

    /// Sleeps with its timers off.
    fn finish(&mut self) -> Vector {
        self.set(register!("cntv_ctl_el0"), 0);
        self.general.x[SET_UP] += 1;
        if self.general.x[SET_UP].is_multiple_of(2) {
            return self.write_system_register((3, 3, 14, 2, 1), 0);
        }
        self.trap(ec::WFX, 0)
    }

    fn vm(&self) -> usize {
        (self.get(register!("vttbr_el2")) >> 48) as usize - 1
    }

    /// Returns true if it is not on the core that its description names.
    fn is_away(&self) -> bool {
        usize::from(tables::find().vcpus[self.id as usize].pcpu) != self.core
    }

    fn periodic(&mut self) -> Option<Vector> {
        const PERIOD: u64 = 25_000;
        match chance(8) {
            0..4 => None,
            4 => self.float(),
            5 => Some(self.store(UART_BASE, 2, u64::from(b'.'))),
            _ => {
                let next = self.machine(|machine| machine.now) / PERIOD * PERIOD + PERIOD;
                self.set(register!("cntv_cval_el0"), next);
                self.set(register!("cntv_ctl_el0"), 1);
                Some(self.trap(ec::WFX, 0))
            }
        }
    }

    fn busy(&mut self) -> Option<Vector> {
        match chance(32) {
            0..8 => self.change_mode(),
            8..12 => {
                self.set_timer();
                None
            }
            12..16 => Some(self.send_sgi()),
            16..18 => self.float(),
            18 => Some(self.debug()),
            28 => Some(self.monitor()),
            19 | 20 => Some(self.switch_sibling_on()),
            21 => Some(self.device()),
            22..25 => Some(self.sleep()),
            26 | 27 => Some(self.say_about_preemption()),
            25 if self.get(register!("hcr_el2")) & hcr::TWE != 0 => Some(self.trap(ec::WFX, 1)),
            _ => None,
        }
    }

    fn restless(&mut self) -> Option<Vector> {
        if NEXT_LIFE.get()[self.vm()] > self.epoch {
            // A sibling has asked for the end already, so two requests are on their way.
            return Some(self.hypervisor_call(psci::SYSTEM_RESET, [0; 3]));
        }
        match chance(32) {
            0..8 => Some(self.switch_sibling_on()),
            // One stays on, or its VM would sleep for ever.
            8..12 if self.index() > 0 => Some(self.hypervisor_call(psci::CPU_OFF, [0; 3])),
            12 => Some(self.hypervisor_call(psci::SYSTEM_RESET, [0; 3])),
            13..18 => Some(self.send_sgi()),
            18..22 => {
                self.set_timer();
                None
            }
            22..24 => Some(self.device()),
            24 => Some(self.sleep()),
            _ => None,
        }
    }

    fn switch_sibling_on(&mut self) -> Vector {
        let sibling = u64::from(chance(self.vcpus));
        let entry = tables::find().vms[self.vm()].entry_ipa;
        self.hypervisor_call(psci::CPU_ON_64, [sibling, entry, 0])
    }

    fn anything(&mut self) -> Option<Vector> {
        match chance(40) {
            0..5 => return Some(self.sleep()),
            5..12 => self.set_virtual_timer(),
            12..15 => return Some(self.send_sgi()),
            15..17 => {
                let op2 = u64::from(chance(3));
                let value = if op2 == 1 { u64::from(chance(4)) } else { self.soon() };
                return Some(self.write_system_register((3, 3, 14, 2, op2), value));
            }
            17..22 => return self.change_mode(),
            22..24 => return self.float(),
            24 => return Some(self.debug()),
            25..31 => return Some(self.device()),
            31..36 => return Some(self.call()),
            36 if self.get(register!("hcr_el2")) & hcr::TWE != 0 => {
                return Some(self.trap(ec::WFX, 1));
            }
            37 => return self.system_register(),
            38..40 => return self.rarely(),
            _ => {}
        }
        None
    }

    /// Sleeps until its timer fires; few sleep for ever, as a history ends when all do.
    fn sleep(&mut self) -> Vector {
        if chance(64) > 0 {
            self.set_timer();
        }
        self.trap(ec::WFX, 0)
    }

    /// Has its virtual timer fire soon.
    fn set_timer(&self) {
        self.set(register!("cntv_cval_el0"), self.soon());
        self.set(register!("cntv_ctl_el0"), 1);
    }

    fn soon(&self) -> u64 {
        self.machine(|machine| machine.now) + u64::from(chance(60_000))
    }

    fn set_virtual_timer(&mut self) {
        self.set(register!("cntv_cval_el0"), self.soon());
        self.set(register!("cntv_ctl_el0"), u64::from(chance(4)));
    }

    /// From now on this life may end.
    fn ends_life(&self) {
        let mut next = NEXT_LIFE.get();
        next[self.vm()] = next[self.vm()].max(self.epoch + 1);
        NEXT_LIFE.set(next);
    }

    fn rarely(&mut self) -> Option<Vector> {
        let what = chance(60);
        if what < 3 {
            self.ends_life();
        }
        match what {
            0 => Some(Vector::Serror),
            1 => Some(Vector::Unsupported),
            2 => {
                // It cannot even fetch its exception vector.
                let at = self.get(register!("vbar_el1")) + 0x200;
                self.set(register!("elr_el2"), at);
                self.set(register!("spsr_el2"), KERNEL);
                Some(self.trap(ec::INSTRUCTION_ABORT, 0b00_0100))
            }
            3 => Some(self.store(0x1234_5678, 2, 0)),
            4..8 => Some(self.hypervisor_call(psci::SYSTEM_RESET, [0; 3])),
            8 => Some(self.hypervisor_call(psci::SYSTEM_OFF, [0; 3])),
            9 => Some(self.trap(ec::UNKNOWN, 0)),
            _ => None,
        }
    }

    /// Goes to its kernel, or to a program; EL2 may have a say.
    fn change_mode(&mut self) -> Option<Vector> {
        const PERMISSION_FAULT: u64 = 0b00_1111;
        let mode = if chance(2) == 0 { KERNEL } else { USER };
        self.set(register!("spsr_el2"), mode);
        if self.may_execute(mode) {
            return None;
        }
        tell(|| format!("vCPU {} may not execute mode {mode}", self.id));
        Some(self.trap(ec::INSTRUCTION_ABORT, PERMISSION_FAULT))
    }

    /// What its stage-2 tables say: the second view is the programs', the third
    /// the kernel's.
    fn may_execute(&self, mode: u64) -> bool {
        let root = self.get(register!("vttbr_el2")) & ((1 << 48) - 1);
        let views = tables::find().vms[self.vm()].stage2_pa;
        root == views[0] || root == views[if mode == USER { 1 } else { 2 }]
    }

    /// Uses its floating-point registers, which are as it left them.
    fn float(&mut self) -> Option<Vector> {
        const TRAP: u64 = 1 << 10;
        if self.get(register!("cptr_el2")) & TRAP != 0 {
            return Some(self.trap(ec::FP, 0));
        }
        let expected = u128::from(self.general.x[FLOAT]);
        let value = chance(u32::MAX);
        self.machine(|machine| {
            let float = &mut machine.cores[self.core].float;
            assert_eq!(*float, expected, "vCPU {}: another's floating point", self.id);
            *float = u128::from(value);
        });
        self.general.x[FLOAT] = u64::from(value);
        None
    }

    /// Sets one of its breakpoints, or has all of them act or not.
    fn debug(&mut self) -> Vector {
        if chance(2) == 0 {
            let address = u64::from(chance(u32::MAX));
            self.general.x[BREAKPOINT] = address;
            return self.write_system_register((2, 0, 0, 5, 4), address);
        }
        let control = if chance(3) > 0 { MDE } else { 0 };
        self.general.x[DEBUGS] = control;
        self.write_system_register((2, 0, 0, 2, 2), control)
    }

    fn send_sgi(&mut self) -> Vector {
        let targets = u64::from(chance(1 << self.vcpus));
        let others = u64::from(chance(4) == 0) << 40;
        let intid = u64::from(chance(16));
        self.write_system_register((3, 0, 12, 11, 5), others | intid << 24 | targets)
    }

    /// Says that it holds locks or none, or that it waits for one, in memory and by calls.
    fn say_about_preemption(&mut self) -> Vector {
        let vm = &tables::find().vms[self.vm()];
        if vm.lines_pa != 0 {
            let line = vm.lines_pa + self.index() * LINE_STRIDE;
            // Half of what it writes asks for nothing.
            let any = [chance(u32::MAX), chance(3), chance(u32::MAX), chance(2)];
            let (desire, task) = (chance(2) * any[0], chance(2) * chance(1 << 16));
            let words = [desire, any[1], any[2], any[3], task, chance(2)];
            // SAFETY: the line of this guest's vCPU; only this core executes now.
            unsafe { memory::at::<[u32; 6]>(line).write(words) };
        }
        if chance(3) == 0 {
            return self.say_what_runs();
        }
        let calls = [
            service::PREEMPT_DISABLE,
            service::PREEMPT_ENABLE,
            service::YIELD,
            service::PREEMPTION_LINE,
            service::MARK_RT,
        ];
        self.hypervisor_call(calls[chance(5) as usize], [chance(3).into(), 0, 0])
    }

    /// Says by a call that something urgent runs, or no longer.
    fn say_what_runs(&mut self) -> Vector {
        let which = if chance(4) > 0 { u64::MAX } else { chance(self.vcpus + 1).into() };
        let says = [which, chance(3).into(), u64::from(chance(100)) + 1];
        let function = if chance(3) > 0 { service::BOOST } else { service::DEBOOST };
        self.hypervisor_call(function, says)
    }

    fn call(&mut self) -> Vector {
        let sibling = u64::from(chance(self.vcpus));
        if tables::find().vcpus[self.id as usize].may_be_boosted() && chance(2) > 0 {
            return self.say_what_runs();
        }
        match chance(14) {
            12.. => self.say_about_preemption(),
            0..4 => self.switch_sibling_on(),
            4 if self.vcpus > 1 => self.hypervisor_call(psci::CPU_OFF, [0; 3]),
            5 if chance(3) > 0 => {
                let function = if chance(4) > 0 { service::MIGRATE } else { service::WHERE };
                self.hypervisor_call(function, [sibling, chance(5).into(), 0])
            }
            5 => {
                self.set_timer();
                self.hypervisor_call(psci::CPU_SUSPEND_64, [0; 3])
            }
            6 => self.hypervisor_call(psci::AFFINITY_INFO_64, [sibling, 0, 0]),
            7 => self.hypervisor_call(service::COUNTER, [sibling, u64::from(chance(8)), 0]),
            8 => self.hypervisor_call(service::PV_TIME_ST, [0; 3]),
            9 => self.hypervisor_call(chance(u32::MAX), [0; 3]),
            10 => self.section(),
            _ => self.hypervisor_call(service::NULL, [0; 3]),
        }
    }

    /// Begins or ends a section of a sibling, or uses a mutex, of which it may know nothing.
    fn section(&mut self) -> Vector {
        let system = tables::find();
        let sibling = u64::from(chance(self.vcpus + 1));
        let number = chance(system.header.mutex_count + 1) as usize;
        let mutex = &system.mutexes[number];
        let rank = chance(mutex.claimant_count + 1) as usize;
        let own = mutex.vcpus.iter().position(|&vcpu| u64::from(vcpu) == self.id);
        let rank = own.filter(|_| chance(8) > 0).unwrap_or(rank);
        let handle = (rank as u64) << 8 | number as u64;
        let (function, arguments) = match chance(16) {
            0..3 => (service::START_GCS, [sibling, 0, 0]),
            3..6 => (service::FINISH_GCS, [sibling, 0, 0]),
            6..8 => (service::MUTEX_OPEN, [mutex.name, mutex.tasks[rank].into(), 0]),
            8 => (service::MUTEX_CLOSE, [handle, 0, 0]),
            9..12 => (service::MUTEX_LOCK, [handle, 0, 0]),
            12 => (service::MUTEX_TRYLOCK, [handle, 0, 0]),
            13 => (service::MUTEX_ABANDON, [handle, 0, 0]),
            _ => (service::MUTEX_UNLOCK, [handle, 0, 0]),
        };
        self.hypervisor_call(function, arguments)
    }

    fn hypervisor_call(&mut self, function: u32, arguments: [u64; 3]) -> Vector {
        if let psci::SYSTEM_RESET | psci::SYSTEM_OFF = function {
            self.ends_life();
        }
        self.general.x[0] = function.into();
        self.general.x[1..4].copy_from_slice(&arguments);
        self.trap(if chance(2) == 0 { ec::HVC64 } else { ec::SMC64 }, 0)
    }

    /// A register of the interrupt controller or of the console.
    fn device(&mut self) -> Vector {
        let bits = u64::from(chance(u32::MAX)) & u64::from(chance(u32::MAX));
        let bases = [0x080, 0x100, 0x180, 0x200, 0x280, 0x400];
        let base = bases[chance(bases.len() as u32) as usize];
        if let Some(access) = self.link().or_else(|| self.virtio()).or_else(|| self.virtio_back()) {
            return access;
        }
        let frame = match chance(5) {
            0 => GICD_BASE + 4,
            1 => GICD_BASE + 8,
            // Doorbells of links.
            2 => GICD_BASE + 32,
            _ => {
                let whose = u64::from(chance(self.vcpus));
                GICR_BASE + whose * GICR_STRIDE + 0x1_0000
            }
        };
        match chance(6) {
            0 => self.store(UART_BASE, 2, u64::from(b'x')),
            // IMSC: the transmit interrupt.
            1 => self.store(UART_BASE + 0x38, 2, 1 << 5),
            2 => self.load(UART_BASE + 0x18, 2),
            3 => self.load(frame + base, 2),
            4 => {
                // To itself, or to a vCPU that there is not.
                let target = if chance(3) == 0 { 0xff } else { self.index() };
                self.store(GICD_BASE + 0x6000 + 8 * u64::from(32 + chance(64)), 2, target)
            }
            // What is in use stays enabled, in its group.
            _ if matches!(base, 0x080 | 0x180) => self.store(frame + 0x100, 2, bits),
            _ => self.store(frame + base, 2, bits),
        }
    }

    /// Rings at a peer, arms a doorbell, or looks for the peer, half of the time that its VM has one.
    fn link(&mut self) -> Option<Vector> {
        let links = &tables::find().links;
        let number = chance(links.len() as u32);
        links[number as usize].side_of(self.vm())?;
        let registers = LINKS_BASE + u64::from(number) * LINK_STRIDE;
        match chance(8) {
            0 => Some(self.store(registers + link::RING, 2, 1)),
            1 => Some(self.store(registers + link::ARM, 2, 1)),
            2 => Some(self.load(registers + link::PEER, 2)),
            // What changes nothing.
            3 => Some(self.store(registers + 8 * u64::from(chance(0x2000)), 3, u64::MAX)),
            _ => None,
        }
    }

    /// Asks for something of its virtio devices, notifies, or ends an interrupt, if its VM has some.
    fn virtio(&mut self) -> Option<Vector> {
        let devices = tables::find().virtio[self.vm()].devices;
        let device = VIRTIO_BASE + u64::from(chance(devices.into())) * VIRTIO_STRIDE;
        match if devices > 0 { chance(8) } else { 8 } {
            0..4 => {
                self.general.x[ASKED] = device + 0x100 + 4 * u64::from(chance(8));
                self.general.x[ANSWER] = UNANSWERED;
                Some(self.load_answer(self.general.x[ASKED], 2))
            }
            4 => Some(self.store(device + virtio::QUEUE_NOTIFY, 2, chance(9).into())),
            5 => Some(self.load(device + virtio::INTERRUPT_STATUS, 2)),
            6 => Some(self.store(device + virtio::INTERRUPT_ACK, 2, chance(4).into())),
            _ => None,
        }
    }

    /// Answers, interrupts, looks or arms its doorbell, if its VM gives another one virtio devices.
    fn virtio_back(&mut self) -> Option<Vector> {
        let given = tables::find().virtio;
        let is_given =
            |front: usize| given[front].devices > 0 && usize::from(given[front].back) == self.vm();
        let front = (0..MAX_VMS).find(|&front| is_given(front))?;
        let registers = VIRTIO_BACK_BASE + front as u64 * VIRTIO_SIZE;
        match chance(12) {
            0..3 => Some(self.load_answer(registers + virtio::REQUEST, 3)),
            3..6 => {
                let answer = Request(self.general.x[ANSWER]).answer(chance(u32::MAX));
                Some(self.store(registers + virtio::ANSWER, 3, answer))
            }
            6 | 7 => Some(self.load(registers + virtio::NOTIFIED, 3)),
            8 => Some(self.store(registers + virtio::ARM, 3, 1)),
            9 => Some(self.store(registers + virtio::RAISE, 3, chance(0x400).into())),
            _ => None,
        }
    }

    /// Loads into a register that nothing else changes.
    fn load_answer(&mut self, ipa: u64, size: u64) -> Vector {
        self.access_by(ANSWER as u64, ipa, size, 0)
    }

    fn store(&mut self, ipa: u64, size: u64, value: u64) -> Vector {
        self.general.x[1] = value;
        self.access(ipa, size, 1 << 6)
    }

    fn load(&mut self, ipa: u64, size: u64) -> Vector {
        self.access(ipa, size, 0)
    }

    fn access(&mut self, ipa: u64, size: u64, write: u64) -> Vector {
        self.access_by(1, ipa, size, write)
    }

    /// `size`: log2 of the bytes.
    fn access_by(&mut self, register: u64, ipa: u64, size: u64, write: u64) -> Vector {
        const VALID: u64 = 1 << 24;
        const TRANSLATION_FAULT: u64 = 0b00_0111;
        self.set(register!("hpfar_el2"), ipa >> 12 << 4);
        self.set(register!("far_el2"), ipa & 0xfff);
        self.trap(ec::DATA_ABORT, VALID | size << 22 | register << 16 | write | TRANSLATION_FAULT)
    }

    fn write_system_register(&mut self, name: Name, value: u64) -> Vector {
        self.general.x[1] = value;
        self.trap(ec::SYSREG, access_to(name) | 1 << 5)
    }

    fn read_system_register(&mut self, name: Name, to: usize) -> Vector {
        self.trap(ec::SYSREG, access_to(name) | (to as u64) << 5 | 1)
    }

    /// A register that concerns other guests of the core, or tells of the core.
    fn system_register(&mut self) -> Option<Vector> {
        match chance(4) {
            0 => self.clear_sre(),
            1 => {
                // As DISR_EL1.
                self.set(register!("s3_4_c12_c1_1"), self.me());
                None
            }
            _ => Some(self.read_identification()),
        }
    }

    /// Writes ICC_SRE_EL1, which traps unless ICC_SRE_EL2.Enable is set.
    fn clear_sre(&mut self) -> Option<Vector> {
        const ENABLE: u64 = 1 << 3;
        if self.get(register!("icc_sre_el2")) & ENABLE == 0 {
            return Some(self.write_system_register((3, 0, 12, 12, 5), 0));
        }
        self.set(register!("icc_sre_el1"), 0);
        None
    }

    fn read_identification(&mut self) -> Vector {
        let (crm, op2) = (u64::from(chance(8)), u64::from(chance(8)));
        self.trap(ec::SYSREG, 3 << 20 | op2 << 17 | crm << 1 | 1 << 5 | 1)
    }

    fn trap(&mut self, class: u64, iss: u64) -> Vector {
        const IL: u64 = 1 << 25;
        self.set(register!("esr_el2"), class << 26 | IL | iss);
        tell(|| {
            format!(
                "vCPU {}: {:?} {:x?}",
                self.id,
                Syndrome(class << 26 | iss).class(),
                &self.general.x[..4]
            )
        });
        Vector::Synchronous
    }
}
