//! The RTOS on the bare board, without a hypervisor: what its latencies are compared with.
//!
//! The image, the instrument and what reads the samples are those of all other points. Without a
//! hypervisor that offers a report area, the guest writes its samples into a small one in its own
//! memory, which its symbol table tells of.

use super::description::rtos_command_line;
use super::point::{Point, Rtos, Wake};
use super::run::{self, Measurement};
use crate::bench::sample::Sample;
use crate::bench::{ProgressView, Tell};
use crate::guests::Images;
use crate::machine::{MachineConfig, Time, VirtualTime};
use crate::session::{End, Session};
use crate::suite::Bench;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use object::{Object, ObjectSymbol};
use std::collections::BTreeMap;
use std::fs;

/// Memory of the machine, bytes: as much as the RTOS's VM has, and room for where the image lies.
const MEMORY: u64 = 64 << 20;
/// The name of the area in the guest's own memory (`guests/freertos/src/report.c`).
const AREA: &str = "own_area";
/// Milliseconds from the start to the first tick: there is no Linux to wait for.
const START_MS: u32 = 10;

/// What the RTOS is told.
pub(super) fn command_line(rtos: Rtos) -> String {
    rtos_command_line(rtos, START_MS)
}

/// Runs `point`, whose one guest is the RTOS, with its files in the directory of `bench`.
pub(super) fn run(point: &Point, rtos: Rtos, bench: &Bench, tell: Tell<'_>) -> Result<Measurement> {
    let image = Images::of(&bench.root).rtos;
    let elf = fs::read(&image).into_diagnostic();
    let elf = elf.wrap_err_with(|| format!("cannot read {}", image.display()))?;
    let area = area(&elf).wrap_err_with(|| image.display().to_string())?;
    let cores = if rtos.wake == Wake::Timer { 1 } else { 2 };
    let mut config = MachineConfig::new(image, cores, MEMORY);
    config.el2 = false;
    let time = VirtualTime::new(&bench.instrument, &bench.qemu, &bench.directory)?;
    config.time = Time::Virtual(time.with_quantum(rtos.wake.quantum_ns()));
    config.extra_args = vec!["-append".into(), command_line(rtos).into()];
    let mut session = Session::plain(config, "rtos", &bench.qemu, &bench.directory);
    session.layout.plain_report = Some(area);
    let session = session.within(run::LIMIT).shown_by(Box::new(ProgressView(tell)));
    let found = session.interrupted_by(bench.interrupt.clone()).run(|_| false)?;
    if found.end != End::PoweredOff {
        return Err(miette!("{}", found.end.about()));
    }
    Ok(Measurement {
        point: point.clone(),
        real_s: found.elapsed.as_secs_f64(),
        virtual_s: found.virtual_time().unwrap_or_default().as_secs_f64(),
        runs: Sample::default(),
        rtos: Some(run::lateness(&found.observer, 0, rtos.activations)?),
        vcpus: Vec::new(),
        statistics: found.instrument,
        spinning: BTreeMap::new(),
        kernel: Vec::new(),
        locks: None,
        builds: Vec::new(),
        wakes: None,
    })
}

/// Returns the physical address and the size of the area in the guest's own memory, which is
/// mapped where it lies.
fn area(elf: &[u8]) -> Result<(u64, u64)> {
    let file = object::File::parse(elf).into_diagnostic()?;
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(AREA));
    let symbol = symbol.filter(|symbol| symbol.size() > 0);
    let symbol = symbol.ok_or_else(|| miette!("the image has no variable `{AREA}`"))?;
    Ok((symbol.address(), symbol.size()))
}
