//! The report area, in which the host reads how late the task was (`abi::report`).

use abi::report::{Header, MAGIC, Sample};
use abi::service;
use core::ptr::{self, NonNull};
use core::sync::atomic::{Ordering::Release, fence};
use smccc::{Call, Hvc};

/// The area. What was written and missed is counted here as well, as the host only reads.
pub struct Report {
    header: NonNull<Header>,
    capacity: u64,
    /// Samples so far.
    pub written: u64,
    /// Activations that began after their period was over.
    pub missed: u64,
}

// SAFETY: the area is this program's own memory, and only the owner of this value writes it.
unsafe impl Send for Report {}

impl Report {
    /// Sets the area up, if the VM has one, for a task with a period of so many ticks.
    pub fn begin(counter_hz: u64, period: u64, load_permille: u64) -> Option<Self> {
        let answer = Hvc::call64(service::REPORT_AREA, [0; 17]);
        let [0, address, size, ..] = answer else { return None };
        let header = NonNull::new(address as *mut Header)?;
        let capacity = (size - size_of::<Header>() as u64) / size_of::<Sample>() as u64;
        let begun = Header {
            magic: 0,
            counter_hz,
            capacity,
            written: 0,
            missed: 0,
            period,
            load_permille,
            load_units: 0,
        };
        // SAFETY: the hypervisor says that this VM has memory there, and nothing else uses it.
        unsafe {
            header.write_volatile(begun);
            fence(Release);
            ptr::write_volatile(&raw mut (*header.as_ptr()).magic, MAGIC);
        }
        Some(Self { header, capacity, written: 0, missed: 0 })
    }

    /// Adds a sample.
    pub fn add(&mut self, sample: Sample, is_missed: bool) {
        self.missed += u64::from(is_missed);
        let place = self.written % self.capacity;
        self.written += 1;
        let header = self.header.as_ptr();
        // SAFETY: as in `begin`; the ring has `capacity` samples behind the header.
        unsafe {
            header.add(1).cast::<Sample>().add(place as usize).write_volatile(sample);
            ptr::write_volatile(&raw mut (*header).missed, self.missed);
            fence(Release);
            ptr::write_volatile(&raw mut (*header).written, self.written);
        }
    }
}
