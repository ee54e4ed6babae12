//! Systems in which a byte is wrong: EL2 must refuse them, and say why.

use super::LIMIT;
use super::staged::SYSTEMS;
use crate::bundle::Bundle;
use crate::console::Cursor;
use crate::machine::Machine;
use crate::suite::{Bench, Scenario};
use abi::console::HYPERVISOR;
use abi::system::{Invalid, MAGIC, System};
use miette::{IntoDiagnostic, Result, miette};
use std::fs;
use std::mem::offset_of;

/// Where the byte is that is changed: offset from the beginning of the tables.
#[derive(Clone, Copy, Debug)]
struct Damage {
    /// For messages.
    place: &'static str,
    /// Offset.
    offset: usize,
    /// What EL2 must say.
    complaint: Invalid,
}

const DAMAGES: [Damage; 6] = [
    Damage { place: "magic", offset: 1, complaint: Invalid::Magic },
    Damage {
        place: "version",
        offset: offset_of!(System, header) + MAGIC.len(),
        complaint: Invalid::Version,
    },
    Damage {
        place: "table of VMs",
        offset: offset_of!(System, vms) + 100,
        complaint: Invalid::TablesChecksum,
    },
    Damage {
        place: "end of the tables",
        offset: size_of::<System>() - 1,
        complaint: Invalid::TablesChecksum,
    },
    Damage {
        place: "beginning of the payload",
        offset: size_of::<System>(),
        complaint: Invalid::PayloadChecksum,
    },
    Damage {
        place: "a guest's image",
        offset: size_of::<System>() + 0x1_2345,
        complaint: Invalid::PayloadChecksum,
    },
];

/// All of them, one after the other.
#[must_use]
pub fn scenario() -> Scenario {
    let about = "a system with a flipped byte is refused at EL2, and it says why";
    Scenario::new("damaged", about, |bench: &Bench| {
        let checked = system::load(&bench.root.join(SYSTEMS).join("alone-1.toml"))?;
        let image = bench.directory.join("system.elf");
        let bundle = Bundle::pack(&checked, bench.hypervisor, &image)?;
        let sound = fs::read(&image).into_diagnostic()?;
        let tables = tables_of(&sound)?;
        for damage in DAMAGES {
            let mut file = sound.clone();
            file[tables + damage.offset] ^= 0x10;
            fs::write(&image, &file).into_diagnostic()?;
            boot(bench, &bundle, damage)?;
        }
        fs::remove_file(&image).into_diagnostic()
    })
}

/// Where the tables begin in the bootable file.
fn tables_of(file: &[u8]) -> Result<usize> {
    // The hypervisor has the magic among its constants; the tables' is the one
    // that the version follows.
    let mut wanted = MAGIC.to_vec();
    wanted.extend(abi::system::VERSION.to_le_bytes());
    let mut places = file.windows(wanted.len()).enumerate().filter(|(_, bytes)| *bytes == wanted);
    match (places.next(), places.next()) {
        (Some((place, _)), None) => Ok(place),
        _ => Err(miette!("the tables are not found in the bootable file")),
    }
}

fn boot(bench: &Bench, bundle: &Bundle, damage: Damage) -> Result<()> {
    let place = damage.place;
    let consoles = bundle.consoles(Some(bench.directory.clone()));
    let mut machine = Machine::start(&bench.qemu, &bundle.machine(), &consoles)?;
    let is_off = machine.ended_within(LIMIT)?;
    machine.kill()?;
    let lines = machine.consoles().follow(&mut Cursor::default(), std::time::Duration::ZERO);
    let (told, ran): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.channel == HYPERVISOR);
    let complaint = damage.complaint.message();
    if !told.iter().any(|line| line.text.contains(complaint)) {
        return Err(miette!("damage in {place}: EL2 does not say \"{complaint}\", but {told:?}"));
    }
    if let Some(line) = ran.first() {
        return Err(miette!("damage in {place}: a guest ran all the same: {}", line.text));
    }
    if is_off { Ok(()) } else { Err(miette!("damage in {place}: the machine stays on")) }
}
