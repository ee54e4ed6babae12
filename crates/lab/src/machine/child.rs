//! A child process that cannot outlive us.
//!
//! It is killed when its [`Child`] is dropped, and by the kernel
//! (PR_SET_PDEATHSIG) when this process ends in any other way, abort and SIGKILL
//! included. Setting that signal needs code between fork and exec,
//! which Rust calls unsafe; util-linux's `setpriv`, which every Debian has, does
//! it for us.
//!
//! Two traps are closed here. The signal comes when the *thread* that forked
//! ends, not the process: so a thread that lives exactly as long as the child
//! does the forking. And a parent that dies before the signal is set goes
//! unnoticed: so a shell compares the parent's id before it executes the
//! program.
//!
//! What is added to the environment is for the program alone (env(1) adds it
//! last): an object to preload into it must not be loaded into those helpers.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use shared_child::SharedChild;
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Deref;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

/// Executes its arguments if the parent is still `$0`.
const IF_PARENT_LIVES: &str = r#"[ "$PPID" = "$0" ] && exec "$@""#;

/// A running (or ended) child process, all three standard streams piped.
#[derive(Debug)]
pub struct Child {
    process: Arc<SharedChild>,
    keeper: Option<JoinHandle<()>>,
}

impl Child {
    /// Starts `program` with `args` and `env` in addition to our environment,
    /// in a process group of its own, so that a terminal's Ctrl-C reaches us
    /// alone and we decide.
    ///
    /// # Errors
    /// When it cannot be started. A `program` that is not there shows only
    /// later, as exit status 127.
    pub fn start(
        program: &OsStr,
        args: &[OsString],
        env: &[(OsString, OsString)],
    ) -> io::Result<Self> {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "sh", "-c", IF_PARENT_LIVES])
            .arg(std::process::id().to_string())
            .args(environment(env))
            .arg(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let (sender, receiver) = mpsc::sync_channel(1);
        let keeper = thread::Builder::new().name("keeper".into()).spawn(move || {
            let started = SharedChild::spawn(&mut command).map(Arc::new);
            let process = started.as_ref().ok().map(Arc::clone);
            if sender.send(started).is_ok()
                && let Some(process) = process
            {
                // The status stays with the SharedChild for later questions.
                drop(process.wait());
            }
        })?;
        let process = receiver
            .recv()
            .map_err(|_| io::Error::other("the thread that starts processes ended"))?
            .map_err(explain)?;
        Ok(Self { process, keeper: Some(keeper) })
    }

    /// Kills it and all processes it started that have not gone their own way.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill_group(&self) -> io::Result<()> {
        self.signal(|group| kill_process_group(group, Signal::KILL))
    }

    /// Asks it to end (SIGTERM). Asking a dead one is no error.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal(|id| kill_process(id, Signal::TERM))
    }

    fn signal(&self, send: impl FnOnce(Pid) -> rustix::io::Result<()>) -> io::Result<()> {
        // An ended child's id may be another process's by now.
        if self.try_wait()?.is_some() {
            return Ok(());
        }
        match i32::try_from(self.id()).ok().and_then(Pid::from_raw).map(send) {
            None | Some(Ok(()) | Err(Errno::SRCH)) => Ok(()),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Kills it and waits until it is gone. Killing a dead one is no error.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill(&self) -> io::Result<ExitStatus> {
        self.process.kill()?;
        self.process.wait()
    }
}

impl Deref for Child {
    type Target = SharedChild;

    fn deref(&self) -> &SharedChild {
        &self.process
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // There is no process left to tell; the kernel's signal still stands behind us.
        drop(self.kill());
        if let Some(keeper) = self.keeper.take() {
            drop(keeper.join());
        }
    }
}

/// What stands before a program to run it with `env`; nothing if that is empty.
fn environment(env: &[(OsString, OsString)]) -> Vec<OsString> {
    let setting = |(name, value): &(OsString, OsString)| {
        let mut setting = name.clone();
        setting.push("=");
        setting.push(value);
        setting
    };
    let command = (!env.is_empty()).then(|| OsString::from("env"));
    command.into_iter().chain(env.iter().map(setting)).collect()
}

fn explain(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound {
        return error;
    }
    io::Error::new(error.kind(), "`setpriv` is missing; it is in the package util-linux")
}
