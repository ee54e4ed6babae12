//! What the host gave a process, and how long it let it wait.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// What a machine's threads had of the host's processors so far. Threads that
/// have ended no longer count; see [`HostUse::at_least`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostUse {
    /// Processor time of QEMU's main loop: devices and timers.
    pub main_loop: Duration,
    /// Processor time of all other threads. All but some thousandths of it is
    /// that of the emulated cores, which have a thread each.
    pub cores: Duration,
    /// How long threads were ready to run and did not, in sum.
    pub waited: Duration,
}

impl HostUse {
    /// The greater of each: keeps what an earlier look has seen of threads that
    /// have ended since.
    #[must_use]
    pub fn at_least(self, earlier: Self) -> Self {
        Self {
            main_loop: self.main_loop.max(earlier.main_loop),
            cores: self.cores.max(earlier.cores),
            waited: self.waited.max(earlier.waited),
        }
    }
}

/// Reads each thread's `schedstat` (Linux, Documentation/scheduler/sched-stats)
/// of process `id`: nanoseconds on a processor, and nanoseconds of waiting for
/// one. The thread that has the process's own number is QEMU's main loop.
pub(super) fn used(id: u32) -> Option<HostUse> {
    let mut used = None;
    for thread in fs::read_dir(format!("/proc/{id}/task")).ok()? {
        let Some((is_main, ran, waited)) = thread.ok().and_then(|t| look_at(&t.path(), id)) else {
            continue; // it has ended meanwhile
        };
        let used: &mut HostUse = used.get_or_insert_default();
        *(if is_main { &mut used.main_loop } else { &mut used.cores }) += ran;
        used.waited += waited;
    }
    used
}

fn look_at(thread: &Path, id: u32) -> Option<(bool, Duration, Duration)> {
    let is_main = thread.file_name()?.to_str()?.parse() == Ok(id);
    let (ran, waited) = words(&fs::read_to_string(thread.join("schedstat")).ok()?)?;
    Some((is_main, ran, waited))
}

fn words(schedstat: &str) -> Option<(Duration, Duration)> {
    let mut words = schedstat.split_whitespace();
    let mut next = || words.next()?.parse().map(Duration::from_nanos).ok();
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_work_and_the_second_the_wait() {
        let ns = Duration::from_nanos;
        let read = words("149511840 169704270 925\n");
        assert_eq!(read, Some((ns(149_511_840), ns(169_704_270))));
        assert_eq!(words(""), None);
    }

    #[test]
    fn what_has_ended_is_not_forgotten() {
        let ns = Duration::from_nanos;
        let earlier = HostUse { main_loop: ns(1), cores: ns(9), waited: ns(5) };
        let at_the_end = HostUse { main_loop: ns(2), cores: ns(0), waited: ns(3) };
        let both = HostUse { main_loop: ns(2), cores: ns(9), waited: ns(5) };
        assert_eq!(at_the_end.at_least(earlier), both);
    }

    #[test]
    fn our_own_threads_have_worked() {
        let work = || (0..1_000_000_u64).map(std::hint::black_box).sum::<u64>();
        std::hint::black_box(work());
        let used = used(std::process::id()).unwrap();
        assert!(used.main_loop + used.cores > Duration::ZERO, "{used:?}");
    }

    #[test]
    fn a_process_that_is_not_there_has_nothing() {
        assert_eq!(used(u32::MAX), None);
    }
}
