//! The attacks, as `guests/probe/src/adversary` calls them.

/// All attacks.
pub const MODES: &[&str] = &[
    "pending",
    "active",
    "burst",
    "distributor",
    "redistributor",
    "interface",
    "sgi",
    "registers",
    "exceptions",
    "calls",
    "power",
    "devices",
    "stage2",
    "maintenance",
    "code",
    "console",
    "timer",
    "sleep",
    "float",
    "mix",
    "reset",
    "crash",
];

/// Attacks beside which the worst dispatch latency is above the goal. One that meets the goal
/// makes its test fail until it is taken from here.
pub const ABOVE_THE_GOAL: &[&str] = &[];

/// Returns true if an attack is known to exceed the goal.
pub fn is_above_the_goal(mode: &str) -> bool {
    ABOVE_THE_GOAL.contains(&mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The guest's list and this one are the same, and nothing is above the goal that is not there.
    #[test]
    fn the_guest_has_these_attacks() {
        let root = crate::testing::root();
        let text = fs::read_to_string(root.join("guests/probe/src/adversary/mod.rs")).unwrap();
        let begins = ["Mode::new(\"", "Mode::last(\""];
        let names = text.lines().filter_map(|line| {
            let rest = begins.iter().find_map(|begin| line.trim().strip_prefix(begin))?;
            rest.split('"').next()
        });
        assert_eq!(names.collect::<Vec<_>>(), MODES);
        assert!(ABOVE_THE_GOAL.iter().all(|mode| MODES.contains(mode)));
    }
}
