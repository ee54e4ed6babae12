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
    "messages",
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

/// Attacks beside a FreeRTOS that another core wakes: those that make its core read most messages, or
/// keep it longest at EL2.
pub const WOKEN: &[&str] = &[
    "pending",
    "burst",
    "distributor",
    "interface",
    "sgi",
    "messages",
    "calls",
    "power",
    "sleep",
    "mix",
    "reset",
];

/// Like [`ABOVE_THE_GOAL`] where another core wakes FreeRTOS, of adversaries with vCPUs on
/// several cores.
const ABOVE_THE_GOAL_WOKEN: &[&str] = &[];

/// Returns true if an attack is known to exceed the goal. `is_woken`: beside a FreeRTOS that another
/// core wakes, by vCPUs on several cores.
pub fn is_above_the_goal(mode: &str, is_woken: bool) -> bool {
    if is_woken { ABOVE_THE_GOAL_WOKEN } else { ABOVE_THE_GOAL }.contains(&mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The guest's list and this one are the same, and no list names another one.
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
        let named = [ABOVE_THE_GOAL, ABOVE_THE_GOAL_WOKEN, WOKEN].concat();
        assert!(named.iter().all(|mode| MODES.contains(mode)));
    }
}
