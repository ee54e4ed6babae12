//! Linux and FreeRTOS share a mutex and a page: the example of `docs/src/sharing.md`, as it
//! stands there, and with processes that die.

use super::REAL_LIMIT;
use super::preemption::complaints;
use crate::demo::{LINUX, RTOS};
use crate::figures;
use crate::guests::{Images, LinuxWork, SharedPage, Sharing};
use crate::machine::MachineConfig;
use crate::observe::Observer;
use crate::promises::{Claim, SeenResponse};
use crate::results::Outcome;
use crate::session::{Run, Session};
use crate::suite::{Bench, Scenario};
use abi::report::tasks::Section;
use miette::{IntoDiagnostic, Result, WrapErr, ensure, miette};
use std::time::Duration;

/// The description, below the project's root.
const DESCRIPTION: &str = "systems/sharing.toml";
/// Virtual time within which Linux boots and has done its work: it needs some five seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// The tasks that run for two seconds, with the jobs that they have in these.
const RAN: [(&str, u64); 2] = [("writer", 199), ("logger", 20)];
/// All tasks that it declares: each has to be compared with its bound.
const TASKS: [&str; 4] = ["linux/writer", "linux/logger", "rtos/controller", "rtos/load"];
/// Jobs of FreeRTOS's tasks at least, in the same time: one each 5 ms.
const RTOS_JOBS: u64 = 400;
/// What is replaced where a process is to die with the mutex. Then FreeRTOS waits for longer than any
/// task declares, so it reports nothing that would be compared.
const DYING: [(&str, &str); 2] = [
    (
        r#"cassata.run=vmpcp cassata.vmpcp="tasks --memory page --participant 0 --for 2000""#,
        r#"cassata.run=share cassata.share="--mutex page --task writer --other logger --memory page --participant 0 --rounds 50 --inside 100 --pause 10000""#,
    ),
    ("report = \"256K\"\n", ""),
];
/// Mutexes that Linux's tool tests before the rounds: the shared one by its task, and one of its
/// own VM.
const TESTS: [&str; 2] = ["writer", "test"];
/// Which participants of the page they are.
const WRITER: usize = 0;
const CONTROLLER: usize = 1;
/// Rounds that each must have done when Linux has, before it kills a process and after.
const ROUNDS: u64 = 20;

/// Returns the scenario of the example as it stands.
#[must_use]
pub fn scenario() -> Scenario {
    const NAME: &str = "sharing-linux";
    let about = "Linux and FreeRTOS share a mutex and a page, and all tasks keep to their bounds";
    Scenario::new(NAME, about, |bench| {
        share(bench, NAME, &[], |run, said| {
            let mut found = working(said);
            found.extend(compared(&run.promises.responses(&run.observer)));
            let claims = run.promises.claims(&run.observer);
            found.extend(queued(&claims.into_iter().flat_map(|(_, all)| all).collect::<Vec<_>>()));
            if !run.promises.schedulable() {
                found.push("no bound is certain".into());
            }
            found
        })
    })
}

/// Returns the scenario in which processes of Linux die.
#[must_use]
pub fn dying() -> Scenario {
    const NAME: &str = "sharing-linux-dies";
    let about =
        "Linux's module is tested, and FreeRTOS is told of a process that dies with the mutex";
    Scenario::new(NAME, about, |bench| share(bench, NAME, &DYING, |_, said| objections(said)))
}

fn share(
    bench: &Bench,
    name: &str,
    edits: &[(&str, &str)],
    objections: impl Fn(&Run, &Sharing) -> Vec<String>,
) -> Result<()> {
    let edits: Vec<_> = edits.iter().map(|&(from, to)| (from.into(), to.into())).collect();
    let bundle = bench.pack(&bench.described(DESCRIPTION, &edits)?)?;
    let session = bench.session(&bundle, LIMIT)?;
    let vm = |name| session.layout.vm_called(name);
    let (linux, rtos) = (vm(LINUX)?, vm(RTOS)?);
    let run = session.run(|now| {
        let is_over = |vm| now.observer.is_over(vm);
        now.said.guests[linux].linux.is_over(LinuxWork::All) || is_over(linux) || is_over(rtos)
    })?;
    let said = &run.said.guests[linux].linux;
    let mut outcome = figures::outcome(name, &run);
    let rounds: Vec<_> = said.sharing.pages.iter().map(|page| &page.rounds_by).collect();
    outcome.figure("rounds", serde_json::json!(rounds));
    let mut objections = objections(&run, &said.sharing);
    objections.extend(said.failed.iter().map(|why| format!("Linux gave up: {why}")));
    if !said.done {
        objections.push("Linux is not done".into());
    }
    objections.extend(counters(&run.observer, &[linux, rtos]));
    bench.judge(&run, outcome, &objections)
}

/// What is wrong with what Linux's tool has said, where all tasks do what they declare.
fn working(said: &Sharing) -> Vec<String> {
    let mut all = Vec::new();
    let ran: Vec<_> = said.ran.iter().map(|task| (task.task.as_str(), task.jobs)).collect();
    if ran != RAN {
        all.push(format!("Linux ran {ran:?}, not {RAN:?}"));
    }
    let Some(page) = said.pages.last() else {
        all.push("nothing was said of the page".into());
        return all;
    };
    let jobs: u64 = RAN.iter().map(|(_, jobs)| jobs).sum();
    let rounds = |of: usize| page.rounds_by.get(of).copied().unwrap_or(0);
    if rounds(WRITER) != jobs || rounds(CONTROLLER) < RTOS_JOBS {
        all.push(format!("the page counts rounds {:?}", page.rounds_by));
    }
    if (page.violations, page.owner_died) != (0, 0) {
        let (violations, died) = (page.violations, page.owner_died);
        all.push(format!("{violations} violations, and {died} holders died"));
    }
    all
}

/// What is wrong with when tasks say that they were in a queue: the order in which they have the mutex
/// is judged by that.
fn queued(claims: &[Claim]) -> Vec<String> {
    let mut all = Vec::new();
    for vm in [LINUX, RTOS] {
        let own = claims.iter().filter(|claim| claim.task.starts_with(&format!("{vm}/")));
        let waited: Vec<_> =
            own.flat_map(|claim| &claim.sections).filter(|section| section.queued > 0).collect();
        if waited.is_empty() {
            all.push(format!("no task of {vm} had to wait"));
        }
        let says =
            |section: &&&Section| section.asked < section.queued && section.queued < section.had;
        if let Some(section) = waited.iter().find(|section| !says(section)) {
            all.push(format!("{vm} does not say when its task was in the queue: {section:?}"));
        }
    }
    all
}

/// What is wrong with the responses that were seen: those of all tasks must have been, each with a bound.
fn compared(seen: &[SeenResponse]) -> Vec<String> {
    let mut all = Vec::new();
    let names: Vec<_> = seen.iter().map(|seen| seen.task.as_str()).collect();
    if names != TASKS {
        all.push(format!("responses were seen of {names:?}, not of {TASKS:?}"));
    }
    for seen in seen {
        let own = RAN.iter().find(|(name, _)| seen.task.ends_with(&format!("/{name}")));
        let least = own.map_or(RTOS_JOBS, |(_, jobs)| *jobs);
        if seen.jobs < least || seen.late > 0 || seen.bound.is_none() {
            let (task, jobs, late) = (&seen.task, seen.jobs, seen.late);
            all.push(format!("{task}: {jobs} jobs, {late} late, bound {:?}", seen.bound));
        }
    }
    all
}

/// What is wrong with what Linux's tool has said, where a process is killed.
fn objections(said: &Sharing) -> Vec<String> {
    let mut all = Vec::new();
    if said.tests != TESTS {
        all.push(format!("tests that passed: {:?}, not {TESTS:?}", said.tests));
    }
    let Some((before, after)) = said
        .killed_after
        .and_then(|count| Some((said.pages[..count].last()?, said.pages[count..].last()?)))
    else {
        all.push("no process was killed between two looks at the page".into());
        return all;
    };
    let rounds = |page: &SharedPage, of: usize| page.rounds_by.get(of).copied().unwrap_or(0);
    for participant in [WRITER, CONTROLLER] {
        let (first, second) = (rounds(before, participant), rounds(after, participant));
        if first < ROUNDS || second < first + ROUNDS {
            all.push(format!("participant {participant} did {first}, then {second} rounds"));
        }
    }
    if after.violations > 0 {
        all.push(format!("{} times one was inside with another", after.violations));
    }
    // FreeRTOS waited for the mutex that the process died with.
    let elsewhere = after.owner_died.saturating_sub(before.owner_died + said.told);
    if (said.told, elsewhere) != (0, 1) {
        let linux = said.told;
        all.push(format!(
            "Linux was told {linux} times of a death, and FreeRTOS {elsewhere} times"
        ));
    }
    all
}

/// What is wrong with what EL2 has counted of the first vCPU of each of `vms`.
fn counters(observer: &Observer, vms: &[usize]) -> Vec<String> {
    let Some(now) = observer.latest() else { return vec!["nothing was seen".into()] };
    let vcpus = vms.iter().map(|&vm| (vm, &now.vcpus[observer.layout.vms[vm].vcpus.start]));
    let odd = vcpus.filter(|(_, vcpu)| vcpu.raised < 2 * ROUNDS || vcpu.misuses > 0);
    odd.map(|(vm, vcpu)| {
        let name = &observer.layout.vms[vm].name;
        format!("{name} was raised {} times, with {} misuses", vcpu.raised, vcpu.misuses)
    })
    .collect()
}

/// Returns the scenario of Linux without a hypervisor.
#[must_use]
pub fn without() -> Scenario {
    let about = "Linux's module refuses to load where there is no hypervisor that serves it";
    Scenario::new("sharing-linux-without", about, refuse)
}

/// How Linux's init says why it does not load the module, and what `insmod` says of ENODEV: the module has
/// looked for a service, and there is none.
const REFUSED: &str = "the module vmpcp refuses: ";
const NO_SERVICE: &str = "No such device";

/// On QEMU's own board, whose device tree says nothing of a service.
fn refuse(bench: &Bench) -> Result<()> {
    const MEMORY: u64 = 512 << 20;
    let images = Images::of(&bench.root);
    let mut config = MachineConfig::new(images.kernel, 1, MEMORY);
    config.el2 = false;
    let command_line = "console=ttyAMA0 rdinit=/init quiet loglevel=4 cassata.run=vmpcp";
    config.extra_args =
        vec!["-initrd".into(), images.initramfs.into(), "-append".into(), command_line.into()];
    let session = Session::plain(config, "linux", &bench.qemu, &bench.directory);
    let session = session.within(REAL_LIMIT).interrupted_by(bench.interrupt.clone());
    let run = session.run(|_| false)?;
    let said = &run.said.guests[0].linux;
    let why = said.failed.as_deref().and_then(|failed| failed.strip_prefix(REFUSED));
    if why.is_none_or(|why| !why.ends_with(NO_SERVICE)) {
        return Err(miette!("Linux said {:?} of its module, done: {}", said.failed, said.done));
    }
    let console = bench.directory.join("console-linux.log");
    let console = std::fs::read(&console).into_diagnostic().wrap_err("Linux's console")?;
    let complaints = complaints(&String::from_utf8_lossy(&console));
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    bench.keep(&Outcome::new("sharing-linux-without"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guests::RanTask;

    fn page(writer: u64, controller: u64, owner_died: u64) -> SharedPage {
        SharedPage { rounds_by: vec![writer, controller, 0, 0], violations: 0, owner_died }
    }

    fn good() -> Sharing {
        Sharing {
            tests: TESTS.map(Into::into).to_vec(),
            pages: vec![page(20, 20, 3), page(40, 40, 4)],
            killed_after: Some(1),
            ..Sharing::default()
        }
    }

    fn worked() -> Sharing {
        let ran = RAN.map(|(task, jobs)| RanTask { task: task.into(), jobs, ..RanTask::default() });
        Sharing { pages: vec![page(219, 400, 0)], ran: ran.to_vec(), ..Sharing::default() }
    }

    fn seen() -> Vec<SeenResponse> {
        let one = |task: &str| SeenResponse {
            task: task.into(),
            vcpu: String::new(),
            jobs: RAN.iter().find(|(name, _)| task.ends_with(name)).map_or(400, |ran| ran.1),
            late: 0,
            mean: None,
            longest: Duration::ZERO,
            bound: Some(Duration::from_millis(1)),
            period: Duration::from_millis(5),
        };
        TASKS.map(one).to_vec()
    }

    #[test]
    fn what_is_demanded_is_enough() {
        assert_eq!(objections(&good()), [""; 0]);
        assert_eq!(working(&worked()), [""; 0]);
        assert_eq!(compared(&seen()), [""; 0]);
    }

    #[test]
    fn each_demand_on_tasks_can_fail() {
        let bad: [fn(&mut Sharing); 6] = [
            |said| said.ran[1].jobs = 19,
            |said| said.pages.clear(),
            |said| said.pages[0] = page(218, 400, 0),
            |said| said.pages[0] = page(219, 399, 0),
            |said| said.pages[0] = page(219, 400, 1),
            |said| said.pages[0].violations = 1,
        ];
        for spoil in bad {
            let mut said = worked();
            spoil(&mut said);
            assert_eq!(working(&said).len(), 1, "{said:?}");
        }
        let bad: [fn(&mut Vec<SeenResponse>); 5] = [
            |seen| drop(seen.remove(2)),
            |seen| seen[0].jobs = 198,
            |seen| seen[2].jobs = 399,
            |seen| seen[1].late = 1,
            |seen| seen[3].bound = None,
        ];
        for spoil in bad {
            let mut seen = seen();
            spoil(&mut seen);
            assert_eq!(compared(&seen).len(), 1, "{seen:?}");
        }
    }

    #[test]
    fn each_demand_can_fail() {
        let bad: [fn(&mut Sharing); 7] = [
            |said| said.tests.truncate(1),
            |said| said.killed_after = None,
            |said| said.pages[1] = page(40, 39, 4),
            |said| said.pages[0] = page(19, 20, 3),
            |said| said.pages[1].violations = 1,
            |said| said.pages[1].owner_died = 3,
            |said| said.told = 1,
        ];
        for spoil in bad {
            let mut said = good();
            spoil(&mut said);
            assert_eq!(objections(&said).len(), 1, "{said:?}");
        }
    }
}
