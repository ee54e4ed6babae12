//! What is expected of each VM, and whether that has come.

use crate::guests::{ProbeProgress, Transcript};
use crate::observe::Observer;
use abi::status::{VcpuStatus, vm_state};

/// Why a probe with one vCPU may leave tests out.
const ONE_VCPU: &str = "needs two vCPUs";

/// What a VM is expected to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Every test passes, and the VM switches itself off. With one vCPU, tests
    /// that need two may be left out.
    Passes,
    /// A rhythm of so many activations, every one of which comes; then as
    /// [`Expect::Passes`].
    Rhythm(u64),
    /// It runs as long as the scenario does.
    Endures,
    /// It is on and its vCPUs never get a core.
    Starves,
    /// It is switched to so many times, on each of its vCPUs, and endures.
    Turns(u64),
    /// The hypervisor stops it, and says why on its own console.
    Fails,
    /// It starts so many times.
    Starts(u64),
}

/// What is known of one VM.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The index.
    pub vm: usize,
    /// What the guests say.
    pub said: &'a Transcript,
    /// The machine's memory.
    pub observer: &'a Observer,
}

impl<'a> Seen<'a> {
    /// Returns what is known of VM `name`, if there is one.
    #[must_use]
    pub fn of(name: &str, said: &'a Transcript, observer: &'a Observer) -> Option<Self> {
        Some(Self { vm: observer.layout.vm(name)?, said, observer })
    }

    fn probe(&self) -> &ProbeProgress {
        &self.said.guests[self.vm].probe
    }

    fn state(&self) -> Option<u64> {
        Some(self.observer.latest()?.vms[self.vm].state)
    }

    fn starts(&self) -> u64 {
        self.observer.latest().map_or(0, |now| now.vms[self.vm].starts)
    }

    fn vcpus(&self) -> &[VcpuStatus] {
        let vcpus = self.observer.layout.vms[self.vm].vcpus.clone();
        self.observer.latest().map_or(&[], |now| &now.vcpus[vcpus])
    }

    fn name(&self) -> &str {
        &self.observer.layout.vms[self.vm].name
    }

    /// Returns why the end of this VM is not a good one, if it is not.
    fn not_passed(&self) -> Option<String> {
        let excuses: &[&str] = if self.vcpus().len() == 1 { &[ONE_VCPU] } else { &[] };
        self.probe().objection(excuses).or_else(|| {
            let off = self.state() == Some(vm_state::OFF);
            (!off).then(|| "it has come to its end and is not off".into())
        })
    }

    /// Returns which activations are missing: each that was due must be recorded.
    fn rhythm_broken(&self, activations: u64) -> Option<String> {
        let counted = self.probe().figure("rhythm", "activations");
        if counted != Some(activations) {
            return Some(format!("it counted {counted:?} activations instead of {activations}"));
        }
        let Some(reports) = self.observer.reports(self.vm) else {
            return Some("it has no report area".into());
        };
        let Some(header) = reports.header else {
            return Some("its report area was never set up".into());
        };
        if header.written != activations {
            return Some(format!("it recorded {} of {activations} activations", header.written));
        }
        let seen = reports.response.count() + reports.lost();
        (seen != activations).then(|| format!("{seen} samples were seen of {activations}"))
    }
}

impl Expect {
    /// Returns true if there is nothing more to wait for: what is expected has come, or
    /// cannot come any more.
    #[must_use]
    pub fn settled(self, seen: &Seen) -> bool {
        // A VM that stops unexpectedly is the end in any case.
        if !matches!(self, Self::Fails) && seen.state() == Some(vm_state::FAILED) {
            return true;
        }
        match self {
            Self::Passes | Self::Rhythm(_) => {
                seen.probe().done.is_some() && seen.state() == Some(vm_state::OFF)
            }
            Self::Endures | Self::Starves => {
                !seen.probe().failed.is_empty() || seen.probe().done.is_some()
            }
            Self::Turns(_) | Self::Fails | Self::Starts(_) => self.objection(seen).is_none(),
        }
    }

    /// Returns true if the scenario goes on until this has come.
    #[must_use]
    pub fn is_awaited(self) -> bool {
        !matches!(self, Self::Endures | Self::Starves)
    }

    /// Returns why the VM does not do what is expected, if it does not.
    #[must_use]
    pub fn objection(self, seen: &Seen) -> Option<String> {
        match self {
            Self::Passes => seen.not_passed(),
            Self::Rhythm(activations) => {
                seen.not_passed().or_else(|| seen.rhythm_broken(activations))
            }
            Self::Endures => endures(seen).or_else(|| {
                let runs = seen.vcpus().iter().all(|vcpu| vcpu.run > 0);
                (!runs).then(|| "a vCPU of it never had a core".into())
            }),
            Self::Starves => seen
                .vcpus()
                .iter()
                .find_map(|vcpu| (vcpu.run > 0).then(|| format!("it ran for {} ticks", vcpu.run))),
            Self::Turns(turns) => endures(seen).or_else(|| {
                let least = seen.vcpus().iter().map(|vcpu| vcpu.switches).min().unwrap_or(0);
                (least < turns).then(|| format!("a vCPU was switched to {least} times only"))
            }),
            Self::Fails => {
                if seen.state() != Some(vm_state::FAILED) {
                    return Some("it was not stopped".into());
                }
                let is_given = seen.said.hypervisor.crash(seen.name()).is_some();
                (!is_given).then(|| "the hypervisor does not say why it was stopped".into())
            }
            Self::Starts(starts) => (seen.starts() < starts)
                .then(|| format!("it started {} times instead of {starts}", seen.starts())),
        }
    }
}

fn endures(seen: &Seen) -> Option<String> {
    if !seen.probe().failed.is_empty() {
        return Some(seen.probe().failed.join("\n"));
    }
    // Its first start may be under way: no other one is.
    let starts = seen.state() == Some(vm_state::LOADING) && seen.starts() == 1;
    (seen.state() != Some(vm_state::RUNNING) && !starts).then(|| "it does not run any more".into())
}
