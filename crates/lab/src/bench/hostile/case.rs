//! One machine: what its adversary is, and how it is run.

use super::remains;
use super::seen::{self, Progress, Seen};
use crate::bench::store;
use crate::bench::{ProgressView, Tell};
use crate::bundle::Bundle;
use crate::session::{Moment, Session};
use crate::suite::Bench;
use crate::suite::gicv2::Edit;
use miette::Result;
use sched::policy::MigrationPolicy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// What boots, from the project's root.
pub const SYSTEM: &str = "systems/bench/hostile.toml";
/// The policy that is none.
pub const NONE: &str = "none";
/// How long EL2 compares what it starts with digests, and until FreeRTOS begins then, ms.
const DIGESTS_MS: u64 = 20;
/// vCPUs of a case that says nothing else: one on each core.
const USUAL_VCPUS: u32 = 2;
/// vCPUs of one that has them all on FreeRTOS's core, and of one beside a FreeRTOS that another core
/// wakes.
pub const CROWD: u32 = 8;
/// Where the vCPUs of an adversary are, one after the other: FreeRTOS's core and the neighbour's.
const PLACES: [u32; 2] = [0, 1];
/// Where they are if another core wakes FreeRTOS: half of them on FreeRTOS's core, the others on the
/// neighbour's and on one that only they have. [`PACER`] is not among them: it never sleeps.
const PLACES_WOKEN: [u32; 4] = [0, 1, 0, 3];
/// The core of FreeRTOS's second vCPU, which wakes the first.
const PACER: u32 = 2;
/// How far a core may run ahead of another where one wakes FreeRTOS on another one, ns: latencies
/// are exact to so much.
const QUANTUM_NS: u64 = 250;

/// Attacks that links belong to: one to FreeRTOS, which arms its doorbell and takes what comes, and one
/// to the neighbour, which does not look at it.
const WITH_LINKS: [&str; 2] = ["links", "mix"];
/// What is put before the description's first VM for those.
const LINK_TABLES: &str = "\
[[link]]
name = \"control\"
between = [\"adversary\", \"rtos\"]
size = \"64K\"

[[link]]
name = \"other\"
between = [\"neighbour\", \"adversary\"]
size = \"8K\"

";

/// Attacks that virtio devices belong to. The adversary gets some and gives some: it and its accomplice, which does the
/// same on a core of its own, answer each other or do not; the real-time VMs do not look at theirs.
const WITH_VIRTIO: [&str; 2] = ["virtio", "mix"];
/// What is put before the description's first VM for those.
const VIRTIO_TABLES: &str = "\
[[virtio]]
front = \"adversary\"
back = \"accomplice\"
devices = [\"block\", \"console\", \"network\"]
memory = \"2M\"

[[virtio]]
front = \"accomplice\"
back = \"adversary\"
devices = [\"console\"]
memory = \"2M\"

[[virtio]]
front = \"rtos\"
back = \"adversary\"
devices = [\"block\", \"block\", \"block\", \"block\"]
memory = \"2M\"

[[virtio]]
front = \"neighbour\"
back = \"adversary\"
devices = [\"network\"]
memory = \"2M\"

[[vm]]
name = \"accomplice\"
kernel = \"../../build/guests/probe.elf\"
cmdline = \"probe.run=hostile probe.mode=virtio probe.seed=99\"
memory = { size = \"32M\" }
vcpus = [{ pcpu = 2, priority = 2 }]
restart_on_fault = true

";

/// The policy by which no vCPU of a VM runs on a core that has a real-time one.
const PARTITION: &str = "partition";
/// The accomplice's vCPU in these tables, and where it takes turns with the adversary's.
const ACCOMPLICE: [&str; 2] = [
    "vcpus = [{ pcpu = 2, priority = 2 }]",
    "vcpus = [{ pcpu = 2, priority = 1, quantum = \"100us\" }]",
];

/// Attacks that a device belongs to that does DMA where it is told: one for each vCPU, on a PCI bus behind an SMMU.
const WITH_DMA: [&str; 2] = [DMA, "mix"];
/// The attack that does nothing else.
const DMA: &str = "dma";
/// What is replaced in the description for those: the adversary's memory begins where the board has none, so that
/// what EL2 and others have is at no address of the adversary's own.
const DMA_EDITS: [Edit; 2] = [
    (
        "probe.elf\"\ncmdline = \"probe.run=hostile probe.mode=mix",
        "probe-high.elf\"\ncmdline = \"probe.run=hostile probe.mode=mix",
    ),
    (
        "memory.size = \"64M\"\n",
        "memory.size = \"64M\"\nmemory.address = 0x8000_0000\ndevices = [\"pcie\"]\n",
    ),
];
/// What takes them back, for a board without an SMMU.
pub const WITHOUT_DMA: [Edit; 2] =
    [("probe-high.elf", "probe.elf"), ("memory.address = 0x8000_0000\ndevices = [\"pcie\"]\n", "")];
/// The device.
const DEVICE: &str = "lsi53c895a,bus=pcie.0";

/// Which machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// What attacks; none: the adversary is off.
    pub adversary: Option<Adversary>,
    /// A core of FreeRTOS's own wakes it, by SGIs at random times, and not its timer.
    #[serde(default)]
    pub is_woken: bool,
    /// How long the machine runs once its parts are compared, ms of virtual time.
    pub length_ms: u64,
}

/// A guest that attacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adversary {
    /// What it does.
    pub mode: String,
    /// How many vCPUs do so; the first is on FreeRTOS's core, the next on another one, and so on.
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

    /// Returns one that does `mode` on many vCPUs of several cores.
    pub fn many(mode: &str) -> Self {
        Self { vcpus: CROWD, ..Self::plain(mode) }
    }

    /// Returns one that does `mode` on many vCPUs, all of them on FreeRTOS's core.
    pub fn crowd(mode: &str) -> Self {
        Self { crowds: true, ..Self::many(mode) }
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
        policy.is_some_and(|policy| policy.needs().for_realtime)
    }

    /// Returns true if its vCPUs have to leave the cores of the real-time VMs, for that of the accomplice, which never
    /// sleeps.
    fn joins_accomplice(&self) -> bool {
        self.policy == PARTITION && WITH_VIRTIO.contains(&self.mode.as_str())
    }

    /// Returns what is replaced in the description, where the vCPUs are on these pCPUs, one after the
    /// other.
    fn edits(&self, places: &[u32]) -> Vec<(String, String)> {
        let Self { mode, vcpus, crowds, policy, seed, .. } = self;
        let edit = |from: &str, to: String| (from.to_owned(), to);
        let kind = MigrationPolicy::named(policy);
        let asks = kind.is_some_and(|kind| kind.needs().moves_on_request);
        let vcpu = |number: u32| {
            let priority = if self.is_above() && number == 0 { 20 } else { 1 };
            // Those that share a core take turns.
            let shares = *vcpus > 2 || *crowds || self.joins_accomplice();
            let quantum = if shares { ", quantum = \"100us\"" } else { "" };
            let pcpu = if *crowds { 0 } else { places[number as usize % places.len()] };
            let others: BTreeSet<_> = places.iter().filter(|&&place| place != pcpu).collect();
            let others: Vec<_> = others.into_iter().collect();
            let others = if asks { format!(", may_run_on = {others:?}") } else { String::new() };
            format!("{{ pcpu = {pcpu}, priority = {priority}{quantum}{others} }}")
        };
        let vcpus: Vec<_> = (0..*vcpus).map(vcpu).collect();
        let mut settings = if self.is_above() {
            String::new()
        } else {
            format!("migration_policy = \"{policy}\"\n")
        };
        if kind.is_some_and(MigrationPolicy::delays) {
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
        let name = self.adversary.as_ref().map_or_else(|| "alone".into(), Adversary::name);
        if self.is_woken { format!("woken-{name}") } else { name }
    }

    fn work(&self) -> f64 {
        self.length_ms as f64
    }

    /// What is replaced in the description, which the inputs have.
    fn config_text(&self) -> String {
        format!("{:?}", self.edits())
    }
}

impl Case {
    /// Runs the machine with its logs in the directory of `bench`.
    ///
    /// # Errors
    /// When it cannot be described, or QEMU fails.
    pub fn run(&self, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        self.run_edited(&self.edits(), bench, tell, |_| false)
    }

    /// As [`Case::run`], until the adversary has done so many operations, if that comes first.
    ///
    /// # Errors
    /// As there.
    pub fn run_for(
        &self,
        operations: u64,
        more: &[(String, String)],
        bench: &Bench,
        tell: Tell<'_>,
    ) -> Result<Seen> {
        let edits = [&self.edits(), more].concat();
        self.run_edited(&edits, bench, tell, |now| seen::operations(now.observer) >= operations)
    }

    /// Returns true if the adversary's mode is one of these. A FreeRTOS that another core wakes has neither links nor
    /// devices.
    fn attacks_by(&self, modes: &[&str]) -> bool {
        let is_one = |adversary: &Adversary| modes.contains(&adversary.mode.as_str());
        !self.is_woken && self.adversary.as_ref().is_some_and(is_one)
    }

    /// Returns what is replaced in the description.
    fn edits(&self) -> Vec<(String, String)> {
        let places: &[u32] = if self.is_woken { &PLACES_WOKEN } else { &PLACES };
        let mut edits = Vec::new();
        if self.attacks_by(&WITH_DMA) {
            // They are found by what the next edits change.
            edits.extend(DMA_EDITS.map(|(from, to)| (from.into(), to.into())));
        }
        edits.extend(match &self.adversary {
            Some(adversary) => adversary.edits(places),
            // It switches itself off at once.
            None => vec![("probe.mode=mix".into(), "probe.mode=sgi probe.operations=0".into())],
        });
        let first = "[[vm]]\nname = \"adversary\"";
        if self.attacks_by(&WITH_VIRTIO) {
            edits.push((first.into(), format!("{VIRTIO_TABLES}{first}")));
            if self.adversary.as_ref().is_some_and(|adversary| !adversary.is_above()) {
                edits.push(("pcpus = 2".into(), "pcpus = 3".into()));
            }
            if self.adversary.as_ref().is_some_and(Adversary::joins_accomplice) {
                let [alone, in_turns] = ACCOMPLICE;
                edits.push((alone.into(), in_turns.into()));
            }
        }
        if self.attacks_by(&WITH_LINKS) {
            edits.push((first.into(), format!("{LINK_TABLES}{first}")));
            edits.push(("start_ms=15".into(), "start_ms=15 link=control".into()));
        }
        if self.is_woken {
            let one = "{ pcpu = 0, priority = 10 }";
            let two = format!("{one}, {{ pcpu = {PACER}, priority = 10 }}");
            edits.extend([
                ("pcpus = 2".into(), "pcpus = 4".into()),
                (
                    "load=100 tick_us=200 period_us=200".into(),
                    "load=0 wake=sgi period_us=100".into(),
                ),
                (one.into(), two),
            ]);
        }
        edits
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
        mut until: impl FnMut(&Moment) -> bool,
    ) -> Result<Seen> {
        let begin = Instant::now();
        let bundle = bench.pack(&bench.described(SYSTEM, edits)?)?;
        let limit = Duration::from_millis(DIGESTS_MS + self.length_ms);
        let session = bench.session(&bundle, limit)?.shown_by(Box::new(ProgressView(tell)));
        let session = if self.is_woken { session.with_quantum(QUANTUM_NS) } else { session };
        let session =
            if self.attacks_by(&WITH_DMA) { self.with_devices(session, &bundle) } else { session };
        let mut progress = Progress::default();
        let run = session.run(|now| {
            progress.look(now);
            until(now)
        })?;
        Ok(Seen::of(self, &run, progress, begin.elapsed().as_secs_f64()))
    }

    /// Returns `session` with a device for each vCPU, and a look at what these have done.
    fn with_devices<'a>(&self, session: Session<'a>, bundle: &Bundle) -> Session<'a> {
        let vcpus = self.adversary.as_ref().map_or(0, |adversary| adversary.vcpus);
        let devices = (0..vcpus).flat_map(|_| ["-device".to_owned(), DEVICE.to_owned()]);
        let (board, vm) = (&bundle.tables.board, session.layout.vm("adversary"));
        let own = vm.map_or(0..0, |vm| {
            let vm = &bundle.tables.vms[vm];
            vm.ram_pa..vm.ram_pa + vm.ram_size
        });
        let (ram, image) = (board.ram_pa..board.ram_pa + board.ram_size, bundle.image.clone());
        let session = session.with_qemu_arguments(devices);
        session.inspected_by(Box::new(move |memory| remains::look(memory, &image, ram, &own)))
    }

    /// Returns true if the adversary does nothing but have its device try what it may not, of which the SMMU must tell.
    pub fn is_by_dma(&self) -> bool {
        self.attacks_by(&[DMA])
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases;
    use super::*;
    use crate::bench::store::Case as _;

    #[test]
    fn descriptions_are_understood() {
        cases(1).iter().for_each(Case::assert_understood);
    }

    impl Case {
        /// Asserts that it is a description that the packer would take, but for the guests, which are
        /// not built in tests.
        pub(in super::super) fn assert_understood(&self) {
            let path = crate::testing::root().join(SYSTEM);
            let mut text = std::fs::read_to_string(&path).unwrap();
            for (from, to) in self.edits() {
                assert!(text.contains(&from), "{}: {from}", self.name());
                text = text.replace(&from, &to);
            }
            let Err(report) = system::load_text(&path, &text) else { return };
            let missing = |p: &&system::Problem| p.message.contains("build/guests");
            let errors: Vec<_> = report.problems().iter().filter(|p| p.is_error()).collect();
            assert!(errors.iter().all(missing), "{}: {errors:?}", self.name());
        }
    }
}
