//! Arguments of `cassata vtime`.

use super::values::{clock_rate, stall};
use clap::Args;
use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use vtime::options::Options;
use vtime::rate::ClockRate;
use vtime::stall::Stall;

/// Run any QEMU command line in virtual time
///
/// Takes a command line of qemu-system-aarch64, whatever it runs, and lets
/// all its cores advance together, an instruction a nanosecond. Checks
/// first that this QEMU can (version 10.0 or newer, with plugins) and says
/// what to install if not. The terminal, Ctrl-C and the exit code are
/// QEMU's own. What was counted is written to standard error at the end.
///
/// The guest reads time from its counter. `-cpu cortex-a76,cntfrq=1000000000`
/// makes that count single nanoseconds. With a fixed seed and date (`-seed 1
/// -rtc base=2026-01-01,clock=vm`) runs are the same to the instruction.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  cassata vtime --statistics count.json -- qemu-system-aarch64 -M virt,gic-version=3 \\
      -cpu cortex-a76,cntfrq=1000000000 -smp 4 -m 1G -nic none -nographic \\
      -kernel Image -initrd initramfs.cpio.gz -append 'console=ttyAMA0 rdinit=/init'")]
pub struct Vtime {
    /// How far a core may run ahead of the others, nanoseconds
    #[arg(long, value_name = "NS", default_value_t = Options::DEFAULT_QUANTUM_NS,
          value_parser = clap::value_parser!(u64).range(1..=Options::MAX_QUANTUM_NS))]
    pub quantum_ns: u64,
    /// Let cores run at the same time instead of in turns: runs are alike then,
    /// but not the same
    #[arg(long)]
    pub parallel: bool,
    /// Clock rate of every core: million instructions in a second
    #[arg(long, value_name = "MHZ", default_value = "1000", value_parser = clock_rate)]
    pub mhz: ClockRate,
    /// Write what is counted to this file, while it runs and at the end
    #[arg(long, value_name = "FILE")]
    pub statistics: Option<PathBuf>,
    /// Count instructions and visits in these physical addresses too
    #[arg(long, value_name = "START-END", value_parser = vtime::options::range)]
    pub range: Option<Range<u64>>,
    /// Let a core execute nothing for a while: core 1 from 200 ms of virtual time on for
    /// 500 us, with 1@200ms:500us; for several stalls, repeat it
    #[arg(long = "stall", value_name = "CORE@TIME:DURATION", value_parser = stall)]
    pub stalls: Vec<Stall>,
    /// QEMU and its arguments
    #[arg(last = true, required = true, value_name = "QEMU")]
    pub command: Vec<OsString>,
}
