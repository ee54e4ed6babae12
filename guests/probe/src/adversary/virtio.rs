//! Attacks by virtio devices: as the front of a VM that may answer or not, and as the back of VMs that want nothing.
//!
//! What a front accesses waits for the back's answer. An adversary does not wait for ever: its timer interrupts it, and
//! it goes on behind the access, so that EL2 has a request of which the vCPU knows nothing any more.

use super::actor::Actor;
use crate::arch::mmio::Window;
use crate::arch::{cpu, loads};
use crate::platform::{self, Back};
use crate::timer::Timer;
use crate::{gic, irq, wait};
use abi::platform::{VIRTIO_BASE, VIRTIO_INTID, VIRTIO_SIZE, VIRTIO_STRIDE};
use abi::virtio::{
    ANSWER, ARM, INTERRUPT_ACK, INTERRUPT_STATUS, MAX_QUEUES, NOTIFIED, QUEUE_NOTIFY, RAISE,
    REQUEST, Request, STATUS,
};

/// Accesses of one step.
const STRIDE: u64 = 8;
/// How long a front waits for an answer at least, us.
const PATIENCE_US: u64 = 5;
/// Registers of a device where a driver says where its queues are (VIRTIO 1.2, 4.2.2): descriptors, and what the
/// driver and the device write.
const QUEUES: [u64; 6] = [0x80, 0x84, 0x90, 0x94, 0xa0, 0xa4];
/// `LDR W0, [X1]` and `STR W0, [X1]`.
const LOAD: u64 = 4;
const STORE: u64 = loads::READS + 2;

/// Accesses registers of virtio as a front and as a back. A VM that has neither does nothing.
pub fn virtio(actor: &mut Actor) -> u64 {
    let platform = platform::get();
    if platform.virtio_devices == 0 && platform.virtio_backs.is_empty() {
        return 0;
    }
    for _ in 0..STRIDE {
        if platform.virtio_backs.is_empty() || platform.virtio_devices > 0 && actor.once_in(2) {
            front(actor, platform.virtio_devices);
        } else {
            let back = actor.one(&platform.virtio_backs);
            self::back(actor, back);
        }
    }
    STRIDE
}

/// Accesses a device that this VM gets.
fn front(actor: &mut Actor, devices: u64) {
    let device = VIRTIO_BASE + actor.random.up_to(devices) * VIRTIO_STRIDE;
    let value = actor.value();
    // These need no answer.
    match actor.random.up_to(7) {
        0..=2 => {
            let queue = actor.random.up_to(2 * MAX_QUEUES);
            return access(STORE, device + QUEUE_NOTIFY, queue);
        }
        3 => return access(STORE, device + INTERRUPT_ACK, value),
        4 => return access(LOAD, device + INTERRUPT_STATUS, 0),
        _ => {}
    }
    let (form, offset) = match actor.random.up_to(3) {
        0 => (STORE, STATUS),
        1 => (STORE, actor.one(&QUEUES)),
        _ => (actor.random.up_to(loads::COUNT - 1), actor.random.up_to(VIRTIO_STRIDE - 1)),
    };
    let value = if offset == STATUS && actor.once_in(2) { 0 } else { value };
    // In a mixture nothing is sure to wake it, nor that nothing interrupts it for ever.
    if platform::get().argument("mode") == Some("virtio") {
        access_impatiently(actor, form, device + offset, value);
    }
}

/// Accesses what this VM has of one to which it gives devices.
fn back(actor: &mut Actor, Back { registers: base, memory, .. }: Back) {
    let registers = Window::new(base, VIRTIO_SIZE);
    match actor.random.up_to(7) {
        0..=1 => registers.write64(RAISE, actor.random.up_to(0x7ff)),
        2 => registers.write64(ARM, 1),
        3 => {
            // As a good one does: the vCPU that asks goes on.
            let request = Request(registers.read64(REQUEST));
            registers.write64(ANSWER, request.answer(actor.value() as u32));
        }
        4 => registers.write64(ANSWER, actor.value()),
        5 => {
            registers.read64(NOTIFIED);
        }
        6 => {
            let form = actor.random.up_to(loads::COUNT - 1);
            access(form, base + actor.random.up_to(VIRTIO_SIZE - 1), actor.value());
        }
        _ => {
            let form = actor.random.up_to(loads::COUNT - 1);
            access(form, memory.base + actor.random.up_to(memory.size - 1), actor.value());
        }
    }
}

fn access(form: u64, address: u64, value: u64) {
    // An abort is what some ask for.
    let _ = loads::execute(form, address, value);
}

/// Lets the interrupts of devices and doorbells come, to vCPU 0.
pub fn prepare(actor: &mut Actor) {
    actor.calm_down();
    let platform = platform::get();
    let of_devices = (0..platform.virtio_devices).map(|device| VIRTIO_INTID + device as u32);
    for intid in of_devices.chain(platform.virtio_backs.iter().map(|back| back.intid)) {
        gic::enable_spi(intid, 0);
    }
}

/// Accesses, and goes on without an answer if none comes.
fn access_impatiently(actor: &mut Actor, form: u64, address: u64, value: u64) {
    irq::hook(wake_again);
    actor.set_alarm(PATIENCE_US);
    loads::give_up_when_interrupted(true);
    cpu::unmask_irq();
    access(form, address, value);
    cpu::mask_irq();
    loads::give_up_when_interrupted(false);
    Timer::Virtual.stop();
}

/// Lets the alarm come again: the first may have come before the access began.
fn wake_again(_intid: u32) {
    Timer::Virtual.arm(wait::us(PATIENCE_US));
}
