//! The trace: what this core decided and when, for the host ([`abi::trace`]).
//!
//! The image that ships records nothing: without the feature `trace` a [`Trace`] has no field, and
//! [`Trace::note`] is empty. An image with the feature records in the ring that the tables name;
//! where they name none, over and over in one record that the host does not see.

use abi::system::System;
pub use abi::trace::{Claim, Kind, Outcome};
use sched::{Instant, VcpuId};

/// Where a core records what it does.
pub struct Trace {
    #[cfg(any(test, feature = "trace"))]
    ring: on::Ring,
}

impl Trace {
    /// True if this image records.
    pub const IS_ON: bool = cfg!(any(test, feature = "trace"));
}

// What has no field and does nothing leaves no trace in the image that ships.
#[cfg(not(any(test, feature = "trace")))]
const _: () = assert!(size_of::<Trace>() == 0);

#[cfg(not(any(test, feature = "trace")))]
impl Trace {
    /// Sets nothing up.
    ///
    /// # Safety
    /// None is needed.
    pub unsafe fn of(_system: &System, _core: usize) -> Self {
        Self {}
    }

    /// Records nothing.
    #[inline(always)]
    pub fn note(&mut self, _kind: Kind, _vcpu: VcpuId, _argument: u32, _now: Instant) {}

    /// Records nothing, and does not read the counter.
    #[inline(always)]
    pub fn note_now(&mut self, _kind: Kind, _vcpu: VcpuId, _argument: u32) {}
}

#[cfg(any(test, feature = "trace"))]
mod on {
    use super::{Instant, Kind, System, Trace, VcpuId};
    use crate::arch::{memory, statics, timer};
    use abi::MAX_PCPUS;
    use abi::trace::{Header, MAGIC, RECORD_SIZE, Record};
    use core::cell::UnsafeCell;
    use core::ptr::NonNull;
    use core::sync::atomic::{AtomicU64, Ordering};

    /// A header, and `mask + 1` records right behind it.
    pub struct Ring {
        header: NonNull<Header>,
        mask: u64,
    }

    // SAFETY: what it points to is static, and no other core writes it.
    unsafe impl Send for Ring {}

    /// A ring that the host does not see.
    #[repr(C)]
    struct Unseen {
        header: UnsafeCell<Header>,
        record: UnsafeCell<Record>,
    }

    // SAFETY: a core uses its own, which is handed out once ([`Trace::of`]).
    unsafe impl Sync for Unseen {}

    const NOTHING: Header =
        Header { written: 0, magic: MAGIC, capacity: 1, counter_hz: 0, reserved: [0; 4] };

    statics! {
        /// By core.
        static UNSEEN: [Unseen; MAX_PCPUS] = [const {
            Unseen {
                header: UnsafeCell::new(NOTHING),
                record: UnsafeCell::new(Record { time: 0, what: 0 }),
            }
        }; MAX_PCPUS];
    }

    impl Trace {
        /// Sets a core's ring up.
        ///
        /// # Safety
        /// It must be asked for once, by that core.
        pub unsafe fn of(system: &System, core: usize) -> Self {
            let capacity = u64::from(system.header.trace_size) / RECORD_SIZE;
            let (header, capacity) = match capacity {
                0 => ((&raw const UNSEEN[core]).cast_mut().cast(), 1),
                _ => (memory::at::<Header>(system.trace_header(core)), capacity),
            };
            // SAFETY: `System::validate` has shown that the trace lies in RAM that is EL2's alone
            // to write; it is mapped. A core's own static is made of cells. Exclusive by contract.
            unsafe {
                header.write(Header { capacity, counter_hz: timer::frequency_hz(), ..NOTHING });
                Self { ring: Ring::new(NonNull::new_unchecked(header), capacity) }
            }
        }

        /// Records what happened to a vCPU at an instant.
        #[inline(always)]
        pub fn note(&mut self, kind: Kind, vcpu: VcpuId, argument: u32, now: Instant) {
            self.ring.push(Record::new(now.0, kind, vcpu.0, argument));
        }

        /// Records what happens to a vCPU now.
        #[inline(always)]
        pub fn note_now(&mut self, kind: Kind, vcpu: VcpuId, argument: u32) {
            self.note(kind, vcpu, argument, timer::now());
        }
    }

    impl Ring {
        /// Makes it of a header with so many records behind it, a power of two.
        ///
        /// # Safety
        /// They must be there as long as this is, and nothing else may write them.
        unsafe fn new(header: NonNull<Header>, capacity: u64) -> Self {
            Self { header, mask: capacity - 1 }
        }

        #[inline(always)]
        fn push(&mut self, record: Record) {
            // SAFETY: by the contract of `new`: `written & mask` is below the capacity, and only
            // this core writes. The host may read `written` at any time, as an atomic.
            unsafe {
                let written = AtomicU64::from_ptr(&raw mut (*self.header.as_ptr()).written);
                let count = written.load(Ordering::Relaxed);
                let first = self.header.add(1).cast::<Record>();
                first.add((count & self.mask) as usize).write(record);
                // Last: a record that the host counts is there.
                written.store(count + 1, Ordering::Release);
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::boxed::Box;

        #[repr(C)]
        struct Four {
            header: Header,
            records: [Record; 4],
        }

        #[test]
        fn the_latest_records_are_kept_and_all_are_counted() {
            let four = Four { header: NOTHING, records: [Record { time: 0, what: 0 }; 4] };
            let four = Box::into_raw(Box::new(four));
            // SAFETY: four records lie behind the header, and nothing else has them.
            let ring = unsafe { Ring::new(NonNull::new_unchecked(four.cast()), 4) };
            let mut trace = Trace { ring };
            for time in 0..6 {
                trace.note(Kind::Wake, VcpuId(9), 7, Instant(time));
            }
            // SAFETY: the ring is not used any more.
            let four = unsafe { Box::from_raw(four) };
            assert_eq!(four.header.written, 6);
            assert_eq!(four.records.map(|record| record.time), [4, 5, 2, 3]);
            assert_eq!(four.records[0], Record::new(4, Kind::Wake, 9, 7));
        }
    }
}
