//! The system of a case.

use super::super::{COMPUTES, INIT, SLEEPS, command_line};
use super::case::{Case, Load, Route};
use crate::guests::Images;
use std::fmt::Write;
use std::path::Path;

/// The period of FreeRTOS, or the mean time between two interrupts of its other core: a prime, so that it
/// meets all phases of Linux's tick.
pub const PERIOD_US: u64 = 503;
/// How far a core may run ahead of the others where one raises what another takes, ns.
pub const FINE_QUANTUM_NS: u64 = 250;
/// When FreeRTOS begins, ms after its start: where there is a Linux, that has booted and set to work by
/// then, after EL2 has compared it with its digest. A run in which it has not is an error.
const BESIDE_LINUX_MS: u64 = 1_430;
const ALONE_MS: u64 = 20;
const BESIDE_PROBE_MS: u64 = 100;
/// How much a release comes early or late, percent of a period.
const JITTER: u64 = 10;
/// Thousandths of its core that FreeRTOS burns so that it never sleeps.
const ALWAYS: u64 = 1_000;

/// Indices of the VMs.
pub const RTOS: usize = 0;
pub const LINUX: usize = 1;

/// Returns the description of the system, for the project at `root`.
pub fn description(case: &Case, root: &Path) -> String {
    let images = Images::of(root);
    // Core 0 is the one that is measured, core 1 is Linux's, core 2 raises interrupts.
    let pcpus = match (case.load, case.route.is_raised_elsewhere()) {
        (_, true) => 3,
        (Load::Alone | Load::Spin, false) => 1,
        (_, false) => 2,
    };
    let advance = if case.route == Route::Advance { "" } else { "timer_advance = \"0us\"\n" };
    // Only a real-time VM has an advance, and it is above others.
    let (ranked, realtime) = match case.route {
        Route::Equal => (equal(0), String::new()),
        _ => ("{ pcpu = 0, priority = 10 }".into(), format!("realtime = true\n{advance}")),
    };
    let device = if case.route == Route::Device { "devices = [\"rtc\"]\n" } else { "" };
    let other = if pcpus == 3 { ", { pcpu = 2, priority = 10 }" } else { "" };
    let mut text = format!(
        "[board]\nkind = \"qemu-virt\"\npcpus = {pcpus}\nmemory = \"1G\"\n\n\
         [[vm]]\nname = \"rtos\"\nkernel = {:?}\nmemory = {{ size = \"32M\" }}\n\
         vcpus = [{ranked}{other}]\n{realtime}{device}\
         report = \"1M\"\ncmdline = {:?}\n",
        images.rtos,
        told_rtos(case)
    );
    let shares = case.route.shares_the_core();
    match case.load {
        Load::Alone => {}
        Load::Spin => {
            let _ = write!(
                text,
                "\n[[vm]]\nname = \"other\"\nkernel = {:?}\nmemory = {{ size = \"32M\" }}\n\
                 vcpus = [{{ pcpu = 0, priority = 1 }}]\ncmdline = \"probe.run=spin\"\n",
                images.probe
            );
        }
        Load::Idle | Load::Compute | Load::Hackbench => {
            let policy = match case.route {
                Route::Departure => "migration_policy = \"on-demand\"\n",
                _ => "",
            };
            let first = if shares { equal(0) + ", " } else { String::new() };
            let _ = write!(
                text,
                "\n[[vm]]\nname = \"linux\"\nkernel = {:?}\ninitramfs = {:?}\ncmdline = '{}'\n\
                 seed = 1\nmemory = {{ size = \"512M\" }}\n{policy}vcpus = [{first}{}]\n",
                images.kernel,
                images.initramfs,
                told_linux(case.load),
                equal(1)
            );
        }
    }
    text
}

/// Returns a vCPU of the lower priority. Its quantum is shorter than FreeRTOS's period: where both are equal, no
/// release waits for an earlier one, too.
fn equal(pcpu: u32) -> String {
    format!("{{ pcpu = {pcpu}, priority = 1, quantum = \"100us\" }}")
}

fn told_rtos(case: &Case) -> String {
    let start_ms = match case.load {
        Load::Alone => ALONE_MS,
        Load::Spin => BESIDE_PROBE_MS,
        Load::Idle | Load::Compute | Load::Hackbench => BESIDE_LINUX_MS,
    };
    let burns = if case.route == Route::NoSwitch { ALWAYS } else { 0 };
    let how = match case.route {
        Route::Device => "wake=rtc".into(),
        Route::Core => "wake=sgi".into(),
        _ => format!("tick_us={PERIOD_US} jitter={JITTER}"),
    };
    let activations = case.activations;
    format!(
        "load={burns} period_us={PERIOD_US} {how} activations={activations} start_ms={start_ms}"
    )
}

fn told_linux(load: Load) -> String {
    let work = match load {
        Load::Compute => COMPUTES,
        Load::Hackbench => "cassata.run=busy cassata.work=hackbench",
        Load::Alone | Load::Spin | Load::Idle => SLEEPS,
    };
    command_line(INIT, work)
}

/// Returns all that a machine is told, wherever the project is.
pub fn told(case: &Case) -> String {
    let quantum = if case.route.is_raised_elsewhere() { "\nfine quantum" } else { "" };
    description(case, Path::new("")) + quantum
}

#[cfg(test)]
mod tests {
    use super::super::case::cases;
    use super::*;
    use crate::bench::Extent;
    use crate::testing;

    #[test]
    fn descriptions_are_understood() {
        let quick = [Load::Alone, Load::Spin].map(|load| {
            let (route, activations) = (Route::Kernel, 9);
            Case { route, load, activations }
        });
        let all = cases(Extent::Full).into_iter().chain(quick);
        testing::lack_guests_only(all, |case, root| Some(description(case, root)));
    }

    #[test]
    fn a_guest_that_is_not_tuned_differs_by_its_rank_only() {
        let text = |route| {
            let case = Case { route, load: Load::Hackbench, activations: 9 };
            description(&case, Path::new(""))
        };
        let (above, equal) = (text(Route::Above), text(Route::Equal));
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let only = |text: &str, other: &str| -> Vec<_> {
            let other = lines(other);
            lines(text).into_iter().filter(|line| !other.contains(line)).collect()
        };
        assert_eq!(
            only(&above, &equal),
            ["vcpus = [{ pcpu = 0, priority = 10 }]", "realtime = true", "timer_advance = \"0us\""]
        );
        let rank = "vcpus = [{ pcpu = 0, priority = 1, quantum = \"100us\" }]";
        assert_eq!(only(&equal, &above), [rank]);
        assert_eq!(text(Route::Kernel), above, "the same machine, of which others are looked at");
    }
}
