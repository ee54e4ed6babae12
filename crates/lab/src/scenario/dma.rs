//! Devices behind an SMMU: QEMU's `edu`, which does DMA at any address that a guest names, and Linux with a disk
//! and a network card on a PCI bus.

use super::damaged::objections;
use super::expect::Expect::Passes;
use super::links;
use super::staged::{Staged, description};
use super::stock::late;
use crate::demo::{LINUX, RTOS};
use crate::figures;
use crate::observe::{Observer, RefusedDma};
use crate::results::Outcome;
use crate::suite::{Bench, Scenario};
use miette::{Context, IntoDiagnostic, Result};
use sha2::{Digest, Sha256};
use std::fs;
use std::time::Duration;

/// The device, which may do DMA with addresses of 40 bits.
const EDU: [&str; 2] = ["-device", "edu,bus=pcie.0,dma_mask=0xffffffffff"];
/// Virtual time at which they fail: the device takes 100 ms for each access.
const LIMIT: Duration = Duration::from_secs(20);
/// What `dma.toml` tries: each is read and written.
const TRIES: usize = 12;
/// Where it begins: behind the VM's memory.
const FIRST: u64 = 0x4400_0000;

/// Returns the scenarios.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let tries = Staged {
        limit: LIMIT,
        qemu: &EDU,
        ..Staged::new(
            "dma",
            "a device reaches its own VM's memory and no other memory, and what it tries is told",
            &[("tries", Passes), ("guards", Passes)],
        )
    };
    let lives = Staged {
        limit: LIMIT,
        qemu: &EDU,
        ..Staged::new(
            "dma-lives",
            "what a life of a VM has ordered of a device is not done in the next one",
            &[("lives", Passes)],
        )
    };
    let tries = tries.besides(is_told);
    let lives = lives.besides(|observer| told(observer.refused_dma().first()));
    let about = "Linux uses a disk and a network card behind the SMMU, and FreeRTOS is not late";
    let linux = Scenario::new("dma-linux", about, |bench| use_devices(bench, "dma-linux"));
    let about = "a machine without the SMMU that is described is refused, and run says why";
    let absent = Scenario::new("dma-absent", about, without_smmu);
    [tries, lives].map(Scenario::from).into_iter().chain([linux.shipped(), absent])
}

/// Starts a system on a machine whose SMMU is not there: the first access to it is a fault.
fn without_smmu(bench: &Bench) -> Result<()> {
    let mut bundle = bench.pack(&bench.described(&description("dma"), &[])?)?;
    // Of this the machine is made; the file has what was packed.
    bundle.tables.smmu.registers_pa = 0;
    let run = bench.session(&bundle, super::LIMIT)?.run(|_| false)?;
    let complaint = "the SMMU (smmu_pa) does not answer";
    let objections = objections(&run, "the board, whose SMMU is gone", complaint);
    bench.judge(&run, Outcome::new("dma-absent"), &objections)
}

/// The description, below the project's root, and what is on its disk.
pub(super) const DESCRIPTION: &str = "systems/pcie.toml";
const DISK: &str = "build/guests/pcie/disk.img";
/// Virtual time within which Linux has done all: it needs some three seconds, but waits for the host's network.
pub(super) const NETWORK_LIMIT: Duration = Duration::from_secs(120);
/// How often Linux does all it does (`guests/pcie/init`).
const ROUNDS: usize = 3;
/// Where it writes zeros.
const WRITTEN: usize = 7 << 20;

fn use_devices(bench: &Bench, name: &str) -> Result<()> {
    let bundle = bench.pack(&bench.described(DESCRIPTION, &[])?)?;
    let disk = fs::read(bench.root.join(DISK)).into_diagnostic().wrap_err(DISK)?;
    let session = bench.session(&bundle, NETWORK_LIMIT)?;
    let vm = |name| session.layout.vm_called(name);
    let (linux, rtos) = (vm(LINUX)?, vm(RTOS)?);
    let run = session.run(|now| now.observer.is_over(linux))?;
    let said = &run.said.guests[linux].linux;
    let mut outcome = figures::outcome(name, &run);
    outcome.figure("pcie", serde_json::json!(said.pcie));
    let mut objections = missing(&said.pcie, disk);
    objections.extend(said.failed.iter().map(|why| format!("Linux gave up: {why}")));
    objections.extend(told(run.observer.refused_dma().first()));
    objections.extend(late(&run.observer));
    objections.extend(links::late(&run.observer, rtos));
    bench.judge(&run, outcome, &objections)
}

/// Returns the SHA-256 in hexadecimal digits.
pub(super) fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What Linux ought to have printed, with that disk, and has not.
fn missing(said: &[String], mut disk: Vec<u8>) -> Vec<String> {
    let read = |bytes: &[u8]| format!("sha256={}", checksum(bytes));
    let first = format!("disk {}", read(&disk));
    disk[WRITTEN..].fill(0);
    let (again, zeros) = (format!("disk {}", read(&disk)), read(&disk[WRITTEN..]));
    let mut wanted = vec![first];
    wanted.extend(std::iter::repeat_n(again, ROUNDS - 1));
    wanted.extend(std::iter::repeat_n(format!("written {zeros}"), ROUNDS));
    wanted.extend(std::iter::repeat_n("answers=3".to_owned(), ROUNDS));
    let mut said: Vec<_> = said.iter().collect();
    wanted.retain(|wanted| match said.iter().position(|said| *said == wanted) {
        Some(at) => {
            said.swap_remove(at);
            false
        }
        None => true,
    });
    wanted.into_iter().map(|line| format!("Linux did not print `{line}`")).collect()
}

/// What is wrong with what the SMMU has noted of the tries.
fn is_told(observer: &Observer) -> Option<String> {
    let refused = observer.refused_dma();
    let [refused] = &refused[..] else {
        return Some(format!("not one VM is told of: {refused:?}"));
    };
    let is_whole = refused.count >= 2 * TRIES || refused.is_full;
    let is_first = refused.first.is_read() && refused.first.address == FIRST;
    let is_right = refused.vm.as_deref() == Some("tries") && is_whole && is_first;
    if is_right { None } else { told(Some(refused)) }
}

fn told(refused: Option<&RefusedDma>) -> Option<String> {
    refused.map(RefusedDma::about)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_is_asked_for() {
        let disk = vec![1; 8 << 20];
        let all = missing(&[], disk.clone());
        assert_eq!(all.len(), 3 * ROUNDS, "{all:?}");
        let quoted = |line: &String| line.split('`').nth(1).unwrap().to_owned();
        let mut said: Vec<_> = all.iter().map(quoted).collect();
        assert_eq!(missing(&said, disk.clone()), [""; 0]);
        said.pop();
        assert_eq!(missing(&said, disk).len(), 1);
    }

    #[test]
    fn nothing_told_is_an_objection() {
        let observer =
            crate::testing::observer(&crate::testing::status(), &crate::testing::report(1, 0));
        assert!(is_told(&observer).is_some_and(|why| why.contains("not one VM")));
    }
}
