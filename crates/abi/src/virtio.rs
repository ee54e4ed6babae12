//! Virtio devices that one VM, the *back*, gives another one, the *front*: the registers that EL2 has for
//! both of them.
//!
//! The front finds devices of virtio-mmio (Virtual I/O Device (VIRTIO) 1.2, 4.2.2). Its accesses to their
//! registers ([`crate::platform::VIRTIO_BASE`]) trap. Three registers are EL2's: [`QUEUE_NOTIFY`],
//! [`INTERRUPT_STATUS`] and [`INTERRUPT_ACK`]. Any other access becomes a [`Request`]; the front's vCPU sleeps
//! until the back has answered it, and executes the access again then, or another one does, if the guest has moved there
//! meanwhile what it was at. There is one request at a time for all devices of a front. An interrupt may wake the vCPU
//! meanwhile; what it accesses in its handler takes the place of the request.
//!
//! The back has five registers for each front ([`crate::platform::VIRTIO_BACK_BASE`]), doublewords: an access of
//! another width, or to another offset, reads zero and changes nothing. Both have the memory that is for the
//! queues and buffers of the devices ([`crate::platform::VIRTIO_MEMORY_BASE`]), at one guest-physical address.
//! EL2 never looks at it.
//!
//! The back's doorbell rings once for each time that the back arms it, like that of a link
//! ([`crate::link`]): it arms, looks at [`NOTIFIED`], and waits then.

/// A register of the front's: the number of a queue is written when something is in it, a word.
pub const QUEUE_NOTIFY: u64 = 0x50;
/// A register of the front's: what the device's interrupt is for, a word.
pub const INTERRUPT_STATUS: u64 = 0x60;
/// A register of the front's: bits are written that [`INTERRUPT_STATUS`] has, a word.
pub const INTERRUPT_ACK: u64 = 0x64;
/// A register of the front's: 0 is written to reset the device. When the back has answered that, the device
/// has no interrupt any more.
pub const STATUS: u64 = 0x70;
/// Most queues that a device can have: notifications of others are ignored.
pub const MAX_QUEUES: u64 = 8;

/// Read by the back: the [`Request`] that waits for an answer; 0: none does.
pub const REQUEST: u64 = 0x00;
/// Written by the back: the value that a load reads (the lower word), and the tag of the request that is
/// answered, in its place. Does nothing if that no longer waits.
pub const ANSWER: u64 = 0x08;
/// Read by the back: queues of which the front has notified since the last load, bit 8 * device + queue;
/// [`REQUESTED`]; and [`RESTARTED`].
pub const NOTIFIED: u64 = 0x10;
/// Written by the back: bits for [`INTERRUPT_STATUS`], 1 or 2, and the device's number 8 bits above. The front
/// is interrupted if the device had no bit before.
pub const RAISE: u64 = 0x18;
/// Written by the back, whatever the value: arms its doorbell.
pub const ARM: u64 = 0x20;
/// A bit of [`NOTIFIED`]: a request waits.
pub const REQUESTED: u64 = 1 << 62;
/// A bit of [`NOTIFIED`]: the front was stopped, and knows nothing of its devices when it starts again.
pub const RESTARTED: u64 = 1 << 63;

/// An access of the front's that the back has to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request(pub u64);

impl Request {
    const OFFSET: u32 = 32;
    const DEVICE: u32 = 44;
    const SIZE: u32 = 46;
    const WRITE: u64 = 1 << 48;
    const VCPU: u32 = 49;
    const VCPUS: u64 = 7 << Self::VCPU;
    const TAG: u32 = 52;
    const TAGS: u64 = 0xff << Self::TAG;
    const ANSWERED: u64 = 1 << 62;
    const WAITS: u64 = 1 << 63;
    const VALUE: u64 = 0xffff_ffff;

    /// Makes one of the vCPU with index `vcpu`: an access of `size` bytes, 1, 2 or 4, so many bytes from the
    /// beginning of the device's registers, and the value that a store has.
    #[must_use]
    pub const fn new(vcpu: usize, device: u64, offset: u64, size: u8, write: Option<u64>) -> Self {
        let place = (offset & 0xfff) << Self::OFFSET
            | (device & 3) << Self::DEVICE
            | (size.trailing_zeros() as u64 & 3) << Self::SIZE
            | (vcpu as u64 & 7) << Self::VCPU;
        match write {
            Some(value) => Self(Self::WAITS | place | Self::WRITE | value & Self::VALUE),
            None => Self(Self::WAITS | place),
        }
    }

    /// Returns the value that a store has, and that a load has got.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0 & Self::VALUE
    }

    /// Returns how many bytes from the beginning of the device's registers it is.
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.0 >> Self::OFFSET & 0xfff
    }

    /// Returns the number of the device.
    #[must_use]
    pub const fn device(self) -> usize {
        (self.0 >> Self::DEVICE & 3) as usize
    }

    /// Returns how many bytes are accessed.
    #[must_use]
    pub const fn size(self) -> u8 {
        1 << (self.0 >> Self::SIZE & 3)
    }

    /// Returns true for a store.
    #[must_use]
    pub const fn is_write(self) -> bool {
        self.0 & Self::WRITE != 0
    }

    /// Returns the index of the vCPU.
    #[must_use]
    pub const fn vcpu(self) -> usize {
        (self.0 >> Self::VCPU & 7) as usize
    }

    /// Returns true if it waits for an answer.
    #[must_use]
    pub const fn waits(self) -> bool {
        self.0 & (Self::WAITS | Self::ANSWERED) == Self::WAITS
    }

    /// Returns true if nothing is asked, and so another request can be made.
    #[must_use]
    pub const fn is_done(self) -> bool {
        self.0 & Self::WAITS == 0
    }

    /// Returns true if both are the same access, whatever became of it, by whichever vCPU: a guest may go on with
    /// it on another one.
    #[must_use]
    pub const fn is_same(self, other: Self) -> bool {
        let differ = self.0 ^ other.0;
        let value = if self.is_write() { 0 } else { Self::VALUE };
        differ & !(value | Self::VCPUS | Self::TAGS | Self::ANSWERED) == 0
    }

    /// Returns true if it is this access, and has its answer.
    #[must_use]
    pub const fn answers(self, access: Self) -> bool {
        self.0 & Self::ANSWERED != 0 && self.is_same(access)
    }

    /// Returns it with the tag behind another one's.
    #[must_use]
    pub const fn after(self, before: Self) -> Self {
        Self(self.0 & !Self::TAGS | (before.0 + (1 << Self::TAG)) & Self::TAGS)
    }

    /// Returns what is left when it is over: its tag.
    #[must_use]
    pub const fn done(self) -> Self {
        Self(self.0 & Self::TAGS)
    }

    /// Returns what to write to [`ANSWER`].
    #[must_use]
    pub const fn answer(self, value: u32) -> u64 {
        self.0 & Self::TAGS | value as u64
    }

    /// Returns it with an answer that was written; none if it waits for none, or for another one.
    #[must_use]
    pub const fn answered(self, answer: u64) -> Option<Self> {
        if !self.waits() || (self.0 ^ answer) & Self::TAGS != 0 {
            return None;
        }
        let value = if self.is_write() { self.value() } else { answer & Self::VALUE };
        Some(Self(self.0 & !Self::VALUE | Self::ANSWERED | value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The back must see what the front did, and no other access may pass for it.
    #[test]
    fn a_request_has_all_that_was_accessed() {
        for (size, write) in [(1, None), (2, Some(0xffff)), (4, Some(0xdead_beef_0000_0001))] {
            let request = Request::new(7, 3, 0xffc, size, write);
            assert!(request.waits() && !request.is_done());
            assert_eq!((request.vcpu(), request.device(), request.offset()), (7, 3, 0xffc));
            assert_eq!((request.size(), request.is_write()), (size, write.is_some()));
            assert_eq!(request.value(), write.unwrap_or(0) & 0xffff_ffff);
            assert!(Request::new(6, 3, 0xffc, size, write).is_same(request), "another vCPU");
            let others = [
                Request::new(7, 2, 0xffc, size, write),
                Request::new(7, 3, 0xff8, size, write),
                Request::new(7, 3, 0xffc, if size == 4 { 2 } else { 4 }, write),
                Request::new(7, 3, 0xffc, size, write.map_or(Some(0), |_| None)),
                Request::new(7, 3, 0xffc, size, Some(2)),
            ];
            assert!(others.iter().all(|other| !other.is_same(request)));
        }
    }

    /// An answer to an access that an interrupt's handler has displaced must not pass for the handler's.
    #[test]
    fn only_the_answer_to_this_request_counts() {
        let mut before = Request(0);
        for turn in 0..300 {
            let load = Request::new(1, 2, 0x100, 4, None);
            let request = load.after(before);
            assert!(request.is_same(load) && request.waits());
            assert_eq!(request.answered(before.answer(5)), None, "{turn}");
            let answered = request.answered(request.answer(7)).unwrap();
            assert!(answered.answers(load) && !answered.waits() && !answered.is_done());
            assert_eq!((answered.value(), answered.answered(request.answer(7))), (7, None));
            before = answered.done();
            assert!(before.is_done() && before.answered(request.answer(7)).is_none());
        }
        let store = Request::new(0, 0, 0x70, 4, Some(3));
        let answered = store.answered(store.answer(9)).unwrap();
        assert!(answered.answers(store) && !answered.answers(Request::new(0, 0, 0x70, 4, Some(4))));
    }
}
