//! A wake-up for one thread.

use rustix::thread::futex;
use rustix::time::Timespec;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::Duration;

const CLEAR: u32 = 0;
const SET: u32 = 1;
const ASLEEP: u32 = 2;

/// One thread waits, any thread wakes it; a wake-up is remembered.
///
/// The standard library's parking and condition variables measure their
/// timeouts with `clock_gettime`, which answers in virtual time in the process
/// this runs in. The kernel's relative futex timeout does not.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Event {
    state: AtomicU32,
}

impl Event {
    /// Wakes the waiter, or saves it its next wait.
    pub fn set(&self) {
        if self.state.swap(SET, Release) == ASLEEP {
            // Fails only for an address that is not mapped.
            let _ = futex::wake(&self.state, futex::Flags::PRIVATE, 1);
        }
    }

    /// Waits for [`Event::set`], spinning for `spins` rounds before sleeping,
    /// at most for about `timeout`. Returns whether it was set.
    pub fn wait(&self, spins: u32, timeout: Duration) -> bool {
        for _ in 0..spins {
            if self.state.load(Relaxed) == SET {
                break;
            }
            std::hint::spin_loop();
        }
        if self.state.compare_exchange(CLEAR, ASLEEP, Relaxed, Relaxed).is_ok() {
            let timeout = Timespec {
                tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: timeout.subsec_nanos().into(),
            };
            // Whatever the reason it returns, the state below tells.
            let _ = futex::wait(&self.state, futex::Flags::PRIVATE, ASLEEP, Some(&timeout));
        }
        self.state.swap(CLEAR, Acquire) == SET
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn remembers_a_wake_up_and_forgets_it_after_one_wait() {
        let event = Event::default();
        event.set();
        assert!(event.wait(0, LONG));
        assert!(!event.wait(3, Duration::from_millis(1)));
    }

    #[test]
    fn two_threads_alternate() {
        let (ping, pong) = (Arc::new(Event::default()), Arc::new(Event::default()));
        let other = {
            let (ping, pong) = (ping.clone(), pong.clone());
            thread::spawn(move || {
                for _ in 0..10_000 {
                    assert!(ping.wait(10, LONG));
                    pong.set();
                }
            })
        };
        for _ in 0..10_000 {
            ping.set();
            assert!(pong.wait(0, LONG));
        }
        other.join().unwrap();
    }
}
