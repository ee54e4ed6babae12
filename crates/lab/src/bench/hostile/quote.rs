//! What the book says of the bench: two tables of latencies, and which goals hold.

use super::case::{Adversary, NONE};
use super::known::Figure;
use super::report::{Wake, alone, goal_ns, is_known, of};
use super::seen::Seen;
use crate::bench::store::Case as _;
use crate::quantity::{count, real};
use crate::results::Check;
use crate::table::Table;

/// What stands where nothing was measured: FreeRTOS did not run.
const NEVER: &str = "never runs";

/// Returns the block `bench hostile`, in Markdown, of all runs and their checks.
pub fn quoted(seen: &[Seen], checks: &[Check]) -> String {
    let us = |wake, of: fn(&[Seen], Wake) -> Option<u64>| cell(of(seen, wake), None);
    let alone_ns = |seen: &[Seen], wake| alone(seen, wake)?.rtos.worst_dispatch_ns();
    let alone = |wake| (us(wake, alone_ns), us(wake, goal_ns));
    let ((timer, timer_goal), (core, core_goal)) = (alone(Wake::Timer), alone(Wake::Core));
    let virtual_s = real(seen.iter().map(|seen| seen.virtual_ns).sum()) / 1e9;
    let operations = count(seen.iter().map(|seen| seen.operations).sum());
    format!(
        "{} runs, {virtual_s:.0} s of virtual time, {operations} hostile operations. FreeRTOS alone takes \
         {timer} µs, so the goal is {timer_goal}; woken by another core {core}, so the goal is {core_goal}. \
         What is above is set in bold.\n\n\
         The worst dispatch latency of FreeRTOS beside each attack, µs: with so many vCPUs, with eight on \
         FreeRTOS's core, as a real-time VM, under the worst of the policies but `rt-vcpu`, and under \
         that.\n\n{}\n\
         The same where another core wakes FreeRTOS, beside eight vCPUs, µs:\n\n{}\n\
         Goals, with the reasons of those that are known not to hold:\n\n{}",
        seen.len(),
        by_attack(seen).markdown(),
        woken(seen).markdown(),
        goals(seen, checks).markdown(),
    )
}

/// Returns a latency in µs, in bold above the goal.
fn cell(ns: Option<u64>, goal_ns: Option<u64>) -> String {
    let Some(ns) = ns else { return NEVER.into() };
    let text = format!("{:.2}", real(ns) / 1e3);
    if goal_ns.is_some_and(|goal| ns > goal) { format!("**{text}**") } else { text }
}

/// A column: its head, and which adversaries it is of.
type Column = (&'static str, fn(&Adversary) -> bool);

/// The columns of the table of attacks, without the worst of the policies.
const COLUMNS: [Column; 5] = [
    ("1", |one| is_plain(one) && one.vcpus == 1 && !one.crowds),
    ("2", |one| is_plain(one) && one.vcpus == 2 && !one.crowds),
    ("8", |one| is_plain(one) && one.vcpus == 8 && !one.crowds),
    ("8 on one core", |one| is_plain(one) && one.crowds),
    ("real-time", |one| one.is_realtime),
];
/// The policy that has a column of its own.
const ABOVE: &str = "rt-vcpu";

fn is_plain(adversary: &Adversary) -> bool {
    adversary.policy == NONE && !adversary.is_realtime
}

/// A row for each attack, and a column for each number of vCPUs and the like.
fn by_attack(seen: &[Seen]) -> Table {
    let heads = COLUMNS.iter().map(|(head, _)| *head);
    let heads = ["attack"].into_iter().chain(heads).chain(["worst policy", ABOVE]);
    let mut table = Table::new("", heads);
    let goal = goal_ns(seen, Wake::Timer);
    for mode in Wake::Timer.modes() {
        let runs = of(seen, mode, Wake::Timer);
        let adversary = |seen: &&&Seen, is_it: &dyn Fn(&Adversary) -> bool| {
            seen.case.adversary.as_ref().is_some_and(is_it)
        };
        let worst = |is_it: &dyn Fn(&Adversary) -> bool| {
            let runs = runs.iter().filter(|seen| adversary(seen, is_it));
            runs.max_by_key(|seen| seen.rtos.worst_dispatch_ns())
        };
        let of = |is_it: &dyn Fn(&Adversary) -> bool| {
            cell(worst(is_it).and_then(|seen| seen.rtos.worst_dispatch_ns()), goal)
        };
        let policies = |one: &Adversary| one.policy != NONE && one.policy != ABOVE;
        let named = worst(&policies).and_then(|seen| seen.case.adversary.as_ref());
        let named = named.map_or_else(String::new, |one| format!(" `{}`", one.policy));
        let row = COLUMNS.iter().map(|(_, is_it)| of(is_it));
        let policies = [of(&policies) + &named, of(&|one| one.policy == ABOVE)];
        table.row([format!("`{mode}`")].into_iter().chain(row).chain(policies));
    }
    table
}

/// A row for each run beside a FreeRTOS that another core wakes.
fn woken(seen: &[Seen]) -> Table {
    let mut table = Table::new("", ["adversary", "worst dispatch latency"]);
    let goal = goal_ns(seen, Wake::Core);
    for seen in seen.iter().filter(|seen| Wake::of(seen) == Wake::Core) {
        let Some(adversary) = &seen.case.adversary else { continue };
        let Adversary { mode, crowds, policy, is_realtime, .. } = adversary;
        let mut name = format!("`{mode}`");
        for (holds, says) in [
            (*crowds, ", all vCPUs on FreeRTOS's core".to_owned()),
            (*is_realtime, ", a real-time VM below FreeRTOS".to_owned()),
            (policy != NONE, format!(", `{policy}`")),
        ] {
            if holds {
                name += &says;
            }
        }
        table.row([name, cell(seen.rtos.worst_dispatch_ns(), goal)]);
    }
    table
}

/// A row for each goal; the latencies beside all attacks are one.
fn goals(seen: &[Seen], checks: &[Check]) -> Table {
    let mut table = Table::new("", ["goal", "found", "demanded", "", "why"]);
    for wake in Wake::ALL {
        let attacked = seen.iter().filter(|seen| seen.case.adversary.is_some());
        let runs = attacked.filter(|seen| Wake::of(seen) == wake);
        let worst = runs.filter(|seen| !is_known(seen, Figure::Dispatch));
        let worst = worst.max_by_key(|seen| seen.rtos.worst_dispatch_ns());
        let ns = worst.and_then(|seen| seen.rtos.worst_dispatch_ns());
        let goal = goal_ns(seen, wake);
        let beside = worst.map_or_else(String::new, |seen| format!(" (`{}`)", seen.case.name()));
        let holds = ns.zip(goal).is_some_and(|(ns, goal)| ns <= goal);
        let apposition = wake.apposition();
        table.row([
            format!("worst dispatch latency of FreeRTOS{apposition} beside any other attack"),
            format!("{} µs{beside}", cell(ns, None)),
            format!("<= {} µs", cell(goal, None)),
            if holds { "holds" } else { "FAILS" }.into(),
            String::new(),
        ]);
    }
    let is_row = |check: &&Check| check.known().is_some() || !check.name.contains(" beside ");
    for check in checks.iter().filter(is_row) {
        table.row([
            check.name.clone(),
            check.value_text(),
            format!("{} {}", check.goal, check.unit).trim_end().to_owned(),
            check.verdict().into(),
            check.known().unwrap_or_default().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::case::Case;
    use super::super::known::KNOWN;
    use super::super::report::{answer, tests::run};
    use super::super::{LENGTH_MS, cases};
    use super::*;
    use crate::observe::Lateness;

    /// All runs, each of which takes 1 µs, or what `of` says of its name.
    fn all(of: impl Fn(&str) -> Option<u32>) -> Vec<Seen> {
        let made = |case: Case| {
            let name = case.name();
            let mut seen = run(None, of(&name).unwrap_or(1_000), 100_000);
            if name == "sgi-2-rt-vcpu" {
                seen.rtos = Lateness::default();
                seen.broken = vec!["rtos reported nothing".into()];
            }
            Seen { case, ..seen }
        };
        cases(LENGTH_MS).into_iter().map(made).collect()
    }

    #[test]
    fn the_tables_say_which_run_is_late() {
        let seen = all(|name| match name {
            "alone" => Some(700),
            "sgi-8-crowd" => Some(4_701),
            "sgi-2-masked" => Some(2_000),
            "woken-messages-8-on-demand" => Some(6_000),
            _ => None,
        });
        let text = quoted(&seen, answer(&seen).outcome.checks());
        let row = "| `sgi` | 1.00 | 1.00 | 1.00 | **4.70** | 1.00 | 2.00 `masked` | never runs |\n";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("| `messages`, `on-demand` | **6.00** |\n"), "{text}");
        assert!(text.contains("alone takes 0.70 µs, so the goal is 4.70; woken"), "{text}");
        let beside = "worst dispatch latency of FreeRTOS beside any other attack";
        let goal = format!("| {beside} | 4.70 µs (`sgi-8-crowd`) | <= 4.70 µs | FAILS |  |\n");
        assert!(text.contains(&goal), "{text}");
        let known = KNOWN.iter().find(|known| known.beside.starts_with("messages under")).unwrap();
        let row = text.lines().find(|line| line.contains(known.beside)).unwrap();
        assert!(row.contains("| FAILS, as known |") && row.contains(known.why), "{row}");
        let rows = text.lines().filter(|line| line.starts_with("| `")).count();
        let woken = seen.iter().filter(|seen| seen.case.is_woken).count() - 1;
        assert_eq!(rows, Wake::Timer.modes().len() + woken);
    }

    #[test]
    fn a_part_is_not_quoted() {
        let (seen, root) = (all(|_| None), tempfile::tempdir().unwrap());
        let error = |seen: &[Seen]| answer(seen).write_documents(root.path()).unwrap_err();
        assert!(error(&seen[1..]).to_string().starts_with("no document quotes"));
        assert!(
            !error(&seen).to_string().starts_with("no document quotes"),
            "there is no such file"
        );
    }
}
