//! The tests that the Linux kernel's own authors have, in Debian's kernel: floating point,
//! timers, watchpoints, threads that meet, spinlocks, calls between CPUs (SGIs), and CPUs that go
//! off and on (PSCI). They run on the bare board and here, and have to end alike.

use super::{description, sum};
use crate::figures;
use crate::guests::{Images, SelftestsProgress};
use crate::machine::MachineConfig;
use crate::suite::{Bench, Scenario};
use miette::Result;
use std::time::Duration;

/// How its scenarios' names begin, and the name of its description.
const NAME: &str = "conformance-selftests";
/// Virtual time within which all of them end: they need some forty seconds.
const LIMIT: Duration = Duration::from_secs(240);
/// Memory of the bare board, bytes: as the description has it.
const MEMORY: u64 = 512 << 20;
/// What the description says of one vCPU.
const ONE: (&str, &str) = ("pcpus = 1", "vcpus = [{ pcpu = 0, priority = 1 }]");
/// The command line, of the description and of the bare board.
const COMMAND_LINE: &str = "console=ttyAMA0 rdinit=/selftests/run quiet loglevel=4";

/// A guest: its name, and the pCPU of each of its vCPUs.
const GUESTS: [(&str, &[u32]); 4] =
    [("1", &[0]), ("2", &[0, 1]), ("4", &[0, 1, 2, 3]), ("crowded", &[0, 0])];

/// All of them: each fetches the kernel's source, of 140 MB, and takes minutes, and so runs only
/// when it is asked for.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    GUESTS.into_iter().map(|(name, pcpus)| {
        let about = format!("the kernel's own tests end as on the bare board ({name})");
        let name = format!("{NAME}.{name}");
        let run = {
            let name = name.clone();
            move |bench: &Bench| compare(bench, &name, pcpus)
        };
        Scenario::new(name, about, run).by_name()
    })
}

fn compare(bench: &Bench, name: &str, pcpus: &[u32]) -> Result<()> {
    let cpus = u32::try_from(pcpus.len()).unwrap_or(u32::MAX);
    let bare = alone(bench, cpus)?;
    let system = bench.described(&description("selftests"), &edits(pcpus))?;
    let bundle = bench.pack(&system)?;
    let session = bench.session(&bundle, LIMIT)?;
    let run = session.run(|now| now.said.guests[0].selftests.ended)?;
    let here = &run.said.guests[0].selftests;
    let mut objections: Vec<String> = [("on the bare board", &bare), ("here", here)]
        .into_iter()
        .filter_map(|(place, said)| Some(format!("{place}: {}", unfinished(said, cpus)?)))
        .collect();
    let mut outcome = figures::outcome(name, &run);
    let both = [&bare.verdicts, &here.verdicts];
    objections.extend(super::compare(bench, both, &mut outcome)?);
    let [bare, here] = both.map(sum);
    bench.tell(&format!("here {here}; on the bare board {bare}"))?;
    bench.judge(&run, outcome, &objections)
}

/// Returns that it did not come to its end, or with other CPUs.
fn unfinished(said: &SelftestsProgress, cpus: u32) -> Option<String> {
    (!said.ended || said.cpus != Some(cpus))
        .then(|| format!("with {:?} CPUs, it ended: {}", said.cpus, said.ended))
}

/// Runs them on the bare board.
fn alone(bench: &Bench, cpus: u32) -> Result<SelftestsProgress> {
    let images = Images::of(&bench.root);
    let mut config = MachineConfig::new(images.kernel, cpus, MEMORY);
    config.extra_args =
        vec!["-initrd".into(), images.selftests.into(), "-append".into(), COMMAND_LINE.into()];
    let session = bench.bare_session(config, "linux", LIMIT)?;
    let mut run = session.run(|now| now.said.guests[0].selftests.ended)?;
    Ok(run.said.guests.remove(0).selftests)
}

/// What is changed in the description, which has one vCPU. Those of one pCPU take turns.
fn edits(pcpus: &[u32]) -> Vec<(String, String)> {
    let boards = pcpus.iter().max().map_or(1, |last| last + 1);
    let takes_turns = |pcpu: &u32| pcpus.iter().filter(|other| *other == pcpu).count() > 1;
    let vcpus = pcpus.iter().map(|pcpu| {
        let turns = if takes_turns(pcpu) { ", quantum = \"1ms\"" } else { "" };
        format!("{{ pcpu = {pcpu}, priority = 1{turns} }}")
    });
    let vcpus = vcpus.collect::<Vec<_>>().join(", ");
    vec![(ONE.0.into(), format!("pcpus = {boards}")), (ONE.1.into(), format!("vcpus = [{vcpus}]"))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::read;

    #[test]
    fn the_description_has_what_is_replaced_and_the_same_command_line() {
        let text = read(&crate::testing::root().join(description("selftests"))).unwrap();
        for wanted in [ONE.0, ONE.1, COMMAND_LINE] {
            assert!(text.contains(wanted), "{wanted}");
        }
        let crowded = "vcpus = [{ pcpu = 0, priority = 1, quantum = \"1ms\" }, \
                       { pcpu = 0, priority = 1, quantum = \"1ms\" }]";
        assert_eq!(edits(&[0, 0])[1].1, crowded);
        assert_eq!(edits(&[0, 1])[0].1, "pcpus = 2");
    }

    #[test]
    fn a_guest_that_hangs_or_lacks_a_cpu_is_told() {
        let mut said = SelftestsProgress { cpus: Some(2), ended: true, ..Default::default() };
        assert_eq!(unfinished(&said, 2), None);
        assert!(unfinished(&said, 4).is_some());
        said.ended = false;
        assert!(unfinished(&said, 2).is_some());
    }
}
