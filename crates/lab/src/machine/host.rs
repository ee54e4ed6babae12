//! How long the host let a process wait.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// Time the threads of process `id` were ready to run and did not: the second
/// word of each thread's `schedstat` (Linux, Documentation/scheduler/sched-stats),
/// nanoseconds. Threads that have ended no longer count.
pub(super) fn wait(id: u32) -> Option<Duration> {
    let threads = fs::read_dir(format!("/proc/{id}/task")).ok()?;
    let waits: Vec<u64> = threads.filter_map(|thread| thread_wait(&thread.ok()?.path())).collect();
    (!waits.is_empty()).then(|| Duration::from_nanos(waits.into_iter().sum()))
}

fn thread_wait(thread: &Path) -> Option<u64> {
    second_word(&fs::read_to_string(thread.join("schedstat")).ok()?)
}

fn second_word(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_word_is_the_wait() {
        assert_eq!(second_word("149511840 169704270 925\n"), Some(169_704_270));
        assert_eq!(second_word(""), None);
    }

    #[test]
    fn a_process_that_is_not_there_waits_for_nothing() {
        assert_eq!(wait(u32::MAX), None);
    }
}
