use super::{Mode, Policy};

/// A vCPU that displaces one in its kernel waits until the latter returns to a program
/// or sleeps, up to a limit (Uhlig, LeVasseur, Skoglund and Dannowski, VM 2004).
///
/// No vCPU migrates, and no lock holder is preempted within the limit; the real-time
/// guest pays with its latency. An idle kernel sleeps (WFI), and delays no vCPU.
#[derive(Clone, Copy, Debug)]
pub struct SafeUnsafe;

impl Policy for SafeUnsafe {
    fn delays(&self, mode: Mode, _asks: bool) -> bool {
        mode == Mode::Kernel
    }
}
