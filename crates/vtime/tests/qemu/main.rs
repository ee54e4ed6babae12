//! The instrument in QEMU, with the metronome as guest, or one that reads a disk.

mod board;
mod control;
mod coverage;
mod disk;
mod holds;
mod marks;
mod precision;
mod protocols;
mod refusals;
mod reports;
