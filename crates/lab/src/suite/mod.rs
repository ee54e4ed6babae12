//! Running every test there is: those that need no machine, and those that do.

mod busy;
mod cargo;
mod crew;
mod host;
mod lint;
mod repeat;
mod runner;

pub(crate) use busy::Busy;
pub use cargo::Tally;
pub(crate) use crew::share;
pub use host::CargoTest;
pub use lint::{LINTS, Lint, Toolchain};
pub use repeat::Repeat;
pub use runner::{Call, Skipped, run_scenarios, side_by_side};

use crate::bundle::{Builds, Bundle};
use crate::executed::Records;
use crate::figures::promises::{check, check_unbounded};
use crate::interrupt::Interrupt;
use crate::machine::{MachineConfig, Time, VirtualTime};
use crate::qemu::Qemu;
use crate::quantity::real;
use crate::results::{Check, Goal, Outcome, write_file, write_json};
use crate::session::{Run, Session};
use miette::{IntoDiagnostic, Result, ensure, miette};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use system::Checked;
use vtime::wrap::Instrument;

/// The file in a scenario's directory that says what it found.
const RESULT: &str = "result.json";
/// The file there that has what a person is told once it has passed.
const TOLD: &str = "told.txt";

/// What a scenario runs with.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The project's root: `build/guests` and `systems` stand below it.
    pub root: PathBuf,
    /// Where this scenario's logs and images go; it exists and is empty.
    pub directory: PathBuf,
    /// The hypervisor's ELF files: what a run packs.
    pub hypervisor: Builds,
    /// The instrument of virtual time.
    pub instrument: Instrument,
    /// The QEMU to run on.
    pub qemu: Qemu,
    /// Ctrl-C; long waits look at it.
    pub interrupt: Interrupt,
    /// Where machines record what they execute of the hypervisor, if that is asked for.
    pub records: Option<Records>,
}

/// What a description says for a board with a GICv2: its board, and the guests that drive one.
pub mod gicv2 {
    /// A replacement.
    pub type Edit = (&'static str, &'static str);

    /// The board.
    pub const BOARD: Edit = ("\"qemu-virt\"", "\"qemu-virt-gicv2\"");
    /// FreeRTOS.
    pub const FREERTOS: Edit = ("freertos.elf", "freertos-gicv2.elf");
    /// The probe.
    pub const PROBE: Edit = ("probe.elf", "probe-gicv2.elf");

    /// Returns them as a description is edited.
    pub fn edits<const N: usize>(edits: [Edit; N]) -> Vec<(String, String)> {
        edits.iter().map(|&(old, new)| (old.to_owned(), new.to_owned())).collect()
    }
}

impl Bench {
    /// Writes `result.json`, by which runs of the scenario are compared.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, outcome: &Outcome) -> Result<()> {
        write_json(&self.directory.join(RESULT), outcome)
    }

    /// Adds a line to what a person is told once the scenario has passed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn tell(&self, line: &str) -> Result<()> {
        let file = OpenOptions::new().create(true).append(true).open(self.directory.join(TOLD));
        file.and_then(|mut file| writeln!(file, "{line}")).into_diagnostic()
    }

    /// Works in `directory`, which exists.
    #[must_use]
    pub fn at(&self, directory: &Path) -> Self {
        Self { directory: directory.into(), ..self.clone() }
    }

    /// Returns the system that the file `path`, below the root, describes once the first of
    /// each of `edits` is replaced by the second.
    ///
    /// # Errors
    /// When it cannot be read or is wrong, or there is nothing to replace.
    pub fn described(&self, path: &str, edits: &[(String, String)]) -> Result<Checked> {
        let path = self.root.join(path);
        let read = std::fs::read_to_string(&path);
        let mut text = read.map_err(|error| miette!("cannot read {}: {error}", path.display()))?;
        for (from, to) in edits {
            if !text.contains(from) {
                return Err(miette!("{}: there is no `{from}` to replace", path.display()));
            }
            text = text.replace(from, to);
        }
        Ok(system::load_text(&path, &text)?)
    }

    /// Returns the system that `text` describes, which is kept as `system.toml` in the directory.
    ///
    /// # Errors
    /// When it is wrong, or cannot be written.
    pub fn kept(&self, text: &str) -> Result<Checked> {
        let path = self.directory.join("system.toml");
        write_file(&path, text.as_bytes())?;
        Ok(system::load_text(&path, text)?)
    }

    /// Keeps an outcome, and demands that it is met.
    ///
    /// # Errors
    /// What is not, or that it cannot be written.
    pub fn demand(&self, outcome: &Outcome) -> Result<()> {
        self.keep(outcome)?;
        let objections = outcome.objections();
        ensure!(objections.is_empty(), "{}", objections.join("\n"));
        Ok(())
    }

    /// Packs `system` into a bootable file in the directory.
    ///
    /// # Errors
    /// When it cannot be packed or written.
    pub fn pack(&self, system: &Checked) -> Result<Bundle> {
        Bundle::pack(system, &self.hypervisor, &self.image())
    }

    /// Returns virtual time, counted into a file in the directory.
    ///
    /// # Errors
    /// When this QEMU cannot carry the instrument.
    pub fn virtual_time(&self) -> Result<VirtualTime> {
        let time = VirtualTime::new(&self.instrument, &self.qemu, &self.directory)?;
        Ok(time.recording(self.records.clone()))
    }

    /// Prepares a run of `bundle` in virtual time, of at most `limit`.
    ///
    /// # Errors
    /// As [`Bench::virtual_time`].
    pub fn session(&self, bundle: &Bundle, limit: Duration) -> Result<Session<'_>> {
        let time = Time::Virtual(self.virtual_time()?);
        let session = Session::of(bundle, &self.qemu, &time, &self.directory);
        Ok(session.within(limit).interrupted_by(self.interrupt.clone()))
    }

    /// Prepares a run of `machine`'s image on the bare board in virtual time, of at most `limit`, with
    /// its files in `bare` below the directory. `guest`: what it is called there.
    ///
    /// # Errors
    /// As [`Bench::virtual_time`], or when the directory cannot be made.
    pub fn bare_session(
        &self,
        mut machine: MachineConfig,
        guest: &str,
        limit: Duration,
    ) -> Result<Session<'_>> {
        let directory = self.directory.join("bare");
        std::fs::create_dir_all(&directory)
            .map_err(|error| miette!("cannot make {}: {error}", directory.display()))?;
        machine.el2 = false;
        machine.time = Time::Virtual(self.at(&directory).virtual_time()?);
        let session = Session::plain(machine, guest, &self.qemu, &directory);
        Ok(session.within(limit).interrupted_by(self.interrupt.clone()))
    }

    /// Writes down what a scenario found, and fails if there are `objections`, or faults of the
    /// hypervisor itself, whatever else was expected. The bootable file is kept of a failure
    /// only.
    ///
    /// # Errors
    /// The objections, or that something cannot be written.
    pub fn judge(&self, run: &Run, mut outcome: Outcome, objections: &[String]) -> Result<()> {
        let faults = run.hypervisor_faults();
        if !faults.is_empty() {
            let found = real(faults.len() as u64);
            outcome.check(Check::new("faults of the hypervisor", found, "", Goal::Exactly(0.0)));
        }
        let check = if self.hypervisor.is_checked { check_unbounded } else { check };
        let broken = check(&mut outcome, run);
        self.keep(&outcome)?;
        let objections = [objections, &faults, &broken].concat();
        if objections.is_empty() {
            return std::fs::remove_file(self.image()).into_diagnostic();
        }
        let (ended, logs) = (run.end.about(), self.directory.display());
        Err(miette!("{}\n(ended: {ended}; logs in {logs})", objections.join("\n")))
    }

    /// Returns the bootable file.
    #[must_use]
    pub fn image(&self) -> PathBuf {
        self.directory.join("system.elf")
    }
}

/// The build of the hypervisor that a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// It checks its invariants after each exit, and stops at what cannot happen.
    Checked,
    /// The build that ships.
    Shipped,
}

/// The body of a scenario: `Err` says why it failed, for a person to read.
pub type Body = Box<dyn Fn(&Bench) -> Result<()> + Send + Sync>;

/// One test that needs a machine.
pub struct Scenario {
    /// Short and unique, fit for a file name: `sgi-to-sleeping`.
    pub name: String,
    /// One sentence: what it shows.
    pub about: String,
    /// What it does.
    pub run: Body,
    /// What it runs.
    pub build: Build,
    /// When it runs.
    pub when: When,
}

/// When a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Each time.
    Always,
    /// It takes long for what it adds: it runs with all tests, and when part of its name is asked for.
    WithAll,
    /// It takes minutes, or fetches much: it runs only when its whole name is asked for.
    ByName,
}

/// Which tests are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Their names have this in them.
    pub filter: &'a str,
    /// Also those that take long.
    pub all: bool,
}

impl Scenario {
    /// Makes a scenario, of the checked build.
    pub fn new(
        name: impl Into<String>,
        about: impl Into<String>,
        run: impl Fn(&Bench) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        let (name, about, run) = (name.into(), about.into(), Box::new(run));
        Self { name, about, run, build: Build::Checked, when: When::Always }
    }

    /// Lets it run the build that ships: its point is how long that takes, or what `bench`
    /// measures of it.
    #[must_use]
    pub fn shipped(self) -> Self {
        Self { build: Build::Shipped, ..self }
    }

    /// Lets it run with all tests only, or where part of its name is asked for.
    #[must_use]
    pub fn with_all(self) -> Self {
        Self { when: When::WithAll, ..self }
    }

    /// Lets it run only when its whole name is asked for.
    #[must_use]
    pub fn by_name(self) -> Self {
        Self { when: When::ByName, ..self }
    }

    /// Returns true if it is among those that are `asked` for.
    #[must_use]
    pub fn is_asked_for(&self, asked: Asked<'_>) -> bool {
        let Asked { filter, all } = asked;
        match self.when {
            When::Always => self.name.contains(filter),
            When::WithAll => self.name.contains(filter) && (all || !filter.is_empty()),
            When::ByName => self.name == filter,
        }
    }
}
