//! Linux with devices of boards that people own, in QEMU's models of them, beside FreeRTOS: SD cards and networks.

use super::REAL_LIMIT;
use super::dma::checksum;
use crate::demo::{LINUX, RTOS};
use crate::figures;
use crate::suite::{Bench, Scenario};
use miette::{Context, IntoDiagnostic, Result, miette};
use std::fs;
use std::time::Duration;
use system::board::Board;

/// The description, below the project's root, and what is on its card.
const DESCRIPTION: &str = "systems/devices.toml";
const CARD: &str = "build/guests/board/card.img";
/// Boards with a slot for SD cards, and those with a network.
const CARDS: [&str; 5] = ["imx8mp", "raspi4b", "raspi4b-mini", "versal", "zcu102"];
const NETWORKS: [&str; 3] = ["imx8mp", "versal", "zcu102"];
/// Where Linux writes zeros.
const WRITTEN: usize = 7 << 20;
/// What QEMU's network gives the first that asks, what answers there, and how often Linux asks (`guests/board/init`).
const ANSWERED: [&str; 2] = ["address=10.0.2.15 gateway=10.0.2.2", "answers=3"];
/// How late FreeRTOS's task may be at worst beside a network, nanoseconds: as with any other load.
const LATEST_NS: u64 = 1_000;
/// Virtual time within which Linux has done all: it needs some four seconds, but waits for the host's files and
/// network.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns the scenarios.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let cards = CARDS.into_iter().map(|board| {
        let about =
            format!("Linux reads and writes the SD card of a {board}, and FreeRTOS goes on");
        let name = format!("board-{board}-sd");
        Scenario::new(name.clone(), about, move |bench| use_device(bench, &name, board, "sd"))
    });
    let networks = NETWORKS.into_iter().map(|board| {
        let about = format!(
            "Linux has an address and a gateway by a {board}'s network card, and FreeRTOS goes on"
        );
        let name = format!("board-{board}-network");
        Scenario::new(name.clone(), about, move |bench| use_device(bench, &name, board, "network"))
    });
    cards.chain(networks).map(Scenario::shipped)
}

/// Returns what makes the description one of a board of which Linux uses one device.
fn edits(board: &str, device: &str) -> Result<Vec<(String, String)>> {
    let found = Board::find(board).ok_or_else(|| miette!("there is no board `{board}`"))?;
    let mut edits = vec![("zcu102".to_owned(), board.to_owned())];
    let mut edit = |from: &str, to: &str| edits.push((from.to_owned(), to.to_owned()));
    edit("board.use=sd,network", &format!("board.use={device}"));
    if !found.gic.is_v2() {
        edit("freertos-gicv2.elf", "freertos.elf");
    }
    if found.device("network").is_none() {
        edit("network = \"network\"\n", "");
        edit("\"sd\", \"network\"", "\"sd\"");
    }
    if found.device("sd").is_some_and(|sd| sd.idle_dma) {
        edit(", identity = true", "");
    }
    Ok(edits)
}

fn use_device(bench: &Bench, name: &str, board: &str, device: &str) -> Result<()> {
    let bundle = bench.pack(&bench.described(DESCRIPTION, &edits(board, device)?)?)?;
    let wanted = match device {
        "sd" => {
            read_and_written(&fs::read(bench.root.join(CARD)).into_diagnostic().wrap_err(CARD)?)
        }
        _ => ANSWERED.map(str::to_owned).to_vec(),
    };
    let session = bench.session(&bundle, LIMIT)?.within(REAL_LIMIT);
    let vm = |name| session.layout.vm(name).ok_or_else(|| miette!("there is no VM `{name}`"));
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
    let went_on = reports.as_ref().and_then(|reports| reports.due().zip(reports.header));
    if went_on.is_none_or(|(due, header)| due.abs_diff(header.written) > 1) {
        objections.push("FreeRTOS did not do what was due".into());
    }
    let seen = reports.and_then(|reports| reports.lateness());
    let worst_ns = seen.and_then(|seen| seen.worst_dispatch_ns());
    // QEMU's card holds all devices up while the host reads or writes, timers too: FreeRTOS is late then.
    if device == "network" && worst_ns.is_none_or(|worst_ns| worst_ns > LATEST_NS) {
        objections.push(format!("FreeRTOS was {worst_ns:?} ns late"));
    }
    bench.judge(&run, outcome, &objections)
}

/// What Linux says of a card, and of its end where it has written zeros.
fn read_and_written(card: &[u8]) -> Vec<String> {
    let zeros = vec![0; card.len().saturating_sub(WRITTEN)];
    let said = [("card", card), ("written", &zeros)];
    said.map(|(what, bytes)| format!("{what} sha256={}", checksum(bytes))).to_vec()
}
