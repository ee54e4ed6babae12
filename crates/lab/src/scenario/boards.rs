//! Linux and FreeRTOS on boards that people own, in QEMU's models of them: the systems that the book
//! tells one to begin with. And the probe on a board with a GICv2.

use super::REAL_LIMIT;
use super::dma::checksum;
use super::expect::Expect::Passes;
use super::links::late;
use super::staged::Staged;
use crate::demo::{LINUX, RTOS};
use crate::figures;
use crate::session::End;
use crate::suite::{Bench, Scenario, gicv2};
use miette::{Context, IntoDiagnostic, Result, miette};
use std::fs;
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

/// The description with an SD card, below the project's root, and what is on the card.
const CARD_DESCRIPTION: &str = "systems/sd.toml";
const CARD: &str = "build/guests/sd/card.img";
/// Where Linux writes zeros.
const WRITTEN: usize = 7 << 20;

/// Descriptions of which the probe's tests run on a GICv2 as well, by their names.
const PROBED: [&str; 3] = ["alone-1", "alone-4", "crowded-2"];

/// Returns the scenarios.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let boards = BOARDS.into_iter().map(|(board, system, what)| {
        let about = format!("Linux and FreeRTOS share a core of a {board}: {what}");
        Scenario::new(format!("board-{board}"), about, move |bench| run(bench, board, system))
            .shipped()
    });
    let probed = PROBED.into_iter().map(|name| {
        let about = format!("every test as in `{name}`, on a board with a GICv2");
        let staged = Staged::new(name, "the probe", &[("probe", Passes)]);
        Scenario::new(format!("gicv2-{name}"), about, move |bench| {
            staged.run(bench, &gicv2::edits([gicv2::BOARD, gicv2::PROBE]), staged.besides)
        })
    });
    let about = "Linux reads and writes the SD card of a zcu102, and FreeRTOS goes on";
    let card = Scenario::new("board-zcu102-sd", about, use_card).shipped();
    boards.chain([card]).chain(probed)
}

fn use_card(bench: &Bench) -> Result<()> {
    let bundle = bench.pack(&bench.described(CARD_DESCRIPTION, &[])?)?;
    let card = fs::read(bench.root.join(CARD)).into_diagnostic().wrap_err(CARD)?;
    let session = bench.session(&bundle, LIMIT)?.within(REAL_LIMIT);
    let vm = |name| session.layout.vm(name).ok_or_else(|| miette!("there is no VM `{name}`"));
    let (linux, rtos) = (vm(LINUX)?, vm(RTOS)?);
    let run = session.run(|now| now.observer.is_over(linux))?;
    let said = &run.said.guests[linux].linux;
    let mut outcome = figures::outcome("board-zcu102-sd", &run);
    outcome.figure("sd", serde_json::json!(said.sd));
    let mut objections = Vec::from_iter(said.failed.iter().map(|why| format!("Linux: {why}")));
    let zeros = vec![0; card.len() - WRITTEN];
    for (what, bytes) in [("card", &card), ("written", &zeros)] {
        let wanted = format!("{what} sha256={}", checksum(bytes));
        if !said.sd.contains(&wanted) {
            objections.push(format!("Linux did not print `{wanted}`: {:?}", said.sd));
        }
    }
    // QEMU's card holds all devices up while the host reads or writes, timers too: FreeRTOS is late then.
    let reports = run.observer.reports(rtos);
    let went_on = reports.and_then(|reports| reports.due().zip(reports.header));
    if went_on.is_none_or(|(due, header)| due.abs_diff(header.written) > 1) {
        objections.push("FreeRTOS did not do what was due".into());
    }
    bench.judge(&run, outcome, &objections)
}

fn run(bench: &Bench, board: &str, system: &str) -> Result<()> {
    let edits = [(format!("\"{system}\""), format!("\"{board}\""))];
    let checked = bench.described(&format!("systems/{system}.toml"), &edits)?;
    let bundle = bench.pack(&checked)?;
    let session = bench.session(&bundle, LIMIT)?.within(REAL_LIMIT);
    let vm = |name| session.layout.vm(name).ok_or_else(|| miette!("there is no VM `{name}`"));
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
