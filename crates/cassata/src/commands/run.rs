//! `cassata run`.

use super::{description, gaps, interrupt, overheads, publish};
use crate::cli::Run;
use crate::messages::note;
use crate::place;
use lab::bundle::channel;
use lab::console::connection::{Connections, Line, Seat};
use lab::machine::{Time, VirtualTime};
use lab::promises::Promises;
use lab::qemu::Qemu;
use lab::results::{Directory, has_place, write_json};
use lab::session::Session;
use lab::view::{self, Silent, View};
use miette::{Result, miette};
use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::time::Duration;
use system::Checked;

/// How long a machine runs in virtual time if nothing else is said; `--help` says it too.
const VIRTUAL_LIMIT: Duration = Duration::from_secs(60);

/// Runs a system and watches it.
pub fn run(arguments: &Run) -> Result<u8> {
    if let Some(threshold_ns) = arguments.gaps {
        return gaps::run(arguments, threshold_ns);
    }
    let (qemu, interrupt) = (Qemu::find()?, interrupt()?);
    let stem = arguments.system.file_stem().unwrap_or_default().to_string_lossy();
    // `cassata demo` and its like have names of their own.
    let name = format!("run-{stem}");
    let checked = description::load(&arguments.system)?;
    has_cores_to_stall(arguments, &checked)?;
    let text = description::source(&arguments.system)?;
    if let Some(file) = &arguments.json {
        description::spare_inputs(&checked, file, "--json")?;
        has_place(file)?;
    }
    let connections = connections(arguments, &checked)?;
    let directory = directory(&name, &arguments.system)?;
    let overheads = overheads::from(arguments.overheads, None, Some(&checked))?;
    let mut bundle = description::pack(&checked, &directory.path().join("system.elf"))?;
    bundle.promises = Promises::with(&checked, overheads);
    let time = time(arguments, &qemu, directory.path())?;
    connections.about().iter().for_each(|about| note(about));
    let run = Session::of(&bundle, &qemu, &time, directory.path())
        .within(limit(arguments, &connections))
        .shown_by(view(&connections, &stem))
        .interrupted_by(interrupt)
        .connected_to(connections)
        .operated()?
        .run(|_| false)?;
    let mut answer = lab::run::answer(&run, &name);
    if checked.trace > 0 {
        lab::run::show_trace(&mut answer, directory.path(), &name)?;
    }
    lab::run::conditions(&mut answer, &qemu, &time, &bundle, &text);
    publish(&answer, &format!("\n{}", lab::run::summary(&run, &answer)), &directory)?;
    if let Some(file) = &arguments.json {
        write_json(file, &answer.outcome)?;
    }
    Ok(answer.outcome.exit_code(arguments.report_only))
}

/// Refuses to let a core stall that the board has not.
pub fn has_cores_to_stall(arguments: &Run, checked: &Checked) -> Result<()> {
    let cores = checked.machine.pcpus;
    if let Some(stall) = arguments.stalls.iter().find(|stall| stall.core >= cores) {
        return Err(miette!(
            help = "name one of them, such as `--stall 0@200ms:500us`",
            "--stall {stall}: {} has {cores} pCPUs, numbered from 0, and no pCPU {}",
            checked.path.display(),
            stall.core
        ));
    }
    Ok(())
}

/// Returns how the machine's time passes, and which cores stall when. What is counted goes to a file in
/// `directory`.
pub fn time(arguments: &Run, qemu: &Qemu, directory: &Path) -> Result<Time> {
    if !arguments.vtime {
        return Ok(Time::Real);
    }
    let time = VirtualTime::new(&place::instrument()?, qemu, directory)?;
    Ok(Time::Virtual(time.with_stalls(&arguments.stalls)))
}

/// Returns how long the machine may run, in its own time. Virtual time has a limit of its own,
/// so that a guest that hangs has an end; but not where a user types, while an idle guest's
/// time flies.
fn limit(arguments: &Run, connections: &Connections) -> Option<Duration> {
    let own = (arguments.vtime && connections.is_empty()).then_some(VIRTUAL_LIMIT);
    arguments.limit.or(own)
}

/// Opens what `--console` asks for.
fn connections(arguments: &Run, checked: &Checked) -> Result<Connections> {
    let vms = checked.vms.iter().enumerate().filter(|(_, vm)| vm.console);
    let lines: Vec<_> =
        vms.map(|(vm, described)| Line { name: &described.name, channel: channel(vm) }).collect();
    Connections::open(&arguments.consoles, &lines, Seat::own)
}

/// The directory of the results, and a word if it is not the one that the name suggests.
pub fn directory(name: &str, description: &Path) -> Result<Directory> {
    let directory = Directory::create_for(&place::results(), name, description)?;
    if !directory.path().ends_with(name) {
        let path = directory.path().display();
        note(&format!("results go to {path}: those in {name} are of another run"));
    }
    Ok(directory)
}

/// A guest that has the terminal has it alone.
fn view(connections: &Connections, stem: &str) -> Box<dyn View> {
    if connections.has_keyboard() && stderr().is_terminal() {
        return Box::new(Silent);
    }
    view::choose(&format!("cassata run {stem}"))
}
