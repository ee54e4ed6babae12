//! A guest that a test executes itself, trap by trap, on a machine with one core.

use super::drive::{self, World};
use super::systems;
use crate::arch::fake::machine::{self, Pause};
use crate::arch::fake::registers::Register;
use crate::arch::vectors::{self, Vector};
use crate::exits;
use crate::pcpu::Pcpu;
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
