//! What is expected of each VM, and whether that has come.

use crate::guests::{ProbeProgress, Transcript};
use crate::observe::Observer;
use abi::status::{VcpuStatus, vm_state};

/// Why a probe with one vCPU may leave tests out.
const ONE_VCPU: &str = "needs two vCPUs";
/// Why one on a GICv2 leaves out those of [`Expect::PassesBut`].
const GIC_V2: &str = "is not for a GICv2";
/// How late a rhythm's handler may begin, nanoseconds: it waits for a visit to EL2 of the checked build, with what is
/// checked after each, and for its own. A neighbour that kept its core would keep it for a hundred times as long.
const LATEST_NS: u64 = 5_000;

/// What a VM is expected to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Every test passes, and the VM switches itself off. With one vCPU, tests
    /// that need two may be left out.
    Passes,
    /// As [`Expect::Passes`], but that the probe leaves these tests out, in this order, because it is on a GICv2.
    PassesBut(&'static [&'static str]),
    /// A rhythm of so many activations, every one of which comes in its period, and begins within
    /// `LATEST_NS`; then as [`Expect::Passes`].
    Rhythm(u64),
    /// As [`Expect::Rhythm`], but each begins within so many nanoseconds.
    RhythmWithin(u64, u64),
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

    /// Returns why the end of this VM is not a good one, if it is not; `left_out` are the tests that a GICv2 is not asked.
    fn not_passed(&self, left_out: &[&str]) -> Option<String> {
        let excuses: &[&str] =
            if self.vcpus().len() == 1 { &[GIC_V2, ONE_VCPU] } else { &[GIC_V2] };
        let of_tests = || {
            let skipped = self.probe().skipped.iter().filter(|(_, why)| why == GIC_V2);
            let skipped: Vec<_> = skipped.map(|(name, _)| name.as_str()).collect();
            let why = || format!("it left out {skipped:?}, not {left_out:?}: each {GIC_V2}");
            (skipped != left_out).then(why)
        };
        self.probe().objection(excuses).or_else(of_tests).or_else(|| {
            let off = self.state() == Some(vm_state::OFF);
            (!off).then(|| "it has come to its end and is not off".into())
        })
    }

    /// Returns what is wrong with a rhythm: each activation that was due must be recorded, must have been seen, and
    /// must have begun in time.
    fn rhythm_broken(&self, activations: u64, latest_ns: u64) -> Option<String> {
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
        // The guest goes on until it has had so many: those that it left out are counted apart.
        let (written, missed) = (header.written, header.missed);
        if (written, missed) != (activations, 0) {
            return Some(format!("it recorded {written} of {activations}, and missed {missed}"));
        }
        let seen = reports.response.count();
        if seen != activations {
            return Some(format!("{seen} samples were seen of {activations}"));
        }
        let hz = u128::from(header.counter_hz);
        let latest = reports.response.max().map(|ticks| u128::from(ticks) * 1_000_000_000 / hz);
        latest
            .is_none_or(|latest| latest > latest_ns.into())
            .then(|| format!("it was {latest:?} ns late, of at most {latest_ns}"))
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
            Self::Passes | Self::PassesBut(_) | Self::Rhythm(_) | Self::RhythmWithin(..) => {
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

    /// Returns true if the VM switches itself off.
    #[must_use]
    pub fn ends(self) -> bool {
        matches!(self, Self::Passes | Self::PassesBut(_) | Self::Rhythm(_) | Self::RhythmWithin(..))
    }

    /// Returns why the VM does not do what is expected, if it does not.
    #[must_use]
    pub fn objection(self, seen: &Seen) -> Option<String> {
        match self {
            Self::Passes => seen.not_passed(&[]),
            Self::PassesBut(tests) => seen.not_passed(tests),
            Self::Rhythm(activations) => Self::RhythmWithin(activations, LATEST_NS).objection(seen),
            Self::RhythmWithin(activations, latest_ns) => {
                seen.not_passed(&[]).or_else(|| seen.rhythm_broken(activations, latest_ns))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::End;
    use crate::testing;

    #[test]
    fn a_rhythm_that_misses_something_or_is_late_is_none() {
        let objection = |expect: Expect, written, missed| {
            let mut status = testing::status();
            status.vms[1].state = vm_state::OFF;
            let observer = testing::observer(&status, &testing::report(written, missed));
            let said =
                "\x1f2PASS rhythm activations=100 missed=0\nDONE passed=1 failed=0 skipped=0\n";
            let run = testing::run(observer, said, End::PoweredOff);
            expect.objection(&Seen::of("rtos", &run.said, &run.observer).unwrap())
        };
        let in_time = Expect::RhythmWithin(100, 105_000);
        assert_eq!(objection(in_time, 100, 0), None);
        let why = |expect, written, missed| objection(expect, written, missed).unwrap();
        assert!(why(in_time, 100, 3).contains("missed 3"));
        assert!(why(in_time, 99, 0).contains("recorded 99 of 100"));
        assert!(why(Expect::RhythmWithin(99, 105_000), 99, 0).contains("counted Some(100)"));
        for late in [Expect::RhythmWithin(100, 104_999), Expect::Rhythm(100)] {
            assert!(why(late, 100, 0).contains("was Some(105000) ns late"));
        }
    }
}
