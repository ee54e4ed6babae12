//! A machine from its description to what was seen: booted, watched until it ends.

mod watch;

use crate::bundle::Bundle;
use crate::console::ConsoleConfig;
use crate::console::connection::Connections;
use crate::guests::Transcript;
use crate::interrupt::Interrupt;
use crate::looks::Stretch;
use crate::machine::{HostUse, Machine, MachineConfig, Memory, Time};
use crate::observe::{Layout, Observer};
use crate::operator::Operator;
use crate::paths::Paths;
use crate::promises::Promises;
use crate::qemu::Qemu;
use crate::trace::Sources;
use crate::view::{Silent, View};
use miette::{Report, Result, ensure, miette};
use std::path::{Path, PathBuf};
use std::time::Duration;
use vtime::marks::Marks;
use vtime::stats::Statistics;
use watch::Watch;

/// How often a machine in virtual time is held to be judged, in its own time. That takes the
/// host less than a hundredth of what a machine with a Linux needs for as much.
pub(crate) const PERIOD: Duration = Duration::from_millis(1);
/// How often it is held at most for the sake of vCPUs with short budgets, as a long run with many
/// holds is slow.
const LEAST_PERIOD: Duration = Duration::from_micros(200);
/// Real time after which a virtual clock that has not moved will not move any more: the
/// machine is held a thousand times as often.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the hypervisor may take to come up, real time: on an idle host it needs less than
/// a second.
const START: Duration = Duration::from_secs(120);

/// Looks at the memory that a machine has left; returns what is not as it must be, a sentence each.
pub type Inspection<'a> = Box<dyn FnOnce(&Memory) -> Result<Vec<String>> + 'a>;

/// A machine that is to run, what shows what it does, and what ends it.
pub struct Session<'a> {
    qemu: &'a Qemu,
    config: MachineConfig,
    consoles: ConsoleConfig,
    /// Where in the machine's memory there is something to see.
    pub layout: Layout,
    /// What is to be recorded of it; none if its description asks for no trace.
    sources: Option<Sources>,
    directory: PathBuf,
    limit: Option<Duration>,
    period: Duration,
    patience: Duration,
    promises: Promises,
    paths: Option<Paths>,
    view: Box<dyn View + 'a>,
    interrupt: Interrupt,
    connections: Connections,
    operator: Option<Operator>,
    inspection: Option<Inspection<'a>>,
}

/// What there is when a run is judged. In virtual time the machine is held then.
pub struct Moment<'a> {
    /// What the guests have said.
    pub said: &'a Transcript,
    /// What was seen in the machine's memory.
    pub observer: &'a Observer,
    /// The machine.
    pub machine: &'a Machine,
    /// Virtual time at which the machine is held; `None` in real time.
    pub virtual_time: Option<Duration>,
}

/// What was seen of a machine that has ended.
#[derive(Debug)]
pub struct Run {
    /// What was seen in the machine's memory.
    pub observer: Observer,
    /// What was computed for the tasks of its guests.
    pub promises: Promises,
    /// The longest paths of its hypervisor, if the instrument counted what that executed.
    pub paths: Option<Paths>,
    /// What the guests have said.
    pub said: Transcript,
    /// Why it ended.
    pub end: End,
    /// How long the machine ran, real time.
    pub elapsed: Duration,
    /// What the machine had of the host; `None` where the host's kernel does not count it.
    pub host: Option<HostUse>,
    /// What the instrument of virtual time counted, if it was there.
    pub instrument: Option<Statistics>,
    /// Where the console logs are.
    pub directory: PathBuf,
    /// What an inspection of its memory found ([`Session::inspected_by`]).
    pub inspected: Vec<String>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The machine switched itself off.
    PoweredOff,
    /// What was waited for has come, or the user at a console ended it.
    Reached,
    /// The limit was reached first.
    TimeOver,
    /// Every core waits, no timer is set, and nothing is connected that could type.
    AtRest,
    /// Ctrl-C was pressed.
    Interrupted,
}

impl<'a> Session<'a> {
    /// Prepares a run of `bundle` on `qemu`, with time as `time` says and console logs in
    /// `directory`. The instrument of virtual time counts what is executed at EL2.
    #[must_use]
    pub fn of(bundle: &Bundle, qemu: &'a Qemu, time: &Time, directory: &Path) -> Self {
        let layout = bundle.layout();
        let names = layout.vms.iter().map(|vm| vm.name.as_str());
        let consoles = ConsoleConfig::hypervisor(names, Some(directory.into()));
        let session = Self::new(bundle.machine_in(time), layout, consoles, qemu, directory);
        let (promises, paths) = (bundle.promises.clone(), bundle.paths.clone());
        // So often that it is known what each vCPU with a budget had in each of its periods.
        let period = promises.look_every().unwrap_or(PERIOD).clamp(LEAST_PERIOD, PERIOD);
        Self { sources: Sources::of(bundle), promises, paths, period, ..session }
    }

    /// Prepares a run of `config`, which boots the single guest `name` without a hypervisor.
    #[must_use]
    pub fn plain(config: MachineConfig, name: &str, qemu: &'a Qemu, directory: &Path) -> Self {
        let consoles = ConsoleConfig::plain(name, Some(directory.into()));
        Self::new(config, Layout::default(), consoles, qemu, directory)
    }

    fn new(
        config: MachineConfig,
        layout: Layout,
        consoles: ConsoleConfig,
        qemu: &'a Qemu,
        directory: &Path,
    ) -> Self {
        Self {
            qemu,
            config,
            consoles,
            layout,
            sources: None,
            directory: directory.into(),
            limit: None,
            period: PERIOD,
            patience: PATIENCE,
            promises: Promises::default(),
            paths: None,
            view: Box::new(Silent),
            interrupt: Interrupt::never(),
            connections: Connections::default(),
            operator: None,
            inspection: None,
        }
    }

    /// Ends the run after `limit` of the machine's own time.
    #[must_use]
    pub fn within(self, limit: impl Into<Option<Duration>>) -> Self {
        Self { limit: limit.into(), ..self }
    }

    /// Holds the machine every `period` of virtual time to judge it.
    #[must_use]
    pub fn held_every(self, period: Duration) -> Self {
        Self { period, ..self }
    }

    /// Reports a virtual clock that has not moved for `patience` of real time.
    #[must_use]
    pub fn patient_for(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Shows the run in `view`.
    #[must_use]
    pub fn shown_by(self, view: Box<dyn View + 'a>) -> Self {
        Self { view, ..self }
    }

    /// Ends the run on `interrupt`.
    #[must_use]
    pub fn interrupted_by(self, interrupt: Interrupt) -> Self {
        Self { interrupt, ..self }
    }

    /// Connects consoles to terminals and programs, whose users may end the run.
    #[must_use]
    pub fn connected_to(self, connections: Connections) -> Self {
        Self { connections, ..self }
    }

    /// Takes requests of operators ([`crate::operator`]) in the directory of the run, from now on.
    ///
    /// # Errors
    /// When nothing can listen there.
    pub fn operated(self) -> Result<Self> {
        let operator = Operator::listen(&self.directory)
            .map_err(|cause| miette!("cannot listen for operators: {cause}"))?;
        Ok(Self { operator: Some(operator), ..self })
    }

    /// Counts what is executed in `range` of physical addresses instead of EL2, in virtual time.
    #[must_use]
    pub fn counting(mut self, range: std::ops::Range<u64>) -> Self {
        if let Time::Virtual(time) = self.config.time {
            self.config.time = Time::Virtual(time.counting(range));
        }
        self.paths = None;
        self
    }

    /// Lets no core run further ahead of the others than `quantum_ns`, in virtual time.
    #[must_use]
    pub fn with_quantum(mut self, quantum_ns: u64) -> Self {
        if let Time::Virtual(time) = self.config.time {
            self.config.time = Time::Virtual(time.with_quantum(quantum_ns));
        }
        self
    }

    /// Lets the machine begin with the image `file` instead: another kind of file with the same system.
    #[must_use]
    pub fn beginning_with(mut self, file: &Path) -> Self {
        self.config.image = file.into();
        self
    }

    /// Lets the machine begin with `firmware`, which loads the system from a device that further arguments
    /// tell of.
    #[must_use]
    pub fn loaded_by(mut self, firmware: &Path) -> Self {
        self.config.is_firmware = true;
        self.beginning_with(firmware)
    }

    /// Tells QEMU more, such as of a device that the board has besides.
    #[must_use]
    pub fn with_qemu_arguments(mut self, arguments: impl IntoIterator<Item = String>) -> Self {
        self.config.extra_args.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Has `inspection` look at the machine's memory once the machine has ended.
    #[must_use]
    pub fn inspected_by(self, inspection: Inspection<'a>) -> Self {
        Self { inspection: Some(inspection), ..self }
    }

    /// Cores note their times at marks, in virtual time.
    #[must_use]
    pub fn with_marks(mut self, marks: Marks) -> Self {
        if let Time::Virtual(time) = self.config.time {
            self.config.time = Time::Virtual(time.with_marks(marks));
        }
        self
    }

    /// A guest's WFE is taken to EL2 where HCR_EL2.TWE says so, in virtual time.
    #[must_use]
    pub fn with_wfe_traps(mut self) -> Self {
        if let Time::Virtual(time) = self.config.time {
            self.config.time = Time::Virtual(time.with_wfe_traps());
        }
        self
    }

    /// Boots the machine and watches it until it is off or at rest, the limit is reached,
    /// Ctrl-C comes, or `until` says that it has seen enough. The last lines are shown to
    /// `until` in any case.
    ///
    /// In virtual time `until` judges where the machine is held, and so is the limit: how such
    /// a run ends, and all that is read at its end, is a function of virtual time. Only Ctrl-C
    /// is the host's.
    ///
    /// # Errors
    /// When QEMU fails, does not begin or stalls, or its memory cannot be read or inspected. A guest that
    /// fails is no error but a finding.
    pub fn run(self, until: impl FnMut(&Moment) -> bool) -> Result<Run> {
        Watch::start(self)?.run(until)
    }
}

impl End {
    /// Returns it in words.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::PoweredOff => "the machine switched itself off",
            Self::TimeOver => "the time was over",
            Self::Reached => "it was ended from a console",
            Self::AtRest => "every core waited, and no timer was set",
            Self::Interrupted => "interrupted",
        }
    }
}

impl Run {
    /// Returns the virtual time at its end; `None` in real time.
    #[must_use]
    pub fn virtual_time(&self) -> Option<Duration> {
        self.instrument.as_ref().map(|counts| Duration::from_nanos(counts.virtual_ns))
    }

    /// Returns what was seen of faults of the hypervisor itself, a sentence each: what it said
    /// before it stopped, what it counted and survived, and where it was deaf for longer than
    /// computed. And of the instrument: that it let cores go on out of turn, which another run may
    /// not repeat.
    #[must_use]
    pub fn hypervisor_faults(&self) -> Vec<String> {
        let bugs = self.observer.bugs();
        let survived =
            (bugs > 0).then(|| format!("the hypervisor met what cannot happen {bugs} times"));
        let told = self.said.hypervisor.faults().map(Into::into).chain(survived);
        let vcpus = self.instrument.iter().flat_map(|counts| &counts.vcpus);
        let out_of_turn: u64 = vcpus.map(|vcpu| vcpu.forced_leaves.timeout).sum();
        let unlike = (out_of_turn > 0).then(|| {
            format!("cores went on out of turn {out_of_turn} times: another run may differ")
        });
        let deaf = self.stretches();
        told.chain(deaf.iter().filter_map(Stretch::objection)).chain(unlike).collect()
    }

    /// Demands that none of these was seen.
    ///
    /// # Errors
    /// What was seen.
    pub fn without_faults(&self) -> Result<()> {
        let (faults, logs) = (self.hypervisor_faults(), self.directory.display());
        ensure!(faults.is_empty(), "{}\n(logs in {logs})", faults.join("\n"));
        Ok(())
    }

    /// Returns that something did not come of it: `why`, how it ended, where the consoles are, and what each said
    /// last, as the reason is often there.
    #[must_use]
    pub fn unfinished(&self, why: &str) -> Report {
        let names = self.observer.layout.vms.iter().map(|vm| vm.name.as_str());
        let guests = self.said.guests.iter().map(|guest| &guest.tail);
        let guests = names.chain(["the guest"]).zip(guests);
        let all = [("the hypervisor", &self.said.hypervisor.tail)].into_iter().chain(guests);
        let lines = all.flat_map(|(name, tail)| {
            tail.lines().map(move |line| format!("\n{name}: {}", line.trim_end()))
        });
        let (end, logs) = (self.end.about(), self.directory.display());
        miette!("{why}: {end} (the consoles are in {logs}){}", lines.collect::<String>())
    }

    /// Returns how far EL2 went without a look, beside how far it goes at most; nothing of an image
    /// that is not ours to analyse, as one with a planted bug may be. That ours can be is tested.
    #[must_use]
    pub fn stretches(&self) -> Vec<Stretch> {
        let counted = self.instrument.as_ref().zip(self.paths.as_ref());
        let computed = counted.and_then(|(counts, paths)| Some((counts, paths.report().ok()?)));
        computed.map_or_else(Vec::new, |(counts, paths)| Stretch::all([counts], &paths))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_fault_that_was_said_and_one_that_was_survived_are_both_found() {
        let mut status = testing::status();
        let run = |status: &_, said| {
            let observer = testing::observer(status, &testing::report(100, 0));
            testing::run(observer, said, End::PoweredOff)
        };
        let good = run(&status, "\x1f0cassata: VM a is off\n");
        assert!(good.hypervisor_faults().is_empty() && good.without_faults().is_ok());
        status.bugs = 2;
        let bad = run(&status, "\x1f0cassata: hypervisor fault: a reason\n");
        let faults = bad.hypervisor_faults();
        assert!(faults[0].contains("a reason") && faults[1].contains("2 times"), "{faults:?}");
        let told = bad.without_faults().unwrap_err().to_string();
        assert!(faults.iter().all(|fault| told.contains(fault)), "{told}");
    }

    /// That the machine is off is no reason: what a console said before may be one.
    #[test]
    fn what_did_not_come_is_told_with_the_last_lines_of_each_console() {
        let observer = testing::observer(&testing::status(), &testing::report(100, 0));
        let said = "\x1f0cassata: VM linux is off\n\x1f1Kernel panic\n\x1f2freertos: summary\n";
        let run = testing::run(observer, said, End::PoweredOff);
        let told = run.unfinished("no work was done").to_string();
        assert!(told.starts_with("no work was done: the machine switched itself off ("), "{told}");
        for line in
            ["the hypervisor: cassata: VM linux is off", "linux: Kernel panic", "rtos: free"]
        {
            assert!(told.contains(&format!("\n{line}")), "{told}");
        }
    }
}
