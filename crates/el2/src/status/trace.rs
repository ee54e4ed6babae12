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
    /// The last records, `mask + 1` of them.
    #[cfg(any(test, feature = "trace"))]
    records: &'static mut [abi::trace::Record],
    #[cfg(any(test, feature = "trace"))]
    mask: usize,
    /// How many were written; the next one goes to `written & mask`.
    #[cfg(any(test, feature = "trace"))]
    written: &'static core::sync::atomic::AtomicU64,
}

impl Trace {
    /// True if this image records.
    pub const IS_ON: bool = cfg!(any(test, feature = "trace"));
}

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
    use core::sync::atomic::{AtomicU64, Ordering};

    /// A ring that the host does not see.
    struct Unseen {
        written: AtomicU64,
        record: UnsafeCell<Record>,
    }

    // SAFETY: a core uses its own, and hands its record out once ([`Trace::of`]).
    unsafe impl Sync for Unseen {}

    statics! {
        /// By core.
        static UNSEEN: [Unseen; MAX_PCPUS] = [const {
            Unseen {
                written: AtomicU64::new(0),
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
            if system.header.trace_size == 0 {
                let unseen = &UNSEEN[core];
                // SAFETY: exclusive by contract, and static.
                let record = unsafe { &mut *unseen.record.get() };
                return Self {
                    records: core::slice::from_mut(record),
                    mask: 0,
                    written: &unseen.written,
                };
            }
            let (header, ring) = system.trace_ring(core);
            let (counter_hz, reserved) = (timer::frequency_hz(), [0; 4]);
            let capacity = u64::from(system.header.trace_size) / RECORD_SIZE;
            // SAFETY: `System::validate` has shown that the trace lies in RAM that is EL2's alone
            // to write; it is mapped. Exclusive by contract, but for `written`, which the host
            // reads.
            unsafe {
                let header = memory::at::<Header>(header);
                header.write(Header { written: 0, magic: MAGIC, capacity, counter_hz, reserved });
                Self {
                    records: core::slice::from_raw_parts_mut(memory::at(ring), capacity as usize),
                    mask: capacity as usize - 1,
                    written: AtomicU64::from_ptr(&raw mut (*header).written),
                }
            }
        }

        /// Records what happened to a vCPU at an instant.
        #[inline(always)]
        pub fn note(&mut self, kind: Kind, vcpu: VcpuId, argument: u32, now: Instant) {
            // Only this core writes it.
            let written = self.written.load(Ordering::Relaxed);
            // SAFETY: there are `mask + 1` records: `Trace::of` has made it so.
            let record = unsafe { self.records.get_unchecked_mut(written as usize & self.mask) };
            *record = Record::new(now.0, kind, vcpu.0, argument);
            // Last: a record that the host counts is there.
            self.written.store(written + 1, Ordering::Release);
        }

        /// Records what happens to a vCPU now.
        #[inline(always)]
        pub fn note_now(&mut self, kind: Kind, vcpu: VcpuId, argument: u32) {
            self.note(kind, vcpu, argument, timer::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::trace::Record;
    use std::boxed::Box;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn the_latest_records_are_kept_and_all_are_counted() {
        let written = Box::leak(Box::new(AtomicU64::new(0)));
        let records = Box::leak(Box::new([Record { time: 0, what: 0 }; 4]));
        let mut trace = Trace { records, mask: 3, written };
        for time in 0..6 {
            trace.note(Kind::Wake, VcpuId(9), 7, Instant(time));
        }
        assert_eq!(trace.written.load(Ordering::Relaxed), 6);
        assert_eq!([4, 5, 2, 3], [0, 1, 2, 3].map(|slot: usize| trace.records[slot].time));
        assert_eq!(trace.records[0], Record::new(4, Kind::Wake, 9, 7));
    }
}
