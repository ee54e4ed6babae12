//! A guest that a test executes itself, trap by trap, on a machine with one core.

use super::drive::{self, World};
use super::systems;
use crate::arch::fake::machine::{self, Pause};
use crate::arch::fake::registers::{CNTV_CTL, CNTV_CVAL, Register};
use crate::arch::sysreg::ec;
use crate::arch::timer::VIRTUAL_INTID;
use crate::arch::vectors::{self, Vector};
use crate::exits;
use crate::pcpu::Pcpu;
use abi::platform::{GICD_BASE, GICR_BASE, GICR_STRIDE};
use sched::VcpuId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

type Program = Rc<dyn Fn(&mut Pcpu)>;

thread_local! {
    static PROGRAM: RefCell<Option<Program>> = const { RefCell::new(None) };
    static IS_DONE: Cell<bool> = const { Cell::new(false) };
}

/// Returns which guest is loaded.
pub fn loaded(core: &Pcpu) -> Option<VcpuId> {
    core.loaded().map(|vcpu| vcpu.id())
}

/// Lets an instruction of the loaded guest trap, by its syndrome.
pub fn trap(core: &mut Pcpu, esr: u64) {
    machine::with(|machine| machine.core_mut().registers[Register::named("esr_el2").0] = esr);
    exits::take(core, Vector::Synchronous);
    core.check();
}

/// The loaded guest writes a register of its interrupt controller.
fn store(core: &mut Pcpu, ipa: u64, value: u32) {
    // A word out of x1.
    const WRITE: u64 = ec::DATA_ABORT << 26 | 1 << 24 | 2 << 22 | 1 << 16 | 1 << 6 | 0b00_0111;
    core.loaded_mut().expect("a guest runs").general().x[1] = value.into();
    machine::with(|machine| {
        let registers = &mut machine.core_mut().registers;
        registers[Register::named("hpfar_el2").0] = ipa >> 12 << 4;
        registers[Register::named("far_el2").0] = ipa & 0xfff;
    });
    trap(core, WRITE);
}

/// Lets the loaded guest, which is the first of its VM, have the interrupt of its virtual timer.
pub fn enable_timer(core: &mut Pcpu) {
    open_interface();
    store(core, GICD_BASE, 1 << 1);
    enable_timer_of(core, 0);
}

/// The loaded guest takes interrupts of any priority, of group 1.
pub fn open_interface() {
    const OPEN: u64 = 0xff << 24 | 1 << 1;
    machine::with(|machine| {
        machine.core_mut().registers[Register::named("ich_vmcr_el2").0] = OPEN;
    });
}

/// The loaded guest enables the interrupt of the virtual timer of a vCPU of its VM.
pub fn enable_timer_of(core: &mut Pcpu, index: u64) {
    let sgi_base = GICR_BASE + GICR_STRIDE * index + 0x1_0000;
    store(core, sgi_base + 0x80, u32::MAX);
    store(core, sgi_base + 0x100, 1 << VIRTUAL_INTID);
}

/// Has the loaded guest wait for its timer, which fires so many ticks from now on.
pub fn sleep(core: &mut Pcpu, ticks: u64) {
    machine::with(|machine| {
        let at = machine.now + ticks;
        let registers = &mut machine.core_mut().registers;
        (registers[CNTV_CVAL.0], registers[CNTV_CTL.0]) = (at, 1);
    });
    trap(core, ec::WFX << 26);
}

/// The loaded guest switches a sibling on, by CPU_ON of PSCI.
pub fn switch_on(core: &mut Pcpu, sibling: u64) {
    let caller = core.loaded_mut().expect("a guest runs");
    caller.general().x[..4].copy_from_slice(&[0xc400_0003, sibling, 0x4000_0000, 0]);
    trap(core, ec::HVC64 << 26);
}

/// Runs a program as soon as the first guest of a machine with one core is loaded.
pub fn run(name: &str, program: impl Fn(&mut Pcpu) + 'static) {
    PROGRAM.set(Some(Rc::new(program)));
    IS_DONE.set(false);
    let system = systems::all().iter().find(|system| system.name == name);
    let mut world = World::new(system.expect("a machine of this name"));
    drive::pause_for_guests_only();
    vectors::enter_with(|core| {
        // SAFETY: the address on the core's stack, as `start` wrote it there; it uses the core in
        // exceptions only from now on, which begin below.
        let core = unsafe { &mut *(core as *mut Pcpu) };
        let program = PROGRAM.with_borrow(Clone::clone);
        program.expect("`run` has set it")(core);
        IS_DONE.set(true);
        loop {
            machine::pause(Pause::Guest);
        }
    });
    while !IS_DONE.get() {
        assert!(world.go_on(), "the guest sleeps for ever");
    }
}
