//! Running every test there is: those that need no machine, and those that do.

mod cargo;
mod host;
mod runner;

pub use cargo::Tally;
pub use host::{CargoTest, run_program};
pub use runner::run_scenarios;

use crate::interrupt::Interrupt;
use crate::qemu::Qemu;
use std::fmt;
use std::path::PathBuf;
use vtime::wrap::Instrument;

/// What a scenario runs with.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The project's root: `build/guests` and `systems` stand below it.
    pub root: PathBuf,
    /// Where this scenario's logs and images go; it exists and is empty.
    pub directory: PathBuf,
    /// The hypervisor's ELF file.
    pub hypervisor: &'static [u8],
    /// The instrument of virtual time.
    pub instrument: Instrument,
    /// The QEMU to run on.
    pub qemu: Qemu,
    /// Ctrl-C; long waits look at it.
    pub interrupt: Interrupt,
}

/// Every scenario there is.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let mut all = crate::scenario::all();
    all.push(crate::bench::vtime::scenario());
    all.push(crate::bench::lhp::scenario());
    all.push(crate::demo::scenario());
    all
}

/// The body of a scenario: `Err` says why it failed, for a person to read.
pub type Run = Box<dyn Fn(&Bench) -> miette::Result<()> + Send + Sync>;

/// One test that needs a machine.
pub struct Scenario {
    /// Short and unique, fit for a file name: `sgi-to-sleeping`.
    pub name: String,
    /// One sentence: what it shows.
    pub about: String,
    /// What it does.
    pub run: Run,
    /// It takes long: it runs only when its whole name is asked for.
    pub on_request: bool,
}

impl Scenario {
    /// A scenario.
    pub fn new(
        name: impl Into<String>,
        about: impl Into<String>,
        run: impl Fn(&Bench) -> miette::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), about: about.into(), run: Box::new(run), on_request: false }
    }

    /// The same, run only when its whole name is asked for.
    #[must_use]
    pub fn on_request(self) -> Self {
        Self { on_request: true, ..self }
    }

    /// Whether it is among those that `filter` asks for: part of its name, or
    /// all of it.
    #[must_use]
    pub fn is_asked_for(&self, filter: &str) -> bool {
        if self.on_request { self.name == filter } else { self.name.contains(filter) }
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario").field("name", &self.name).finish_non_exhaustive()
    }
}
