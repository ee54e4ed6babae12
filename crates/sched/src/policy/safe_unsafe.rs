use super::{Mode, Policy};

/// A vCPU that wants the core of one that executes its kernel waits until that one
/// returns to a program or sleeps, up to a limit (Uhlig, LeVasseur, Skoglund
/// and Dannowski, VM 2004).
///
/// No migration, no lock holder preempted within the limit; the real-time guest
/// pays with its latency. An idle kernel is asleep (WFI), and delays no vCPU.
#[derive(Clone, Copy, Debug)]
pub struct SafeUnsafe;

impl Policy for SafeUnsafe {
    fn delays(&self, mode: Mode) -> bool {
        mode == Mode::Kernel
    }
}
