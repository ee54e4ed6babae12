//! Response times in the simulator, with the probe, with Linux, and in the paper.

use super::claims::ms;
use super::hypervisor::Seen;
use super::{CaseStudy, change_of_the_mean, mean_change};
use crate::dataset::{Dataset, Unit};
use crate::promises::SeenResponse;
use crate::quantity::ns;
use sim::case_study::Scheme;

/// What the paper says of the mean change under a scheme, %.
const PAPER: [Option<f64>; 3] = [None, Some(-7.5), Some(-29.1)];

/// Response times of the tasks, ns.
type Times = Vec<Option<u64>>;

/// A line of the table.
struct Row {
    name: String,
    times: Times,
    /// The mean of the tasks' changes against MPCP, and the change of the mean, %.
    changes: [Option<f64>; 2],
}

/// What a line shows of a guest, ns.
type Figure = fn(&SeenResponse) -> Option<u64>;
const MEAN: Figure = |task| task.mean.map(ns);
const LONGEST: Figure = |task| Some(ns(task.longest));
const BOUND: Figure = |task| task.bound.map(ns);

/// Returns the responses under each scheme: the simulator's, the probe's, and Linux's where it takes
/// what it needs within the declared times.
pub fn responses(study: &CaseStudy, probe: &[Seen], linux: &[Seen]) -> Dataset {
    let simulated = |scheme| study.run(scheme).responses.iter().copied().map(Some).collect();
    let rows = Scheme::ALL.into_iter().zip(PAPER).flat_map(|(scheme, paper)| {
        let mut rows = vec![row(scheme, "in the simulator", simulated)];
        rows.extend(of_guest(
            scheme,
            probe,
            &[("the probe, mean", MEAN), ("the probe, longest", LONGEST)],
        ));
        rows.extend(of_guest(scheme, linux, &[("Linux, mean", MEAN), ("Linux, longest", LONGEST)]));
        rows.extend(of_guest(scheme, probe, &[("bound", BOUND)]).map(unchanged));
        rows.extend(paper.map(|change| Row {
            name: format!("{}, the paper", scheme.name()),
            times: vec![None; study.run(scheme).responses.len()],
            changes: [Some(change), None],
        }));
        rows
    });
    let title = "Response times on the hypervisor, and their change against MPCP";
    dataset("on_the_hypervisor", title, rows)
}

/// Returns the responses of Linux's tasks where what it takes is within the declared times.
pub fn within(linux: &[Seen]) -> Dataset {
    of_linux(
        "linux_within",
        "Response times on Linux, whose work is within the declared times",
        linux,
    )
}

/// Returns the responses where the tasks of Linux execute the paper's times themselves.
pub fn beside(linux: &[Seen]) -> Dataset {
    let title = "Response times on Linux, where the tasks execute 2, 1 and 2 ms themselves and Linux \
                 takes its time besides";
    of_linux("linux_beside", title, linux)
}

fn of_linux(name: &str, title: &str, linux: &[Seen]) -> Dataset {
    let rows = Scheme::ALL.into_iter().flat_map(|scheme| {
        let times = of_guest(scheme, linux, &[("mean", MEAN), ("longest", LONGEST)]);
        times.chain(of_guest(scheme, linux, &[("bound", BOUND)]).map(unchanged))
    });
    dataset(name, title, rows)
}

/// Bounds are not compared with each other.
fn unchanged(row: Row) -> Row {
    Row { changes: [None; 2], ..row }
}

/// Makes a line of each of these figures of a guest, if it ran under the scheme.
fn of_guest<'a>(
    scheme: Scheme,
    all: &'a [Seen],
    figures: &'a [(&'a str, Figure)],
) -> impl Iterator<Item = Row> + 'a {
    let is_there = all.iter().any(|seen| seen.scheme == scheme);
    figures.iter().filter(move |_| is_there).map(move |&(name, figure)| {
        row(scheme, name, |scheme| {
            let seen = all.iter().find(|seen| seen.scheme == scheme);
            seen.map_or_else(Vec::new, |seen| seen.tasks.iter().map(figure).collect())
        })
    })
}

/// Makes a line of `times`, which tells them of each scheme.
fn row(scheme: Scheme, name: &str, times: impl Fn(Scheme) -> Times) -> Row {
    let known = |times: &Times| times.iter().copied().collect::<Option<Vec<u64>>>();
    let (own, baseline) = (times(scheme), times(Scheme::Mpcp));
    let both = known(&own).zip(known(&baseline)).filter(|(own, baseline)| {
        scheme != Scheme::Mpcp && !own.is_empty() && own.len() == baseline.len()
    });
    let changes = [mean_change, change_of_the_mean]
        .map(|change| both.as_ref().map(|(own, baseline)| 100.0 * change(own, baseline)));
    Row { name: format!("{}, {name}", scheme.name()), times: own, changes }
}

fn dataset(name: &str, title: &str, rows: impl Iterator<Item = Row>) -> Dataset {
    let rows: Vec<_> = rows.collect();
    let tasks = rows.first().map_or(0, |row| row.times.len());
    let mut all = Dataset::of(name, title, rows)
        .name("scheme", |row| row.name.clone())
        .head("")
        .column("mean_change", Unit::Change, |row| row.changes[0])
        .column("change_of_the_mean", Unit::Change, |row| row.changes[1])
        .head("of the mean");
    for task in 0..tasks {
        let time = |row: &Row| row.times.get(task).copied().flatten().map(ms);
        all = all.column(&format!("τ{}", task + 1), Unit::Milliseconds, time).digits(2);
    }
    all.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn seen(scheme: Scheme, mean_ms: Option<u64>) -> Seen {
        let task = SeenResponse {
            task: "one/t1".into(),
            vcpu: "one.0".into(),
            jobs: 1,
            late: 0,
            mean: mean_ms.map(Duration::from_millis),
            longest: Duration::from_millis(30),
            bound: Some(Duration::from_millis(100)),
            period: Duration::from_millis(200),
        };
        let (broken, directory) = (Vec::new(), "x".into());
        Seen { scheme, tasks: vec![task; 8], broken, drawing: None, directory }
    }

    #[test]
    fn a_guest_is_compared_with_itself_under_mpcp() {
        let all = [seen(Scheme::Mpcp, Some(20)), seen(Scheme::DeferrableNoOverrun, Some(15))];
        let of = |scheme| of_guest(scheme, &all, &[("mean", MEAN)]).next();
        let changes = |scheme| of(scheme).map(|row| row.changes);
        assert_eq!(changes(Scheme::Mpcp), Some([None; 2]));
        assert_eq!(changes(Scheme::DeferrableNoOverrun), Some([Some(-25.0); 2]));
        assert_eq!(changes(Scheme::DeferrableWithOverrun), None, "it did not run");
    }

    #[test]
    fn tasks_that_did_not_run_have_no_change() {
        let all = [seen(Scheme::Mpcp, Some(20)), seen(Scheme::DeferrableNoOverrun, None)];
        let row = of_guest(Scheme::DeferrableNoOverrun, &all, &[("mean", MEAN)]).next().unwrap();
        assert_eq!((row.times, row.changes), (vec![None; 8], [None; 2]));
    }

    #[test]
    fn the_table_has_a_line_of_each_guest_that_ran_and_the_papers() {
        let study = CaseStudy::simulate().unwrap();
        let all = Scheme::ALL.map(|scheme| seen(scheme, Some(20)));
        let lines = |linux| responses(&study, &all, linux).table().to_string().lines().count();
        assert_eq!(lines(&all) - lines(&[]), 6);
        assert!(responses(&study, &all, &all).table().to_string().contains("DSwO, the paper"));
        assert!(!beside(&all).is_empty() && beside(&[]).is_empty());
    }
}
