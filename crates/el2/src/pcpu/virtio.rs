//! Virtio devices that one VM, the back, gives another one, the front ([`abi::virtio`]). Notifications and
//! interrupts are carried here; any other access to a register is the back's to carry out, and the front's
//! vCPU sleeps meanwhile. Queues and buffers are in memory that is mapped, and that EL2 never looks at.

use super::Pcpu;
use crate::shared::{FRONTS, Sibling, SiblingSet, VMS};
use abi::MAX_VMS;
use abi::platform::{VIRTIO_BACK_INTID, VIRTIO_INTID, VIRTIO_STRIDE};
use abi::system::parts;
use abi::virtio::{self, Request};
use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::fence;
use notes::{Bounded, each};

/// What comes of an access to a register.
pub enum Reply {
    /// It is carried out: what a load reads.
    Value(u64),
    /// The guest has to execute it again.
    Later,
    /// There is no such register.
    Nothing,
}

/// The bits of a device in [`crate::shared::Front::raised`].
const fn bits_of(device: u64, bits: u64) -> u32 {
    (bits as u32 & 0xff) << (8 * (device as u32 & 3))
}

impl Pcpu {
    /// Carries out an access of the loaded vCPU to its virtio devices, so many bytes from the first one's
    /// registers.
    pub fn access_virtio(&mut self, at: u64, size: u8, write: Option<u64>) -> Reply {
        let Some(vcpu) = self.loaded() else { return Reply::Nothing };
        let (vm, index) = (vcpu.vm(), vcpu.index());
        let (device, offset) = (at / VIRTIO_STRIDE, at % VIRTIO_STRIDE);
        if device >= self.system.virtio[vm].devices.into() {
            return Reply::Nothing;
        }
        let front = &FRONTS[vm];
        match (offset, size, write) {
            (virtio::QUEUE_NOTIFY, 4, Some(queue)) => {
                if queue < virtio::MAX_QUEUES {
                    front.notified.fetch_or(1 << (8 * device + queue), SeqCst);
                    self.ring_back(vm);
                }
            }
            (virtio::INTERRUPT_STATUS, 4, None) => {
                let raised = front.raised.load(SeqCst) >> (8 * device);
                return Reply::Value((raised & 0xff).into());
            }
            (virtio::INTERRUPT_ACK, 4, Some(bits)) => {
                let raised = front.raised.fetch_and(!bits_of(device, bits), SeqCst);
                // What the guest has not seen is another interrupt: no level tells it.
                if raised & !bits_of(device, bits) & bits_of(device, 0xff) != 0 {
                    self.interrupt_front(vm, device);
                }
            }
            (_, 1 | 2 | 4, _) => {
                return self.ask_back(vm, Request::new(index, device, offset, size, write));
            }
            _ => {}
        }
        Reply::Value(0)
    }

    /// Asks the back of a VM to carry out an access of the loaded vCPU, or takes its answer. Without one the
    /// vCPU sleeps.
    fn ask_back(&mut self, vm: usize, access: Request) -> Reply {
        let front = &FRONTS[vm];
        // First: what changes from here on wakes it.
        front.waiting.insert(Sibling(access.vcpu()), SeqCst);
        let now = Request(front.request.load(SeqCst));
        if now.answers(access) {
            front.request.store(now.done().0, SeqCst);
            let others = front.waiting.remove(Sibling(access.vcpu()), SeqCst);
            if access.offset() == virtio::STATUS && access.is_write() && access.value() == 0 {
                let device = bits_of(access.device() as u64, 0xff);
                front.raised.fetch_and(!device, SeqCst);
            }
            self.wake_waiting(vm, others - SiblingSet::of(Sibling(access.vcpu())));
            return Reply::Value(now.value());
        }
        // Its own that is another one: an interrupt came before that was answered.
        if now.is_done() || now.vcpu() == access.vcpu() && !now.is_same(access) {
            let next = access.after(now).0;
            if front.request.compare_exchange(now.0, next, SeqCst, SeqCst).is_err() {
                // A sibling was faster, or the back.
                return Reply::Later;
            }
            self.ring_back(vm);
        }
        self.loaded_sleeps();
        Reply::Later
    }

    /// Tells vCPUs of a front that there is an answer, or no request any more.
    fn wake_waiting(&mut self, vm: usize, waiting: SiblingSet) {
        fence(SeqCst);
        if let Some(id) = self.notify_each(vm, waiting) {
            self.wake(id);
        }
    }

    /// Carries out an access of the loaded vCPU to its registers as the back of a VM.
    pub fn access_virtio_back(
        &mut self,
        front: usize,
        offset: u64,
        size: u8,
        write: Option<u64>,
    ) -> Reply {
        let (given, loaded) = (self.system.virtio.get(front), self.loaded());
        let Some((given, loaded)) = given.zip(loaded) else { return Reply::Nothing };
        if given.devices == 0 || usize::from(given.back) != loaded.vm() {
            return Reply::Nothing;
        }
        let state = &FRONTS[front];
        match (offset, size, write) {
            (virtio::REQUEST, 8, None) => {
                let request = Request(state.request.load(SeqCst));
                return Reply::Value(if request.waits() { request.0 } else { 0 });
            }
            (virtio::NOTIFIED, 8, None) => {
                let requested = Request(state.request.load(SeqCst)).waits();
                let requested = if requested { virtio::REQUESTED } else { 0 };
                return Reply::Value(state.notified.swap(0, SeqCst) | requested);
            }
            (virtio::ANSWER, 8, Some(answer)) => {
                let request = Request(state.request.load(SeqCst));
                if let Some(answered) = request.answered(answer)
                    && state.request.compare_exchange(request.0, answered.0, SeqCst, SeqCst).is_ok()
                {
                    self.wake_waiting(front, state.waiting.load(SeqCst));
                }
            }
            (virtio::RAISE, 8, Some(value)) => {
                let device = value >> 8 & 3;
                let raised = state.raised.fetch_or(bits_of(device, value & 3), SeqCst);
                if raised & bits_of(device, 0xff) == 0 && device < given.devices.into() {
                    self.interrupt_front(front, device);
                }
            }
            (virtio::ARM, 8, Some(_)) => state.armed.store(true, SeqCst),
            _ => {}
        }
        Reply::Value(0)
    }

    /// Interrupts a VM for one of its devices.
    fn interrupt_front(&mut self, vm: usize, device: u64) {
        let effects = VMS[vm].gic.post(0, VIRTIO_INTID + device as u32);
        self.notify(vm, effects);
    }

    /// Rings the doorbell of the back of a VM, if it is armed.
    fn ring_back(&mut self, front: usize) {
        if FRONTS[front].armed.swap(false, SeqCst) {
            let back = usize::from(self.system.virtio[front].back);
            let effects = VMS[back].gic.post(0, VIRTIO_BACK_INTID + front as u32);
            self.notify(back, effects);
        }
    }

    /// Lets a VM that is halted want nothing of its devices, and tells their back; and lets it, as a back, have
    /// no doorbell that is armed.
    pub(super) fn reset_virtio(&mut self, vm: usize) {
        if !parts::has(parts::VIRTIO) {
            return;
        }
        let system = self.system;
        for (front, _) in system
            .virtio
            .iter()
            .enumerate()
            .one_for::<{ each::VM }, MAX_VMS>()
            .filter(|(_, given)| given.devices > 0 && usize::from(given.back) == vm)
        {
            FRONTS[front].armed.store(false, SeqCst);
        }
        if system.virtio[vm].devices > 0 {
            let front = &FRONTS[vm];
            let request = Request(front.request.load(SeqCst));
            front.request.store(request.done().0, SeqCst);
            front.waiting.store(SiblingSet::EMPTY, SeqCst);
            front.raised.store(0, SeqCst);
            front.notified.store(virtio::RESTARTED, SeqCst);
            self.ring_back(vm);
        }
    }
}

/// Returns true if a vCPU may sleep until a back answers: it has to be woken where it arrives.
#[inline(always)]
pub(super) fn may_wait(vm: usize, index: usize) -> bool {
    parts::has(parts::VIRTIO) && FRONTS[vm].waiting.load(SeqCst).has(Sibling(index))
}
