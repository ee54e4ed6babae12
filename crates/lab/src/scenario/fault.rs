//! A fault of EL2's own: where it happens that core stops and its neighbours go on, or the machine is
//! reset, as the description says. EL2 has no fault that a test could call for, so one is made: the
//! first instruction of what begins to end a VM is replaced by one that is undefined.

use super::reason::Reason;
use super::staged::description;
use crate::bundle::{Builds, Bundle};
use crate::results::{Check, Outcome};
use crate::session::{End, Run};
use crate::suite::{Bench, Scenario};
use miette::{IntoDiagnostic, Result, miette};
use object::{Object, ObjectSection, ObjectSymbol};
use std::fs;
use std::time::Duration;

/// The name.
const NAME: &str = "fault";
/// The description: a real-time VM on pCPU 0, and one on each of two others that crashes, so that
/// EL2 ends it.
pub(super) const DESCRIPTION: &str = "beside-reports";
pub(super) const RTOS: &str = "rtos";
pub(super) const ACTIVATIONS: u64 = 500;
/// How many cores the fault stops, each of which tells of it: that of the real-time VM last, when this
/// one ends. Where the machine is reset, the first ends it.
const STOPPED: usize = 3;
/// Parts of what a core says of its fault. The log that another core writes may stand in the midst of one.
const SAID: [&str; 3] = ["hypervisor fault: vector", "(image at 0x", ") far 0x"];
/// Virtual time: the real-time VM needs half of it.
pub(super) const LIMIT: Duration = Duration::from_millis(250);
/// A64's permanently undefined instruction.
const UDF: [u8; 4] = [0; 4];

/// Returns the scenario.
#[must_use]
pub fn scenario() -> Scenario {
    let about =
        "a fault of EL2 stops one core and no neighbour, or resets the machine if described so";
    Scenario::new(NAME, about, |bench: &Bench| {
        let mut outcome = Outcome::new(NAME);
        let builds = with_a_bug(bench.hypervisor, UDF)?;
        for resets in [false, true] {
            let (run, reason) = run(bench, &builds, resets)?;
            let mut objections = objections(&run, told(bench)?, resets);
            objections.extend(reason.objection(resets));
            let name = if resets { "the machine is reset" } else { "one core stops" };
            outcome.check(Check::done(name, objections.is_empty()));
            if !objections.is_empty() {
                bench.keep(&outcome)?;
                return Err(miette!("{name}: {}", objections.join("; ")));
            }
        }
        bench.keep(&outcome)?;
        fs::remove_file(bench.image()).into_diagnostic()
    })
    .shipped()
}

fn run(bench: &Bench, builds: &Builds, resets: bool) -> Result<(Run, Reason)> {
    let board = "[board]".to_owned();
    let with_key = format!("[hypervisor]\nreset_on_fault = {resets}\n\n{board}");
    let system = bench.described(&description(DESCRIPTION), &[(board, with_key)])?;
    let bundle = Bundle::pack(&system, builds, &bench.image())?;
    Reason::of(bench, bench.session(&bundle, LIMIT)?)
}

/// Returns how many faults cores have told of, on any console: each says so where the UART just is. Of one that the log
/// cuts, other parts are whole.
fn told(bench: &Bench) -> Result<usize> {
    let mut said = String::new();
    for file in fs::read_dir(&bench.directory).into_diagnostic()? {
        let path = file.into_diagnostic()?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("console-") && name.ends_with(".log") {
            said += &String::from_utf8_lossy(&fs::read(&path).into_diagnostic()?);
        }
    }
    Ok(SAID.iter().map(|part| said.matches(part).count()).max().unwrap_or(0))
}

/// Returns the hypervisor with the instruction `bug` where it begins to end a VM; like every build, it is
/// there as long as the process.
pub(super) fn with_a_bug(hypervisor: Builds, bug: [u8; 4]) -> Result<Builds> {
    let mut file = hypervisor.silent.to_vec();
    let place = end_of_a_vm(hypervisor.silent)?;
    let instruction = file.get_mut(place..place + bug.len());
    instruction.ok_or_else(|| miette!("`stop` is cut off"))?.copy_from_slice(&bug);
    let file = file.leak();
    Ok(Builds::one(file, hypervisor.is_checked))
}

/// Returns where in the hypervisor's ELF file the function is that begins to end a VM
/// (`Pcpu::stop`).
fn end_of_a_vm(hypervisor: &[u8]) -> Result<usize> {
    let elf = object::File::parse(hypervisor).into_diagnostic()?;
    let is_it = |name: &str| name.contains("9lifecycle") && name.ends_with("4Pcpu4stop");
    let symbol = elf.symbols().find(|symbol| symbol.name().is_ok_and(is_it));
    let symbol = symbol.ok_or_else(|| miette!("the hypervisor has no function `stop`"))?;
    let section = symbol.section_index().ok_or_else(|| miette!("`stop` is in no section"))?;
    let section = elf.section_by_index(section).into_diagnostic()?;
    let (begin, _) = section.file_range().ok_or_else(|| miette!("`stop` is not in the file"))?;
    Ok((begin + symbol.address() - section.address()) as usize)
}

fn objections(run: &Run, told: usize, resets: bool) -> Vec<String> {
    let mut all = Vec::new();
    let expected = if resets { 1 } else { STOPPED };
    if told != expected {
        let faults = run.hypervisor_faults();
        all.push(format!("EL2 told of {told} faults, not of {expected}: {faults:?}"));
    }
    if (run.end == End::PoweredOff) != resets {
        all.push(format!("the run ended because {}", run.end.about()));
    }
    let reports = run.observer.layout.vm(RTOS).and_then(|vm| run.observer.reports(vm));
    let header = reports.and_then(|reports| reports.header);
    let (written, missed) = header.map_or((0, 0), |header| (header.written, header.missed));
    if !resets && (written, missed) != (ACTIVATIONS, 0) {
        all.push(format!("{RTOS} had {written} activations, and missed {missed}"));
    }
    if resets && written >= ACTIVATIONS {
        all.push(format!("{RTOS} went on to its end"));
    }
    all
}
