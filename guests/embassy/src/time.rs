//! Embassy's clock: nanoseconds since the counter was 0, with the virtual timer as its alarm.

use crate::cpu;
use core::cell::RefCell;
use core::future::poll_fn;
use core::task::{Poll, Waker};
use critical_section::Mutex;
use embassy_time_driver::{Driver, TICK_HZ, time_driver_impl};
use embassy_time_queue_utils::Queue;

struct Clock {
    queue: Mutex<RefCell<Queue>>,
}

time_driver_impl!(static CLOCK: Clock = Clock { queue: Mutex::new(RefCell::new(Queue::new())) });

impl Driver for Clock {
    fn now(&self) -> u64 {
        scaled(cpu::counter(), TICK_HZ, cpu::counter_hz(), /* up */ false)
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|section| {
            let mut queue = self.queue.borrow_ref_mut(section);
            if queue.schedule_wake(at, waker) {
                let next = queue.next_expiration(self.now());
                set_alarm(next);
            }
        });
    }
}

/// Wakes what is due, and sets the alarm for what is due next: the timer's interrupt.
pub fn alarm() {
    critical_section::with(|section| {
        let next = CLOCK.queue.borrow_ref_mut(section).next_expiration(CLOCK.now());
        set_alarm(next);
    });
}

/// A moment that is past fires at once.
fn set_alarm(at: u64) {
    cpu::set_timer((at != u64::MAX).then(|| ticks(at)));
}

/// Returns the first tick of the counter at which the clock says `at`.
pub fn ticks(at: u64) -> u64 {
    scaled(at, cpu::counter_hz(), TICK_HZ, /* up */ true)
}

/// Returns how many nanoseconds so many ticks of the counter are.
pub fn span_ns(ticks: u64) -> u64 {
    scaled(ticks, TICK_HZ, cpu::counter_hz(), /* up */ true)
}

/// Returns `value` times `to` over `from`, each a number of ticks in a second, rounded up or down.
fn scaled(value: u64, to: u64, from: u64, up: bool) -> u64 {
    let rest = value % from * to;
    let rest = if up { rest.div_ceil(from) } else { rest / from };
    value / from * to + rest
}

/// Returns what the clock says.
pub fn now() -> u64 {
    CLOCK.now()
}

/// Wakes what waits when the clock says `at`.
pub fn wake_at(at: u64, waker: &Waker) {
    CLOCK.schedule_wake(at, waker);
}

/// Waits until the clock says `at`.
pub async fn until(at: u64) {
    poll_fn(|context| {
        if now() >= at {
            return Poll::Ready(());
        }
        wake_at(at, context.waker());
        Poll::Pending
    })
    .await;
}
