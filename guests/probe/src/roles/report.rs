//! The report area, as a role fills it.

use crate::arch::{cpu, mmio::Window, sysreg::read};
use crate::calls;
use crate::platform::report_window;
use abi::report::{Header, MAGIC, Sample};
use core::mem::offset_of;

/// The report area, when there is one.
pub struct Report {
    area: Window,
    capacity: u64,
}

impl Report {
    /// Sets it up for samples that come every `period` ticks (0: now and then).
    pub fn open(period: u64) -> Option<Self> {
        let (_, size) = calls::report_area()?;
        let area = report_window(size);
        let capacity = (size - size_of::<Header>() as u64) / size_of::<Sample>() as u64;
        area.write64(offset_of!(Header, counter_hz) as u64, read::cntfrq_el0());
        area.write64(offset_of!(Header, capacity) as u64, capacity);
        area.write64(offset_of!(Header, written) as u64, 0);
        area.write64(offset_of!(Header, missed) as u64, 0);
        area.write64(offset_of!(Header, period) as u64, period);
        cpu::dsb();
        area.write64(offset_of!(Header, magic) as u64, MAGIC);
        Some(Self { area, capacity })
    }

    /// Writes sample `number`, counted from 0; so many were missed until now.
    pub fn sample(&self, number: u64, missed: u64, raised: u64, response: u64, dispatch: u64) {
        let narrow = |ticks: u64| u32::try_from(ticks).unwrap_or(u32::MAX);
        let at = size_of::<Header>() as u64 + number % self.capacity * size_of::<Sample>() as u64;
        self.area.write64(at + offset_of!(Sample, raised) as u64, raised);
        self.area.write32(at + offset_of!(Sample, response) as u64, narrow(response));
        self.area.write32(at + offset_of!(Sample, dispatch) as u64, narrow(dispatch));
        cpu::dsb();
        self.area.write64(offset_of!(Header, missed) as u64, missed);
        self.area.write64(offset_of!(Header, written) as u64, number + 1);
    }
}
