//! The system that measures, described for any board.

use crate::bundle::Builds;
use crate::guests::Images;
use miette::Result;
use sha2::{Digest, Sha256};
use std::fmt::{self, Write};
use std::path::Path;
use system::Checked;
use system::board::Board;

/// The VM that measures: the first.
pub const PROBE: usize = 0;
/// pCPUs that are measured: a vCPU on the first, and what it has to do with another core.
pub const MEASURED: usize = 2;
/// Most pCPUs that are used: more make no more load.
const MOST_PCPUS: usize = 4;
/// Period of the servers, microseconds; the probe keeps clear of its beginnings.
const PERIOD_US: u64 = 4_000;

/// What cores do that measure nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// They write memory without rest.
    Memory,
    /// Nothing.
    None,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::None => "none",
        })
    }
}

/// What is measured, where, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The board.
    pub board: &'static Board,
    /// How many of its pCPUs.
    pub pcpus: usize,
    /// What other cores do.
    pub load: Load,
    /// How often each path is measured with warm caches.
    pub repetitions: u64,
    /// How often with cold ones.
    pub cold: u64,
    /// Memory that is written before each of these, KiB.
    pub sweep_kib: u64,
    /// How long the probe lets the UART send before it measures, milliseconds.
    pub rest_ms: u64,
}

impl Plan {
    /// Most repetitions.
    pub const MOST_REPETITIONS: u64 = 10_000;
    /// Most memory that is written before a cold one, KiB.
    pub const MOST_SWEEP_KIB: u64 = 8 << 10;

    /// For an image that is flashed on the board.
    #[must_use]
    pub fn of(board: &'static Board) -> Self {
        let pcpus = board.pcpu_mpidr.len().min(MOST_PCPUS);
        Self {
            board,
            pcpus,
            load: Load::Memory,
            repetitions: 2_000,
            cold: 500,
            sweep_kib: 2 << 10,
            rest_ms: 50,
        }
    }

    /// For QEMU, in virtual time: there are no caches, and each repetition is like the one before.
    #[must_use]
    pub fn virtual_time(board: &'static Board) -> Self {
        let plan = Self::of(board);
        Self { load: Load::None, repetitions: 200, cold: 20, sweep_kib: 64, rest_ms: 1, ..plan }
    }

    /// Returns the RAM that the board has to have, MiB: the VMs and the hypervisor have 320, and what lies
    /// below the hypervisor is left alone.
    fn memory_mib(&self) -> u64 {
        const NEEDED_MIB: u64 = 320;
        let below_mib = (self.board.hypervisor_pa - self.board.ram_pa) >> 20;
        (below_mib + NEEDED_MIB).next_multiple_of(512)
    }

    /// Returns the description, whose first VM does what `run` says; `hypervisor` tells the build.
    #[must_use]
    pub fn description(&self, run: &str, hypervisor: &str, root: &Path) -> String {
        let images = Images::of(root);
        let kernel = if self.board.gic.is_v2() { images.probe_gicv2 } else { images.probe };
        let Self { board, pcpus, load, repetitions, cold, sweep_kib, rest_ms } = *self;
        let kind = &board.kind;
        let period = format!("{PERIOD_US}us");
        let memory_mib = self.memory_mib();
        let mut text = format!(
            r#"# Measures how long EL2 takes on a board (`cassata calibrate`).

[board]
kind = {kind:?}
pcpus = {pcpus}
memory = "{memory_mib}M"

[hypervisor]
# A vCPU that is woken on the same core has it at once.
sibling_grace = "0us"

[[shared_memory]]
name = "gaps"
size = "64K"

[[vm]]
name = "calibrate"
kernel = {kernel:?}
cmdline = "probe.run={run} probe.board={kind} probe.pcpus={pcpus} probe.hypervisor={hypervisor} probe.load={load} probe.repetitions={repetitions} probe.cold={cold} probe.sweep_kib={sweep_kib} probe.rest_ms={rest_ms} probe.period_us={PERIOD_US}"
memory = {{ size = "64M" }}
realtime = true
timer_advance = "0us"
shared_memory = ["gaps"]
vcpus = [
    {{ pcpu = 0, priority = 20 }},
    {{ pcpu = 1, priority = 20 }},
    {{ pcpu = 0, priority = 30, server = {{ kind = "deferrable", budget = {period:?}, period = {period:?} }}, tasks = [{{ name = "high", priority = 1, period = {period:?}, segments = [{{ wcet = "1ms" }}, {{ wcet = "1ms", gcs = "R" }}] }}] }},
    {{ pcpu = 1, priority = 29, server = {{ kind = "deferrable", budget = {period:?}, period = {period:?} }}, tasks = [{{ name = "other", priority = 1, period = {period:?}, segments = [{{ wcet = "1ms", gcs = "R" }}] }}] }},
    {{ pcpu = 0, priority = 25 }},
]

# Runs when nothing else does, and notes when it did not.
[[vm]]
name = "neighbour"
kernel = {kernel:?}
cmdline = "probe.run=calibrate-neighbour probe.sweep_kib={sweep_kib}"
memory = {{ size = "64M" }}
shared_memory = ["gaps"]
vcpus = [{{ pcpu = 0, priority = 1 }}, {{ pcpu = 1, priority = 1 }}]

# Leaves its core for the one that measures.
[[vm]]
name = "migrant"
kernel = {kernel:?}
cmdline = "probe.run=calibrate-migrant probe.sweep_kib={sweep_kib}"
memory = {{ size = "64M" }}
shared_memory = ["gaps"]
migration_policy = "on-demand"
vcpus = [{{ pcpu = 0, priority = 2 }}]
"#
        );
        if pcpus > MEASURED {
            let vcpus: Vec<_> = (MEASURED..pcpus)
                .map(|pcpu| format!("{{ pcpu = {pcpu}, priority = 1 }}"))
                .collect();
            let _ = write!(
                text,
                r#"
# What other cores do to caches and memory meanwhile.
[[vm]]
name = "load"
kernel = {kernel:?}
cmdline = "probe.run=calibrate-load probe.load={load} probe.sweep_kib={}"
memory = {{ size = "64M" }}
vcpus = [{}]
"#,
                Self::MOST_SWEEP_KIB,
                vcpus.join(", ")
            );
        }
        text
    }

    /// Returns the system, whose first VM does what `run` says. It is none of a user's: that vCPUs of one VM
    /// have unequal priorities, and what it says nothing of, is meant.
    ///
    /// # Errors
    /// When the launcher has not built the probe.
    pub fn system(&self, run: &str, builds: &Builds, root: &Path) -> Result<Checked> {
        let path = root.join(format!("calibrate-{}.toml", self.board.kind));
        let load =
            |hypervisor: &str| system::load_text(&path, &self.description(run, hypervisor, root));
        let hypervisor = identity(builds.of(&load("-")?));
        Ok(load(&hypervisor)?)
    }
}

/// Returns what tells a build of the hypervisor from others: 16 hexadecimal digits of its SHA-256.
#[must_use]
pub fn identity(hypervisor: &[u8]) -> String {
    let digest = Sha256::digest(hypervisor);
    digest.iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_board_has_a_system_that_measures() {
        let root = crate::testing::root();
        for board in Board::all() {
            let plan = Plan::of(board);
            let builds = Builds::one(b"a hypervisor", false);
            let system = plan.system("calibrate", &builds, root).unwrap();
            assert_eq!(system.machine.board.kind, board.kind);
            let told = &system.vms[PROBE].cmdline;
            assert!(
                told.contains(&format!("probe.hypervisor={} ", identity(b"a hypervisor"))),
                "{told}"
            );
            assert!(told.len() < 512, "the probe reads no more: {told}");
            let parts: Vec<_> = system.parts().map(|(name, _)| name).collect();
            assert_eq!(parts, ["sections"], "as a system with tasks, whose bounds are computed");
        }
    }
}
