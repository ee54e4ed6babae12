//! Linux and FreeRTOS on boards that people own, in QEMU's models of them: the systems that the book
//! tells one to begin with. And the probe on a board with a GICv2.

use super::REAL_LIMIT;
use super::expect::Expect::PassesBut;
use super::links::late;
use super::staged::Staged;
use crate::demo::{LINUX, RTOS};
use crate::figures;
use crate::session::End;
use crate::suite::{Bench, Scenario, gicv2};
use miette::Result;
use std::time::Duration;

/// Board, the file that describes its system, and what is in its way.
const BOARDS: [(&str, &str, &str); 5] = [
    (
        "imx8mp",
        "imx8mp",
        "another UART with a GICv3, and RAM that is not the hypervisor's from the beginning",
    ),
    ("raspi4b", "raspi4b", "a spin table, and no PSCI to switch the machine off"),
    ("raspi4b-mini", "raspi4b", "a UART that looks like a 16550"),
    ("versal", "versal", "an interrupt controller with two security states"),
    ("zcu102", "zcu102", "another UART with a GICv2"),
];
/// Virtual time within which both have done their work, and the machine is off.
const LIMIT: Duration = Duration::from_secs(20);
/// What Linux has to print, in this order.
const SAID: [&str; 3] = ["done: target 1500", "round trips=200", "ping after"];

/// Descriptions of which the probe's tests run on a GICv2 as well, by their names.
const PROBED: [&str; 3] = ["alone-1", "alone-4", "crowded-2"];
/// Tests that the probe leaves out on such a board, in the order of all: it has no redistributors and no SGIs of other
/// groups, and QEMU's GICv2 forgets a line that is still high.
const LEFT_OUT: &[&str] =
    &["sgi.other_groups", "sgi.remote_registers", "gic.redistributors", "timer.level"];

/// Returns the scenarios.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let boards = BOARDS.into_iter().map(|(board, system, what)| {
        let about = format!("Linux and FreeRTOS share a core of a {board}: {what}");
        Scenario::new(format!("board-{board}"), about, move |bench| run(bench, board, system))
            .shipped()
    });
    let probed = PROBED.into_iter().map(|name| {
        let about = format!("the tests as in `{name}`, but four, on a board with a GICv2");
        let staged = Staged::new(name, "the probe", &[("probe", PassesBut(LEFT_OUT))]);
        Scenario::new(format!("gicv2-{name}"), about, move |bench| {
            staged.run(bench, &gicv2::edits([gicv2::BOARD, gicv2::PROBE]), staged.besides)
        })
    });
    boards.chain(probed)
}

fn run(bench: &Bench, board: &str, system: &str) -> Result<()> {
    let edits = [(format!("\"{system}\""), format!("\"{board}\""))];
    let checked = bench.described(&format!("systems/{system}.toml"), &edits)?;
    let bundle = bench.pack(&checked)?;
    let session = bench.session(&bundle, LIMIT)?.within(REAL_LIMIT);
    let vm = |name| session.layout.vm_called(name);
    let (linux, rtos) = (vm(LINUX)?, vm(RTOS)?);
    let run = session.run(|_| false)?;
    let said = &run.said.guests[linux].linux;
    let mut outcome = figures::outcome(&format!("board-{board}"), &run);
    outcome.figure("links", serde_json::json!(said.links));
    let mut objections = Vec::from_iter(said.failed.iter().map(|why| format!("Linux: {why}")));
    if said.cpus.map(|cpus| cpus as usize) != Some(checked.vms[linux].vcpus.len()) {
        objections.push(format!("Linux found {:?} CPUs", said.cpus));
    }
    let mut lines = said.links.iter();
    if !SAID.iter().all(|wanted| lines.any(|line| line.starts_with(wanted))) {
        objections.push(format!("Linux did not print {SAID:?} in this order: {:?}", said.links));
    }
    objections.extend(late(&run.observer, rtos));
    if run.end != End::PoweredOff {
        objections.push(format!("the machine was not switched off: {}", run.end.about()));
    }
    bench.judge(&run, outcome, &objections)
}
