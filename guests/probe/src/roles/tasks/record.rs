//! The report area, in the format of tasks. It has the whole area: the probe records no events, whose
//! half the second one is.

use super::declared::Task as Declared;
use crate::arch::{cpu, mmio::Window, sysreg::read};
use crate::platform::report_window;
use crate::suite::Check;
use crate::{calls, fail};
use abi::report::tasks::{self, Header, MAGIC, Section, Task};
use abi::service::hash;
use core::mem::offset_of;

/// See the module.
pub struct Record {
    area: Window,
    tasks: u64,
    capacity: u64,
}

/// Words of a task in the order of [`Task`], which only its vCPU writes.
const JOBS: u64 = offset_of!(Task, jobs) as u64;
const LONGEST: u64 = offset_of!(Task, longest) as u64;
const SUM: u64 = offset_of!(Task, sum) as u64;
const LATE: u64 = offset_of!(Task, late) as u64;
const UNFINISHED: u64 = offset_of!(Task, unfinished) as u64;
const SECTIONS: u64 = offset_of!(Task, sections) as u64;

impl Record {
    /// Sets the area up for these tasks.
    pub fn open(tasks: &[Declared]) -> Check<Self> {
        let Some((_, size)) = calls::report_area() else { fail!("there is no report area") };
        let count = tasks.len() as u64;
        let Some(capacity) = tasks::capacity(size, count) else {
            fail!("the report area of {size} bytes is too small for {count} tasks")
        };
        let area = report_window(size);
        for (number, task) in (0..).zip(tasks) {
            let at = tasks::task(number);
            area.write64(at + offset_of!(Task, name) as u64, hash(task.name.as_bytes()));
            for word in [JOBS, LONGEST, SUM, LATE, UNFINISHED, SECTIONS] {
                area.write64(at + word, 0);
            }
        }
        area.write64(offset_of!(Header, counter_hz) as u64, read::cntfrq_el0());
        area.write64(offset_of!(Header, tasks) as u64, count);
        area.write64(offset_of!(Header, capacity) as u64, capacity);
        cpu::dsb();
        area.write64(offset_of!(Header, magic) as u64, MAGIC);
        Ok(Self { area, tasks: count, capacity })
    }

    /// Records when the period of the next job of task `of` begins.
    pub fn arrives(&self, of: u64, arrival: u64) {
        self.area.write64(tasks::task(of) + UNFINISHED, arrival);
    }

    /// Records a job of `of` that is complete.
    pub fn job(&self, of: u64, response: u64, is_late: bool) {
        let at = tasks::task(of);
        let add = |word, amount| self.area.write64(at + word, self.area.read64(at + word) + amount);
        add(SUM, response);
        add(LATE, u64::from(is_late));
        let longest = self.area.read64(at + LONGEST).max(response);
        self.area.write64(at + LONGEST, longest);
        add(JOBS, 1);
    }

    /// Records a section of `of` that has ended, where there is room for it.
    pub fn section(&self, of: u64, section: &Section) {
        let at = tasks::task(of) + SECTIONS;
        let number = self.area.read64(at);
        if number < self.capacity {
            let at = tasks::section(of, number, self.tasks, self.capacity);
            let Section { mutex, asked, queued, had, gives, gave } = *section;
            for (word, value) in (0..).zip([mutex, asked, queued, had, gives, gave]) {
                self.area.write64(at + word * 8, value);
            }
            cpu::dsb();
        }
        self.area.write64(at, number + 1);
    }
}
