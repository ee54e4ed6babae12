//! A system description from `guests/probe/systems`, booted and judged.

use super::LIMIT;
use super::expect::{Expect, Seen};
use super::probe::Account;
use crate::bundle::{Bundle, channel};
use crate::console::Line;
use crate::machine::{Machine, Time, VirtualTime};
use crate::observe::{Observer, Pace};
use crate::session::{End, Limit, Session, SessionError};
use crate::suite::{Bench, Scenario};
use crate::view::Silent;
use abi::console::HYPERVISOR;
use abi::status::vm_state;
use miette::{Result, miette};
use std::fmt::Write;
use std::path::Path;

/// A scenario with VMs and what is expected of each.
#[derive(Clone, Copy, Debug)]
pub struct Staged {
    /// Its name, and that of its description: `guests/probe/systems/NAME.toml`.
    pub name: &'static str,
    /// One sentence: what it shows.
    pub about: &'static str,
    /// Every VM, by name.
    pub expect: &'static [(&'static str, Expect)],
    /// What must hold besides, at the end; the reason if it does not.
    pub besides: Option<fn(&Observer) -> Option<String>>,
}

/// Where the descriptions are, below the project's root.
pub const SYSTEMS: &str = "guests/probe/systems";

impl From<Staged> for Scenario {
    fn from(staged: Staged) -> Self {
        Self::new(staged.name, staged.about, move |bench: &Bench| {
            staged.run(bench, &[], |observer| staged.besides.and_then(|besides| besides(observer)))
        })
    }
}

impl Staged {
    /// Runs it with the first of each of `edits` replaced by the second in the
    /// description; at the end, `besides` must have no objection.
    pub fn run(
        &self,
        bench: &Bench,
        edits: &[(String, String)],
        besides: impl Fn(&Observer) -> Option<String>,
    ) -> Result<()> {
        let path = bench.root.join(SYSTEMS).join(format!("{}.toml", self.name));
        let checked = system::load_text(&path, &edited(&path, edits)?)?;
        let image = bench.directory.join("system.elf");
        let bundle = Bundle::pack(&checked, bench.hypervisor, &image)?;
        let stage = self.play(bench, &bundle)?;
        // Only what failed is worth the room its image takes.
        let objections = self.objections(&stage, besides(&stage.observer));
        if objections.is_empty() {
            drop(std::fs::remove_file(&image));
            return Ok(());
        }
        Err(miette!("{objections}(ended: {:?}; logs in {})", stage.end, bench.directory.display()))
    }

    /// Runs it until all that is awaited has come, or cannot come any more.
    fn play(&self, bench: &Bench, bundle: &Bundle) -> Result<Stage> {
        let time = VirtualTime::new(&bench.instrument, &bench.qemu, &bench.directory)?;
        let config = bundle.machine_in(&Time::Virtual(time));
        let mut observer = Observer::new(bundle.layout(), Pace::Virtual);
        let consoles = bundle.consoles(Some(bench.directory.clone()));
        let mut machine = Machine::start(&bench.qemu, &config, &consoles)?;
        let accounts = vec![Account::default(); bundle.layout().vms.len()];
        let mut heard = Heard { accounts, told: Vec::new() };
        let mut session = Session {
            machine: &mut machine,
            observer: &mut observer,
            view: &mut Silent,
            interrupt: bench.interrupt.clone(),
            limit: Some(Limit::Real(LIMIT)),
        };
        let end = session
            .run(|lines, observer| {
                lines.iter().for_each(|line| heard.hear(line));
                self.is_over(&heard, observer)
            })
            .map_err(|error: SessionError| miette::Report::from(error))?;
        Ok(Stage { observer, heard, end })
    }

    /// Nothing more is awaited, or something that endures has ended.
    fn is_over(&self, heard: &Heard, observer: &Observer) -> bool {
        let settled = |(name, expect): &(&str, Expect)| {
            heard.seen(name, observer).is_none_or(|seen| expect.settled(&seen))
        };
        let (awaited, others): (Vec<_>, Vec<_>) =
            self.expect.iter().partition(|(_, expect)| expect.is_awaited());
        let Some(now) = observer.latest() else { return false };
        // With no VM left, the machine has yet to switch itself off.
        now.vms.iter().any(|vm| matches!(vm.state, vm_state::RUNNING | vm_state::LOADING))
            && (awaited.into_iter().all(settled) || others.into_iter().any(settled))
    }

    fn objections(&self, stage: &Stage, besides: Option<String>) -> String {
        let mut text = String::new();
        let mut object = |who: &str, why: &str| {
            let _ = writeln!(text, "{who}: {why}");
        };
        for (name, expect) in self.expect {
            match stage.heard.seen(name, &stage.observer) {
                None => object(name, "there is no such VM"),
                Some(seen) => expect.objection(&seen).iter().for_each(|why| object(name, why)),
            }
        }
        let expected = self.expect.len();
        if expected != stage.heard.accounts.len() {
            object("system", "there are VMs of which nothing is expected");
        }
        let all_end =
            self.expect.iter().all(|(_, e)| matches!(e, Expect::Passes | Expect::Rhythm(_)));
        if all_end && stage.end != End::PoweredOff {
            object("system", "it did not switch itself off when no VM was left");
        }
        besides.iter().for_each(|why| object("system", why));
        stage.heard.told.iter().filter(|line| line.contains("hypervisor fault")).for_each(|line| {
            object("hypervisor", line);
        });
        text
    }
}

/// The description at `path`, with each of `edits` made.
pub(super) fn edited(path: &Path, edits: &[(String, String)]) -> Result<String> {
    let read = std::fs::read_to_string(path);
    let mut text = read.map_err(|error| miette!("cannot read {}: {error}", path.display()))?;
    for (from, to) in edits {
        if !text.contains(from) {
            return Err(miette!("{}: there is no `{from}` to replace", path.display()));
        }
        text = text.replace(from, to);
    }
    Ok(text)
}

/// What was said until now.
struct Heard {
    accounts: Vec<Account>,
    /// By the hypervisor.
    told: Vec<String>,
}

impl Heard {
    fn hear(&mut self, line: &Line) {
        if line.channel == HYPERVISOR {
            self.told.push(line.text.clone());
        }
        let mut accounts = self.accounts.iter_mut().enumerate();
        if let Some((_, account)) = accounts.find(|(vm, _)| channel(*vm) == line.channel) {
            account.hear(&line.text);
        }
    }

    fn seen<'a>(&'a self, name: &str, observer: &'a Observer) -> Option<Seen<'a>> {
        let vm = observer.layout().vm(name)?;
        Some(Seen { vm, account: &self.accounts[vm], told: &self.told, observer })
    }
}

/// A run that has ended.
struct Stage {
    observer: Observer,
    heard: Heard,
    end: End,
}
