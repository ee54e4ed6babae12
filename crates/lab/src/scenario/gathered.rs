//! vCPUs that are moved to fewer cores while there is little to do, and back.

use super::expect::Expect::{self, Endures, Passes, Starts};
use super::staged::{SYSTEMS, Staged};
use crate::demo::LINUX;
use crate::observe::Observer;
use crate::suite::{Bench, Scenario};
use miette::Result;

const GATHERED: &[Staged] = &[
    gathered(
        "gathered",
        "at rest all cores but one are off, with work all are back",
        &[("probe", Passes)],
        |observer| powered_down(observer, &[1, 2, 3], 50),
    ),
    gathered(
        "gathered-all",
        "every test while cores go off and come back beside an RTOS",
        &[("probe", Passes), ("rtos", Endures)],
        |observer| powered_down(observer, &[2, 3], 3),
    ),
    gathered(
        "gathered-power",
        "vCPUs go off and on while their cores are off, and on again",
        &[("probe", Passes), ("rtos", Endures)],
        // With that to do, their cores soon stay on.
        |observer| powered_down(observer, &[2, 3], 2),
    ),
    gathered(
        "gathered-reset",
        "a VM resets itself while cores leave, are off, and come back",
        &[("probe", Passes)],
        |observer| powered_down(observer, &[1, 2, 3], 25),
    ),
    gathered(
        "gathered-crash",
        "a vCPU fails where it is sheltered, and its VM is restarted",
        &[("probe", Passes), ("crash", Starts(20)), ("rtos", Endures)],
        |observer| powered_down(observer, &[2, 3], 2),
    ),
];

const fn gathered(
    name: &'static str,
    about: &'static str,
    expect: &'static [(&'static str, Expect)],
    besides: fn(&Observer) -> Option<String>,
) -> Staged {
    Staged { name, about, expect, besides: Some(besides) }
}

/// The description with stock Linux.
const STOCK: &str = "gathered-stock";

/// All of them.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let about = "stock Linux boots on few cores and works on all, beside an RTOS";
    let stock = Scenario::new(STOCK, about, stock).on_request();
    GATHERED.iter().map(|&staged| Scenario::from(staged)).chain([stock])
}

fn stock(bench: &Bench) -> Result<()> {
    let path = bench.root.join(SYSTEMS).join(format!("{STOCK}.toml"));
    let demo = super::stock::play(bench, &path, &[])?;
    let mut objections = super::stock::told_faults(bench)?;
    let (runs, failed) = (demo.linux.hackbench_s.len(), &demo.linux.failed);
    if !demo.linux.did(demo.work) {
        objections.push(format!("{runs} runs of hackbench finished ({failed:?})"));
    }
    objections.extend(powered_down(&demo.observer, &[2, 3], 1));
    objections.extend(came_back(&demo.observer, &[2, 3]));
    super::stock::judge(bench, &demo, &objections)
}

/// The vCPUs of these pCPUs, which are Linux's of the same numbers, left and came
/// back.
fn came_back(observer: &Observer, which: &[usize]) -> Option<String> {
    let now = observer.latest()?;
    let first = observer.layout().vms[observer.layout().vm(LINUX)?].vcpus.start;
    which.iter().find_map(|&index| {
        let moves = now.vcpus[first + index].migrations;
        (moves < 2).then(|| format!("vCPU {index} moved {moves} times"))
    })
}

/// These cores were powered down at least so many times, the others never.
fn powered_down(observer: &Observer, which: &[usize], times: u64) -> Option<String> {
    let now = observer.latest()?;
    now.pcpus.iter().enumerate().find_map(|(index, pcpu)| {
        let (count, may) = (pcpu.power_downs, which.contains(&index));
        let wrong = if may { count < times } else { count > 0 };
        wrong.then(|| format!("pCPU {index} was powered down {count} times"))
    })
}

/// The names of their descriptions.
#[cfg(test)]
pub fn descriptions() -> impl Iterator<Item = &'static str> {
    GATHERED.iter().map(|staged| staged.name).chain([STOCK])
}
