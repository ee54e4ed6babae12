//! The policies that are compared: all that the scheduler knows. One that is
//! new there is measured here.

use sched::policy::{MigrationPolicy, Request, View};

/// One way to let Linux and the RTOS share the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The name, and what `migration_policy` is set to.
    pub name: &'static str,
    /// True if the RTOS has it and makes way, not Linux.
    pub for_rtos: bool,
    /// True if it keeps Linux's kernel away from the core that is shared.
    pub keeps_kernel_away: bool,
    /// True if it goes to and fro whenever a program calls its kernel.
    pub moves_each_call: bool,
    /// True if the RTOS waits until Linux has left its kernel.
    pub delays: bool,
    /// True if Linux does without the core that is shared.
    pub gives_core_up: bool,
    /// True if it learns what the RTOS does.
    pub learns: bool,
}

/// The policy without any.
pub const NONE: &str = "none";

/// Linux's priority, below the RTOS's.
pub const LINUX_PRIORITY: u32 = 1;
/// The priority of the RTOS.
pub const RTOS_PRIORITY: u32 = 10;
/// Of a Linux vCPU that is above the RTOS.
pub const ABOVE_RTOS: u32 = 20;

impl Policy {
    /// Every policy but the controls, and those by which a guest or an operator has to ask, in the
    /// scheduler's order.
    pub fn all() -> Vec<Self> {
        let asks = |kind: &MigrationPolicy| {
            let policy = kind.policy();
            policy.request() != Request::None || kind.needs().moves_on_request
        };
        let own = MigrationPolicy::ALL.iter().filter(|kind| !kind.is_control() && !asks(kind));
        own.copied().map(Self::of).collect()
    }

    fn of(kind: MigrationPolicy) -> Self {
        Self {
            name: kind.name(),
            for_rtos: kind.needs().for_realtime,
            keeps_kernel_away: kind.policy().view(true) == View::UserOnly,
            moves_each_call: kind.policy().view(false) == View::KernelOnly,
            delays: kind.delays(),
            gives_core_up: kind.needs().lives_at_fallback,
            learns: kind.needs().observes,
        }
    }

    /// The policy of that name, which may be a control.
    pub fn named(name: &str) -> Option<Self> {
        MigrationPolicy::named(name).map(Self::of)
    }

    /// Returns true if it always does the same, Linux keeps all of its cores, and the RTOS waits for no
    /// more than a migration of Linux's.
    pub fn is_fixed(self) -> bool {
        !(self.learns || self.gives_core_up || self.delays || self.for_rtos)
    }

    /// What the description says of Linux, and of the RTOS.
    pub fn settings(self) -> [String; 2] {
        let setting = format!("migration_policy = \"{}\"\n", self.name);
        if self.for_rtos { [String::new(), setting] } else { [setting, String::new()] }
    }

    /// Priority of Linux's vCPU `index`.
    pub fn linux_priority(self, index: u32) -> u32 {
        if self.for_rtos && index == 0 { ABOVE_RTOS } else { LINUX_PRIORITY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_policies() {
        let all = Policy::all();
        assert!(all.iter().all(|policy| Policy::named(policy.name) == Some(*policy)));
        assert!([NONE, "partition", "on-demand"].iter().all(|name| Policy::named(name).is_some()));
        assert_eq!(Policy::named("no-such"), None);
        assert!(Policy::named("trap-based").unwrap().keeps_kernel_away);
        assert!(!Policy::named(NONE).unwrap().keeps_kernel_away);
        let fixed: Vec<_> = all.iter().filter(|p| p.is_fixed()).map(|p| p.name).collect();
        let migrate = ["trap-based", "trap-based-deferred", "coscheduling", "balance"];
        assert_eq!(fixed[..2], [NONE, "on-demand"]);
        assert_eq!(fixed[2..], [&migrate[..], &["trap-based-eager"]].concat());
        let each_call: Vec<_> = all.iter().filter(|p| p.moves_each_call).map(|p| p.name).collect();
        assert_eq!(each_call, ["trap-based-deferred", "trap-based-eager"]);
    }

    #[test]
    fn the_vm_that_makes_way_has_the_policy() {
        let [linux, rtos] = Policy::named("on-demand").unwrap().settings();
        assert_eq!((linux.as_str(), rtos.as_str()), ("migration_policy = \"on-demand\"\n", ""));
        let above = Policy::named("rt-vcpu").unwrap();
        assert!(above.settings()[0].is_empty());
        assert!(above.linux_priority(0) > RTOS_PRIORITY && above.linux_priority(1) < RTOS_PRIORITY);
    }
}
