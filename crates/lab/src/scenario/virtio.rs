//! A stock Linux without a device of its own gets a disk, a console and a network from another one, beside
//! FreeRTOS: the example of `docs/src/virtio.md`, as it stands there.

use super::REAL_LIMIT;
use super::links::late;
use crate::figures;
use crate::guests::words::number;
use crate::suite::{Bench, Scenario};
use miette::Result;
use std::time::Duration;

/// The description, below the project's root.
const DESCRIPTION: &str = "systems/virtio.toml";
/// The VM that gives, the one that gets, and FreeRTOS.
const VMS: [&str; 3] = ["linux", "app", "rtos"];
/// Virtual time within which both Linux boot and all is tried.
const LIMIT: Duration = Duration::from_secs(30);
/// What the VM that gets must have said, in this order, with other lines between: each comes by its console.
const SAID: [&str; 6] =
    ["life=1", "block size=", "sequential ", "single ", "network answers=10", "done "];
/// How many bytes the disk has.
const DISK: u64 = 16 << 20;

/// Returns the scenarios.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let about = "a Linux without devices has a disk, a console and a network of another one";
    let virtio = Scenario::new("virtio", about, |bench| run(bench, "virtio"));
    [virtio.shipped()].into_iter()
}

fn run(bench: &Bench, name: &str) -> Result<()> {
    let bundle = bench.pack(&bench.described(DESCRIPTION, &[])?)?;
    let session = bench.session(&bundle, LIMIT)?.within(REAL_LIMIT);
    let vm = |name| session.layout.vm_called(name);
    let [giver, getter, rtos] = [vm(VMS[0])?, vm(VMS[1])?, vm(VMS[2])?];
    let run =
        session.run(|now| [giver, getter, rtos].iter().all(|&vm| now.observer.is_over(vm)))?;
    let said = &run.said.guests[giver].linux;
    let mut outcome = figures::outcome(name, &run);
    outcome.figure("virtio", serde_json::json!(said.virtio));
    let mut objections = objections(&said.virtio);
    objections.extend(said.failed.iter().map(|why| format!("Linux gave up: {why}")));
    objections.extend((!said.done).then(|| "Linux does not say that the disk is the same".into()));
    objections.extend(late(&run.observer, rtos));
    bench.judge(&run, outcome, &objections)
}

/// What is wrong with what the VM printed that gets devices.
fn objections(said: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = said.iter().filter_map(|line| line.strip_prefix("app: "));
    for wanted in SAID {
        if !rest.any(|line| line.starts_with(wanted)) {
            all.push(format!("the VM did not print `{wanted}` in its place: {said:?}"));
        }
    }
    let sizes = said.iter().filter(|line| line.starts_with("app: block "));
    if !sizes.filter_map(|line| number::<u64>(line, "size")).eq([DISK]) {
        all.push(format!("the disk has not {DISK} bytes: {said:?}"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_out_of_place_is_told() {
        let mut said = Vec::from_iter(SAID.iter().map(|line| format!("app: {line}")));
        said[1] += &DISK.to_string();
        assert_eq!(objections(&said), [""; 0]);
        for line in 0..said.len() {
            let mut without = said.clone();
            without.remove(line);
            assert!(!objections(&without).is_empty(), "{line}");
        }
        // What comes too early is not there in its place, and all is over behind it.
        said.swap(3, 4);
        assert_eq!(objections(&said).len(), 2);
        said.swap(3, 4);
        said[1] = "app: block size=512".into();
        assert_eq!(objections(&said).len(), 1);
    }
}
