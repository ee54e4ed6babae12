//! What the Linux guest says of its work: lines that begin with `cassata: `
//! (`guests/linux/init` writes them), and the histogram that cyclictest prints.
//!
//! The kernel writes to the same console. Where it leaves a line unfinished, `cassata: `
//! stands behind its text, so whatever comes before is skipped.

use super::sharing::Sharing;
use super::words::{field, keep, number};
use crate::observe::Distribution;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is demanded of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinuxWork {
    /// All it was told to do: it says so.
    All,
    /// So many runs of hackbench; what comes after them is not waited for.
    Runs(usize),
}

/// What Linux has said so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinuxProgress {
    /// `uname -r`, from the line that says it has booted.
    pub kernel: Option<String>,
    /// How many CPUs it found.
    pub cpus: Option<u32>,
    /// Seconds from its kernel's start to its first process.
    pub boot_s: Option<f64>,
    /// It does endless work.
    pub busy: bool,
    /// Time of each hackbench run, seconds.
    pub hackbench_s: Vec<f64>,
    /// Time of each run of timed work, seconds.
    pub work_s: Vec<f64>,
    /// Virtual addresses of functions, from the first byte to behind the last.
    pub symbols: BTreeMap<String, (u64, u64)>,
    /// Latencies of cyclictest's wake-ups on all CPUs, microseconds.
    pub wake_ups_us: Distribution,
    /// Latencies of cyclictest's wake-ups where each is told to the nanosecond (`guests/programs/init`).
    pub latencies_ns: Distribution,
    /// Each build of a part of Linux.
    pub builds: Vec<Build>,
    /// How late its real-time process was, if it ran one beside other work: in each run of it.
    pub wakes: Vec<Wakes>,
    /// What has woken that process last, as it says: `timer` or `softirq`.
    pub woken_by: Option<String>,
    /// What it does with locks by the hypervisor, if it was asked for something.
    pub locks: Option<Locks>,
    /// How often it told its scheduler that the hypervisor leaves more or less of a CPU, if it was asked to.
    pub capacity_changes: Option<u64>,
    /// What it executed while it kept a CPU busy, if it was asked to count.
    pub cycles: Option<Cycles>,
    /// What the tool for shared mutexes has said.
    pub sharing: Sharing,
    /// What the tool for links has said, a line each.
    pub links: Vec<String>,
    /// What it has seen of devices on a PCI bus (`guests/pcie/init`), a line each.
    pub pcie: Vec<String>,
    /// What it has seen of an SD card and of a network card of the board (`guests/board/init`), a line each.
    pub board: Vec<String>,
    /// What was said of virtio devices that a VM gets from another one, a line each (`guests/virtio/init`).
    pub virtio: Vec<String>,
    /// It said that it is done.
    pub done: bool,
    /// Why it gave up.
    pub failed: Option<String>,
}

/// How long a build of a part of Linux took, seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Build {
    /// On the wall.
    pub seconds: f64,
    /// In programs, on all CPUs together.
    pub user: f64,
    /// In the kernel, likewise.
    pub system: f64,
}

impl Build {
    fn of(said: &str) -> Option<Self> {
        let (seconds, user) = (number(said, "seconds")?, number(said, "user")?);
        Some(Self { seconds, user, system: number(said, "system")? })
    }
}

/// What Linux counted by its performance events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycles {
    /// How many cycles.
    pub count: u64,
    /// In how much time, nanoseconds.
    pub ns: u64,
}

impl Cycles {
    fn of(said: &str) -> Option<Self> {
        Some(Self { count: number(said, "count")?, ns: number(said, "ns")? })
    }
}

/// How late a real-time process of Linux's runs after its timer, as cyclictest says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wakes {
    /// How often it woke.
    pub count: u64,
    /// The least latency, nanoseconds.
    pub min_ns: u64,
    /// The mean, nanoseconds.
    pub mean_ns: u64,
    /// The greatest, nanoseconds.
    pub max_ns: u64,
}

impl Wakes {
    fn of(said: &str) -> Option<Self> {
        Some(Self {
            count: number(said, "wakes")?,
            min_ns: number(said, "min_ns")?,
            mean_ns: number(said, "mean_ns")?,
            max_ns: number(said, "max_ns")?,
        })
    }

    /// Returns what both were like together.
    fn and(self, other: Self) -> Self {
        let count = self.count + other.count;
        let sum = self.mean_ns * self.count + other.mean_ns * other.count;
        Self {
            count,
            min_ns: self.min_ns.min(other.min_ns),
            mean_ns: sum / count.max(1),
            max_ns: self.max_ns.max(other.max_ns),
        }
    }
}

/// What Linux tells the hypervisor of its locks, and how often. Either is `none` where the description
/// of the VM does not offer it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locks {
    /// How it has its preemption delayed; only a kernel with the port can.
    pub preemption: Option<String>,
    /// How often it gave the core away because the hypervisor had wanted it.
    pub cancelled: Option<u64>,
    /// When it yields where it spins.
    pub yields: String,
    /// How often it did.
    pub yielded: u64,
    /// How often it was about to spin, as the module for stock Linux has it.
    pub contended: Option<u64>,
}

impl Locks {
    fn of(said: &str) -> Option<Self> {
        Some(Self {
            preemption: field(said, "preemption").map(str::to_owned),
            cancelled: number(said, "cancelled"),
            yields: field(said, "yield")?.to_owned(),
            yielded: number(said, "yielded")?,
            contended: number(said, "contended"),
        })
    }
}

impl LinuxProgress {
    /// Returns how late its real-time process was in all runs of it together; none before one is over.
    #[must_use]
    pub fn all_wakes(&self) -> Option<Wakes> {
        self.wakes.iter().copied().reduce(Wakes::and)
    }

    /// Takes one line of its console.
    pub fn hear(&mut self, line: &str) {
        let Some((_, said)) = line.split_once("cassata: ") else { return self.count(line) };
        if let Some(reason) = said.strip_prefix("linux failed") {
            self.failed = Some(reason.trim_start_matches(':').trim().to_owned());
        } else if said.starts_with("linux ready") {
            self.kernel = field(said, "kernel").map(str::to_owned);
            self.cpus = number(said, "cpus");
            self.boot_s = number(said, "uptime");
        } else if said.starts_with("busy ") {
            self.busy = true;
        } else if said.starts_with("hackbench ") {
            self.hackbench_s.extend(number::<f64>(said, "seconds"));
        } else if said.starts_with("work ") {
            self.work_s.extend(number::<f64>(said, "ns").map(|ns| ns / 1e9));
        } else if let Some((name, range)) = said.strip_prefix("symbol ").and_then(symbol) {
            self.symbols.insert(name.to_owned(), range);
        } else if let Some(said) = said.strip_prefix("kbuild ") {
            self.builds.extend(Build::of(said));
        } else if let Some(said) = said.strip_prefix("realtime ") {
            self.wakes.extend(Wakes::of(said));
            self.woken_by = field(said, "by").map(str::to_owned);
        } else if let Some(said) = said.strip_prefix("latency ") {
            if let Some((ns, times)) = number(said, "ns").zip(number(said, "times")) {
                self.latencies_ns.record_many(ns, times);
            }
        } else if let Some(said) = said.strip_prefix("locks ") {
            self.locks = Locks::of(said);
        } else if let Some(said) = said.strip_prefix("cycles ") {
            self.cycles = Cycles::of(said);
        } else if let Some(said) = said.strip_prefix("capacity ") {
            self.capacity_changes = number(said, "changes");
        } else if let Some(said) = said.strip_prefix("vmpcp ") {
            self.sharing.hear(said);
        } else if let Some(said) = said.strip_prefix("link ") {
            keep(&mut self.links, said.trim_end().to_owned());
        } else if let Some(said) = said.strip_prefix("pcie ") {
            keep(&mut self.pcie, said.trim_end().to_owned());
        } else if let Some(said) = said.strip_prefix("board ") {
            keep(&mut self.board, said.trim_end().to_owned());
        } else if let Some(said) = said.strip_prefix("virtio ") {
            keep(&mut self.virtio, said.trim_end().to_owned());
        } else if said.trim_end() == "linux done" {
            self.done = true;
        }
    }

    /// Takes a row of cyclictest's histogram: a latency of six digits, then one count for
    /// each CPU.
    fn count(&mut self, line: &str) {
        let row = || {
            let (latency, counts) = line.split_once(' ').filter(|(l, _)| l.len() == 6)?;
            let counts: Result<Vec<u64>, _> = counts.split_whitespace().map(str::parse).collect();
            let counts = counts.ok()?.into_iter().fold(0, u64::saturating_add);
            Some((latency.parse().ok()?, counts))
        };
        if let Some((latency_us, count)) = row() {
            self.wake_ups_us.record_many(latency_us, count);
        }
    }

    /// Returns true when nothing more is to be waited for.
    #[must_use]
    pub fn is_over(&self, work: LinuxWork) -> bool {
        self.done || self.failed.is_some() || self.did(work)
    }

    /// Returns true when Linux has done what was demanded.
    #[must_use]
    pub fn did(&self, work: LinuxWork) -> bool {
        match work {
            LinuxWork::All => self.done && !self.hackbench_s.is_empty(),
            LinuxWork::Runs(runs) => self.hackbench_s.len() >= runs,
        }
    }
}

/// Returns the name and the range in `NAME from=0x.. to=0x..`.
fn symbol(said: &str) -> Option<(&str, (u64, u64))> {
    let address = |name| u64::from_str_radix(field(said, name)?.strip_prefix("0x")?, 16).ok();
    Some((said.split(' ').next()?, (address("from")?, address("to")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(lines: &[&str]) -> LinuxProgress {
        let mut progress = LinuxProgress::default();
        lines.iter().for_each(|line| progress.hear(line));
        progress
    }

    #[test]
    fn understands_what_init_says() {
        let linux = hear(&[
            "[    0.000000] Booting Linux on physical CPU 0x0000000000",
            "cassata: linux ready uptime=1.52 cpus=2 kernel=6.1.0-49-arm64",
            "cassata: hackbench run=1 seconds=0.412",
            "[   12.1] random: crng init donecassata: hackbench run=2 seconds=0.398",
        ]);
        assert_eq!((linux.kernel.as_deref(), linux.cpus), (Some("6.1.0-49-arm64"), Some(2)));
        assert_eq!((linux.boot_s, linux.hackbench_s.as_slice()), (Some(1.52), &[0.412, 0.398][..]));
        let timed = hear(&["[  9.1] crng donecassata: work run=1 ns=250000000"]);
        assert_eq!(timed.work_s, [0.25]);
        let late =
            hear(&["cassata: latency ns=8123 times=2", "cassata: latency ns=5000123 times=1"]);
        assert_eq!((late.latencies_ns.count(), late.latencies_ns.max()), (3, Some(5_000_123)));
        assert!(!linux.busy && hear(&["cassata: busy work=write"]).busy);
        assert!(linux.did(LinuxWork::Runs(2)) && !linux.did(LinuxWork::Runs(3)));
        assert!(!linux.is_over(LinuxWork::All));
    }

    #[test]
    fn reads_where_functions_are() {
        let linux = hear(&[
            "cassata: symbol queued_spin_lock_slowpath from=0xffff800008ce9ad0 to=0xffff800008ce9f00",
            "cassata: symbol gone from=0x to=0x",
        ]);
        let range = (0xffff_8000_08ce_9ad0, 0xffff_8000_08ce_9f00);
        assert_eq!(linux.symbols, BTreeMap::from([("queued_spin_lock_slowpath".into(), range)]));
    }

    #[test]
    fn reads_what_became_of_locks() {
        let own = hear(&["cassata: locks preemption=page cancelled=7 yield=none yielded=0 "]);
        let page = Some("page".into());
        let expected = Locks {
            preemption: page,
            cancelled: Some(7),
            yields: "none".into(),
            ..Locks::default()
        };
        assert_eq!(own.locks, Some(expected));
        let stock = hear(&["cassata: locks yield=always yielded=5 contended=9"]).locks.unwrap();
        assert_eq!((stock.yields.as_str(), stock.yielded, stock.contended), ("always", 5, Some(9)));
        assert_eq!((stock.preemption, stock.cancelled), (None, None));
        assert_eq!(hear(&["cassata: locks yield=always"]).locks, None);
    }

    #[test]
    fn reads_how_long_builds_took() {
        let said = "cassata: kbuild run=2 objects=9 seconds=4.120 user=10.500 system=1.250";
        let linux = hear(&[said, "cassata: kbuild run=3 objects=9 seconds="]);
        assert_eq!(linux.builds, [Build { seconds: 4.12, user: 10.5, system: 1.25 }]);
    }

    #[test]
    fn reads_how_late_a_real_time_process_was() {
        let linux =
            hear(&["cassata: realtime by=timer wakes=1000 min_ns=5120 mean_ns=6044 max_ns=310976"]);
        assert_eq!(linux.woken_by.as_deref(), Some("timer"));
        let expected = Wakes { count: 1_000, min_ns: 5_120, mean_ns: 6_044, max_ns: 310_976 };
        assert_eq!(linux.all_wakes(), Some(expected));
        let twice = hear(&[
            "cassata: realtime wakes=300 min_ns=10 mean_ns=20 max_ns=30",
            "cassata: realtime wakes=100 min_ns=20 mean_ns=40 max_ns=90",
        ]);
        let together = Wakes { count: 400, min_ns: 10, mean_ns: 25, max_ns: 90 };
        assert_eq!((twice.wakes.len(), twice.all_wakes()), (2, Some(together)));
        assert_eq!(hear(&["cassata: realtime wakes=1000 min_ns=5120"]).all_wakes(), None);
    }

    #[test]
    fn reads_the_histogram_of_cyclictest() {
        let linux = hear(&[
            "# Histogram",
            "000000 000000\t000000",
            "000003 000010\t000090",
            "000017 000001\t000000",
            "# Total: 000011 000090",
            "100000 pages of memory",
        ]);
        assert_eq!(linux.wake_ups_us.iter().collect::<Vec<_>>(), [(3, 100), (17, 1)]);
    }

    #[test]
    fn counts_may_be_any() {
        let most = u64::MAX.to_string();
        let linux = hear(&[&format!("000003 {most} {most}"), &format!("000004 {most}")]);
        let counts = [(3, u64::MAX), (4, u64::MAX)];
        assert_eq!(linux.wake_ups_us.iter().collect::<Vec<_>>(), counts);
        assert_eq!(linux.wake_ups_us.count(), u64::MAX);
    }

    #[test]
    fn done_without_work_is_over_but_not_done() {
        let linux = hear(&["cassata: linux done"]);
        assert!(linux.is_over(LinuxWork::All) && !linux.did(LinuxWork::All));
    }

    #[test]
    fn a_failure_is_over_and_says_why() {
        let linux = hear(&["cassata: linux failed: hackbench run=1 status=1"]);
        assert!(linux.is_over(LinuxWork::All) && !linux.did(LinuxWork::All));
        assert_eq!(linux.failed.as_deref(), Some("hackbench run=1 status=1"));
        assert!(linux.hackbench_s.is_empty());
    }
}
