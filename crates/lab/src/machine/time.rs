//! How a machine's time passes.

use crate::executed::Records;
use crate::qemu::Qemu;
use miette::{Result, miette};
use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use vtime::marks::Marks;
use vtime::options::{Options, Pipes};
use vtime::stall::Stall;
use vtime::stats::Statistics;
use vtime::wrap::Instrument;

/// How often the instrument writes down where it stands, real time.
const STATISTICS_PERIOD: Duration = Duration::from_millis(250);
/// What else a machine's behaviour could depend on: the seed of its random
/// numbers, and the date, which Linux reads at boot and mixes into them.
const SAME_EACH_TIME: [&str; 4] = ["-seed", "1", "-rtc", "base=2026-01-01T00:00:00,clock=vm"];
/// File name of what it writes.
const STATISTICS: &str = "virtual-time.json";

/// How a machine's time passes.
#[derive(Clone, Debug, Default)]
pub enum Time {
    /// As the host's does.
    #[default]
    Real,
    /// By instructions executed.
    Virtual(VirtualTime),
}

/// Virtual time: every core executes one instruction in a nanosecond, all of
/// them in lockstep, and the counter counts nanoseconds.
#[derive(Clone, Debug)]
pub struct VirtualTime {
    instrument: Instrument,
    /// In a box: [`Time`] would be large where time is the host's, too.
    options: Box<Options>,
    records: Option<Records>,
}

impl VirtualTime {
    /// Frequency of the counter, Hz.
    pub const COUNTER_HZ: u64 = 1_000_000_000;

    /// Virtual time by `instrument` on `qemu`; what it counts goes to a file in
    /// `directory`, which exists.
    ///
    /// # Errors
    /// When this QEMU cannot carry the instrument: what to install.
    pub fn new(instrument: &Instrument, qemu: &Qemu, directory: &Path) -> Result<Self> {
        vtime::qemu::check(&qemu.program).map_err(|error| miette!("{error}"))?;
        let options = Box::new(Options {
            statistics: Some(directory.join(STATISTICS)),
            period: STATISTICS_PERIOD,
            // A contended lock goes to the same core each time, so that runs
            // repeat; on two busy host cores that costs next to nothing.
            serial: true,
            ..Options::default()
        });
        Ok(Self { instrument: instrument.clone(), options, records: None })
    }

    /// Counts instructions and visits in these physical addresses as well.
    #[must_use]
    pub fn counting(mut self, range: Range<u64>) -> Self {
        self.options.range = Some(range);
        self
    }

    /// Records as well what is executed of the hypervisor, if there are `records`.
    #[must_use]
    pub fn recording(self, records: Option<Records>) -> Self {
        Self { records, ..self }
    }

    /// With the hypervisor whose ELF file is `elf`, and whose code is at the physical addresses
    /// `code`: what is executed of it is recorded where that was asked for.
    #[must_use]
    pub(crate) fn of_hypervisor(mut self, elf: &[u8], code: Range<u64>) -> Self {
        self.options.coverage = self.records.as_ref().map(|records| records.next(elf, code));
        self
    }

    /// A guest's WFE is taken to EL2 where HCR_EL2.TWE says so.
    #[must_use]
    pub fn with_wfe_traps(mut self) -> Self {
        self.options.wfe_traps = true;
        self
    }

    /// Cores stall: each executes nothing for a while.
    #[must_use]
    pub fn with_stalls(mut self, stalls: &[Stall]) -> Self {
        self.options.stalls = stalls.into();
        self
    }

    /// Cores note their times at marks.
    #[must_use]
    pub fn with_marks(mut self, marks: Marks) -> Self {
        self.options.marks = Some(marks);
        self
    }

    /// With turns of `quantum_ns` nanoseconds, 1 to
    /// [`Options::MAX_QUANTUM_NS`].
    #[must_use]
    pub fn with_quantum(mut self, quantum_ns: u64) -> Self {
        self.options.quantum_ns = quantum_ns;
        self
    }

    /// Cores run at the same time, not in turns: contended locks go where the
    /// host lets them.
    #[must_use]
    pub fn in_parallel(mut self) -> Self {
        self.options.serial = false;
        self
    }

    /// What was counted so far; `None` before the instrument has written
    /// anything.
    #[must_use]
    pub fn statistics(&self) -> Option<Statistics> {
        Statistics::read(self.options.statistics.as_ref()?).ok()
    }

    /// Forgets what an earlier machine counted.
    pub(super) fn forget(&self) -> std::io::Result<()> {
        let removed = self.options.statistics.as_ref().map(std::fs::remove_file);
        match removed {
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Time {
    /// In words, for the record.
    #[must_use]
    pub fn about(&self) -> String {
        match self {
            Self::Real => "of the host (QEMU, multi-threaded TCG)".into(),
            Self::Virtual(time) => format!(
                "virtual: an instruction is a nanosecond on every core; cores take turns of {} ns",
                time.options.quantum_ns
            ),
        }
    }

    /// Suffix of the CPU model on QEMU's command line.
    pub(super) fn cpu_options(&self) -> String {
        match self {
            Self::Real => String::new(),
            Self::Virtual(_) => format!(",cntfrq={}", VirtualTime::COUNTER_HZ),
        }
    }

    /// Further arguments for QEMU, whose instrument is held through `pipes`.
    pub(super) fn args(&self, control: Option<Pipes>) -> Vec<OsString> {
        match self {
            Self::Real => Vec::new(),
            Self::Virtual(time) => {
                let options = Options { control, ..*time.options.clone() };
                let option = time.instrument.plugin_option(&options);
                let mut args = vec!["-plugin".into(), option.into()];
                args.extend(SAME_EACH_TIME.map(OsString::from));
                args
            }
        }
    }

    /// Further environment for QEMU.
    pub(super) fn env(&self) -> Vec<(OsString, OsString)> {
        match self {
            Self::Real => Vec::new(),
            Self::Virtual(time) => vec![("LD_PRELOAD".into(), time.instrument.preload())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn virtual_time(directory: &Path) -> VirtualTime {
        let instrument = Instrument::unpack(b"no instrument", directory).unwrap();
        VirtualTime::new(&instrument, &Qemu::find().unwrap(), directory).unwrap()
    }

    #[test]
    fn virtual_time_is_an_option_and_a_preload_of_one_file() {
        let directory = tempfile::tempdir().unwrap();
        let time = Time::Virtual(virtual_time(directory.path()).counting(0x1000..0x2000));
        let args = time.args(None);
        let option = args[1].to_str().unwrap();
        let (_, preload) = time.env().pop().unwrap();
        let preload = preload.to_str().unwrap().split(':').next().unwrap().to_owned();
        assert!(option.starts_with(&format!("file={preload},")), "{option} {preload}");
        assert!(option.contains("range=0x1000-0x2000"), "{option}");
        assert!(Time::Real.args(None).is_empty() && Time::Real.env().is_empty());
    }

    #[test]
    fn an_earlier_count_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let time = virtual_time(directory.path());
        time.forget().unwrap();
        std::fs::write(directory.path().join(STATISTICS), "{}").unwrap();
        time.forget().unwrap();
        assert!(!directory.path().join(STATISTICS).exists());
        assert!(time.statistics().is_none());
    }
}
