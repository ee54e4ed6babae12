//! Systems in which a byte is wrong, and a machine that enters one elsewhere than at EL2: EL2 must refuse them, and say
//! why.

use super::staged::description;
use super::{LIMIT, REAL_LIMIT};
use crate::guests::Transcript;
use crate::machine::MachineConfig;
use crate::results::{Check, Outcome};
use crate::run;
use crate::session::{End, Run, Session};
use crate::suite::{Bench, Scenario};
use abi::system::{Invalid, MAGIC, PAGE_SIZE, System};
use miette::{IntoDiagnostic, Result, miette};
use std::fs;
use std::mem::offset_of;

/// Where the byte is that is changed.
#[derive(Clone, Copy, Debug)]
enum At {
    /// So far behind the beginning of the tables.
    Tables(usize),
    /// The first of this text, which stands in the file once.
    Text(&'static str),
}

/// A byte that is changed.
#[derive(Clone, Copy, Debug)]
struct Damage {
    /// For messages.
    place: &'static str,
    at: At,
    /// What EL2 must say.
    complaint: &'static str,
}

const DAMAGES: [Damage; 7] = [
    Damage { place: "magic", at: At::Tables(1), complaint: Invalid::Magic.message() },
    Damage {
        place: "version",
        at: At::Tables(offset_of!(System, header) + MAGIC.len()),
        complaint: Invalid::Version.message(),
    },
    Damage {
        place: "table of VMs",
        at: At::Tables(offset_of!(System, vms) + 100),
        complaint: Invalid::TablesDigest.message(),
    },
    Damage {
        place: "end of the tables",
        at: At::Tables(offset_of!(System, signature) - 1),
        complaint: Invalid::TablesDigest.message(),
    },
    Damage {
        place: "EL2's page table",
        at: At::Tables(size_of::<System>().next_multiple_of(PAGE_SIZE as usize)),
        complaint: "EL2's page table is damaged (SHA-256)",
    },
    Damage {
        place: "a guest's image",
        at: At::Tables(size_of::<System>() + 0x1_2345),
        complaint: "cannot go on: its kernel is damaged",
    },
    Damage {
        place: "a constant of the hypervisor's",
        at: At::Text(Invalid::Spi.message()),
        complaint: "the hypervisor's code is damaged (SHA-256)",
    },
];

/// Returns the scenario of all of them, one after the other.
#[must_use]
pub fn scenario() -> Scenario {
    let about = "a system with a flipped byte is refused at EL2, and run says why";
    Scenario::new("damaged", about, |bench: &Bench| {
        let bundle = bench.pack(&bench.described(&description("alone-1"), &[])?)?;
        let sound = fs::read(&bundle.image).into_diagnostic()?;
        let tables = tables_of(&sound, &bundle.tables)?;
        let mut outcome = Outcome::new("damaged");
        for damage in DAMAGES {
            let mut file = sound.clone();
            let at = match damage.at {
                At::Tables(offset) => Some(tables + offset),
                At::Text(text) => only_place(&sound, text.as_bytes()),
            };
            let at = at.ok_or_else(|| miette!("{damage:?} is not there once"))?;
            file[at] ^= 0x10;
            fs::write(&bundle.image, &file).into_diagnostic()?;
            let run = bench.session(&bundle, LIMIT)?.run(|_| false)?;
            run.without_faults()?;
            let objections = objections(&run, damage.place, damage.complaint);
            outcome.check(Check::done(
                &format!("damage in {} is refused", damage.place),
                objections.is_empty(),
            ));
            if !objections.is_empty() {
                return bench.judge(&run, outcome, &objections);
            }
        }
        bench.keep(&outcome)?;
        fs::remove_file(&bundle.image).into_diagnostic()
    })
}

/// What EL2 must say where it is not at EL2.
const ELSEWHERE: &str = "the boot loader or firmware did not enter at EL2";

/// Returns the scenario of a machine that has no EL2. The processor has no registers of EL2's there: a read of one ends
/// all, without a word.
#[must_use]
pub fn elsewhere() -> Scenario {
    let about = "a system that is entered at EL1 is refused, with the reason";
    Scenario::new("refused-el1", about, |bench: &Bench| {
        let bundle = bench.pack(&bench.described(&description("alone-1"), &[])?)?;
        let mut config = MachineConfig::new(&bundle.image, 1, bundle.tables.board.ram_size);
        config.el2 = false;
        let session = Session::plain(config, "board", &bench.qemu, &bench.directory);
        let session = session.within(REAL_LIMIT).interrupted_by(bench.interrupt.clone());
        let has_said = |said: &Transcript| {
            said.guests.iter().any(|guest| guest.tail.lines().any(|line| line.contains(ELSEWHERE)))
        };
        let run = session.run(|now| has_said(now.said))?;
        if !has_said(&run.said) {
            return Err(miette!("EL2 did not say `{ELSEWHERE}`"));
        }
        bench.keep(&Outcome::new("refused-el1"))
    })
}

/// Returns where the tables begin in the bootable file.
pub(super) fn tables_of(file: &[u8], tables: &System) -> Result<usize> {
    // The hypervisor has the magic among its constants; the tables' is the one
    // that the version follows.
    let mut wanted = MAGIC.to_vec();
    wanted.extend(tables.header.version.to_le_bytes());
    only_place(file, &wanted).ok_or_else(|| miette!("the tables are not once in the bootable file"))
}

/// Returns where in the file the wanted bytes are, if they are there exactly once.
pub(super) fn only_place(file: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut places = file.windows(wanted.len()).enumerate().filter(|(_, bytes)| *bytes == wanted);
    let (place, _) = places.next()?;
    places.next().is_none().then_some(place)
}

/// Returns why a run of an image that is damaged at `place` was not refused with this complaint.
pub(super) fn objections(run: &Run, place: &str, complaint: &str) -> Vec<String> {
    let summary = run::summary(run, &run::answer(run, "damaged"));
    let mut said = run.said.guests.iter().flat_map(|guest| guest.tail.lines());
    let ran = said.next().map(|line| format!("a guest ran all the same: {line}"));
    let unsaid = (!summary.contains(complaint))
        .then(|| format!("the summary does not say \"{complaint}\", but {summary}"));
    let on = (run.end != End::PoweredOff).then(|| "the machine stays on".to_owned());
    let all = ran.into_iter().chain(unsaid).chain(on);
    all.map(|why| format!("damage in {place}: {why}")).collect()
}
