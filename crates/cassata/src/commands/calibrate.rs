//! `cassata calibrate`.

use super::build::{Image, write_image};
use super::{bench, description, interrupt, publish, say};
use crate::cli::Calibrate;
use crate::messages::note;
use crate::{HYPERVISOR, place};
use analysis::overheads::DEFAULT_MARGIN_PERMILLE;
use lab::calibrate::{self, Judged, Plan, identity};
use lab::guests::Measurement;
use lab::progress::Progress;
use lab::results::{Directory, has_place, write_file, write_json};
use lab::suite::Bench;
use miette::{Result, miette};
use std::path::Path;
use system::board::Board;

/// The directory of the results, and the name of the experiment.
const NAME: &str = "calibrate";

/// Packs the image that measures a board, or reads what it has measured.
pub fn calibrate(arguments: &Calibrate) -> Result<u8> {
    if let Some(output) = &arguments.output {
        let plan =
            asked(arguments, Plan::of(board(arguments.board.as_deref().unwrap_or_default())?));
        return image(arguments, &plan, output);
    }
    for file in arguments.write.iter().chain(&arguments.json) {
        spare(file)?;
        has_place(file)?;
    }
    let said = arguments.console.as_deref().map(|log| captured(arguments, log)).transpose()?;
    let name = said.as_ref().map(|said| &said.board).or(arguments.board.as_ref());
    let plan = asked(arguments, Plan::virtual_time(board(name.map_or("", String::as_str))?));
    let directory = Directory::create(&place::results(), NAME)?;
    let room = bench::room(directory.path(), interrupt()?)?;
    let mut progress = Progress::new(NAME);
    let (said, is_virtual) = match said {
        Some(said) => (said, false),
        None => (calibrate::measure(&plan, &room, &mut |what| progress.now(what))?, true),
    };
    let judged = judge(&plan, &said, arguments, &room, &mut progress)?;
    drop(progress);
    let answer = judged.answer(NAME, is_virtual);
    let file = directory.path().join(format!("{}.calibration.toml", said.board));
    let text = judged.calibration.to_string();
    for file in [Some(&file), arguments.write.as_ref()].into_iter().flatten() {
        write_file(file, text.as_bytes())?;
    }
    publish(&answer, &answer.summary(), &directory)?;
    let named = arguments.write.as_ref().unwrap_or(&file).display();
    say(&format!(
        "{named}\n  name it in a description: under [board], calibration = {:?}",
        named.to_string()
    ));
    if is_virtual {
        note("virtual time: an instruction is a nanosecond, whatever it takes on the board");
    }
    if let Some(file) = &arguments.json {
        write_json(file, &answer.outcome)?;
    }
    Ok(answer.outcome.exit_code(false))
}

/// Finds a board.
fn board(name: &str) -> Result<&'static Board> {
    Board::find(name).ok_or_else(|| {
        let names: Vec<_> = Board::all().iter().map(|board| board.kind.as_str()).collect();
        miette!(help = format!("there are: {}", names.join(", ")), "there is no board `{name}`")
    })
}

/// Returns a plan with what was asked for.
fn asked(arguments: &Calibrate, plan: Plan) -> Plan {
    Plan {
        load: arguments.load.map_or(plan.load, Into::into),
        repetitions: arguments.repetitions.unwrap_or(plan.repetitions),
        cold: arguments.cold.unwrap_or(plan.cold),
        sweep_kib: arguments.sweep.unwrap_or(plan.sweep_kib),
        ..plan
    }
}

fn image(arguments: &Calibrate, plan: &Plan, output: &Path) -> Result<u8> {
    let checked = plan.system(NAME, &HYPERVISOR, &place::root()?)?;
    let (format, boot_script) = (arguments.format, arguments.boot_script.as_deref());
    write_image(&checked, &checked, &Image { output, format, boot_script, sign: None })?;
    say("flash it, capture its UART, then: cassata calibrate --console FILE");
    Ok(0)
}

/// Reads what a board has sent, by this hypervisor.
fn captured(arguments: &Calibrate, log: &Path) -> Result<Measurement> {
    let said = calibrate::read_log(log)?;
    let shown = log.display();
    if let Some(board) = arguments.board.as_ref().filter(|board| **board != said.board) {
        return Err(miette!(
            help = "leave `--board` out: the log says it",
            "{shown}: it was measured on `{}`, not on `{board}`",
            said.board
        ));
    }
    let plan = Plan::of(board(&said.board)?);
    let hypervisor = identity(HYPERVISOR.of(&plan.system(NAME, &HYPERVISOR, &place::root()?)?));
    if said.hypervisor != hypervisor {
        return Err(miette!(
            help = "make the image again with this cassata, and measure again",
            "{shown}: it was measured with another build of the hypervisor ({}, not {hypervisor})",
            said.hypervisor
        ));
    }
    if said.pcpus != plan.pcpus {
        return Err(miette!(
            help = "make the image again with this cassata, and measure again",
            "{shown}: it was measured on {} pCPUs, not on {}",
            said.pcpus,
            plan.pcpus
        ));
    }
    Ok(said)
}

fn judge(
    plan: &Plan,
    said: &Measurement,
    arguments: &Calibrate,
    room: &Bench,
    progress: &mut Progress,
) -> Result<Judged> {
    let counts = calibrate::count(plan, room, &mut |what| progress.now(what))?;
    calibrate::judge(said, &counts, arguments.margin.unwrap_or(DEFAULT_MARGIN_PERMILLE))
}

/// A slip of the hand must not cost a file that the project has built.
fn spare(file: &Path) -> Result<()> {
    match description::of_project(file) {
        Some(message) => Err(miette!(help = "name another file", "{message}")),
        None => Ok(()),
    }
}
