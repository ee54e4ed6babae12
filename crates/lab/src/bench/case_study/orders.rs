//! In which order the tasks get the resource on the hypervisor, when their arrivals are
//! jittered by microseconds.
//!
//! What `ties` asks of the simulator by execution times a little shorter: on the hypervisor
//! every hyperperiod is the same unless something varies, and on a board something does.

use super::hypervisor::{LENGTH, SYSTEM, Seen, boot, judge, traced};
use crate::answer::Answer;
use crate::bench::ProgressView;
use crate::bench::campaign::room;
use crate::dataset::{Dataset, Unit};
use crate::progress::Progress;
use crate::quantity::{ns, real};
use crate::results::{Check, Goal};
use crate::session::End;
use crate::suite::Bench;
use crate::trace::{History, Hold, Subject, Trace};
use miette::Result;
use serde::{Deserialize, Serialize};
use sim::case_study::Scheme;
use std::collections::BTreeMap;
use std::time::Duration;

/// How late a task may be released, at random.
const JITTER: &str = "5us";
/// A hyperperiod.
pub const HYPERPERIOD: Duration = Duration::from_millis(200);
/// How many tasks there are.
pub const TASKS: usize = 8;
/// When the first task gets the resource, after the beginning of a hyperperiod, ns.
const FIRST_SECTION: u64 = 3_000_000;

/// An order in which the tasks got the resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// From 1, as they got it.
    tasks: Vec<usize>,
    /// In how many hyperperiods it was so.
    pub count: u64,
}

impl Order {
    /// Returns it in words.
    pub fn text(&self) -> String {
        self.tasks.iter().map(|task| format!("τ{task}")).collect::<Vec<_>>().join(" ")
    }
}

/// How often each order occurred.
#[derive(Debug)]
pub struct Orders {
    /// How many hyperperiods were asked for.
    hyperperiods: u64,
    /// All of them, the most frequent first.
    counted: Vec<Order>,
    /// Sections in hyperperiods in which not every task had one.
    odd: u64,
    /// The tasks, as in any other run.
    seen: Seen,
}

/// Runs the system for so many hyperperiods with overrun, and reads its trace.
pub fn run(bench: &Bench, hyperperiods: u64) -> Result<Orders> {
    let jitter = ("offset = \"".into(), format!("jitter = \"{JITTER}\", offset = \""));
    let length = LENGTH + HYPERPERIOD * u32::try_from(hyperperiods).unwrap_or(u32::MAX);
    let mut progress = Progress::new("bench case-study");
    let mut tell = |what: &str| progress.now(&format!("{hyperperiods} hyperperiods: {what}"));
    let view = Box::new(ProgressView(&mut tell));
    let scheme = Scheme::DeferrableWithOverrun;
    let bench = room(bench, "jittered")?;
    let run = boot(&bench, SYSTEM, scheme, &[traced(), jitter], length, view)?;
    let seen = Seen::of(scheme, &run, End::TimeOver);
    let trace = Trace::read(&seen.directory)?;
    let most = usize::try_from(hyperperiods).unwrap_or(usize::MAX);
    let (counted, odd) = counted(&trace.subject, History::of(&trace).holds, most);
    Ok(Orders { hyperperiods, counted, odd, seen })
}

/// Returns how often each order occurred in the first `most` hyperperiods, the most frequent first,
/// and how many sections there were in others.
pub fn counted(subject: &Subject, holds: Vec<Hold>, most: usize) -> (Vec<Order>, u64) {
    let (all, odd) = orders(subject, holds);
    let mut counted: BTreeMap<Vec<usize>, u64> = BTreeMap::new();
    for order in all.into_iter().take(most) {
        *counted.entry(order).or_default() += 1;
    }
    let mut counted: Vec<_> =
        counted.into_iter().map(|(tasks, count)| Order { tasks, count }).collect();
    counted.sort_by_key(|order| std::cmp::Reverse(order.count));
    (counted, odd)
}

/// Returns the order in each hyperperiod in which every task had a section, and how many
/// sections there were in others, but for the last, which the end of the run cuts.
fn orders(subject: &Subject, holds: Vec<Hold>) -> (Vec<Vec<usize>>, u64) {
    let groups = hyperperiods(holds);
    let (mut whole, mut odd) = (Vec::new(), 0);
    for (place, group) in groups.iter().enumerate() {
        let order: Vec<usize> = group.iter().map(|hold| task(subject, hold.vcpu)).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted.iter().copied().eq(1..=TASKS) {
            whole.push(order);
        } else if place + 1 < groups.len() {
            odd += group.len() as u64;
        }
    }
    (whole, odd)
}

/// Returns when each hyperperiod with sections began, ns.
pub fn beginnings(history: &History) -> Vec<u64> {
    let groups = hyperperiods(history.holds.clone());
    groups.iter().filter_map(|group| group[0].from.checked_sub(FIRST_SECTION)).collect()
}

/// Returns the sections of each hyperperiod that has any, by their beginnings. The first of all
/// sections is that of the task that arrives first, some time after its hyperperiod has begun.
fn hyperperiods(mut holds: Vec<Hold>) -> Vec<Vec<Hold>> {
    holds.sort_by_key(|hold| hold.from);
    let begin = holds.first().map_or(0, |first| first.from.saturating_sub(FIRST_SECTION));
    let number = |hold: &Hold| (hold.from - begin) / ns(HYPERPERIOD);
    holds.chunk_by(|a, b| number(a) == number(b)).map(<[Hold]>::to_vec).collect()
}

/// Returns which task of the paper a vCPU has: those of odd numbers are in the first VM.
pub fn task(subject: &Subject, vcpu: usize) -> usize {
    subject.vcpus.get(vcpu).map_or(0, |vcpu| 2 * vcpu.index + vcpu.vm + 1)
}

/// Adds what was seen.
pub fn tell(answer: &mut Answer, orders: &Orders) {
    let found: u64 = orders.counted.iter().map(|order| order.count).sum();
    answer.outcome.parameter("jitter", JITTER);
    answer.data(&orders.data());
    for (name, value, goal) in [
        ("hyperperiods on the hypervisor with jittered arrivals", found, orders.hyperperiods),
        ("sections in hyperperiods in which not every task had one", orders.odd, 0),
    ] {
        let check = Check::new(name, real(value), "", Goal::Exactly(real(goal)));
        answer.outcome.check(check.as_premise());
    }
    judge(answer, &orders.seen, "with jittered arrivals", orders.hyperperiods);
}

impl Orders {
    /// Returns how often each order occurred.
    pub fn data(&self) -> Dataset {
        let title = format!(
            "vMPCP+DSwO on the hypervisor, arrivals up to {JITTER} late: the order in which the \
             tasks get the resource"
        );
        let all = real(self.hyperperiods);
        Dataset::of("orders", &title, &self.counted)
            .name("order", |order| order.text())
            .column("hyperperiods", Unit::None, |order| order.count)
            .column("share", Unit::Share, move |order| real(order.count) / all)
            .done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Vcpu, vcpu};

    fn subject() -> Subject {
        let vcpu = |index| Vcpu { pcpu: index % 4, ..vcpu(index / 4, index % 4) };
        Subject { vcpus: (0..TASKS).map(vcpu).collect(), ..Subject::default() }
    }

    /// Sections of these vCPUs, a millisecond each.
    fn group(begin: u64, vcpus: impl IntoIterator<Item = usize>) -> Vec<Hold> {
        let hold = |(place, vcpu): (u64, usize)| {
            let from = begin + 1_000_000 * place;
            Hold { mutex: 0, vcpu, from, to: from + 900_000 }
        };
        (0..).zip(vcpus).map(hold).collect()
    }

    #[test]
    fn a_hyperperiod_gives_the_order_of_its_tasks() {
        let mut holds = group(200_000_000, (0..8).rev());
        holds.extend(group(0, 0..8));
        let (found, odd) = orders(&subject(), holds);
        let up = vec![1, 3, 5, 7, 2, 4, 6, 8];
        let down: Vec<usize> = up.iter().rev().copied().collect();
        assert_eq!((found, odd), (vec![up, down], 0));
    }

    #[test]
    fn a_section_that_is_missing_or_made_twice_is_told_but_at_the_end() {
        let mut holds = group(0, 0..7);
        holds.extend(group(200_000_000, [0, 0, 1, 2, 3, 4, 5, 6, 7]));
        holds.extend(group(400_000_000, 0..3));
        assert_eq!(orders(&subject(), holds), (Vec::new(), 16));
    }

    #[test]
    fn sections_without_a_pause_are_told() {
        let all = (0..5).flat_map(|turn| group(100_000_000 * turn, 0..8));
        // Two in each but the last, which the end cuts.
        assert_eq!(orders(&subject(), all.collect()).1, 32);
    }
}
