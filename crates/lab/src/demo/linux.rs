//! What the Linux guest says of its work: lines that begin with `cassata: `
//! (`guests/linux/init` writes them).

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
    /// Time of each hackbench run, seconds.
    pub hackbench_s: Vec<f64>,
    /// It said that it is done.
    pub done: bool,
    /// Why it gave up.
    pub failed: Option<String>,
}

impl LinuxProgress {
    /// Takes one line of its console.
    pub fn hear(&mut self, line: &str) {
        let Some((_, said)) = line.split_once("cassata: ") else { return };
        if let Some(reason) = said.strip_prefix("linux failed") {
            self.failed = Some(reason.trim_start_matches(':').trim().to_owned());
        } else if said.starts_with("linux ready") {
            self.kernel = field(said, "kernel").map(str::to_owned);
            self.cpus = field(said, "cpus").and_then(|cpus| cpus.parse().ok());
            self.boot_s = field(said, "uptime").and_then(|uptime| uptime.parse().ok());
        } else if said.starts_with("hackbench") {
            self.hackbench_s.extend(field(said, "seconds").and_then(|s| s.parse::<f64>().ok()));
        } else if said.trim_end() == "linux done" {
            self.done = true;
        }
    }

    /// Whether nothing more is to be waited for.
    #[must_use]
    pub fn is_over(&self, work: LinuxWork) -> bool {
        self.done || self.failed.is_some() || self.did(work)
    }

    /// Whether it has done what was demanded.
    #[must_use]
    pub fn did(&self, work: LinuxWork) -> bool {
        match work {
            LinuxWork::All => self.done && !self.hackbench_s.is_empty(),
            LinuxWork::Runs(runs) => self.hackbench_s.len() >= runs,
        }
    }
}

/// The value of `name=value` among words.
fn field<'a>(words: &'a str, name: &str) -> Option<&'a str> {
    words.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
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
        assert!(linux.did(LinuxWork::Runs(2)) && !linux.did(LinuxWork::Runs(3)));
        assert!(!linux.is_over(LinuxWork::All));
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
