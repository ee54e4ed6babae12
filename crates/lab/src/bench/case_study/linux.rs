//! The same system as the paper had it: two VMs with Linux, whose tasks have SCHED_FIFO and use
//! the module.
//!
//! Linux takes time for itself while a task runs. Where that is inside the declared times, tasks
//! execute a little less than the paper's; where it is beside them, no budget of 3 ms holds the
//! paper's first two segments, and each task but the last keeps the resource until its budget
//! comes again. Both are run.

use super::claims::{ms, near_the_paper};
use super::hypervisor::{Seen, boot, by_name, drawing, judge, traced};
use super::orders::{HYPERPERIOD, Order, TASKS, beginnings, counted, task};
use super::{change_of_the_mean, mean_change};
use crate::answer::Answer;
use crate::bench::campaign::{Campaign, Findings, make};
use crate::bench::inputs::Inputs;
use crate::bench::store::{Case, Store, measured};
use crate::bench::{ProgressView, Tell};
use crate::dataset::{Dataset, Unit};
use crate::guests::RanTask;
use crate::progress::Progress;
use crate::quantity::{ns, real};
use crate::results::{Check, Goal};
use crate::session::{End, Run};
use crate::suite::{Bench, side_by_side};
use crate::trace::{History, Subject, Trace, Turn};
use miette::Result;
use serde::{Deserialize, Serialize};
use sim::case_study::{Scheme, gcs};
use std::path::Path;
use std::time::{Duration, Instant};

/// What boots, from the project's root.
pub const SYSTEM: &str = "systems/bench/case-study-linux.toml";
/// Jobs of each task, as the description says: as many hyperperiods.
pub const JOBS: u64 = 10;
/// What a task declares before its critical section, and behind it, ns.
const FREE: u64 = 2_000_000;
/// The machine ends when all of them are done, after some twenty seconds of virtual time.
pub const LIMIT: Duration = Duration::from_secs(30);

/// What a boot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Responses, by the build that ships. What Linux takes is within the declared times.
    Within,
    /// The same by the build that records, for drawings and what vCPUs had.
    Traced,
    /// Responses where tasks execute the paper's times themselves, and declare 0.1 ms more for
    /// each segment.
    Beside,
}

impl Purpose {
    const ALL: [Self; 3] = [Self::Within, Self::Traced, Self::Beside];

    const fn name(self) -> &'static str {
        match self {
            Self::Within => "within",
            Self::Traced => "traced",
            Self::Beside => "beside",
        }
    }

    /// Returns what it changes in the description.
    fn edits(self) -> Vec<(String, String)> {
        let edit = |(from, to): (&str, &str)| (from.to_owned(), to.to_owned());
        match self {
            Self::Within => Vec::new(),
            Self::Traced => vec![traced()],
            Self::Beside => [
                (r#"wcet = "1100us""#, r#"wcet = "1200us""#),
                (r#"wcet = "1ms""#, r#"wcet = "1100us""#),
                (r#"wcet = "2ms""#, r#"wcet = "2100us""#),
                ("--reserve 30", "--reserve 100"),
            ]
            .map(edit)
            .into(),
        }
    }
}

/// One boot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    #[serde(with = "by_name")]
    scheme: Scheme,
    purpose: Purpose,
}

impl Case for Boot {
    fn name(&self) -> String {
        let scheme = self.scheme.name().to_lowercase().replace('+', "-");
        format!("linux-{scheme}-{}", self.purpose.name())
    }
}

/// What a boot brought.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Booted {
    boot: Boot,
    real_s: f64,
    seen: Seen,
    /// What the tasks themselves said at their end, in the order of the paper.
    ran: Vec<RanTask>,
    /// Of the trace, where there is one.
    watched: Option<Watched>,
}

/// What a trace tells of the hyperperiods.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Watched {
    /// The orders in which the tasks got the resource, and how often it was so.
    orders: Vec<Order>,
    /// Sections in hyperperiods in which not every task had one.
    odd: u64,
    /// How long the vCPU of each task had its core in each hyperperiod, ns.
    had_ns: Vec<Vec<u64>>,
}

measured!(Booted, boot: Boot, real_s);

/// All boots.
#[derive(Debug)]
pub struct Linux {
    found: Findings<Booted>,
    inputs: Inputs,
}

/// Boots all that is not known yet, several machines side by side.
pub fn run(bench: &Bench, fresh: bool) -> Result<Linux> {
    let directory = bench.directory.join("cases");
    make(&directory)?;
    let described = bench.root.join(SYSTEM);
    let inputs = Inputs::program()?.files("instrument", &[bench.instrument.path()])?;
    let inputs = inputs.hypervisor(bench).tracing_hypervisor(bench).linux(bench)?;
    let inputs = inputs.files("description", &[&described])?;
    let store = Store::new(directory, inputs.clone());
    let interrupt = &bench.interrupt;
    let campaign = Campaign { store: &store, fresh, side_by_side: side_by_side(), interrupt };
    let mut progress = Progress::new("bench case-study");
    let run = |case: &Boot, logs: &Path, tell: Tell<'_>| case.run(&bench.at(logs), tell);
    Ok(Linux { found: campaign.run(&cases(), &mut progress, run)?, inputs })
}

fn cases() -> Vec<Boot> {
    let of = |purpose| Scheme::ALL.map(|scheme| Boot { scheme, purpose });
    Purpose::ALL.into_iter().flat_map(of).collect()
}

impl Boot {
    fn run(&self, bench: &Bench, tell: Tell<'_>) -> Result<Booted> {
        let begin = Instant::now();
        let (view, edits) = (Box::new(ProgressView(tell)), self.purpose.edits());
        let run = boot(bench, SYSTEM, self.scheme, &edits, LIMIT, view)?;
        let mut seen = Seen::of(self.scheme, &run, End::PoweredOff);
        let mut watched = None;
        if self.purpose == Purpose::Traced {
            let trace = Trace::read(&seen.directory)?;
            seen.drawing = drawing(&trace, &format!("{} on Linux", self.scheme.name()));
            watched = Some(Watched::of(&trace));
        }
        let real_s = begin.elapsed().as_secs_f64();
        Ok(Booted { boot: self.clone(), real_s, seen, ran: ran(&run), watched })
    }
}

/// Returns what the tasks said, in the order of the paper.
fn ran(run: &Run) -> Vec<RanTask> {
    let all = run.said.guests.iter().flat_map(|guest| guest.linux.sharing.ran.clone());
    let mut all: Vec<_> = all.collect();
    all.sort_by(|one, other| one.task.cmp(&other.task));
    all
}

impl Watched {
    fn of(trace: &Trace) -> Self {
        let history = History::of(trace);
        let had_ns = had(&trace.subject, &history.turns, &beginnings(&history));
        let (orders, odd) = counted(&trace.subject, history.holds, usize::MAX);
        Self { orders, odd, had_ns }
    }
}

/// Returns how long the vCPU of each task had its core in each hyperperiod, given when they begin.
fn had(subject: &Subject, turns: &[Turn], beginnings: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![vec![0; beginnings.len()]; TASKS];
    for turn in turns {
        let place = task(subject, turn.vcpu).checked_sub(1);
        let Some(all) = place.and_then(|place| all.get_mut(place)) else { continue };
        for (had, &begin) in all.iter_mut().zip(beginnings) {
            let (from, to) = (turn.from.max(begin), turn.to.min(begin + ns(HYPERPERIOD)));
            *had += to.saturating_sub(from);
        }
    }
    all
}

impl Linux {
    fn of(&self, purpose: Purpose) -> Vec<&Booted> {
        let mut all = Vec::new();
        for scheme in Scheme::ALL {
            let boot = Boot { scheme, purpose };
            all.extend(self.found.measurements.iter().find(|booted| booted.boot == boot));
        }
        all
    }

    /// Returns the responses under each scheme; where Linux's work is `within` the declared times,
    /// or beside them.
    pub fn seen(&self, within: bool) -> Vec<Seen> {
        let purpose = if within { Purpose::Within } else { Purpose::Beside };
        self.of(purpose).into_iter().map(|booted| booted.seen.clone()).collect()
    }

    /// Adds what was seen, but for the responses.
    pub fn tell(&self, answer: &mut Answer) {
        self.inputs.record(&mut answer.outcome);
        let failed = self.found.failures.is_empty();
        answer.outcome.check(Check::done("every boot of Linux was measured", failed));
        for (boot, why) in &self.found.failures {
            answer.remark(&format!("{}: {why}", boot.name()));
        }
        for purpose in Purpose::ALL {
            for booted in self.of(purpose) {
                let place = match purpose {
                    Purpose::Within => "on Linux",
                    Purpose::Traced => "on Linux, traced",
                    Purpose::Beside => "on Linux, its work beside",
                };
                judge(answer, &booted.seen, place, JOBS);
            }
        }
        self.compare(answer);
        answer.data(&self.taken());
        answer.data(&self.orders());
        for booted in self.of(Purpose::Traced) {
            let odd = booted.watched.as_ref().map(|watched| real(watched.odd));
            let name = format!(
                "{}, sections on Linux in hyperperiods in which not every task had one",
                booted.seen.scheme.name()
            );
            answer.outcome.check(Check::new(&name, odd, "", Goal::Exactly(0.0)));
            booted.seen.draw(answer, "on Linux", "linux");
        }
    }

    /// Adds the paper's statements about the figures of Linux.
    fn compare(&self, answer: &mut Answer) {
        let seen = self.seen(true);
        let mean = |scheme: Scheme| seen.iter().find(|seen| seen.scheme == scheme)?.means();
        let Some(baseline) = mean(Scheme::Mpcp) else { return };
        for (scheme, paper) in
            [(Scheme::DeferrableNoOverrun, -7.5), (Scheme::DeferrableWithOverrun, -29.1)]
        {
            let name = scheme.name();
            let means = mean(scheme);
            for (what, change) in [
                ("mean change of response times", mean_change as fn(&[u64], &[u64]) -> f64),
                ("change of the mean response time", change_of_the_mean),
            ] {
                let change = means.as_ref().map(|means| 100.0 * change(means, &baseline));
                let claim = near_the_paper(&format!("on Linux, {name}: {what}"), change, paper);
                answer.outcome.check(claim.as_statement());
            }
        }
        let seventh = mean(Scheme::DeferrableWithOverrun).map(|means| ms(means[6]));
        let later = seventh.map(|seventh| seventh - ms(baseline[6]));
        let name = "on Linux, vMPCP+DSwO, τ7 responds later than under MPCP by";
        answer.outcome.check(Check::new(name, later, "ms", Goal::AtLeast(0.001)).as_statement());
    }

    /// What a task's response contains besides its own instructions.
    pub fn taken(&self) -> Dataset {
        struct Row {
            task: String,
            starts: Vec<(u64, u64)>,
            had: Vec<u64>,
            declared: u64,
        }
        let rows = (0..TASKS).map(|task| {
            let name = format!("t{}", task + 1);
            let ran = self.of(Purpose::Within);
            let ran = ran.into_iter().filter_map(|b| b.ran.iter().find(|ran| ran.task == name));
            let traced = self.of(Purpose::Traced).into_iter().filter_map(|b| b.watched.as_ref());
            Row {
                task: format!("τ{}", task + 1),
                starts: ran.map(|ran| (ran.start_mean_ns, ran.start_max_ns)).collect(),
                had: traced.flat_map(|watched| watched.had_ns[task].clone()).collect(),
                declared: 2 * FREE + gcs(task),
            }
        });
        const NS: Unit = Unit::Nanoseconds;
        let mean = |sum: u64, of: usize| (of > 0).then(|| sum / of as u64);
        let title = "What Linux takes: from a release to the first instruction of the task, and what \
                     the vCPU had in a hyperperiod, under all schemes";
        Dataset::of("linux_takes", title, rows)
            .name("task", |row| row.task.clone())
            .head("")
            .column("start_mean", NS, move |row| {
                mean(row.starts.iter().map(|start| start.0).sum(), row.starts.len())
            })
            .head("release to first instruction: mean")
            .column("start_longest", NS, |row| row.starts.iter().map(|start| start.1).max())
            .head("longest")
            .column("had_mean", NS, move |row| mean(row.had.iter().sum(), row.had.len()))
            .head("vCPU in a hyperperiod: mean")
            .column("had_longest", NS, |row| row.had.iter().max().copied())
            .head("longest")
            .column("declared", NS, |row| row.declared)
            .done()
    }

    /// Returns in which orders the tasks got the resource.
    pub fn orders(&self) -> Dataset {
        let rows = self.of(Purpose::Traced).into_iter().flat_map(|booted| {
            let orders = booted.watched.iter().flat_map(|watched| &watched.orders);
            orders.map(|order| (booted.seen.scheme, order.clone()))
        });
        let title = "On Linux: the order in which the tasks get the resource";
        Dataset::of("orders_on_linux", title, rows)
            .name("scheme", |(scheme, _)| scheme.name())
            .name("order", |(_, order)| order.text())
            .column("hyperperiods", Unit::None, |(_, order)| order.count)
            .done()
    }
}

#[cfg(test)]
mod tests;
