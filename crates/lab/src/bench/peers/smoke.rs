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
/// How often a task of FreeRTOS or a process of Linux wakes.
const WAKES: u32 = 50;
/// How often it makes each call.
const REPETITIONS: u32 = 10;

/// Returns the scenarios. Those of the peers say nothing of Cassata, so they run with all tests only.
pub fn scenarios() -> Vec<Scenario> {
    let scenario = |name: &str, about: &str, system| {
        Scenario::new(name, about, move |bench| measure(system, bench)).shipped()
    };
    let stands_in = "points of bench peers with a partitioning of the test's own in Bao's place";
    let beside = |name: &str, about: &str, system, measure: Measure| {
        Scenario::new(name, about, move |bench| observe(system, measure, bench)).shipped()
    };
    let freertos = Measure::Freertos { load: Load::Compute, activations: WAKES };
    let linux = Measure::Cyclictest { load: Load::Compute, wakes: WAKES };
    let (xen, kvm) = (System::Xen(Scheduler::Credit2), System::KVM);
    let freertos_of = |name, system| {
        beside(name, "FreeRTOS as the real-time guest of bench peers", system, freertos)
    };
    // Its kernel is fetched when it is asked for.
    let linux_of = |name, system| {
        let about = "Linux as the real-time guest of bench peers";
        beside(name, about, system, linux).by_name()
    };
    let adapts = "an adapted timer advance takes less from Linux, and the guest is as soon";
    vec![
        Scenario::new("peers-cassata-adapted", adapts, compare_advances).shipped(),
        Scenario::new("peers-bao-stand-in", stands_in, boot_stand_in).shipped(),
        scenario("peers-cassata", "points of bench peers under Cassata", System::PLAIN),
        freertos_of("peers-freertos", System::PLAIN),
        freertos_of("peers-freertos-kvm", kvm),
        freertos_of("peers-freertos-xen", xen),
        linux_of("peers-cyclictest", System::PLAIN),
        linux_of("peers-cyclictest-kvm", kvm),
        linux_of("peers-cyclictest-xen", xen),
        beside(
            "peers-boot",
            "when both guests of bench peers are up",
            System::PLAIN,
            Measure::Boot,
        ),
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
    let wakes = Measure::Wake { load: Load::Compute, periods: PERIODS };
    for measure in [wakes, Measure::Boot] {
        let case = Case { image: image.clone(), ..Case::new(System::Bao, plan::CORES, measure) };
        let room = room(bench, &case.name())?;
        let seen = run::run(&case, &room, &mut |_| {})?;
        ensure!(
            !room.directory.join("bao.bin").exists(),
            "images of a run that went well are kept"
        );
        ensure!(seen.missed == 0, "{}: {} periods missed", case.name(), seen.missed);
        ensure!(seen.boot.is_none_or(|boot| boot.hypervisor_bytes > 0), "the image has no size");
        let run::Seen { values_ns, missed, boot, .. } = seen;
        outcome.figure(
            &case.name(),
            json!({ "values_ns": values_ns, "missed": missed, "boot": boot }),
        );
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

/// Runs one point, of which the guest has to tell: each of its activations in time, and later than on a bare board.
fn observe(system: System, measure: Measure, bench: &Bench) -> Result<()> {
    let mut outcome = Outcome::new("peers");
    let case = Case::new(system, 1, measure);
    let seen = run::run(&case, &room(bench, &case.name())?, &mut |_| {})?;
    outcome.figure(&case.name(), json!(seen));
    ensure!(seen.missed == 0, "{} periods missed", seen.missed);
    let task = seen.lateness.map(|late| late.dispatch.min_ns);
    let process = seen.values_ns.values().filter_map(|values| values.min()).min();
    let soonest = task.or(process.map(u64::from));
    ensure!(soonest.is_none_or(|least| least > 50), "{soonest:?} ns late at least");
    if let Some(boot) = seen.boot {
        let (linux, guest) = (boot.linux_s, boot.guest_s);
        ensure!(guest > 0.0 && guest < linux, "the guest is up after {guest} s, Linux {linux} s");
    }
    bench.keep(&outcome)
}
