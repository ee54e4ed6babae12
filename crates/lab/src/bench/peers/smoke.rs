//! Parts of the bench as tests: each hypervisor boots both guests, and the guest tells of its periods
//! and of its calls.

use super::case::{Case, Load, Measure};
use super::system::{Scheduler, System};
use super::{Found, bao, plan, run};
use crate::bench::campaign::room;
use crate::bench::store::Case as _;
use crate::results::Outcome;
use crate::suite::{Bench, Scenario};
use miette::{Result, bail, ensure};
use serde_json::json;

/// How often the guest wakes, and is woken.
const PERIODS: u32 = 20;
/// How often it makes each call.
const REPETITIONS: u32 = 10;

/// Returns the scenarios. Those of the peers say nothing of Cassata, so they run with all tests only.
pub fn scenarios() -> Vec<Scenario> {
    let scenario = |name: &str, about: &str, system| {
        Scenario::new(name, about, move |bench| measure(system, bench)).shipped()
    };
    let stands_in = "points of bench peers with a partitioning of the test's own in Bao's place";
    let adapts = "an adapted timer advance takes less from Linux, and the guest is as soon";
    vec![
        Scenario::new("peers-cassata-adapted", adapts, compare_advances).shipped(),
        Scenario::new("peers-bao-stand-in", stands_in, boot_stand_in).shipped(),
        scenario("peers-cassata", "points of bench peers under Cassata", System::PLAIN),
        scenario("peers-kvm", "points of bench peers under KVM", System::KVM),
        scenario(
            "peers-xen",
            "points of bench peers under Xen, tuned through its library",
            System::Xen(Scheduler::Credit2),
        ),
    ]
}

/// The part of what an activation takes with the default that it may take with an advance that is adapted.
const LESS: f64 = 0.5;

fn compare_advances(bench: &Bench) -> Result<()> {
    let mut outcome = Outcome::new("peers-cassata-adapted");
    let taken = |is_awake| Measure::Taken { is_awake, runs: 2 };
    let late = Measure::Wake { load: Load::Compute, periods: 10 * PERIODS };
    let planned: Vec<_> = [System::ADVANCED, System::ADAPTED]
        .into_iter()
        .flat_map(|system| [taken(false), taken(true), late].map(|all| Case::new(system, 1, all)))
        .collect();
    let mut measurements = Vec::new();
    for case in &planned {
        measurements.push(run::run(case, &room(bench, &case.name())?, &mut |_| {})?);
    }
    let all = planned.len();
    let found = Found { planned, measurements, failures: Vec::new(), all };
    let of = |system| {
        let most = found.wakes(system, 1, Load::Compute)?.0.max()?;
        Some((found.taken(system)?, most))
    };
    let (Some((default, soon)), Some((adapted, late))) =
        (of(System::ADVANCED), of(System::ADAPTED))
    else {
        bail!("a guest has told nothing")
    };
    outcome.figure("taken_instructions", json!({ "default": default, "adapted": adapted }));
    outcome.figure("latency_max_ns", json!({ "default": soon, "adapted": late }));
    ensure!(adapted < LESS * default, "{adapted:.0} instructions, {default:.0} by default");
    ensure!(late <= soon, "{late} ns late, {soon} ns by default");
    bench.keep(&outcome)
}

/// Goes all the way from a checkout to a row, with [`bao::stand_in`] in the place of Bao's source: both guests
/// are built in, boot on cores of their own and use one UART. The figures are those of no hypervisor.
fn boot_stand_in(bench: &Bench) -> Result<()> {
    let mut outcome = Outcome::new("peers-bao-stand-in");
    let image = Some(bao::stand_in(&bench.root));
    for load in [Load::Idle, Load::Compute] {
        let measure = Measure::Wake { load, periods: PERIODS };
        let case = Case { image: image.clone(), ..Case::new(System::Bao, plan::CORES, measure) };
        let room = room(bench, &case.name())?;
        let seen = run::run(&case, &room, &mut |_| {})?;
        ensure!(
            !room.directory.join("bao.bin").exists(),
            "images of a run that went well are kept"
        );
        ensure!(seen.missed == 0, "{}: {} periods missed", case.name(), seen.missed);
        ensure!(seen.own_bytes.is_some_and(|bytes| bytes > 0), "the image has no size");
        outcome.figure(&case.name(), json!({ "values_ns": seen.values_ns, "missed": seen.missed }));
    }
    bench.keep(&outcome)
}

fn measure(system: System, bench: &Bench) -> Result<()> {
    let mut outcome = Outcome::new("peers");
    for (cores, measure) in [
        (1, Measure::Wake { load: Load::Compute, periods: PERIODS }),
        (1, Measure::Call { repetitions: REPETITIONS }),
        (2, Measure::Woken { load: Load::Idle, interrupts: PERIODS }),
    ] {
        let case = Case::new(system, cores, measure);
        let seen = run::run(&case, &room(bench, &case.name())?, &mut |_| {})?;
        outcome.figure(&case.name(), json!({ "values_ns": seen.values_ns, "missed": seen.missed }));
        // No hypervisor answers as soon as the bare board, on which the call takes 5 ns.
        let least = seen.values_ns.values().filter_map(|values| values.min()).min();
        ensure!(least.is_some_and(|least| least > 50), "{}: {least:?} ns", case.name());
        ensure!(seen.missed == 0, "{}: {} periods missed", case.name(), seen.missed);
    }
    bench.keep(&outcome)
}
