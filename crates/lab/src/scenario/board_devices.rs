//! Linux with devices of boards that people own, in QEMU's models of them, beside FreeRTOS: SD cards and networks.

use super::REAL_LIMIT;
use super::dma::checksum;
use super::links::late;
use crate::demo::{LINUX, RTOS};
use crate::figures;
use crate::suite::{Bench, Scenario};
use miette::{Context, IntoDiagnostic, Result};
use std::fs;
use std::time::Duration;
use system::board::Board;

/// The description, below the project's root, and what is on its card.
const DESCRIPTION: &str = "systems/devices.toml";
const CARD: &str = "build/guests/board/card.img";
/// What boards call the slot for SD cards, and the network.
const CARD_SLOT: &str = "sd";
const NETWORK: &str = "network";
/// Where Linux writes zeros.
const WRITTEN: usize = 7 << 20;
/// What QEMU's network gives the first that asks, what answers there, and how often Linux asks (`guests/board/init`).
const ANSWERED: [&str; 2] = ["address=10.0.2.15 gateway=10.0.2.2", "answers=3"];
/// Virtual time within which Linux has done all: it needs some four seconds, but waits for the host's files and
/// network.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns the scenarios.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    [
        (CARD_SLOT, "Linux reads and writes the SD card, and FreeRTOS goes on: a "),
        (
            NETWORK,
            "Linux has an address and a gateway by the network card, and FreeRTOS goes on: a ",
        ),
    ]
    .into_iter()
    .flat_map(|(device, about)| {
        let boards = Board::all().iter().filter(move |board| board.device(device).is_some());
        boards.map(move |board| {
            let name = format!("board-{}-{device}", board.kind);
            let about = format!("{about}{}", board.kind);
            Scenario::new(name.clone(), about, move |bench| use_device(bench, &name, board, device))
        })
    })
    .map(Scenario::shipped)
}

/// Returns what makes the description one of a board of which Linux uses one device.
fn edits(board: &Board, device: &str) -> Vec<(String, String)> {
    let mut edits = vec![("zcu102".to_owned(), board.kind.clone())];
    let mut edit = |from: &str, to: &str| edits.push((from.to_owned(), to.to_owned()));
    edit("board.use=sd,network", &format!("board.use={device}"));
    if !board.gic.is_v2() {
        edit("freertos-gicv2.elf", "freertos.elf");
    }
    if board.device(NETWORK).is_none() {
        edit("network = \"network\"\n", "");
        edit("\"sd\", \"network\"", "\"sd\"");
    }
    if board.device(CARD_SLOT).is_some_and(|sd| sd.idle_dma) {
        edit(", identity = true", "");
    }
    edits
}

fn use_device(bench: &Bench, name: &str, board: &Board, device: &str) -> Result<()> {
    let bundle = bench.pack(&bench.described(DESCRIPTION, &edits(board, device))?)?;
    let wanted = match device {
        CARD_SLOT => {
            read_and_written(&fs::read(bench.root.join(CARD)).into_diagnostic().wrap_err(CARD)?)
        }
        _ => ANSWERED.map(str::to_owned).to_vec(),
    };
    let session = bench.session(&bundle, LIMIT)?.within(REAL_LIMIT);
    let vm = |name| session.layout.vm_called(name);
    let (linux, rtos) = (vm(LINUX)?, vm(RTOS)?);
    let run = session.run(|now| now.observer.is_over(linux))?;
    let said = &run.said.guests[linux].linux;
    let mut outcome = figures::outcome(name, &run);
    outcome.figure("board", serde_json::json!(said.board));
    let mut objections = Vec::from_iter(said.failed.iter().map(|why| format!("Linux: {why}")));
    for wanted in wanted.iter().filter(|&wanted| !said.board.contains(wanted)) {
        objections.push(format!("Linux did not print `{wanted}`: {:?}", said.board));
    }
    let reports = run.observer.reports(rtos);
    let went_on = reports.and_then(|reports| reports.due().zip(reports.header));
    if went_on.is_none_or(|(due, header)| due.abs_diff(header.written) > 1) {
        objections.push("FreeRTOS did not do what was due".into());
    }
    // QEMU's card holds all devices up while the host reads or writes, timers too: FreeRTOS is late then.
    if device == NETWORK {
        objections.extend(late(&run.observer, rtos));
    }
    bench.judge(&run, outcome, &objections)
}

/// What Linux says of a card, and of its end where it has written zeros.
fn read_and_written(card: &[u8]) -> Vec<String> {
    let zeros = vec![0; card.len().saturating_sub(WRITTEN)];
    let said = [("card", card), ("written", &zeros)];
    said.map(|(what, bytes)| format!("{what} sha256={}", checksum(bytes))).to_vec()
}
