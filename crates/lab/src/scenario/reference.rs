//! The probe without a hypervisor: what it tests of the architecture must hold
//! on QEMU's own board first. This keeps the tests honest.

use super::LIMIT;
use super::probe::Account;
use crate::console::{ConsoleConfig, Cursor};
use crate::machine::{Machine, MachineConfig};
use crate::suite::{Bench, Scenario};
use miette::{Result, miette};
use std::time::{Duration, Instant};

/// Why tests may be left out here.
const EXCUSES: [&str; 2] =
    ["needs Cassata underneath", "the reference machine has no SMCCC_VERSION"];
/// And with one core only.
const EXCUSES_ALONE: [&str; 3] = [EXCUSES[0], EXCUSES[1], "needs two vCPUs"];
/// Memory of the machine, bytes.
const MEMORY: u64 = 128 << 20;
/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// The probe's tests on `cores` cores.
#[must_use]
pub fn scenario(cores: u32, about: &'static str) -> Scenario {
    Scenario::new(format!("reference-{cores}"), about, move |bench: &Bench| {
        run(bench, cores, "all")?;
        run(bench, cores, "reset,rhythm,bench.timer probe.repetitions=1000 probe.activations=200")
    })
}

fn run(bench: &Bench, cores: u32, selection: &str) -> Result<()> {
    let mut config = MachineConfig::new(bench.root.join("build/guests/probe.elf"), cores, MEMORY);
    config.el2 = false;
    config.reboots = true;
    config.extra_args = vec!["-append".into(), format!("probe.run={selection}").into()];
    let consoles = ConsoleConfig::plain("probe", Some(bench.directory.clone()));
    let mut machine = Machine::start(&bench.qemu, &config, &consoles)?;
    let (mut account, mut cursor) = (Account::default(), Cursor::default());
    let deadline = Instant::now() + LIMIT;
    let mut is_off = false;
    while !is_off && Instant::now() < deadline && !bench.interrupt.requested() {
        is_off = machine.ended_within(Duration::ZERO)?;
        let lines = machine.consoles().follow(&mut cursor, LOOK);
        lines.iter().for_each(|line| account.hear(&line.text));
    }
    machine.kill()?;
    let excuses: &[&str] = if cores == 1 { &EXCUSES_ALONE } else { &EXCUSES };
    let still_on = (!is_off).then(|| "the machine did not switch itself off".to_owned());
    match account.objection(excuses).or(still_on) {
        None => Ok(()),
        Some(why) => Err(miette!("{why}\n(probe.run={selection})")),
    }
}
