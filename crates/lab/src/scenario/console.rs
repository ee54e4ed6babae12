//! People and programs that have a guest's console, through the command line itself.

use super::staged::description;
use super::{REAL_LIMIT, typed};
use crate::console::connection::open_pty;
use crate::suite::{Bench, Scenario};
use miette::{IntoDiagnostic, Result, miette};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Instant;

/// Ends a run from the keyboard.
const QUIT: &[u8] = b"\x1dq";

/// All of them.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    [
        Scenario::new("console-shell", "a person has a shell on stock Linux", shell),
        Scenario::new("console-programs", "programs have consoles, one a socket", programs),
        Scenario::new("console-killed", "a terminal is usable after SIGKILL", killed),
    ]
    .into_iter()
}

/// Types a command into Linux's shell; Ctrl-C ends a program there and not the run. What ends a
/// line is left open: the guest's terminal and ours both have a say in it.
fn shell(bench: &Bench) -> Result<()> {
    let system = bench.root.join("systems/shell.toml");
    let mut person = Person::sit_down(bench, &system, &["--vtime", "--console", "linux"])?;
    person.expect("# ")?;
    person.write(b"echo $((6 * 7))\r")?;
    person.expect("\n42\r")?;
    // The program itself says that it is there: between two programs the shell would take the
    // key, and start the second all the same.
    person.write(b"sh -c 'echo begin $((1 + 1)); exec sleep 1000'\r")?;
    person.expect("begin 2\r")?;
    person.write(b"\x03")?;
    // What is typed before the shell reads again is discarded, as on any terminal.
    person.expect("# ")?;
    person.write(b"echo after $((40 + 5))\r")?;
    person.expect("after 45\r")?;
    person.write(QUIT)?;
    person.expect("it was ended from a console")?;
    person.stand_up(Some(0))
}

/// A program types through a socket, another one through a pseudo-terminal; SIGINT ends the run.
fn programs(bench: &Bench) -> Result<()> {
    let path = bench.directory.join("one");
    let socket = format!("one=unix:{}", path.display());
    let arguments = ["--console", &socket, "--console", "two=pty"];
    let mut child = command(bench, &echoes(bench), &arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .into_diagnostic()?;
    let mut said = BufReader::new(child.stderr.take().ok_or_else(|| miette!("no stderr"))?);
    let places = [place(&mut said, "the socket ")?, place(&mut said, "of two is ")?];
    let result = converse(&places);
    signal(&child, Signal::INT)?;
    let status = child.wait().into_diagnostic()?;
    result?;
    if status.code() != Some(130) || path.exists() {
        return Err(miette!("{status} after SIGINT; the socket is there: {}", path.exists()));
    }
    Ok(())
}

fn converse(places: &[PathBuf; 2]) -> Result<()> {
    let mut one = UnixStream::connect(&places[0]).into_diagnostic()?;
    one.set_read_timeout(Some(REAL_LIMIT)).into_diagnostic()?;
    let mut two = open_terminal(&places[1])?;
    for n in 0..3 {
        one.write_all(format!("socket {n}\n").as_bytes()).into_diagnostic()?;
        two.write_all(format!("pty {n}\n").as_bytes()).into_diagnostic()?;
        hear(&mut one, &format!("heard socket {n}"))?;
        hear(&mut two, &format!("heard pty {n}"))?;
    }
    Ok(())
}

/// SIGKILL leaves nothing that could put the terminal in order but what stands by.
fn killed(bench: &Bench) -> Result<()> {
    let mut person = Person::sit_down(bench, &echoes(bench), &["--console", "three"])?;
    person.expect("listening")?;
    if person.has_its_mode()? {
        return Err(miette!("the terminal is not in raw mode while a guest has it"));
    }
    person.write(b"hello\r\n")?;
    person.expect("heard hello")?;
    signal(&person.child, Signal::KILL)?;
    person.stand_up(None)
}

fn echoes(bench: &Bench) -> PathBuf {
    bench.root.join(description(typed::NAME))
}

/// Returns the command line that runs this test, with arguments that run `system`; its results
/// go to the test's own directory.
fn command(bench: &Bench, system: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg("run").arg(system).args(arguments).env("CASSATA_ROOT", &bench.directory);
    command
}

fn signal(child: &Child, signal: Signal) -> Result<()> {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let id = id.ok_or_else(|| miette!("a process without a number"))?;
    kill_process(id, signal).into_diagnostic()
}

/// Returns the path at the end of the first line that has `text`.
fn place(said: &mut BufReader<ChildStderr>, text: &str) -> Result<PathBuf> {
    let mut line = String::new();
    while said.read_line(&mut line).into_diagnostic()? > 0 {
        if let Some((_, path)) = line.trim_end().rsplit_once(text) {
            return Ok(path.into());
        }
        line.clear();
    }
    Err(miette!("it ended without a word about {text:?}"))
}

/// Reads until `text` has come.
fn hear(from: &mut impl Read, text: &str) -> Result<()> {
    let (mut heard, mut byte) = (Vec::new(), [0]);
    while !heard.ends_with(text.as_bytes()) {
        from.read_exact(&mut byte)
            .map_err(|error| miette!("{:?}, and then {error}", String::from_utf8_lossy(&heard)))?;
        heard.push(byte[0]);
    }
    Ok(())
}

/// A person at a terminal in which `cassata run` runs.
struct Person {
    child: Child,
    /// The person's side of it.
    terminal: File,
    heard: String,
}

impl Person {
    fn sit_down(bench: &Bench, system: &Path, arguments: &[&str]) -> Result<Self> {
        let (terminal, own, _) = open_pty().into_diagnostic()?;
        let log = File::create(bench.directory.join("stderr.log")).into_diagnostic()?;
        let child = command(bench, system, arguments)
            .stdin(own.try_clone().into_diagnostic()?)
            .stdout(own)
            .stderr(log)
            .spawn()
            .into_diagnostic()?;
        Ok(Self { child, terminal: terminal.into(), heard: String::new() })
    }

    fn write(&mut self, keys: &[u8]) -> Result<()> {
        self.terminal.write_all(keys).into_diagnostic()
    }

    /// Waits until `text` is shown behind what was waited for before.
    fn expect(&mut self, text: &str) -> Result<()> {
        let deadline = Instant::now() + REAL_LIMIT;
        loop {
            if let Some(at) = self.heard.find(text) {
                self.heard.drain(..at + text.len());
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let limit = Timespec::try_from(left).into_diagnostic()?;
            let mut fds = [PollFd::new(&self.terminal, PollFlags::IN)];
            let in_time = poll(&mut fds, Some(&limit)).into_diagnostic()? > 0;
            if !in_time || !self.look() {
                return Err(miette!("{text:?} was not shown, but {:?}", self.heard));
            }
        }
    }

    /// Reads what is shown; false when every program has left the terminal.
    fn look(&mut self) -> bool {
        let mut buffer = [0; 4096];
        match self.terminal.read(&mut buffer) {
            Ok(count) => {
                self.heard += &String::from_utf8_lossy(&buffer[..count]);
                count > 0
            }
            Err(_) => false,
        }
    }

    /// Returns true if the terminal shows what is typed and edits lines, as before the run.
    fn has_its_mode(&self) -> Result<bool> {
        let modes = tcgetattr(&self.terminal).into_diagnostic()?.local_modes;
        Ok(modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG))
    }

    /// Waits until every program has left the terminal, which must be as it was before; the run
    /// must have ended with `code`, or by a signal.
    fn stand_up(mut self, code: Option<i32>) -> Result<()> {
        while self.look() {}
        let status = self.child.wait().into_diagnostic()?;
        if status.code() != code {
            return Err(miette!("the run ended with {status}"));
        }
        if !self.has_its_mode()? {
            return Err(miette!("the terminal was left in raw mode"));
        }
        Ok(())
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // One that has ended, as it should, is neither killed nor waited for again.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn open_terminal(path: &Path) -> Result<File> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map(File::from).into_diagnostic()
}
