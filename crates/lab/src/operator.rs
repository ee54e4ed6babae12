//! What an operator changes while a system runs: where vCPUs are, and which migration policy a
//! VM has.
//!
//! A run listens on a socket in the directory of its results. A request is a line of JSON, and so is
//! the answer, which comes when the hypervisor has done what was asked for, as the run sees in its
//! memory. The description says what may be asked for; all of that was admitted when it was checked.

use crate::bundle::HYPERVISOR;
use crate::console::Consoles;
use crate::observe::{Layout, Observer, Snapshot};
use abi::console::Order;
use miette::{IntoDiagnostic, Result, miette};
use sched::policy::MigrationPolicy;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The socket, in the directory of a run's results.
const SOCKET: &str = "operator.sock";
/// Real time within which the hypervisor does what is asked for. It takes microseconds of the
/// machine's time, and in virtual time those of a busy machine may take a while.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a request at most.
const LONGEST: usize = 4096;

/// What an operator may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// A vCPU goes to a pCPU.
    Move {
        /// The vCPU, as `linux.1`.
        vcpu: String,
        /// The pCPU.
        pcpu: usize,
    },
    /// A VM has another migration policy from now on.
    Policy {
        /// The VM.
        vm: String,
        /// The policy, as a description names it.
        policy: String,
    },
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It was done: what is so now.
    Done(String),
    /// It was not, and why; then what may help.
    Refused(String, String),
}

/// Asks the run that writes its results to `directory`. Returns what is so now.
///
/// # Errors
/// When no run listens there, or it refuses.
pub fn ask(directory: &Path, request: &Request) -> Result<String> {
    let gone = |cause: io::Error| {
        miette!(
            help = "it takes requests while `cassata run` runs",
            "{} is of no run that runs: {cause}",
            directory.display()
        )
    };
    let place = Place::of(directory).map_err(gone)?;
    let mut stream = UnixStream::connect(place.path()).map_err(gone)?;
    let mut line = serde_json::to_string(request).into_diagnostic()?;
    line.push('\n');
    stream.write_all(line.as_bytes()).map_err(gone)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(gone)?;
    if answer.is_empty() {
        return Err(miette!("the run has ended before it answered"));
    }
    match serde_json::from_str(&answer).into_diagnostic()? {
        Reply::Done(what) => Ok(what),
        Reply::Refused(why, help) => Err(miette!(help = help, "{why}")),
    }
}

/// A short path to the socket: the address of a Unix socket is some hundred bytes long at most.
struct Place(File);

impl Place {
    fn of(directory: &Path) -> io::Result<Self> {
        File::open(directory).map(Self)
    }

    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}/{SOCKET}", self.0.as_raw_fd()).into()
    }
}

/// The end of a run to which operators talk.
pub(crate) struct Operator {
    place: Place,
    listener: UnixListener,
    users: Vec<User>,
}

/// A program that has connected.
struct User {
    stream: UnixStream,
    said: Vec<u8>,
    awaited: Option<Awaited>,
}

/// What the hypervisor was ordered to do.
struct Awaited {
    aim: Aim,
    until: Instant,
}

/// What is to be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    At { vcpu: usize, pcpu: usize },
    Has { vm: usize, policy: MigrationPolicy },
}

impl Aim {
    /// Returns what a request asks for, or why it may not be.
    fn of(request: &Request, layout: &Layout) -> Result<Self, Reply> {
        match request {
            Request::Move { vcpu, pcpu } => Self::movement(vcpu, *pcpu, layout),
            Request::Policy { vm, policy } => Self::policy(vm, policy, layout),
        }
    }

    fn movement(name: &str, pcpu: usize, layout: &Layout) -> Result<Self, Reply> {
        let names = || (0..layout.vcpus.len()).map(|vcpu| layout.vcpu_label(vcpu));
        let Some(vcpu) = names().position(|label| label == name) else {
            let all: Vec<_> = names().collect();
            return Err(refused(
                format!("there is no vCPU `{name}`"),
                &format!("there are {}", all.join(", ")),
            ));
        };
        let policy = layout.vms[layout.vcpus[vcpu].vm].policy;
        if !policy.needs().moves_on_request {
            let why =
                format!("`{name}` does not move on request: its policy is `{}`", policy.name());
            let help = "say `migration_policy = \"on-request\"` in the description, and `may_run_on` \
                        for the vCPU";
            return Err(refused(why, help));
        }
        let affinity = layout.vcpus[vcpu].affinity;
        if !affinity.iter().any(|may| may == pcpu) {
            let may: Vec<_> = affinity.iter().map(|pcpu| pcpu.to_string()).collect();
            let why = format!("`{name}` may not run on pCPU {pcpu}");
            return Err(refused(why, &format!("by its description it may on {}", may.join(", "))));
        }
        Ok(Self::At { vcpu, pcpu })
    }

    fn policy(name: &str, policy: &str, layout: &Layout) -> Result<Self, Reply> {
        let Some(vm) = layout.vm(name) else {
            let all: Vec<_> = layout.vms.iter().map(|vm| vm.name.as_str()).collect();
            return Err(refused(
                format!("there is no VM `{name}`"),
                &format!("there are {}", all.join(", ")),
            ));
        };
        let may = layout.vms[vm].may_switch_to;
        let Some(policy) = may.iter().find(|kind| kind.name() == policy) else {
            let why = format!("VM `{name}` may not have `{policy}`");
            let names: Vec<_> = may.iter().map(|kind| kind.name()).collect();
            let help = if may.is_empty() {
                format!(
                    "name it in `may_switch_to` of the description; now it stays with `{}`",
                    layout.vms[vm].policy.name()
                )
            } else {
                format!("by its description it may have {}", names.join(", "))
            };
            return Err(refused(why, &help));
        };
        Ok(Self::Has { vm, policy })
    }

    fn order(self) -> Order {
        match self {
            Self::At { vcpu, pcpu } => Order::Move { vcpu: vcpu as u8, pcpu: pcpu as u8 },
            Self::Has { vm, policy } => Order::Policy { vm: vm as u8, policy: policy as u8 },
        }
    }

    fn is_so(self, now: &Snapshot) -> bool {
        match self {
            Self::At { vcpu, pcpu } => now.vcpus[vcpu].pcpu == pcpu as u64,
            Self::Has { vm, policy } => u16::from(now.policies[vm]) == policy as u16,
        }
    }

    fn about(self, layout: &Layout) -> String {
        match self {
            Self::At { vcpu, pcpu } => format!("{} is on pCPU {pcpu}", layout.vcpu_label(vcpu)),
            Self::Has { vm, policy } => {
                format!("VM {} has the policy {}", layout.vms[vm].name, policy.name())
            }
        }
    }
}

fn refused(why: String, help: &str) -> Reply {
    Reply::Refused(why, help.to_owned())
}

impl Operator {
    /// Listens in the directory of a run's results, which is this process's alone.
    pub(crate) fn listen(directory: &Path) -> io::Result<Self> {
        let place = Place::of(directory)?;
        let listener = UnixListener::bind(place.path())?;
        listener.set_nonblocking(true)?;
        Ok(Self { place, listener, users: Vec::new() })
    }

    /// Takes requests, orders what they ask for, and answers those that are done; waits for nothing.
    pub(crate) fn attend(&mut self, consoles: &Consoles, observer: &Observer) {
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() {
                self.users.push(User { stream, said: Vec::new(), awaited: None });
            }
        }
        self.users.retain_mut(|user| match user.attend(consoles, observer) {
            None => true,
            Some(reply) => {
                user.answer(&reply);
                false
            }
        });
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        drop(std::fs::remove_file(self.place.path()));
    }
}

impl User {
    /// Returns the answer, when there is one.
    fn attend(&mut self, consoles: &Consoles, observer: &Observer) -> Option<Reply> {
        if let Some(awaited) = &self.awaited {
            let is_so = observer.latest().is_some_and(|now| awaited.aim.is_so(now));
            if is_so {
                return Some(Reply::Done(awaited.aim.about(&observer.layout)));
            }
            let help = "it may be off, be powered down with its core, or fail: see the run";
            let why = || {
                let aim = awaited.aim.about(&observer.layout);
                format!("after {} s it is not yet so that {aim}", PATIENCE.as_secs())
            };
            return (Instant::now() > awaited.until).then(|| refused(why(), help));
        }
        // The hypervisor listens when it is up.
        observer.latest()?;
        let line = match self.line() {
            Ok(line) => line?,
            Err(reply) => return Some(reply),
        };
        let request: Request = match serde_json::from_slice(&line) {
            Ok(request) => request,
            Err(cause) => {
                let help = r#"such as {"move": {"vcpu": "linux.1", "pcpu": 3}}, a line each"#;
                return Some(refused(format!("this is no request: {cause}"), help));
            }
        };
        let aim = match Aim::of(&request, &observer.layout) {
            Ok(aim) => aim,
            Err(reply) => return Some(reply),
        };
        if let Err(cause) = consoles.send(HYPERVISOR, &aim.order().bytes()) {
            return Some(refused(format!("the machine has gone: {cause}"), "run it again"));
        }
        self.awaited = Some(Awaited { aim, until: Instant::now() + PATIENCE });
        None
    }

    /// Returns the first line, when it has come.
    fn line(&mut self) -> Result<Option<Vec<u8>>, Reply> {
        let mut bytes = [0; 512];
        loop {
            if let Some(end) = self.said.iter().position(|&byte| byte == b'\n') {
                return Ok(Some(self.said[..end].to_vec()));
            }
            if self.said.len() > LONGEST {
                return Err(refused("this request is too long".into(), "one takes a line"));
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => {
                    return Err(refused("this request has no end".into(), "end it with a newline"));
                }
                Ok(count) => self.said.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(refused(error.to_string(), "ask again")),
            }
        }
    }

    /// Answers, unless the user has gone.
    fn answer(&mut self, reply: &Reply) {
        if let Ok(mut line) = serde_json::to_vec(reply) {
            line.push(b'\n');
            drop(self.stream.write_all(&line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use sched::CoreSet;

    fn layout() -> Layout {
        let mut layout = testing::observer(&testing::status(), &testing::report(1, 0)).layout;
        layout.vms[0].may_switch_to =
            [MigrationPolicy::None, MigrationPolicy::OnDemand].into_iter().collect();
        layout.vms[1].policy = MigrationPolicy::OnRequest;
        let vcpu = layout.vms[1].vcpus.start;
        layout.vcpus[vcpu].affinity = CoreSet::from_bits(0b101);
        layout
    }

    fn why(request: &Request) -> String {
        match Aim::of(request, &layout()) {
            Err(Reply::Refused(why, help)) => format!("{why}; {help}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_the_description_allows_is_ordered() {
        let layout = layout();
        let vcpu = layout.vms[1].vcpus.start;
        let (vm, name) = (layout.vms[0].name.clone(), layout.vcpu_label(vcpu));
        let aim = Aim::of(&Request::Move { vcpu: name, pcpu: 2 }, &layout).unwrap();
        assert_eq!(aim, Aim::At { vcpu, pcpu: 2 });
        assert_eq!(aim.order(), Order::Move { vcpu: vcpu as u8, pcpu: 2 });
        let aim = Aim::of(&Request::Policy { vm, policy: "none".into() }, &layout).unwrap();
        assert_eq!(aim.order(), Order::Policy { vm: 0, policy: 0 });
    }

    #[test]
    fn what_it_does_not_allow_is_refused_with_what_it_does() {
        let layout = layout();
        let mover = layout.vcpu_label(layout.vms[1].vcpus.start);
        let stays = layout.vcpu_label(layout.vms[0].vcpus.start);
        let request = |vcpu: &str, pcpu| Request::Move { vcpu: vcpu.into(), pcpu };
        assert!(why(&request(&mover, 1)).ends_with("it may on 0, 2"));
        assert!(why(&request(&mover, 99)).contains("may not run on pCPU 99"));
        assert!(why(&request(&stays, 1)).contains("on-request"));
        assert!(why(&request("absent.7", 1)).contains(&mover));
        let policy =
            |vm: &str, policy: &str| Request::Policy { vm: vm.into(), policy: policy.into() };
        let (first, second) = (&layout.vms[0].name, &layout.vms[1].name);
        assert!(why(&policy(first, "balance")).ends_with("none, on-demand"));
        assert!(why(&policy(second, "none")).contains("may_switch_to"));
        assert!(why(&policy("nothing", "none")).contains(first.as_str()));
    }

    #[test]
    fn a_run_that_does_not_run_takes_no_requests() {
        let directory = tempfile::tempdir().unwrap();
        let request = Request::Move { vcpu: "linux.1".into(), pcpu: 3 };
        let error = ask(directory.path(), &request).unwrap_err().to_string();
        assert!(error.contains("is of no run that runs"), "{error}");
    }

    #[test]
    fn requests_are_lines_that_programs_write() {
        let line = r#"{"move": {"vcpu": "linux.1", "pcpu": 3}}"#;
        let request: Request = serde_json::from_str(line).unwrap();
        assert_eq!(request, Request::Move { vcpu: "linux.1".into(), pcpu: 3 });
        assert!(serde_json::from_str::<Request>(r#"{"policy": {"vm": "a"}}"#).is_err());
    }
}
