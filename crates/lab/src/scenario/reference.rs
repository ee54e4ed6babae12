//! The probe without a hypervisor: what it tests of the architecture must hold
//! on QEMU's own board first. This keeps the tests honest.

use super::REAL_LIMIT;
use crate::guests::{Images, ProbeProgress};
use crate::machine::MachineConfig;
use crate::results::Outcome;
use crate::session::{End, Session};
use crate::suite::{Bench, Scenario};
use miette::{Result, miette};

/// Why tests may be left out here.
const EXCUSES: [&str; 2] =
    ["needs Cassata underneath", "the reference machine has no SMCCC_VERSION"];
/// And with one core only.
const EXCUSES_ALONE: [&str; 3] = [EXCUSES[0], EXCUSES[1], "needs two vCPUs"];
/// What the probe is to run, one machine after the other.
const SELECTIONS: [&str; 2] =
    ["all", "reset,rhythm,bench.timer probe.repetitions=1000 probe.activations=200"];
/// Memory of the machine, bytes.
const MEMORY: u64 = 128 << 20;

/// Returns the scenario of the probe's tests on `cores` cores.
#[must_use]
pub fn scenario(cores: u32, about: &'static str) -> Scenario {
    Scenario::new(format!("reference-{cores}"), about, move |bench: &Bench| {
        let mut outcome = Outcome::new("reference");
        for selection in SELECTIONS {
            // Their figures are in real time.
            let passed: Vec<_> = run(bench, cores, selection)?.passed.into_keys().collect();
            outcome.figure(selection, passed);
        }
        bench.keep(&outcome)
    })
}

fn run(bench: &Bench, cores: u32, selection: &str) -> Result<ProbeProgress> {
    let mut config = MachineConfig::new(Images::of(&bench.root).probe, cores, MEMORY);
    config.el2 = false;
    config.reboots = true;
    config.extra_args = vec!["-append".into(), format!("probe.run={selection}").into()];
    let session = Session::plain(config, "probe", &bench.qemu, &bench.directory);
    let session = session.within(REAL_LIMIT).interrupted_by(bench.interrupt.clone());
    let mut run = session.run(|_| false)?;
    let probe = run.said.guests.remove(0).probe;
    let excuses: &[&str] = if cores == 1 { &EXCUSES_ALONE } else { &EXCUSES };
    let still_on =
        (run.end != End::PoweredOff).then(|| "the machine did not switch itself off".to_owned());
    match probe.objection(excuses).or(still_on) {
        None => Ok(probe),
        Some(why) => Err(miette!("{why}\n(probe.run={selection})")),
    }
}
