//! Accesses that take long, on threads that ask for it; or before one of which
//! something else happens.

use crate::pausing::before_each_access;
use std::cell::{Cell, RefCell};

/// After how many more accesses, and what.
type Interposed = (usize, Box<dyn FnOnce()>);

thread_local! {
    /// State of a linear congruential generator; 0: no pauses.
    static RANDOM: Cell<u64> = const { Cell::new(0) };
    /// True if accesses by this thread are anything but themselves.
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static INTERPOSED: RefCell<Option<Interposed>> = const { RefCell::new(None) };
}

/// Before this thread's access number `at` from now on, this happens.
pub fn interpose(at: usize, what: impl FnOnce() + 'static) {
    INTERPOSED.set(Some((at, Box::new(what))));
    arm();
}

/// Answers whether it has happened, and lets it not happen any more.
pub fn happened() -> bool {
    ARMED.set(false);
    INTERPOSED.take().is_none()
}

fn step() {
    let due = INTERPOSED.with_borrow_mut(|interposed| {
        if let Some((at, _)) = interposed
            && *at > 0
        {
            *at -= 1;
            return None;
        }
        interposed.take()
    });
    if let Some((_, what)) = due {
        ARMED.set(false);
        what();
    }
}

/// From now on accesses by this thread may take long.
pub fn begin(seed: u64) {
    RANDOM.set(seed | 1);
    arm();
}

fn arm() {
    before_each_access(pause);
    ARMED.set(true);
}

fn pause() {
    if !ARMED.get() {
        return;
    }
    step();
    let random = RANDOM.get();
    if random == 0 {
        return;
    }
    RANDOM.set(random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(2));
    match random >> 33 & 255 {
        // Others have the core for a while, if there are more threads than
        // cores, or else run on.
        0 => (0..random >> 41 & 63).for_each(|_| std::thread::yield_now()),
        1..4 => std::thread::yield_now(),
        4..8 => (0..random >> 41 & 0x3ff).for_each(|_| std::hint::spin_loop()),
        _ => {}
    }
}
