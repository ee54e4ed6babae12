//! QEMU's main loop, asleep in `ppoll` until input or the next timer.

use crate::instrument::Instrument;
use crate::real::real;
use crate::timers;
use libc::{POLLIN, c_int, pollfd, sigset_t, timespec};
use rustix::fd::AsRawFd;
use std::ptr;
use vtime::machine::Woken;

/// A deadline so far away that QEMU means none: it caps its timeouts here, in
/// seconds.
const NEVER_S: i64 = i32::MAX as i64;

const NOW: timespec = timespec { tv_sec: 0, tv_nsec: 0 };

/// Stands in for the main loop's `ppoll`: virtual time runs while it sleeps.
///
/// Returns what `ppoll` would, with `errno` set likewise.
pub fn poll(
    instrument: &Instrument,
    fds: &mut [pollfd],
    timeout: Option<timespec>,
    mask: *const sigset_t,
) -> c_int {
    let lockstep = &instrument.lockstep;
    let timeout_ns = timeout.filter(|t| t.tv_sec < NEVER_S).map(nanoseconds);
    // QEMU has rounded the second one up, in the first.
    let soonest_ns = timeout_ns.into_iter().chain(timers::due_in_ns()).min();
    let deadline_ns = soonest_ns.map(|ns| lockstep.now_ns() + ns);
    let mut with_wake = fds.to_vec();
    with_wake.push(pollfd { fd: lockstep.host().wake.as_raw_fd(), events: POLLIN, revents: 0 });
    loop {
        let ready = ppoll(fds, Some(NOW), mask);
        if ready != 0 || deadline_ns == Some(lockstep.now_ns()) {
            return ready;
        }
        let slept = lockstep.settle(deadline_ns) || ppoll(&mut with_wake, None, mask) >= 0;
        let woken = lockstep.unsettle();
        if !slept {
            return -1; // a signal; nothing below touches errno
        }
        let _ = rustix::io::read(&lockstep.host().wake, &mut [0_u8; 8]);
        match (woken, &instrument.control) {
            (Woken::Due, _) => return ppoll(fds, Some(NOW), mask),
            (Woken::Held { at_rest }, Some(control)) => control.hold(instrument, at_rest),
            (Woken::Held { .. } | Woken::Early, _) => {}
        }
    }
}

fn nanoseconds(t: timespec) -> u64 {
    u64::try_from(t.tv_sec * 1_000_000_000 + t.tv_nsec).unwrap_or(0)
}

/// The C library's `ppoll`.
fn ppoll(fds: &mut [pollfd], timeout: Option<timespec>, mask: *const sigset_t) -> c_int {
    let count = fds.len().try_into().unwrap_or(libc::nfds_t::MAX);
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the slice is valid for its length, the timeout is null or valid,
    // and the mask is what QEMU passed.
    unsafe { (real().ppoll)(fds.as_mut_ptr(), count, timeout, mask) }
}
