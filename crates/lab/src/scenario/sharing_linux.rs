//! Linux and FreeRTOS share a mutex and a page: the example of `docs/src/sharing.md`, as it
//! stands there.

use super::REAL_LIMIT;
use crate::demo::{LINUX, RTOS};
use crate::figures;
use crate::guests::{Images, LinuxWork, SharedPage, Sharing};
use crate::machine::MachineConfig;
use crate::observe::Observer;
use crate::results::Outcome;
use crate::session::Session;
use crate::suite::{Bench, Scenario};
use miette::{Result, miette};
use std::time::Duration;

/// Its name.
const NAME: &str = "sharing-linux";
/// Its description, below the project's root.
const DESCRIPTION: &str = "systems/sharing.toml";
/// Virtual time within which Linux boots and has done its rounds: it needs some three seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// Mutexes that Linux's tool tests before the rounds: the shared one by its task, and one of its
/// own VM.
const TESTS: [&str; 2] = ["writer", "test"];
/// Which participants of the page they are.
const WRITER: usize = 0;
const CONTROLLER: usize = 1;
/// Rounds that each must have done when Linux has, before it kills a process and after.
const ROUNDS: u64 = 20;

/// Returns the scenario.
#[must_use]
pub fn scenario() -> Scenario {
    let about = "Linux and FreeRTOS share a mutex and a page, also when a process dies with it";
    Scenario::new(NAME, about, share)
}

fn share(bench: &Bench) -> Result<()> {
    let bundle = bench.pack(&bench.described(DESCRIPTION, &[])?)?;
    let session = bench.session(&bundle, LIMIT)?;
    let vm = |name| session.layout.vm(name).ok_or_else(|| miette!("there is no VM `{name}`"));
    let (linux, rtos) = (vm(LINUX)?, vm(RTOS)?);
    let run = session.run(|now| {
        let dead = |vm: usize| now.observer.latest().is_some_and(|seen| seen.vms[vm].is_over());
        now.said.guests[linux].linux.is_over(LinuxWork::All) || dead(linux) || dead(rtos)
    })?;
    let said = &run.said.guests[linux].linux;
    let mut outcome = figures::outcome(NAME, &run);
    let rounds: Vec<_> = said.sharing.pages.iter().map(|page| &page.rounds_by).collect();
    outcome.figure("rounds", serde_json::json!(rounds));
    let mut objections = objections(&said.sharing);
    objections.extend(said.failed.iter().map(|why| format!("Linux gave up: {why}")));
    if !said.done {
        objections.push("Linux is not done".into());
    }
    objections.extend(counters(&run.observer, &[linux, rtos]));
    bench.judge(&run, outcome, &objections)
}

/// What is wrong with what Linux's tool has said.
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
    if said.failed.as_deref() != Some("the module vmpcp refuses") {
        return Err(miette!("Linux said {:?} of its module, done: {}", said.failed, said.done));
    }
    bench.keep(&Outcome::new("sharing-linux-without"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(writer: u64, controller: u64, owner_died: u64) -> SharedPage {
        SharedPage { rounds_by: vec![writer, controller, 0, 0], violations: 0, owner_died }
    }

    fn good() -> Sharing {
        Sharing {
            tests: TESTS.map(Into::into).to_vec(),
            pages: vec![page(20, 20, 3), page(40, 40, 4)],
            killed_after: Some(1),
            told: 0,
            ran: Vec::new(),
        }
    }

    #[test]
    fn what_is_demanded_is_enough() {
        assert_eq!(objections(&good()), [""; 0]);
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
