//! The C library's own versions of the functions that [`crate::preload`]
//! stands in for.

use libc::{
    c_char, c_int, c_void, nfds_t, pollfd, pthread_cond_t, pthread_mutex_t, sigset_t, size_t,
    ssize_t, timespec,
};
use std::ffi::CStr;
use std::mem::transmute;
use std::sync::OnceLock;

type ClockGettime = unsafe extern "C" fn(libc::clockid_t, *mut timespec) -> c_int;
type Gettimeofday = unsafe extern "C" fn(*mut libc::timeval, *mut c_void) -> c_int;
type Ppoll = unsafe extern "C" fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int;
type Write = unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t;
type CondWait = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t) -> c_int;
type CondTimedwait =
    unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t, *const timespec) -> c_int;
/// Of a signal and of a broadcast.
type CondNotify = unsafe extern "C" fn(*mut pthread_cond_t) -> c_int;

/// The real functions.
pub struct Real {
    pub clock_gettime: ClockGettime,
    pub gettimeofday: Gettimeofday,
    pub ppoll: Ppoll,
    pub write: Write,
    pub pthread_cond_wait: CondWait,
    pub pthread_cond_timedwait: CondTimedwait,
    pub pthread_cond_signal: CondNotify,
    pub pthread_cond_broadcast: CondNotify,
}

/// The real functions, looked up once.
pub fn real() -> &'static Real {
    static REAL: OnceLock<Real> = OnceLock::new();
    // SAFETY: the types are those of the functions of these names, by POSIX
    // and, for ppoll, by the Linux manual page.
    REAL.get_or_init(|| unsafe {
        Real {
            clock_gettime: transmute::<*mut c_void, ClockGettime>(next(c"clock_gettime")),
            gettimeofday: transmute::<*mut c_void, Gettimeofday>(next(c"gettimeofday")),
            ppoll: transmute::<*mut c_void, Ppoll>(next(c"ppoll")),
            write: transmute::<*mut c_void, Write>(next(c"write")),
            pthread_cond_wait: transmute::<*mut c_void, CondWait>(next(c"pthread_cond_wait")),
            pthread_cond_timedwait: transmute::<*mut c_void, CondTimedwait>(next(
                c"pthread_cond_timedwait",
            )),
            pthread_cond_signal: transmute::<*mut c_void, CondNotify>(next(c"pthread_cond_signal")),
            pthread_cond_broadcast: transmute::<*mut c_void, CondNotify>(next(
                c"pthread_cond_broadcast",
            )),
        }
    })
}

/// The next definition of `name` behind this object's own.
fn next(name: &CStr) -> *mut c_void {
    // glibc on x86-64 has two condition variable implementations under the
    // same names, and looks up the one of 1999 unless told otherwise.
    const CONDITION_VARIABLES: &CStr = c"GLIBC_2.3.2";
    // SAFETY: both are terminated strings.
    let found = unsafe {
        let versioned = libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), CONDITION_VARIABLES.as_ptr());
        if versioned.is_null() { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) } else { versioned }
    };
    if found.is_null() {
        die(c"virtual time: the C library lacks a function that QEMU uses\n");
    }
    found
}

/// Ends the process. Nothing that allocates or locks may be used here: it may
/// be the lock function that is missing.
fn die(message: &CStr) -> ! {
    // SAFETY: the string is valid for its length, and neither call returns
    // into anything of ours.
    unsafe {
        libc::syscall(libc::SYS_write, 2, message.as_ptr().cast::<c_char>(), message.count_bytes());
        libc::abort()
    }
}
