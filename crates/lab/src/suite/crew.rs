//! Threads that share jobs, and the host's processors.

use crate::interrupt::Interrupt;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Does `jobs` with `work`, `at_once` side by side, and returns what `hear` makes of what they
/// tell meanwhile. Begins no other job after Ctrl-C.
///
/// Each thread, and whatever it starts, keeps to processors of its own: a machine in virtual time
/// stays on the processor on which it begins, and two must not begin on the same one.
pub(crate) fn share<J: Sync, W: Send, R>(
    jobs: &[J],
    at_once: usize,
    interrupt: &Interrupt,
    work: impl Fn(&J, &Sender<W>) + Sync,
    hear: impl FnOnce(&Receiver<W>) -> R,
) -> R {
    let (next, (words, heard)) = (AtomicUsize::new(0), channel());
    let (at_once, all) = (at_once.max(1), processors());
    thread::scope(|scope| {
        for member in 0..at_once {
            let (words, next, work) = (words.clone(), &next, &work);
            let own = own_processors(&all, member, at_once);
            scope.spawn(move || {
                keep_to(&own);
                while !interrupt.requested()
                    && let Some(job) = jobs.get(next.fetch_add(1, Relaxed))
                {
                    work(job, &words);
                }
            });
        }
        drop(words);
        hear(&heard)
    })
}

/// The processors that this thread may run on; none if the host does not tell.
fn processors() -> Vec<usize> {
    let Ok(may) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&processor| may.is_set(processor)).collect()
}

/// Those of `all` that belong to this one of so many threads. Where there are more threads than
/// processors, several have the same one.
fn own_processors(all: &[usize], member: usize, members: usize) -> Vec<usize> {
    let first = if members <= all.len() { member } else { member % all.len().max(1) };
    all.iter().copied().skip(first).step_by(members).collect()
}

/// Keeps this thread to these processors, and what it starts. Where it cannot be, it runs
/// anywhere: what is measured does not depend on it.
fn keep_to(processors: &[usize]) {
    if !processors.is_empty() {
        let mut own = CpuSet::new();
        processors.iter().for_each(|&processor| own.set(processor));
        let _ = sched_setaffinity(None, &own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn processors_are_shared_out() {
        let all = [0, 2, 3, 7, 9];
        assert_eq!(own_processors(&all, 0, 1), all);
        let shares: Vec<_> = (0..2).map(|member| own_processors(&all, member, 2)).collect();
        assert_eq!(shares, [vec![0, 3, 9], vec![2, 7]]);
        let shares: Vec<_> = (0..6).map(|member| own_processors(&all, member, 6)).collect();
        assert_eq!(shares, [[0], [2], [3], [7], [9], [0]]);
        assert!(own_processors(&[], 1, 2).is_empty());
    }

    #[test]
    fn each_thread_keeps_to_its_own() {
        let all = processors();
        let members = all.len().min(2);
        let meeting = std::sync::Barrier::new(members);
        let work = |_: &usize, words: &Sender<Vec<usize>>| {
            // Each does one of the jobs.
            meeting.wait();
            words.send(processors()).unwrap();
        };
        let jobs: Vec<usize> = (0..members).collect();
        let seen: BTreeSet<_> =
            share(&jobs, members, &Interrupt::never(), work, |heard| heard.iter().collect());
        assert_eq!(
            seen,
            (0..members).map(|member| own_processors(&all, member, members)).collect()
        );
        assert_eq!(processors(), all, "the thread that asked runs where it did");
    }
}
