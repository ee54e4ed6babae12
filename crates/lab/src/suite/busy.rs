//! Other work, to see that it changes nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

/// Work for every processor of the host that the thread may use which starts it, from
/// [`Busy::start`] until it is dropped. Threads of this process, so that they end with it in any case.
#[derive(Debug)]
pub struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    /// Begins to work.
    #[must_use]
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let count = thread::available_parallelism().map_or(1, usize::from);
        let burn = || {
            let stop = Arc::clone(&stop);
            thread::spawn(move || while !stop.load(Relaxed) {})
        };
        let threads = (0..count).map(|_| burn()).collect();
        Self { stop, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // It does nothing that could fail.
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_when_it_is_dropped() {
        let busy = Busy::start();
        let stop = Arc::downgrade(&busy.stop);
        assert!(!busy.threads.is_empty());
        drop(busy);
        assert_eq!(stop.strong_count(), 0, "a thread still holds it");
    }
}
