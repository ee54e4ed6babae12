//! A vCPU that is displaced leaves only for a core that has nothing to run, so that two
//! vCPUs of a VM seldom take turns on one core (Sukwong and Kim, EuroSys 2011).
//!
//! When every core is busy, it waits as under [`super::none`].

use super::{Answers, Policy, Then};

pub const POLICY: Policy =
    Policy { displaced: Answers::if_ready_and_a_core_idles(Then::LeaveForIdle), ..Policy::NONE };
