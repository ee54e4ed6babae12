//! The statistics file: written while the machine runs and when it ends.

use crate::machine::Counts;
use crate::visits::Tally;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// What the instrument counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Whether QEMU has ended; the file is rewritten until then.
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
    /// The safeguard: a wait that took too long.
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
        if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            return Err(io::Error::other("it is no regular file; name another"));
        }
        let directory =
            path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".vtime-").tempfile_in(directory)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.persist(path)?;
        Ok(())
    }

    /// Reads the file.
    ///
    /// # Errors
    /// If it is missing, or not a statistics file.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(path)?)?)
    }
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
