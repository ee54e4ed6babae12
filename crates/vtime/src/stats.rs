//! The statistics file: written while the machine runs and when it ends.

use crate::machine::Counts;
use crate::visits::Tally;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use tempfile::NamedTempFile;

/// What the instrument counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// True if QEMU has ended; the file is rewritten until then.
    pub finished: bool,
    /// The quantum in ns of virtual time.
    pub quantum_ns: u64,
    /// The cores' clock rate in MHz.
    pub mhz: u32,
    /// Virtual time since start, in ns.
    pub virtual_ns: u64,
    /// Real time since start, in ns.
    pub real_ns: u64,
    /// Real time per virtual time.
    pub slowdown: f64,
    /// How often things happened.
    #[serde(flatten)]
    pub counts: Counts,
    /// Every core, by index.
    pub vcpus: Vec<VcpuStatistics>,
}

/// What the instrument counted on one core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VcpuStatistics {
    /// Instructions retired.
    pub instructions: u64,
    /// Time asleep or switched off, in ns of virtual time.
    pub idle_ns: u64,
    /// Times the core ran one block past its limit because QEMU wanted its
    /// thread.
    pub forced_leaves: ForcedLeaves,
    /// What it did in the address range, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeStatistics>,
}

/// Forced leaves by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForcedLeaves {
    /// Every core that time waited for was blocked, as before an exclusive
    /// section.
    pub stall: u64,
    /// The main loop was blocked, as before it stops the machine.
    pub main_loop: u64,
    /// The safeguard: nothing went on for too long, and the core ran a block, or went on
    /// after its wait, out of turn.
    pub timeout: u64,
}

/// What a core did in the address range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeStatistics {
    /// Instructions executed in it, unfinished visits included.
    pub instructions: u64,
    /// Visits that have ended, in all.
    pub visits: u64,
    /// Visits that have ended, by the address they entered at.
    pub by_entry: BTreeMap<String, Tally>,
}

impl Statistics {
    /// Writes the file so that a reader sees either the old or the new one.
    ///
    /// # Errors
    /// If the directory cannot be written to, or something is there already
    /// that is no regular file: it would be replaced.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        // At once: each token would be a call of its own.
        let text = serde_json::to_string_pretty(self)?;
        replace(path, |file| writeln!(file, "{text}"))
    }

    /// In a few lines, for people. The file has more.
    #[must_use]
    pub fn summary(&self) -> String {
        let seconds = |ns| Duration::from_nanos(ns).as_secs_f64();
        let (virtual_s, real_s) = (seconds(self.virtual_ns), seconds(self.real_ns));
        let Counts { quanta, early_ends, .. } = self.counts;
        let mut text = format!(
            "virtual time: {virtual_s:.3} s in {real_s:.1} s, slowdown {:.1}; {quanta} quanta, \
             {early_ends} ended early\n",
            self.slowdown
        );
        for (index, vcpu) in self.vcpus.iter().enumerate() {
            let ForcedLeaves { stall, main_loop, timeout } = vcpu.forced_leaves;
            let range = vcpu.range.as_ref().map_or_else(String::new, |range| {
                format!(", in the range {} in {} visits", range.instructions, range.visits)
            });
            text += &format!(
                "  core {index}: {} instructions{range}; idle for {:.3} s; {} forced leaves\n",
                vcpu.instructions,
                seconds(vcpu.idle_ns),
                stall + main_loop + timeout
            );
        }
        text
    }

    /// Reads the file.
    ///
    /// # Errors
    /// If it is missing, or not a statistics file.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(path)?)?)
    }
}

/// Writes a file by `fill` so that a reader sees either the old or the new one.
///
/// # Errors
/// As [`Statistics::write`].
pub(crate) fn replace(
    path: &Path,
    fill: impl FnOnce(&mut NamedTempFile) -> io::Result<()>,
) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(io::Error::other("it is no regular file; name another"));
    }
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".vtime-").tempfile_in(directory)?;
    fill(&mut file)?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics(finished: bool) -> Statistics {
        Statistics {
            finished,
            quantum_ns: 10_000,
            mhz: 1000,
            virtual_ns: 5,
            real_ns: 50,
            slowdown: 10.0,
            counts: Counts { quanta: 3, ..Counts::default() },
            vcpus: vec![VcpuStatistics {
                instructions: 5,
                idle_ns: 0,
                forced_leaves: ForcedLeaves::default(),
                range: Some(RangeStatistics::default()),
            }],
        }
    }

    #[test]
    fn a_file_is_replaced_and_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("statistics.json");
        statistics(false).write(&path).unwrap();
        statistics(true).write(&path).unwrap();
        assert_eq!(Statistics::read(&path).unwrap(), statistics(true));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_summary_has_a_line_for_each_core() {
        let mut statistics = statistics(true);
        statistics.virtual_ns = 1_250_000_000;
        statistics.real_ns = 12_500_000_000;
        let visited = RangeStatistics { instructions: 4, visits: 2, ..Default::default() };
        statistics.vcpus[0].range = Some(visited);
        statistics.vcpus[0].forced_leaves = ForcedLeaves { stall: 1, main_loop: 2, timeout: 4 };
        let other =
            VcpuStatistics { range: None, idle_ns: 7_000_000, ..statistics.vcpus[0].clone() };
        statistics.vcpus.push(other);
        assert_eq!(
            statistics.summary(),
            "virtual time: 1.250 s in 12.5 s, slowdown 10.0; 3 quanta, 0 ended early\n\
             \x20 core 0: 5 instructions, in the range 4 in 2 visits; idle for 0.000 s; 7 forced leaves\n\
             \x20 core 1: 5 instructions; idle for 0.007 s; 7 forced leaves\n"
        );
    }

    #[test]
    fn nothing_but_a_file_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let error = statistics(false).write(&socket).unwrap_err().to_string();
        assert!(error.contains("no regular file"), "{error}");
        assert!(!fs::symlink_metadata(&socket).unwrap().is_file());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
