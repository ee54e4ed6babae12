//! Why a machine ended: a reset is told from power-off.

use crate::results::write_file;
use crate::session::{Run, Session};
use crate::suite::Bench;
use miette::Result;
use std::fs;
use std::path::PathBuf;

/// Why a machine ended, as QEMU tells in its machine protocol (QMP): what is started with `-no-reboot` ends by a
/// reset as if it was switched off.
pub struct Reason(PathBuf);

impl Reason {
    /// Runs a machine until it ends, and says why it did, with files in the directory of `bench`.
    pub fn of(bench: &Bench, session: Session<'_>) -> Result<(Run, Self)> {
        let reason = Self::asked(bench)?;
        let run = session.with_qemu_arguments(reason.qemu_arguments()).run(|_| false)?;
        Ok((run, reason))
    }

    /// Prepares to ask for it.
    fn asked(bench: &Bench) -> Result<Self> {
        let reason = Self(bench.directory.join("events.json"));
        // It tells of events once it was asked what it can do.
        write_file(&reason.orders(), b"{\"execute\": \"qmp_capabilities\"}\n")?;
        Ok(reason)
    }

    fn orders(&self) -> PathBuf {
        self.0.with_extension("orders")
    }

    /// Returns what QEMU is told.
    fn qemu_arguments(&self) -> [String; 4] {
        let (path, orders) = (self.0.display(), self.orders());
        let file = format!("file,id=events,path={path},input-path={}", orders.display());
        ["-chardev".into(), file, "-mon".into(), "chardev=events,mode=control".into()]
    }

    /// Returns what is wrong with why it ended: the guest has reset it, if it `resets`, and else we ended it.
    pub fn objection(&self, resets: bool) -> Option<String> {
        const RESET: &str = "\"reason\": \"guest-reset\"";
        let events = fs::read_to_string(&self.0).unwrap_or_default();
        let is_reset = events.lines().any(|line| line.contains(RESET));
        (is_reset != resets).then(|| format!("QEMU tells of the machine's end: {events:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_switched_off_was_not_reset() {
        let directory = tempfile::tempdir().unwrap();
        let reason = Reason::asked(&crate::testing::bench(directory.path())).unwrap();
        assert!(fs::read_to_string(reason.orders()).unwrap().contains("qmp_capabilities"));
        let told = |reason: &Reason, why: &str| {
            let event =
                format!("{{\"event\": \"SHUTDOWN\", \"data\": {{\"reason\": \"{why}\"}}}}\n");
            fs::write(&reason.0, event).unwrap();
            [false, true].map(|resets| reason.objection(resets).is_none())
        };
        assert_eq!([false, true].map(|resets| reason.objection(resets).is_none()), [true, false]);
        assert_eq!(told(&reason, "guest-reset"), [false, true]);
        assert_eq!(told(&reason, "guest-shutdown"), [true, false]);
    }
}
