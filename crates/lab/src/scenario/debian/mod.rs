//! A stock Debian on a disk boots to a login, has a network, installs a package and boots again, beside
//! FreeRTOS.

mod repository;

use super::stock::late;
use crate::bundle::channel;
use crate::figures;
use crate::guests::{DebianProgress, SAY};
use crate::session::{Moment, Run};
use crate::suite::{Bench, Scenario};
use miette::Result;
use repository::Repository;
use std::time::Duration;

/// The name, and that of the VM.
pub(super) const NAME: &str = "debian";
/// The description, below the project's root.
const DESCRIPTION: &str = "systems/debian.toml";
/// What is on the disk once it is made, and the package that is installed.
const PRODUCTS: &str = "build/guests/debian";
/// A user's disk is left alone, and what is written is not kept.
const EDITS: [(&str, &str); 1] = [("disk.img\" }", "root.img\", keep = false }")];
/// Virtual time within which all is done: it needs some twenty seconds, but waits for the host's network.
const LIMIT: Duration = Duration::from_secs(120);

/// Returns the scenario. It takes long: Debian boots twice.
pub fn scenario() -> Scenario {
    let about =
        "stock Debian on a disk boots to a login, has a network, installs a package and keeps it";
    Scenario::new(NAME, about, stage).by_name()
}

fn stage(bench: &Bench) -> Result<()> {
    let edits = EDITS.map(|(from, to)| (from.to_owned(), to.to_owned()));
    let bundle = bench.pack(&bench.described(DESCRIPTION, &edits)?)?;
    let repository = Repository::serve(&bench.root.join(PRODUCTS).join("repository"))?;
    let vm = bundle.layout().vm_called(NAME)?;
    let mut user = User::new(vm, steps(repository.port()));
    let run = bench.session(&bundle, LIMIT)?.run(|now| {
        user.go_on(now);
        user.failure.is_some() || now.observer.is_over(vm)
    })?;
    let mut outcome = figures::outcome(NAME, &run);
    outcome.figure("answers", serde_json::json!(run.said.guests[vm].debian.answers));
    bench.judge(&run, outcome, &objections(&run, &user))
}

/// What a user waits for before a line is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// Debian asks for a name.
    Login,
    /// Debian greets.
    Greeting,
    /// The command before answers one of these.
    Answer(&'static [&'static str]),
}

/// Returns what is typed, each line with what is waited for before; the port is the repository's.
fn steps(port: u16) -> Vec<(Until, String)> {
    const GOOD: Until = Until::Answer(&["0"]);
    const CLOCK_IS_SET: Until = Until::Answer(&["1"]);
    const READY: Until = Until::Answer(&["ready"]);
    const GREETED: Until = Until::Answer(&["Hello, world!"]);
    // A unit may fail for want of hardware.
    const BOOTED: Until = Until::Answer(&["running", "degraded"]);
    let ready = format!("{SAY}; say ready");
    let from = format!("cd /etc/apt; from=http://10.0.2.2:{port}/; say $?");
    let steps: [(Until, &str); 14] = [
        (Until::Login, "root"),
        (Until::Greeting, &ready),
        (READY, "say $(systemctl is-system-running --wait)"),
        (BOOTED, "/lib/systemd/systemd-networkd-wait-online; say $?"),
        (GOOD, "ping -c 3 10.0.2.2; say $?"),
        (GOOD, "say $(cat /sys/class/rtc/rtc0/hctosys)"),
        (CLOCK_IS_SET, &from),
        (GOOD, "echo deb [trusted=yes] $from ./ >sources.list; say $?"),
        (GOOD, "apt-get update; say $?"),
        (GOOD, "apt-get install --yes hello; say $?"),
        (GOOD, "reboot"),
        (Until::Login, "root"),
        (Until::Greeting, &ready),
        (READY, "say $(hello)"),
    ];
    let last = (GREETED, "poweroff");
    steps.into_iter().chain([last]).map(|(until, line)| (until, line.to_owned())).collect()
}

/// A user at Debian's console.
struct User {
    vm: usize,
    steps: Vec<(Until, String)>,
    /// How many lines were typed.
    typed: usize,
    /// What Debian had said when the last one was.
    said: DebianProgress,
    failure: Option<String>,
}

impl User {
    fn new(vm: usize, steps: Vec<(Until, String)>) -> Self {
        Self { vm, steps, typed: 0, said: DebianProgress::default(), failure: None }
    }

    /// Types the next line, if what is waited for has come.
    fn go_on(&mut self, now: &Moment) {
        let said = &now.said.guests[self.vm].debian;
        let Some((until, line)) = self.steps.get(self.typed) else { return };
        match comes(*until, &self.said, said) {
            Ok(false) => return,
            Ok(true) => {
                let typed = format!("{line}\n");
                let sent = now.machine.consoles.send(channel(self.vm), typed.as_bytes());
                self.failure = sent.err().map(|error| format!("cannot type `{line}`: {error}"));
            }
            Err(answer) => self.failure = Some(format!("{}: {answer}", self.last())),
        }
        self.said = said.clone();
        self.typed += 1;
    }

    /// Returns the line that was typed last.
    fn last(&self) -> &str {
        self.typed.checked_sub(1).map_or("nothing was typed", |last| &self.steps[last].1)
    }
}

/// Returns whether what is waited for has come since `before`; an answer that is not wanted is an error.
fn comes(until: Until, before: &DebianProgress, now: &DebianProgress) -> Result<bool, String> {
    match until {
        Until::Login => Ok(now.logins > before.logins),
        Until::Greeting => Ok(now.greetings > before.greetings),
        Until::Answer(wanted) => match now.answers.get(before.answers.len()) {
            None => Ok(false),
            Some(answer) if wanted.contains(&answer.as_str()) => Ok(true),
            Some(answer) => Err(format!("the answer is `{answer}`, not one of {wanted:?}")),
        },
    }
}

fn objections(run: &Run, user: &User) -> Vec<String> {
    let mut all: Vec<_> = user.failure.iter().cloned().collect();
    if let Some((until, _)) = user.steps.get(user.typed) {
        all.push(format!("behind `{}`, {until:?} did not come", user.last()));
    } else if !run.observer.is_over(user.vm) {
        all.push("Debian does not go off".into());
    }
    all.extend(late(&run.observer));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_waited_for_lets_a_user_go_on() {
        let before = DebianProgress { answers: vec!["0".into()], ..DebianProgress::default() };
        let mut now = before.clone();
        let zero = Until::Answer(&["0"]);
        for until in [Until::Login, Until::Greeting, zero] {
            assert_eq!(comes(until, &before, &now), Ok(false), "{until:?}");
        }
        now.logins = 1;
        assert_eq!(comes(Until::Login, &before, &now), Ok(true));
        assert_eq!(comes(Until::Greeting, &before, &now), Ok(false));
        now.answers.push("100".into());
        assert!(comes(zero, &before, &now).unwrap_err().contains("`100`"));
        now.answers[1] = "0".into();
        assert_eq!(comes(zero, &before, &now), Ok(true));
    }

    #[test]
    fn lines_fit_a_guests_receive_fifo() {
        // `el2::shared::pl011` has room for so many bytes, the end of the line among them.
        assert!(steps(u16::MAX).iter().all(|(_, line)| line.len() < 64));
    }
}
