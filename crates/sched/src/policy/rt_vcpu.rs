//! For the real-time VM itself: a vCPU of another VM may have a higher priority, and the
//! real-time vCPU goes to another core instead of waiting (vlk, section 4.3).

use super::{Answers, Policy, Then};

pub const POLICY: Policy =
    Policy { for_realtime: true, displaced: Answers::always(Then::LeaveUntilFree), ..Policy::NONE };
