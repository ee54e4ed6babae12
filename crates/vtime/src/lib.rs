//! Virtual multi-core time for an emulated board.
//!
//! QEMU runs each emulated core in a thread of its own, and the host's
//! scheduler decides which of them gets on. Nothing measured on such a machine
//! means anything. This crate is the remedy's logic: the cores advance in
//! lockstep by *virtual* time, one instruction one tick, whatever the host does
//! meanwhile. `cassata-vtime-plugin` connects it to QEMU.
//!
//! - [`machine`]: the rules of the lockstep, as a pure state machine.
//! - [`lockstep`]: the same for threads.
//! - [`hold`]: how another program holds the machine to look at it.
//! - [`aarch64`]: which instructions can see time.
//! - [`visits`]: how many instructions each visit to an address range takes.
//! - [`coverage`]: which instructions of an address range were executed.
//! - [`marks`]: addresses at which cores note their times.
//! - [`stall`]: stretches of time in which a core executes nothing.
//! - [`options`], [`stats`]: what goes into the instrument and what comes out.
//! - [`watchdog`]: what to say when nothing moves.
//! - [`metronome`]: what the test guest reports.
//! - [`qemu`], [`wrap`]: a QEMU command line under the instrument.

#![forbid(unsafe_code)]

pub mod aarch64;
pub mod coverage;
pub mod hold;
pub mod lockstep;
pub mod machine;
pub mod marks;
pub mod metronome;
pub mod options;
pub mod qemu;
pub mod rate;
pub mod stall;
pub mod stats;
pub mod visits;
pub mod watchdog;
pub mod wrap;
