//! Virtual multi-core time inside QEMU.
//!
//! One shared object, twice in one process: preloaded, it answers QEMU's
//! questions about time and sees its threads sleep and wake each other; as a
//! TCG plugin it counts instructions and stops cores between blocks. Both
//! halves meet in [`instrument`]; all rules are in the `vtime` crate.
//!
//! Nothing here knows more of QEMU than its plugin interface, these calls
//! it makes to the C library,
//!
//! | call | by | means |
//! | --- | --- | --- |
//! | `clock_gettime`, `gettimeofday` | anyone | what time is it |
//! | `ppoll` | the main loop | sleep until input or the next timer |
//! | `pthread_cond_wait` after the idle callback | a core | sleep until kicked |
//! | `pthread_cond_wait` otherwise | a core, the main loop | wait for cores |
//! | `pthread_cond_timedwait` | a helper thread | wait, but not for ever |
//! | `pthread_cond_broadcast` on what a core sleeps on | anyone | kick it |
//! | `pthread_cond_broadcast`, `pthread_cond_signal` otherwise | anyone | a core's wait is over |
//! | `write` of eight bytes | a core | the main loop is told of a timer or bottom half |
//!
//! and, in [`timers`] and [`wfe`], functions that it [exports].

mod control;
mod exports;
mod host;
mod instrument;
mod main_loop;
mod plugin;
mod preload;
mod real;
mod registers;
mod reporter;
mod role;
mod timers;
mod wfe;
