//! An interrupt that is no doorbell is taken beside messages without end: doorbells may have its priority, and
//! come before it by their numbers. The messages are to a vCPU that is awake and not loaded, so that there is
//! nothing to decide after one, before which the core would look for interrupts.

use super::program::{self, loaded, switch_on};
use crate::arch::fake::machine::{self, Machine};
use crate::arch::gic::Doorbell;
use crate::arch::vectors::Vector;
use crate::exits;
use crate::shared::BOARD;
use sched::{Member, Message, VcpuId};

/// Two vCPUs that take turns.
const FIRST: VcpuId = VcpuId(0);
const SECOND: VcpuId = VcpuId(1);
/// The interrupt: of a device that no VM has, bit 8 of the second word.
const INTID: u32 = 40;
const BIT: u32 = 1 << 8;

/// The device signals, at the doorbells' priority.
fn signal(machine: &mut Machine) {
    let doorbell = machine.core().private.priority[Doorbell::Ordinary as usize];
    let (at, here) = (INTID as usize, machine.board.pcpu_mpidr[machine.current]);
    (machine.distributor.priority[at], machine.distributor.route[at]) = (doorbell, here);
    machine.distributor.enabled[1] |= BIT;
    machine.raise(INTID);
}

/// Another core sends the second a message.
fn send() {
    let core = machine::with(|machine| {
        machine.core_mut().private.latched |= 1 << Doorbell::Ordinary as u32;
        machine.current
    });
    assert!(BOARD.mailbox(core).send(Message::Vcpus, SECOND.number()));
}

#[test]
fn a_device_is_heard_beside_messages_without_end() {
    program::run("turns", |core| {
        assert_eq!(loaded(core), Some(FIRST));
        switch_on(core, SECOND.0.into());
        machine::with(signal);
        send();
        exits::take(core, Vector::Interrupt);
        assert_eq!(loaded(core), Some(FIRST));
        let waits = machine::with(|machine| machine.distributor.latched[1] & BIT != 0);
        assert!(!waits, "the next message comes before it");
    });
}
