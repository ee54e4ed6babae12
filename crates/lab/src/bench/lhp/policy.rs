//! The policies that are compared: one table. What the description's parser
//! does not know yet is left out of the plan.

use std::path::Path;
use system::Code;

/// One way to let Linux and the RTOS share the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its name, and what `migration` is set to.
    pub name: &'static str,
    /// The pCPUs of Linux's vCPUs, in order.
    pub linux: &'static [u32],
    /// Whether the description says `migration`.
    migrates: bool,
    /// In a few words, for the report.
    pub about: &'static str,
}

/// All pCPUs, that of the RTOS among them.
const SHARED: &[u32] = &[0, 1, 2, 3];

impl Policy {
    /// Every policy; to add one is to add a line.
    pub const ALL: [Self; 9] = [
        Self::sharing("none", "the RTOS preempts a Linux vCPU, which waits"),
        Self::divided("partition", "the RTOS has a core of its own, Linux the three others"),
        Self::sharing("on-demand", "the Linux vCPU leaves while the RTOS runs"),
        Self::sharing("trap-based", "only user code beside the RTOS; interrupts migrate at once"),
        Self::sharing("trap-based-deferred", "only user code beside the RTOS; interrupts wait"),
        Self::sharing("safe-unsafe", "the RTOS waits while Linux is in its kernel, up to a limit"),
        Self::sharing("coscheduling", "all Linux vCPUs run together, or none"),
        Self::sharing("balance", "no two Linux vCPUs on one core"),
        Self::sharing("rt-vcpu", "a Linux vCPU may rank above the RTOS, which then moves"),
    ];

    const fn sharing(name: &'static str, about: &'static str) -> Self {
        Self { name, linux: SHARED, migrates: true, about }
    }

    const fn divided(name: &'static str, about: &'static str) -> Self {
        Self { name, linux: &[1, 2, 3], migrates: false, about }
    }

    /// The policy of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name == name)
    }

    /// What the description says of Linux besides its vCPUs.
    #[must_use]
    pub fn setting(self) -> Option<String> {
        self.migrates.then(|| format!("migration = \"{}\"", self.name))
    }

    /// Those that the description's parser knows.
    #[must_use]
    pub fn existing() -> Vec<Self> {
        Self::ALL.into_iter().filter(|policy| policy.exists()).collect()
    }

    fn exists(self) -> bool {
        let Some(setting) = self.setting() else { return true };
        let text = format!("[[vm]]\nname = \"linux\"\n{setting}\n");
        let about_it = |problem: &system::Problem| {
            problem.code == Code::BadValue && problem.message.contains(&format!("`{}`", self.name))
        };
        match system::load_text(Path::new("policy.toml"), &text) {
            Ok(_) => true,
            Err(report) => !report.problems().iter().any(about_it),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_appear_when_the_parser_knows_them() {
        let names: Vec<_> = Policy::existing().iter().map(|policy| policy.name).collect();
        assert!(names.starts_with(&["none", "partition", "on-demand"]), "{names:?}");
        assert!(!Policy { name: "no-such", ..Policy::ALL[0] }.exists());
    }

    #[test]
    fn names_find_policies() {
        for policy in Policy::ALL {
            assert_eq!(Policy::named(policy.name), Some(policy));
        }
        assert_eq!(Policy::named("no-such"), None);
    }
}
