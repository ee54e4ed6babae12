//! Raw mode, and the way back from it however the program ends.
//!
//! The way back is taken when [`RawMode`] is dropped, which it is after signals and panics too.
//! Nothing in this process can take it after SIGKILL, so another process stands by: a shell that
//! waits for the end of a pipe whose other end is ours. It acts only if the terminal is still in
//! the mode that we set: when a user's shell has its own mode again, that stays.

use rustix::fd::OwnedFd;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// What stands by. Standard error is the terminal. It notes the mode before ours, waits for a
/// line, notes ours, and waits for the end. A process in the background may change a terminal
/// only while it ignores SIGTTOU.
const STAND_BY: &str = r#"
trap '' HUP INT QUIT TERM TSTP TTOU
before=$(stty -g <&2) && echo || exit
read -r _ || exit
ours=$(stty -g <&2) && echo || exit
read -r _
[ "$(stty -g <&2)" != "$ours" ] || stty "$before" <&2
"#;

/// A terminal in raw mode, until this is dropped.
pub(super) struct RawMode {
    terminal: OwnedFd,
    before: Termios,
    /// `None` where there is no shell or no stty(1): what can be done without is done.
    guard: Option<Guard>,
}

/// The process that stands by.
struct Guard(Child);

impl RawMode {
    /// Lets every key through at once, Ctrl-C among them, and shows none. What is written is
    /// still processed: guests without a terminal driver end lines with a line feed alone.
    pub(super) fn enter(terminal: OwnedFd) -> io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let guard = Guard::start(&terminal).ok();
        let mut raw = before.clone();
        raw.make_raw();
        raw.output_modes = before.output_modes;
        let mut mode = Self { terminal, before, guard };
        tcsetattr(&mode.terminal, OptionalActions::Now, &raw)?;
        if mode.guard.as_mut().is_some_and(|guard| guard.proceed().is_err()) {
            mode.guard = None;
        }
        Ok(mode)
    }

    /// Ends the process that stands by, as our own end would.
    #[cfg(test)]
    pub(super) fn end_guard(&mut self) {
        self.guard = None;
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that went away needs nothing any more.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

impl Guard {
    /// Starts it, in a process group of its own: what ends ours as a whole does not end it.
    fn start(terminal: &OwnedFd) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", STAND_BY]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(terminal.try_clone()?);
        let mut guard = Self(command.spawn()?);
        guard.wait()?;
        Ok(guard)
    }

    /// Lets it note the mode that is set now.
    fn proceed(&mut self) -> io::Result<()> {
        self.0.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(b"\n")?;
        self.wait()
    }

    /// Waits until it has noted a mode.
    fn wait(&mut self) -> io::Result<()> {
        self.0.stdout.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.read_exact(&mut [0])
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        drop(self.0.wait());
    }
}
