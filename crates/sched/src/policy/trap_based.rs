//! At its base a vCPU executes programs only: it goes to its fallback to enter
//! its kernel (PECCS 2012, section 4.2.2).
//!
//! So a vCPU that displaces it preempts a program, which holds no lock of the kernel.
//! With the *interrupt rule* it leaves also when an interrupt comes for it while it is
//! displaced. Without the rule, siblings that wait for its answer to an inter-processor
//! call wait for the real-time guest; chapter 6 of the thesis suspects that this spoilt
//! the policy.
//!
//! In the paper it returns *at once* when it executes a program again. A program that
//! calls its kernel often then migrates all the time. Otherwise it stays where it is,
//! until another vCPU wants that core and its base is free.

use super::{Policy, Side, Then, View};

/// It returns when another vCPU wants the core, and obeys the interrupt rule (thesis, section 8.1).
pub const POLICY: Policy = Policy {
    interrupted: Then::Leave,
    makes_room: true,
    views: [View::Full, View::UserOnly],
    crossed: [Side::Here, Side::Fallback],
    ..Policy::NONE
};

/// It returns at once, and obeys the interrupt rule.
pub const EAGER: Policy = Policy {
    makes_room: false,
    views: [View::KernelOnly, View::UserOnly],
    crossed: [Side::Base, Side::Fallback],
    ..POLICY
};

/// It returns at once, without the interrupt rule.
pub const DEFERRED: Policy = Policy { interrupted: Then::Stay, ..EAGER };

/// It returns at once, without the interrupt rule, and goes to its fallback only (thesis, section
/// 4.3.2).
pub const PAPER: Policy = Policy { keeps_to_fallback: true, ..DEFERRED };
