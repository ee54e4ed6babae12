//! What a guest says of the tasks that it runs, gathered.

use crate::machine::Memory;
use abi::report::tasks::{self, Header, MAGIC, Section, Task};
use miette::Result;
use zerocopy::{FromZeros, IntoBytes};

/// All that one VM reported of its tasks.
#[derive(Clone, Debug)]
pub struct TaskReports {
    pa: u64,
    size: u64,
    /// The area's header as last seen; none before the guest has set it up.
    pub header: Option<Header>,
    /// The tasks, in the order of the device tree.
    pub tasks: Vec<SeenTask>,
}

/// What is known of one task.
#[derive(Clone, Debug)]
pub struct SeenTask {
    /// What became of it, as last seen. Its jobs are all that were seen: also those of a guest that
    /// began anew since, and with it its records.
    pub record: Task,
    /// The record as the guest last wrote it.
    last: Task,
    /// Jobs before the guest last began anew.
    before: Task,
    /// The global critical sections, as far as there was room for them.
    pub sections: Vec<Section>,
}

impl TaskReports {
    /// Follows the report area at (physical address, size in bytes).
    pub(super) fn new((pa, size): (u64, u64)) -> Self {
        Self { pa, size, header: None, tasks: Vec::new() }
    }

    pub(super) fn poll(&mut self, memory: &Memory) -> Result<()> {
        if self.size < size_of::<Header>() as u64 {
            return Ok(());
        }
        let header: Header = memory.read(self.pa)?;
        let fits = tasks::capacity(self.size, header.tasks).is_some_and(|c| header.capacity <= c);
        if header.magic != MAGIC || header.counter_hz == 0 || !fits {
            return Ok(());
        }
        self.header = Some(header);
        let mut records = vec![Task::new_zeroed(); header.tasks as usize];
        memory.read_bytes(self.pa + tasks::task(0), records.as_mut_bytes())?;
        self.tasks.resize(records.len(), SeenTask::new());
        for (number, (seen, record)) in (0..).zip(self.tasks.iter_mut().zip(records)) {
            let written = record.sections.min(header.capacity) as usize;
            // A guest that begins anew begins its records anew.
            let known = if seen.sections.len() > written { 0 } else { seen.sections.len() };
            seen.sections.resize(written, Section::new_zeroed());
            let at = tasks::section(number, known as u64, header.tasks, header.capacity);
            memory.read_bytes(self.pa + at, seen.sections[known..].as_mut_bytes())?;
            seen.take(record);
        }
        Ok(())
    }
}

impl SeenTask {
    fn new() -> Self {
        let none = Task::new_zeroed();
        Self { record: none, last: none, before: none, sections: Vec::new() }
    }

    /// Takes in what the guest has written. Fewer jobs than before are those of a guest that began
    /// anew.
    fn take(&mut self, now: Task) {
        if now.name != self.last.name {
            self.before = Task::new_zeroed();
        } else if now.jobs < self.last.jobs {
            self.before = self.record;
        }
        let before = &self.before;
        self.record = Task {
            jobs: before.jobs.saturating_add(now.jobs),
            longest: before.longest.max(now.longest),
            sum: before.sum.saturating_add(now.sum),
            late: before.late.saturating_add(now.late),
            ..now
        };
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BASE, HZ, REPORT};

    #[test]
    fn sections_are_read_as_they_come() {
        let memory = Memory::create(BASE, 1 << 20).unwrap();
        let mut reports = TaskReports::new((REPORT, 4096));
        reports.poll(&memory).unwrap();
        assert!(reports.header.is_none(), "there is nothing yet");
        let header = Header { magic: MAGIC, counter_hz: HZ, tasks: 2, capacity: 3 };
        let place = |number| REPORT + tasks::section(1, number, 2, 3);
        let mut tell = |sections: u64| {
            memory.write_bytes(REPORT, header.as_bytes()).unwrap();
            let task = Task { name: 7, sections, ..Task::default() };
            memory.write_bytes(REPORT + tasks::task(1), task.as_bytes()).unwrap();
            for number in 0..sections.min(3) {
                let section = Section { asked: 100 + number, ..Section::default() };
                memory.write_bytes(place(number), section.as_bytes()).unwrap();
            }
            reports.poll(&memory).unwrap();
            reports.tasks[1].sections.iter().map(|section| section.asked).collect::<Vec<_>>()
        };
        assert_eq!(tell(1), [100]);
        assert_eq!(tell(5), [100, 101, 102], "there is no room for more");
        assert_eq!(tell(2), [100, 101], "it began anew");
        assert_eq!((reports.tasks[0].record.name, reports.tasks[1].record.name), (0, 7));
    }

    #[test]
    fn what_a_guest_did_before_it_began_anew_stays() {
        let mut seen = SeenTask::new();
        let mut took = |jobs: u64, longest: u64| {
            let late = jobs / 3;
            seen.take(Task { name: 7, jobs, longest, sum: 10 * jobs, late, ..Task::default() });
            let all = &seen.record;
            [all.jobs, all.longest, all.sum, all.late]
        };
        assert_eq!(took(2, 20), [2, 20, 20, 0]);
        assert_eq!(took(3, 50), [3, 50, 30, 1]);
        assert_eq!(took(0, 0), [3, 50, 30, 1], "it began anew");
        assert_eq!(took(2, 10), [5, 50, 50, 1]);
        assert_eq!(took(1, 60), [6, 60, 60, 1], "and once more");
        seen.take(Task { name: 8, jobs: 1, ..Task::default() });
        assert_eq!(seen.record.jobs, 1, "that is another task");
    }

    #[test]
    fn a_header_that_makes_no_sense_is_none() {
        let memory = Memory::create(BASE, 1 << 20).unwrap();
        for header in [
            Header { magic: MAGIC, counter_hz: HZ, tasks: 1, capacity: u64::MAX },
            Header { magic: MAGIC, counter_hz: HZ, tasks: u64::MAX, capacity: 0 },
            Header { magic: MAGIC, counter_hz: 0, tasks: 1, capacity: 1 },
        ] {
            let mut reports = TaskReports::new((REPORT, 4096));
            memory.write_bytes(REPORT, header.as_bytes()).unwrap();
            reports.poll(&memory).unwrap();
            assert!(reports.header.is_none() && reports.tasks.is_empty(), "{header:?}");
        }
    }
}
