//! The instrument in QEMU, with the metronome as guest.

mod board;
mod control;
mod coverage;
mod holds;
mod marks;
mod precision;
mod protocols;
mod refusals;
mod reports;
