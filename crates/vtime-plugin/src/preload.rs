//! Functions of the C library that QEMU finds here first.
//!
//! Until the plugin half is installed, and in every other program, each does
//! just what the C library's does.

use crate::instrument::{self, Instrument};
use crate::main_loop;
use crate::real::real;
use crate::role::{self, Role};
use libc::{
    CLOCK_MONOTONIC, CLOCK_REALTIME, c_int, c_void, clockid_t, nfds_t, pollfd, pthread_cond_t,
};
use libc::{pthread_mutex_t, sigset_t, size_t, ssize_t, timespec, timeval};
use std::mem::size_of;
use std::ptr;

const NS_PER_S: u64 = 1_000_000_000;

/// Seconds and nanoseconds, for the C library's structures.
fn split(ns: u64) -> (i64, i64) {
    // Below 2^63 for three centuries after the start, hence no truncation.
    ((ns / NS_PER_S) as i64, (ns % NS_PER_S) as i64)
}

/// # Safety
/// As POSIX demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    let shown: Option<fn(&Instrument, u64) -> u64> = match clock {
        CLOCK_MONOTONIC => Some(Instrument::monotonic_ns),
        CLOCK_REALTIME => Some(Instrument::realtime_ns),
        _ => None,
    };
    let (Some(shown), Some(instrument)) = (shown, instrument::get()) else {
        // SAFETY: handed on as it came.
        return unsafe { (real().clock_gettime)(clock, time) };
    };
    let (tv_sec, tv_nsec) = split(shown(instrument, instrument.time_ns(role::vcpu())));
    // SAFETY: the caller passes a valid pointer.
    unsafe { time.write(timespec { tv_sec, tv_nsec }) };
    0
}

/// # Safety
/// As POSIX demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int {
    let Some(instrument) = instrument::get() else {
        // SAFETY: handed on as it came.
        return unsafe { (real().gettimeofday)(time, zone) };
    };
    let (tv_sec, tv_nsec) = split(instrument.realtime_ns(instrument.time_ns(role::vcpu())));
    // SAFETY: the caller passes a valid pointer.
    unsafe { time.write(timeval { tv_sec, tv_usec: tv_nsec / 1000 }) };
    0
}

/// # Safety
/// As ppoll(2) demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    let (Some(instrument), Role::MainLoop) = (instrument::get(), role::get()) else {
        // SAFETY: handed on as it came.
        return unsafe { (real().ppoll)(fds, count, timeout, mask) };
    };
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller passes `count` valid structures, or none; and a valid
    // timeout or none.
    let (fds, timeout) = unsafe {
        (
            if count == 0 { &mut [] } else { std::slice::from_raw_parts_mut(fds, count) },
            timeout.as_ref(),
        )
    };
    main_loop::poll(instrument, fds, timeout.copied(), mask)
}

/// # Safety
/// As POSIX demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: handed on as it came.
    let written = unsafe { (real().write)(fd, bytes, count) };
    // An event notifier of QEMU's, most likely the main loop's. If it is
    // something else the main loop looks in vain, which does no harm.
    if count == size_of::<u64>()
        && let (Some(vcpu), Some(instrument)) = (role::vcpu(), instrument::get())
    {
        preserving_errno(|| instrument.lockstep.notified(vcpu));
    }
    written
}

/// # Safety
/// As POSIX demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_wait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    // SAFETY: handed on as it came.
    let wait = || unsafe { (real().pthread_cond_wait)(condition, mutex) };
    let Some(instrument) = instrument::get() else { return wait() };
    match role::get() {
        Role::Other => wait(),
        Role::MainLoop => {
            instrument.lockstep.set_main_loop_blocked(true);
            let result = wait();
            instrument.lockstep.set_main_loop_blocked(false);
            result
        }
        Role::Vcpu { index, falling_asleep } => {
            if falling_asleep {
                instrument.learn(index, condition);
                role::set(Role::Vcpu { index, falling_asleep: false });
            }
            if instrument.halt_condition(index) == condition {
                instrument.lockstep.sleep(index);
                let wait = || instrument.lockstep.wait_for_kick(index);
                // SAFETY: this thread holds the mutex, as POSIX demands.
                unsafe { without(mutex, wait) };
                // SAFETY: as above.
                unsafe { wait_to_go_on(instrument, index, mutex) };
                return 0;
            }
            instrument.lockstep.set_blocked(index, true);
            instrument.wait_for(index, condition);
            let result = wait();
            // SAFETY: this thread holds the mutex again.
            unsafe { wait_to_go_on(instrument, index, mutex) };
            instrument.wait_for(index, ptr::null_mut());
            instrument.lockstep.set_blocked(index, false);
            result
        }
    }
}

/// Waits until a core's thread, whose wait is over, may go on. Others may need its mutex
/// meanwhile: it lets go of it, as if the wait was not over yet.
///
/// # Safety
/// This thread holds the mutex.
unsafe fn wait_to_go_on(instrument: &Instrument, vcpu: usize, mutex: *mut pthread_mutex_t) {
    if !instrument.lockstep.go_on(vcpu) {
        // SAFETY: see above.
        unsafe { without(mutex, || instrument.lockstep.wait_to_go_on(vcpu)) };
    }
}

/// Waits while others may take this thread's mutex.
///
/// # Safety
/// This thread holds the mutex.
unsafe fn without(mutex: *mut pthread_mutex_t, wait: impl FnOnce()) {
    // SAFETY: see above.
    unsafe { libc::pthread_mutex_unlock(mutex) };
    wait();
    // SAFETY: the mutex is valid: the caller is to get it back.
    unsafe { libc::pthread_mutex_lock(mutex) };
}

/// Waits until a time of the clock that QEMU sees. How long that is away is taken
/// for real time: a caller that waits so has a limit in mind for something that goes on
/// outside of the machine, and virtual time may be hours ahead of the host's
/// clock, or behind it.
///
/// # Safety
/// As POSIX demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    deadline: *const timespec,
) -> c_int {
    // SAFETY: the caller passes a valid time.
    let shown = unsafe { *deadline };
    let deadline = instrument::get()
        .map_or(shown, |instrument| later(shown, instrument.behind_ns(role::vcpu())));
    // SAFETY: handed on as it came, but for the deadline, which is valid.
    unsafe { (real().pthread_cond_timedwait)(condition, mutex, &deadline) }
}

/// `time` plus `ns`, but no earlier than the clock's zero.
fn later(time: timespec, ns: i64) -> timespec {
    const PER_S: i64 = NS_PER_S as i64;
    let sum = time.tv_sec.saturating_mul(PER_S).saturating_add(time.tv_nsec).saturating_add(ns);
    timespec { tv_sec: sum.max(0) / PER_S, tv_nsec: sum.max(0) % PER_S }
}

/// # Safety
/// As POSIX demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_broadcast(condition: *mut pthread_cond_t) -> c_int {
    // First the news, then the deed: a core that is already up when it is said
    // to be waking would be waited for in vain.
    if let Some(instrument) = instrument::get() {
        if let Some(sleeper) = instrument.sleeper(condition) {
            instrument.lockstep.kick(sleeper, role::vcpu());
        }
        instrument.waiting_for(condition).for_each(|vcpu| instrument.lockstep.release(vcpu));
    }
    // SAFETY: handed on as it came.
    unsafe { (real().pthread_cond_broadcast)(condition) }
}

/// # Safety
/// As POSIX demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_signal(condition: *mut pthread_cond_t) -> c_int {
    // First the news, as above. Which of several would be woken is the C library's choice.
    if let Some(instrument) = instrument::get() {
        let mut waiting = instrument.waiting_for(condition);
        if let (Some(vcpu), None) = (waiting.next(), waiting.next()) {
            instrument.lockstep.release(vcpu);
        }
    }
    // SAFETY: handed on as it came.
    unsafe { (real().pthread_cond_signal)(condition) }
}

fn preserving_errno(work: impl FnOnce()) {
    // SAFETY: the location is this thread's, and valid while it lives.
    let location = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { location.read() };
    work();
    // SAFETY: as above.
    unsafe { location.write(before) };
}
