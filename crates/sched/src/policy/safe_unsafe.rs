use super::{Mode, Policy};

/// Who wants the core of a vCPU that executes its kernel waits until it
/// returns to a program or sleeps, up to a limit (Uhlig, LeVasseur, Skoglund
/// and Dannowski, VM 2004).
///
/// No migration, no lock holder preempted within the limit; the real-time guest
/// pays with its latency. An idle kernel is asleep (WFI), and delays nobody.
#[derive(Clone, Copy, Debug)]
pub struct SafeUnsafe;

impl Policy for SafeUnsafe {
    fn delays(&self, mode: Mode) -> bool {
        mode == Mode::Kernel
    }
}
