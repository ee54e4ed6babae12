//! Threads that share jobs.

use crate::interrupt::Interrupt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Does `jobs` with `work`, `at_once` side by side, and returns what `hear` makes of what they
/// tell meanwhile. Begins no other job after Ctrl-C.
pub(crate) fn share<J: Sync, W: Send, R>(
    jobs: &[J],
    at_once: usize,
    interrupt: &Interrupt,
    work: impl Fn(&J, &Sender<W>) + Sync,
    hear: impl FnOnce(&Receiver<W>) -> R,
) -> R {
    let (next, (words, heard)) = (AtomicUsize::new(0), channel());
    thread::scope(|scope| {
        for _ in 0..at_once.max(1) {
            let (words, next, work) = (words.clone(), &next, &work);
            scope.spawn(move || {
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
