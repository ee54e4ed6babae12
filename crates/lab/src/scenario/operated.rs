//! An operator changes a system while it runs.

use super::staged::description;
use super::{LIMIT, stock};
use crate::demo;
use crate::figures;
use crate::observe::{Observer, Snapshot};
use crate::operator::{Request, ask};
use crate::results::Check;
use crate::suite::{Bench, Scenario};
use miette::{Result, miette};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The name, and that of its description.
pub(super) const NAME: &str = "operated";
/// vCPUs by identifier.
const RTOS: usize = 0;
const MOVED: usize = 1;
const YIELDING: usize = 2;
/// How late the RTOS's handler may begin: it waits for a visit to EL2 of the checked build, or for a move, and
/// would wait for up to 50 us if a turn of what it displaces went on.
const LATEST_NS: u64 = 10_000;

/// All of them.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let about = "an operator moves vCPUs and changes a policy, and the RTOS misses nothing";
    [Scenario::new(NAME, about, operated)].into_iter()
}

fn to(vcpu: &str, pcpu: usize) -> Request {
    Request::Move { vcpu: vcpu.into(), pcpu }
}

fn policy(policy: &str) -> Request {
    Request::Policy { vm: "yielding".into(), policy: policy.into() }
}

/// Asks for everything that may be asked for, twice, and for what may not.
fn operate(directory: &Path) -> Result<()> {
    for _ in 0..2 {
        for request in [
            to("moved.0", 2),
            // The RTOS displaces the third VM, which stays, then makes way, and stays again.
            to("rtos.0", 1),
            policy("on-demand"),
            to("moved.0", 0),
            policy("none"),
            to("rtos.0", 0),
        ] {
            ask(directory, &request)?;
        }
    }
    for request in [to("moved.0", 1), to("rtos.0", 2), to("yielding.0", 2), policy("balance")] {
        if let Ok(done) = ask(directory, &request) {
            return Err(miette!("{request:?} should have been refused: {done}"));
        }
    }
    Ok(())
}

fn operated(bench: &Bench) -> Result<()> {
    let bundle = bench.pack(&bench.described(&description(NAME), &[])?)?;
    let session = bench.session(&bundle, LIMIT)?.operated()?;
    let (directory, done) = (bench.directory.clone(), AtomicBool::new(false));
    let (run, told) = thread::scope(|scope| {
        let operator = scope.spawn(|| {
            let told = operate(&directory);
            done.store(true, Ordering::Release);
            told
        });
        let run = session.run(|_| done.load(Ordering::Acquire));
        (run, operator.join().unwrap_or_else(|_| Err(miette!("the operator panicked"))))
    });
    let run = run?;
    told?;
    let moves = |now: &Snapshot, vcpu: usize| now.vcpus[vcpu].migrations;
    let now = run.observer.latest();
    let seen = now.map(|now| [RTOS, MOVED, YIELDING].map(|vcpu| moves(now, vcpu)));
    let mut objections: Vec<String> = match seen {
        Some([4, 4, away]) if away > 0 && away.is_multiple_of(2) => Vec::new(),
        seen => vec![format!("the vCPUs were moved {seen:?} times, not 4, 4 and some")],
    };
    let mut outcome = figures::outcome(NAME, &run);
    // How much the machine does between two requests is the host's affair.
    outcome.check(Check::done("every vCPU went where it was asked to", objections.is_empty()));
    let late = late(&run.observer);
    outcome.check(Check::done("the RTOS missed nothing", late.is_empty()));
    objections.extend(late);
    bench.judge(&run, outcome, &objections)
}

/// Returns what the RTOS missed until the end, and how late its handler began at worst, if that is too late.
fn late(observer: &Observer) -> Vec<String> {
    let mut all = stock::late(observer);
    let reports = observer.layout.vm(demo::RTOS).and_then(|vm| observer.reports(vm));
    let now = observer.latest();
    let overdue = reports.zip(now).and_then(|(reports, now)| reports.overdue(now));
    if overdue != Some(0) {
        all.push(format!("{overdue:?} activations of the RTOS have not come at the end"));
    }
    // In virtual time a tick is a nanosecond.
    let latest = reports.and_then(|reports| reports.response.max()).map(u64::from);
    if latest.is_none_or(|latest| latest > LATEST_NS) {
        all.push(format!("the RTOS was {latest:?} ns late, of at most {LATEST_NS}"));
    }
    all
}
