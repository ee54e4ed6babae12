//! What Linux tells the hypervisor of its locks: the kernel with the port, and the module for stock
//! Linux.

use crate::figures;
use crate::guests::{Images, LinuxProgress, LinuxWork, Locks};
use crate::machine::MachineConfig;
use crate::suite::{Bench, Scenario};
use miette::Result;
use std::time::Duration;

/// The description, from the project's root.
const DESCRIPTION: &str = "guests/linux-own/systems/locks.toml";
/// How names of scenarios of the kernel with the port begin: by that the launcher builds it.
pub(super) const OWN: &str = "own-kernel";
/// Virtual time within which Linux boots and has done its work: it needs one to two seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// Memory of the bare board, bytes, and its CPUs: as the description has them.
const MEMORY: u64 = 512 << 20;
const CPUS: u32 = 2;
/// The command line, of the description and of the bare board.
const COMMAND_LINE: &str = "console=ttyAMA0 rdinit=/init quiet loglevel=4 cassata.preemption=page \
                            cassata.yield=always cassata.hackbench=\"-g 1 -l 20\" cassata.repeat=1";
/// What is replaced in the description for stock Linux.
const STOCK: [(&str, &str); 2] =
    [("linux-own/Image", "linux/Image"), ("cassata.preemption=page ", "")];
/// How the kernel with the port calls itself.
const PORTED: &str = "-cassata";

/// Returns the scenario of the module for stock Linux, in a VM that is offered nothing.
#[must_use]
pub fn stock() -> Scenario {
    const NAME: &str = "yield-module";
    let about = "the module that yields for stock Linux says that its VM is offered no yield";
    Scenario::new(NAME, about, |bench| {
        here(bench, NAME, &STOCK, |linux| {
            let none = Locks { contended: Some(0), ..nothing() };
            objections(linux, false, &none)
        })
    })
}

/// Returns the scenario of the kernel with the port, in a VM that is offered nothing, and on the
/// bare board. The launcher takes minutes to build it, so it runs only when asked for.
#[must_use]
pub fn own() -> Scenario {
    let about = "Linux with the port works here and on the bare board, where nothing is offered";
    Scenario::new(OWN, about, |bench| {
        let none = Locks { preemption: Some("none".into()), cancelled: Some(0), ..nothing() };
        let bare = alone(bench)?;
        let bare = objections(&bare, true, &none);
        here(bench, OWN, &[], |linux| {
            let bare = bare.iter().map(|why| format!("on the bare board: {why}"));
            bare.chain(objections(linux, true, &none)).collect()
        })
    })
    .by_name()
}

/// Nothing is offered, and nothing was done.
fn nothing() -> Locks {
    Locks { yields: "none".into(), ..Locks::default() }
}

/// Runs the description with `edits` until Linux has done its work; there must be none of
/// `objections`.
fn here(
    bench: &Bench,
    name: &str,
    edits: &[(&str, &str)],
    objections: impl FnOnce(&LinuxProgress) -> Vec<String>,
) -> Result<()> {
    let edits: Vec<_> = edits.iter().map(|&(from, to)| (from.into(), to.into())).collect();
    let bundle = bench.pack(&bench.described(DESCRIPTION, &edits)?)?;
    let session = bench.session(&bundle, LIMIT)?;
    let run = session.run(|now| now.said.guests[0].linux.is_over(LinuxWork::All))?;
    let linux = &run.said.guests[0].linux;
    let mut outcome = figures::outcome(name, &run);
    outcome.figure("hackbench_s", linux.hackbench_s.clone());
    bench.judge(&run, outcome, &objections(linux))
}

/// Runs the kernel with the port on the bare board.
fn alone(bench: &Bench) -> Result<LinuxProgress> {
    let images = Images::of(&bench.root);
    let mut config = MachineConfig::new(images.own_kernel, CPUS, MEMORY);
    config.extra_args =
        vec!["-initrd".into(), images.initramfs.into(), "-append".into(), COMMAND_LINE.into()];
    let session = bench.bare_session(config, "linux", LIMIT)?;
    let mut run = session.run(|now| now.said.guests[0].linux.is_over(LinuxWork::All))?;
    Ok(run.said.guests.remove(0).linux)
}

/// Returns what is wrong with what a kernel, with the port or without, has said.
fn objections(linux: &LinuxProgress, is_ported: bool, locks: &Locks) -> Vec<String> {
    let mut all = Vec::new();
    if !linux.did(LinuxWork::All) {
        all.push(format!("hackbench did not finish ({:?})", linux.failed));
    }
    if linux.cpus != Some(CPUS) {
        all.push(format!("Linux found {:?} CPUs", linux.cpus));
    }
    if linux.kernel.as_ref().is_none_or(|kernel| kernel.ends_with(PORTED) != is_ported) {
        all.push(format!("the kernel is {:?}", linux.kernel));
    }
    if linux.locks.as_ref() != Some(locks) {
        all.push(format!("Linux says {:?}, not {locks:?}", linux.locks));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::read;

    #[test]
    fn the_description_has_what_is_replaced_and_the_same_command_line() {
        let text = read(&crate::testing::root().join(DESCRIPTION)).unwrap();
        for wanted in [STOCK[0].0, STOCK[1].0, COMMAND_LINE] {
            assert!(text.contains(wanted), "{wanted}");
        }
    }

    #[test]
    fn each_demand_can_fail() {
        let none = Locks { preemption: Some("none".into()), ..nothing() };
        let good = LinuxProgress {
            kernel: Some("6.1.192-cassata".into()),
            cpus: Some(CPUS),
            hackbench_s: vec![0.1],
            locks: Some(none.clone()),
            done: true,
            ..LinuxProgress::default()
        };
        assert_eq!(objections(&good, true, &none), [""; 0]);
        assert_eq!(objections(&good, false, &none).len(), 1);
        let bad: [fn(&mut LinuxProgress); 5] = [
            |linux| linux.done = false,
            |linux| linux.cpus = Some(1),
            |linux| linux.kernel = Some("6.1.0-56-arm64".into()),
            |linux| linux.locks = None,
            |linux| linux.locks.as_mut().unwrap().yielded = 1,
        ];
        for spoil in bad {
            let mut linux = good.clone();
            spoil(&mut linux);
            assert_eq!(objections(&linux, true, &none).len(), 1, "{linux:?}");
        }
    }
}
