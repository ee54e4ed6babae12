use super::{Mode, Policy, Side, Then, View};

/// At its base a vCPU executes programs only: it goes to its refuge to enter
/// its kernel, and back to return from it (PECCS 2012, section 4.2.2).
///
/// Whoever displaces it therefore finds it in a program, where it holds no lock
/// of the kernel. With the *interrupt rule* it leaves also when an interrupt
/// comes for it while it lies displaced; without, others that wait for it to
/// answer (inter-processor calls) wait for the real-time guest, which is what
/// chapter 6 of the thesis suspects to have spoilt this policy.
#[derive(Clone, Copy, Debug)]
pub struct TrapBased {
    /// Whether there is the interrupt rule (thesis, section 8.1).
    pub interrupt_rule: bool,
}

impl Policy for TrapBased {
    fn interrupted(&self) -> Then {
        if self.interrupt_rule { Then::Leave } else { Then::Stay }
    }

    fn view(&self, at_base: bool) -> View {
        if at_base { View::UserOnly } else { View::KernelOnly }
    }

    fn crossed(&self, into: Mode) -> Side {
        match into {
            Mode::User => Side::Base,
            Mode::Kernel => Side::Refuge,
        }
    }
}
