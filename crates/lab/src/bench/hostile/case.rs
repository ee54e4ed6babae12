//! One machine: what its adversary is, and how it is run.

use super::seen::Seen;
use crate::bench::store;
use crate::bench::{ProgressView, Tell};
use crate::session::Moment;
use crate::suite::Bench;
use miette::Result;
use sched::policy::MigrationPolicy;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// What boots, from the project's root.
pub const SYSTEM: &str = "systems/bench/hostile.toml";
/// The policy that is none.
pub const NONE: &str = "none";
/// How long EL2 compares what it starts with digests, and until FreeRTOS begins then, ms.
const DIGESTS_MS: u64 = 75;
/// vCPUs of a case that says nothing else: one on each core.
const USUAL_VCPUS: u32 = 2;
/// vCPUs of one that has them all on FreeRTOS's core.
pub const CROWD: u32 = 8;

/// Which machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// What attacks; none: the adversary is off.
    pub adversary: Option<Adversary>,
    /// How long the machine runs once its parts are compared, ms of virtual time.
    pub length_ms: u64,
}

/// A guest that attacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adversary {
    /// What it does.
    pub mode: String,
    /// How many vCPUs do so; the first is on FreeRTOS's core, the next on the other one, and so on.
    pub vcpus: u32,
    /// All of them are on FreeRTOS's core.
    pub crowds: bool,
    /// The migration policy of its VM; `rt-vcpu` is FreeRTOS's.
    pub policy: String,
    /// The VM is a real-time one, of lower priority than the others.
    pub is_realtime: bool,
    /// From which its chance follows.
    pub seed: u64,
}

impl Adversary {
    /// Returns one that does `mode` on two vCPUs.
    pub fn plain(mode: &str) -> Self {
        let (mode, policy) = (mode.into(), NONE.into());
        Self { mode, vcpus: USUAL_VCPUS, crowds: false, policy, is_realtime: false, seed: 1 }
    }

    /// Returns one that does `mode` on many vCPUs, all of them on FreeRTOS's core.
    pub fn crowd(mode: &str) -> Self {
        Self { vcpus: CROWD, crowds: true, ..Self::plain(mode) }
    }

    /// Returns a name that no other adversary has: the mode first.
    pub fn name(&self) -> String {
        let Self { mode, vcpus, crowds, policy, is_realtime, seed } = self;
        let mut name = format!("{mode}-{vcpus}");
        if *crowds {
            name += "-crowd";
        }
        if policy != NONE {
            name += &format!("-{policy}");
        }
        if *is_realtime {
            name += "-realtime";
        }
        if *seed != 1 {
            name += &format!("-seed-{seed}");
        }
        name
    }

    /// Returns true if FreeRTOS has the policy, and the adversary is above it.
    fn is_above(&self) -> bool {
        let policy = MigrationPolicy::named(&self.policy);
        policy.is_some_and(|policy| policy.policy().needs().for_realtime)
    }

    /// Returns what is replaced in the description.
    fn edits(&self) -> Vec<(String, String)> {
        let Self { mode, vcpus, crowds, policy, seed, .. } = self;
        let edit = |from: &str, to: String| (from.to_owned(), to);
        let vcpu = |number: u32| {
            let priority = if self.is_above() && number == 0 { 20 } else { 1 };
            // Those that share a core take turns.
            let shares = *vcpus > 2 || *crowds;
            let quantum = if shares { ", quantum = \"100us\"" } else { "" };
            let pcpu = if *crowds { 0 } else { number % 2 };
            let asks = MigrationPolicy::named(policy)
                .is_some_and(|policy| policy.policy().moves_on_request());
            let places =
                if asks { format!(", may_run_on = [{}]", 1 - pcpu) } else { String::new() };
            format!("{{ pcpu = {pcpu}, priority = {priority}{quantum}{places} }}")
        };
        let vcpus: Vec<_> = (0..*vcpus).map(vcpu).collect();
        let mut settings = if self.is_above() {
            String::new()
        } else {
            format!("migration_policy = \"{policy}\"\n")
        };
        if MigrationPolicy::named(policy).is_some_and(MigrationPolicy::delays) {
            // By these policies FreeRTOS waits for the adversary for so long.
            settings += "delay_limit = \"1us\"\n";
        }
        if self.is_realtime {
            settings += "realtime = true\n";
        }
        let mut edits = vec![
            edit("probe.mode=mix", format!("probe.mode={mode}")),
            edit("probe.seed=1", format!("probe.seed={seed}")),
            edit("migration_policy = \"none\"\n", settings),
            edit("vcpus = [{ pcpu = 0, priority = 1 }]", format!("vcpus = [{}]", vcpus.join(", "))),
        ];
        if self.is_above() {
            // It makes way to a core without real-time vCPUs.
            edits.push(edit("pcpus = 2", "pcpus = 3".into()));
            let with = format!("name = \"rtos\"\nmigration_policy = \"{policy}\"");
            edits.push(edit("name = \"rtos\"", with));
        }
        edits
    }
}

impl store::Case for Case {
    fn name(&self) -> String {
        self.adversary.as_ref().map_or_else(|| "alone".into(), Adversary::name)
    }

    fn work(&self) -> f64 {
        self.length_ms as f64
    }
}

impl Case {
    /// Runs the machine with its logs in the directory of `bench`.
    ///
    /// # Errors
    /// When it cannot be described, or QEMU fails.
    pub fn run(&self, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        self.run_until(bench, tell, |_| false)
    }

    /// As [`Case::run`], until the adversary has done so many operations, if that comes first.
    ///
    /// # Errors
    /// As there.
    pub fn run_for(&self, operations: u64, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        self.run_until(bench, tell, |now| {
            let vm = now.observer.layout.vm("adversary");
            let header = vm.and_then(|vm| now.observer.reports(vm)?.header);
            header.is_some_and(|header| header.load_units >= operations)
        })
    }

    fn run_until(
        &self,
        bench: &Bench,
        tell: Tell<'_>,
        until: impl FnMut(&Moment) -> bool,
    ) -> Result<Seen> {
        let edits = match &self.adversary {
            Some(adversary) => adversary.edits(),
            // It switches itself off at once.
            None => vec![("probe.mode=mix".into(), "probe.mode=sgi probe.operations=0".into())],
        };
        self.run_edited(&edits, bench, tell, until)
    }

    /// As [`Case::run`], with these replacements in the description.
    ///
    /// # Errors
    /// As there.
    pub fn run_edited(
        &self,
        edits: &[(String, String)],
        bench: &Bench,
        tell: Tell<'_>,
        until: impl FnMut(&Moment) -> bool,
    ) -> Result<Seen> {
        let begin = Instant::now();
        let bundle = bench.pack(&bench.described(SYSTEM, edits)?)?;
        let limit = Duration::from_millis(DIGESTS_MS + self.length_ms);
        let session = bench.session(&bundle, limit)?.shown_by(Box::new(ProgressView(tell)));
        let run = session.run(until)?;
        Ok(Seen::of(self, &run, begin.elapsed().as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;

    /// Every case is a description that the packer would take, but for the guests, which are not
    /// built in tests.
    #[test]
    fn descriptions_are_understood() {
        let path = crate::testing::root().join(SYSTEM);
        let original = std::fs::read_to_string(&path).unwrap();
        for adversary in cases(1).into_iter().filter_map(|case| case.adversary) {
            let mut text = original.clone();
            for (from, to) in adversary.edits() {
                assert!(text.contains(&from), "{}: {from}", adversary.name());
                text = text.replace(&from, &to);
            }
            let Err(report) = system::load_text(&path, &text) else { continue };
            let missing = |p: &&system::Problem| p.message.contains("build/guests");
            let errors: Vec<_> = report.problems().iter().filter(|p| p.is_error()).collect();
            assert!(errors.iter().all(missing), "{}: {errors:?}", adversary.name());
        }
    }
}
