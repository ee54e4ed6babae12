//! The page, the tables, the checks.

use super::case::{Seen, SeenTask};
use crate::answer::Answer;
use crate::dataset::{Dataset, Unit};
use crate::quantity::{count, percent, real};
use crate::results::{Check, Goal};

/// Responses are counted by tenths of their bounds.
const PARTS: u64 = 10;

/// Returns the answer.
pub fn answer(machines: &[Seen]) -> Answer {
    let lead = "Random systems of vCPUs with budgets and of tasks that share resources, several to \
                a machine, each admitted by its bounds. The tasks ran on the hypervisor.";
    let mut answer = Answer::new("promises", "Random systems beside their bounds", lead);
    let tasks = || machines.iter().flat_map(|machine| &machine.tasks);
    let sum = |of: fn(&Seen) -> u64| machines.iter().map(of).sum::<u64>();
    let above = tasks().filter(|task| task.longest_ns > task.bound_ns).count() as u64;
    let most = tasks().map(of_bound).fold(0.0, f64::max);
    let systems = sum(|machine| machine.systems);
    let judged = sum(|machine| machine.supplies[0]);
    let supplies = sum(|machine| machine.supplies[1]);
    answer.tile(count(systems), "systems");
    answer.tile(count(tasks().map(|task| task.jobs).sum()), "jobs");
    answer.tile(percent(most), "the largest response, of its bound");
    for (name, value) in [
        ("systems", systems),
        ("tasks", tasks().count() as u64),
        ("jobs", tasks().map(|task| task.jobs).sum()),
        ("sections", sum(|machine| machine.sections[0])),
        ("sections_waited_for", sum(|machine| machine.sections[1])),
        ("supplies_judged", judged),
        ("supplies", supplies),
    ] {
        answer.outcome.figure(name, value);
    }
    answer.outcome.figure("largest_of_bound", most);
    let spread = spread(&tasks().collect::<Vec<_>>());
    answer.data(&spread);
    answer.data(&per_machine(machines));
    let seeds = machines.iter().map(|machine| machine.case.seed);
    let quoted = format!(
        "{} systems on {} machines (seeds {} to {}): {} jobs of {} tasks, {} critical sections, of \
         which {} were waited for; {above} responses above their bounds, the longest {} of its bound. \
         What a vCPU had in its periods was judged of {} of {} vCPUs.\n\n{}",
        count(systems),
        count(machines.len() as u64),
        seeds.clone().min().unwrap_or(0),
        seeds.max().unwrap_or(0),
        count(tasks().map(|task| task.jobs).sum()),
        count(tasks().count() as u64),
        count(sum(|machine| machine.sections[0])),
        count(sum(|machine| machine.sections[1])),
        percent(most),
        count(judged),
        count(supplies),
        spread.table().markdown()
    );
    answer.document("bench promises", quoted);
    let broken = sum(|machine| machine.broken.len() as u64);
    let zero = Goal::Exactly(0.0);
    answer.outcome.check(Check::new("responses above their bounds", real(above), "", zero));
    answer.outcome.check(Check::new("whatever else does not hold", real(broken - above), "", zero));
    let share = (supplies > 0).then(|| real(judged) / real(supplies));
    let name = "vCPUs whose supply was judged, of all";
    answer.outcome.check(Check::new(name, share, "", Goal::AtLeast(1.0)).as_premise());
    for machine in machines.iter().filter(|machine| !machine.broken.is_empty()) {
        let said = machine.broken.join("\n  ");
        answer.remark(&format!("Seed {}:\n  {said}", machine.case.seed));
    }
    answer
}

fn of_bound(task: &SeenTask) -> f64 {
    if task.bound_ns == 0 { 0.0 } else { real(task.longest_ns) / real(task.bound_ns) }
}

/// How near the longest responses came to their bounds.
fn spread(tasks: &[&SeenTask]) -> Dataset {
    let part = |task: &SeenTask| (task.longest_ns * PARTS).checked_div(task.bound_ns);
    let rows = (0..PARTS).map(|number| {
        let range = format!("{} % to {} %", number * 100 / PARTS, (number + 1) * 100 / PARTS);
        (range, tasks.iter().filter(|task| part(task) == Some(number)).count() as u64)
    });
    Dataset::of("spread", "How near the longest response of each task came to its bound", rows)
        .name("of_bound", |row| row.0.clone())
        .head("of the bound")
        .name("tasks", |row| row.1)
        .done()
}

fn per_machine(machines: &[Seen]) -> Dataset {
    Dataset::of("machines", "Machines", machines)
        .name("seed", |machine| machine.case.seed)
        .name("systems", |machine| machine.systems)
        .name("tasks", |machine| machine.tasks.len() as u64)
        .name("jobs", |machine| machine.tasks.iter().map(|task| task.jobs).sum::<u64>())
        .name("sections", |machine| machine.sections[0])
        .name("waited_for", |machine| machine.sections[1])
        .name("supplies_judged", |machine| machine.supplies[0])
        .name("supplies", |machine| machine.supplies[1])
        .column("largest_of_bound", Unit::Share, |machine| {
            machine.tasks.iter().map(of_bound).fold(0.0, f64::max)
        })
        .name("broken", |machine| machine.broken.len() as u64)
        .done()
}
