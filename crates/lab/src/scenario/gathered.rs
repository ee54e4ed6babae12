//! vCPUs that are moved to fewer cores while there is little to do, and back.

use super::expect::Expect::{Endures, Passes, Starts};
use super::list::unseen;
use super::staged::Staged;
use crate::demo::LINUX;
use crate::observe::Observer;
use crate::suite::{Bench, Scenario};
use miette::Result;

const GATHERED: &[Staged] = &[
    Staged::new(
        "gathered",
        "at rest all cores but one are off, with work all are back",
        &[("probe", Passes)],
    )
    .besides(|observer| powered_down(observer, &[1, 2, 3], 50)),
    Staged::new(
        "gathered-all",
        "every test while cores go off and come back beside an RTOS",
        &[("probe", Passes), ("rtos", Endures)],
    )
    .besides(|observer| powered_down(observer, &[2, 3], 3)),
    Staged::new(
        "gathered-power",
        "vCPUs go off and on while their cores are off, and on again",
        &[("probe", Passes), ("rtos", Endures)],
    )
    // Six times the VM rests, and its siblings are then switched on again.
    .besides(|observer| powered_down(observer, &[2, 3], 6)),
    Staged::new(
        "gathered-reset",
        "a VM resets itself while cores leave, are off, and come back",
        &[("probe", Passes)],
    )
    .besides(|observer| powered_down(observer, &[1, 2, 3], 25)),
    Staged::new(
        "gathered-crash",
        "a vCPU fails on a consolidation target, and its VM is restarted",
        &[("probe", Passes), ("crash", Starts(20)), ("rtos", Endures)],
    )
    .besides(|observer| powered_down(observer, &[2, 3], 2)),
];

/// The description with stock Linux.
const STOCK: &str = "gathered-stock";

/// All of them.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let about = "stock Linux boots on few cores and works on all, beside an RTOS";
    let stock = Scenario::new(STOCK, about, stock);
    GATHERED.iter().map(|&staged| Scenario::from(staged)).chain([stock])
}

fn stock(bench: &Bench) -> Result<()> {
    super::stock::play(bench, STOCK, &[], |demo| {
        let observer = &demo.run.observer;
        let (down, back) = (powered_down(observer, &[2, 3], 1), came_back(observer, &[2, 3]));
        down.into_iter().chain(back).collect()
    })
}

/// The vCPUs of these pCPUs, which are Linux's of the same numbers, left and came
/// back.
fn came_back(observer: &Observer, which: &[usize]) -> Option<String> {
    let linux = observer.layout.vm(LINUX).map(|vm| observer.layout.vms[vm].vcpus.start);
    let Some((now, first)) = observer.latest().zip(linux) else { return unseen(LINUX) };
    which.iter().find_map(|&index| {
        let moves = now.vcpus[first + index].migrations;
        (moves < 2).then(|| format!("vCPU {index} moved {moves} times"))
    })
}

/// These cores were powered down at least so many times, the others never.
fn powered_down(observer: &Observer, which: &[usize], times: u64) -> Option<String> {
    let Some(now) = observer.latest() else { return unseen("the cores") };
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
