use super::{Mode, Policy, Side, Then, View};

/// At its base a vCPU executes programs only: it goes to its fallback to enter
/// its kernel (PECCS 2012, section 4.2.2).
///
/// So a vCPU that displaces it preempts a program, which holds no lock of the kernel.
/// With the *interrupt rule* it leaves also when an interrupt comes for it while it is
/// displaced. Without the rule, siblings that wait for its answer to an inter-processor
/// call wait for the real-time guest; chapter 6 of the thesis suspects that this spoilt
/// the policy.
///
/// In the paper it returns *at once* when it executes a program again. A program that
/// calls its kernel often then migrates all the time. Otherwise it stays where it is,
/// until another vCPU wants that core and its base is free.
#[derive(Clone, Copy, Debug)]
pub struct TrapBased {
    /// True with the interrupt rule (thesis, section 8.1).
    pub interrupt_rule: bool,
    /// True if it goes back to its base as soon as it executes a program.
    pub returns_at_once: bool,
    /// True if it may go to any core of its affinity, and on from there; else to its fallback
    /// only (thesis, section 4.3.2).
    pub wanders: bool,
}

impl Policy for TrapBased {
    fn keeps_to_fallback(&self) -> bool {
        !self.wanders
    }

    fn interrupted(&self) -> Then {
        if self.interrupt_rule { Then::Leave } else { Then::Stay }
    }

    fn view(&self, at_base: bool) -> View {
        match (at_base, self.returns_at_once) {
            (true, _) => View::UserOnly,
            (false, true) => View::KernelOnly,
            (false, false) => View::Full,
        }
    }

    fn makes_room(&self, mode: Mode) -> bool {
        !self.returns_at_once && mode == Mode::User
    }

    fn crossed(&self, into: Mode) -> Side {
        match into {
            Mode::Kernel => Side::Fallback,
            Mode::User if self.returns_at_once => Side::Base,
            Mode::User => Side::Here,
        }
    }
}
