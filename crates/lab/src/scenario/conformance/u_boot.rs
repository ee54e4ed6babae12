//! U-Boot comes to its prompt and answers, and the tests of its EFI interface end as on the bare
//! board: among others of memory, of the clock, and of a reset. Here FreeRTOS has the only core whenever
//! it wants it, and is never late.

use super::super::stock::late;
use super::sum;
use crate::bundle::channel;
use crate::figures;
use crate::guests::{Images, UBootProgress};
use crate::machine::MachineConfig;
use crate::session::{End, Moment, Run, Session};
use crate::suite::{Bench, Scenario};
use miette::{Result, miette};
use std::path::Path;
use std::time::Duration;

/// The name.
const NAME: &str = "conformance-u-boot";
/// The description, below the project's root, and U-Boot's VM there.
const SYSTEM: &str = "systems/u-boot.toml";
const VM: &str = "u-boot";
/// Virtual time within which all is typed and answered: it needs a few seconds.
const LIMIT: Duration = Duration::from_secs(30);
/// Memory of the bare board, bytes: as the description has it.
const MEMORY: u64 = 128 << 20;
/// Returns true once something may be typed.
type IsDue = fn(&UBootProgress) -> bool;
/// What is typed, and when. A key stops the countdown, and is not read any more then.
const TYPED: [(IsDue, &str); 4] = [
    (|said| said.countdowns == 1, "\rversion\r"),
    (|said| said.version.is_some(), "bootefi selftest\r"),
    (|said| said.asks_to_reset, "\r"),
    (|said| said.countdowns == 2, "\rpoweroff\r"),
];

/// Returns the scenario.
pub fn scenario() -> Scenario {
    let about = "U-Boot answers at its prompt, and its own tests end as on the bare board";
    Scenario::new(NAME, about, compare)
}

fn compare(bench: &Bench) -> Result<()> {
    let image = Images::of(&bench.root).u_boot;
    if !image.exists() {
        return Err(miette!("there is no {}: `./cassata test` fetches it", image.display()));
    }
    let (bare, mut objections) = alone(bench, &image)?;
    let bundle = bench.pack(&bench.described(SYSTEM, &[])?)?;
    let vm = bundle.layout().vm(VM).ok_or_else(|| miette!("there is no VM `{VM}`"))?;
    let (run, failed) = talk(bench.session(&bundle, LIMIT)?, vm)?;
    let here = &run.said.guests[vm].u_boot;
    let is_off = run.observer.is_over(vm);
    objections.extend(failed.into_iter().chain(unanswered(here, is_off, "here")));
    objections.extend(late(&run.observer));
    let mut outcome = figures::outcome(NAME, &run);
    outcome.figure("version", here.version.clone());
    let both = [&bare.verdicts, &here.verdicts];
    objections.extend(super::compare(bench, both, &mut outcome)?);
    bench.tell(&format!(
        "{}: {}",
        here.version.as_deref().unwrap_or_default(),
        sum(&here.verdicts)
    ))?;
    bench.judge(&run, outcome, &objections)
}

/// Runs it on the bare board.
fn alone(bench: &Bench, image: &Path) -> Result<(UBootProgress, Vec<String>)> {
    let mut config = MachineConfig::new(image, 1, MEMORY);
    (config.is_firmware, config.reboots) = (true, true);
    let session = bench.bare_session(config, "u-boot", LIMIT)?;
    // Its console is not framed, so that what is typed reaches the one that there is.
    let (mut run, failed) = talk(session, 0)?;
    let is_off = run.end == End::PoweredOff;
    let said = run.said.guests.remove(0).u_boot;
    let objections =
        failed.into_iter().chain(unanswered(&said, is_off, "on the bare board")).collect();
    Ok((said, objections))
}

/// Types one thing after the other, until the guest `vm` or the machine is off. Also returns why something
/// could not be typed.
fn talk(session: Session<'_>, vm: usize) -> Result<(Run, Option<String>)> {
    let (mut typed, mut failed) = (0, None);
    let is_bare = session.layout.vms.is_empty();
    let run = session.run(|now: &Moment| {
        let said = &now.said.guests[vm].u_boot;
        if let Some((_, keys)) = TYPED.get(typed).filter(|(is_due, _)| is_due(said)) {
            let sent = now.machine.consoles.send(channel(vm), keys.as_bytes());
            failed = sent.err().map(|error| format!("cannot type {keys:?}: {error}"));
            typed += 1;
        }
        failed.is_some() || !is_bare && now.observer.is_over(vm)
    })?;
    Ok((run, failed))
}

/// Returns what did not come of all that was to come.
fn unanswered(said: &UBootProgress, is_off: bool, place: &str) -> Option<String> {
    let missing = match said {
        UBootProgress { countdowns: 0, .. } => "it did not come to its prompt",
        UBootProgress { version: None, .. } => "it did not say its version",
        UBootProgress { failures: None, .. } => "its tests did not come to their end",
        UBootProgress { countdowns: 1, .. } => "it did not start again after a reset",
        _ if !is_off => "it did not switch itself off",
        _ => return None,
    };
    Some(format!("{place}: {missing}"))
}
