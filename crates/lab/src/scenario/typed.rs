//! What is typed reaches the guest it is typed to, whole and in order.

use super::LIMIT;
use super::staged::SYSTEMS;
use crate::bundle::{Bundle, channel};
use crate::console::Cursor;
use crate::machine::{Machine, Time, VirtualTime};
use crate::suite::{Bench, Scenario};
use miette::{IntoDiagnostic, Result, miette};
use std::time::Duration;

/// Its name, and that of its description.
pub const NAME: &str = "typed";
/// Lines for each guest, as its command line says.
const LINES: usize = 20;

/// The scenario.
#[must_use]
pub fn scenario() -> Scenario {
    let about = "what is typed reaches the guest it is meant for, and no other";
    Scenario::new(NAME, about, |bench: &Bench| {
        let checked = system::load(&bench.root.join(SYSTEMS).join(format!("{NAME}.toml")))?;
        let image = bench.directory.join("system.elf");
        let bundle = Bundle::pack(&checked, bench.hypervisor, &image)?;
        let time = VirtualTime::new(&bench.instrument, &bench.qemu, &bench.directory)?;
        let config = bundle.machine_in(&Time::Virtual(time));
        let consoles = bundle.consoles(Some(bench.directory.clone()));
        let mut machine = Machine::start(&bench.qemu, &config, &consoles)?;
        let vms: Vec<_> = bundle.layout().vms.iter().map(|vm| vm.name.clone()).collect();
        let typed = converse(&machine, &vms);
        let is_off = typed.is_ok() && machine.ended_within(LIMIT)?;
        machine.kill()?;
        typed?;
        if !is_off {
            return Err(miette!("the guests heard everything, and the machine stays on"));
        }
        heard_nothing_else(&machine, &vms)?;
        std::fs::remove_file(&image).into_diagnostic()
    })
}

/// Types to one guest after the other, and waits for all that were typed to:
/// their receive FIFOs hold no more than a few lines.
fn converse(machine: &Machine, vms: &[String]) -> Result<()> {
    let consoles = machine.consoles();
    let hear = |vm: usize, text: &str, cursor: &mut Cursor| {
        let line = consoles.expect(cursor, channel(vm), text, LIMIT);
        line.map(drop).ok_or_else(|| miette!("{}: \"{text}\" did not come", vms[vm]))
    };
    let mut cursors = vec![Cursor::default(); vms.len()];
    for (vm, cursor) in cursors.iter_mut().enumerate() {
        hear(vm, "listening", cursor)?;
    }
    for line in 0..LINES {
        for (vm, name) in vms.iter().enumerate() {
            let text = format!("{name} {line}\n");
            consoles.send(channel(vm), text.as_bytes()).into_diagnostic()?;
        }
        for (vm, cursor) in cursors.iter_mut().enumerate() {
            hear(vm, &format!("heard {} {line}", vms[vm]), cursor)?;
        }
    }
    Ok(())
}

fn heard_nothing_else(machine: &Machine, vms: &[String]) -> Result<()> {
    let lines = machine.consoles().follow(&mut Cursor::default(), Duration::ZERO);
    for (vm, name) in vms.iter().enumerate() {
        let heard: Vec<_> = lines
            .iter()
            .filter(|line| line.channel == channel(vm))
            .filter_map(|line| line.text.strip_prefix("heard "))
            .collect();
        let wanted: Vec<_> = (0..LINES).map(|line| format!("{name} {line}")).collect();
        if heard != wanted {
            return Err(miette!("{name} heard {heard:?}"));
        }
    }
    Ok(())
}
