//! Tests that need no machine: cargo runs them, we watch.

use super::cargo::{Said, Tally, understand};
use crate::interrupt::Interrupt;
use crate::machine::child::Child;
use crate::progress::Progress;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// How long Ctrl-C may go unnoticed.
const LOOK: Duration = Duration::from_millis(100);

/// One call of cargo's `test`.
#[derive(Clone, Debug)]
pub struct CargoTest {
    /// The cargo to run, or another program whose end says whether it passed.
    pub cargo: OsString,
    /// What to run it with: `test` and more.
    pub args: Vec<OsString>,
    /// Environment in addition to ours.
    pub env: Vec<(OsString, OsString)>,
    /// Everything it says goes there.
    pub log: PathBuf,
}

impl CargoTest {
    /// Runs it, counts, and shows the output of tests that failed. A cargo
    /// that fails without a failed test (it could not compile, or a test
    /// program died) counts as one failure, unless Ctrl-C ended it.
    ///
    /// # Errors
    /// When it cannot be started or the log cannot be written.
    pub fn run(&self, progress: &mut Progress, interrupt: &Interrupt) -> io::Result<Tally> {
        let mut log = File::create(&self.log)?;
        let child = Child::start(&self.cargo, &self.args, &self.env)?;
        let (sender, lines) = mpsc::channel();
        forward(child.take_stdout(), &sender);
        forward(child.take_stderr(), &sender);
        drop(sender);
        let (mut running, mut ended) = (Tally::default(), Tally::default());
        loop {
            match lines.recv_timeout(LOOK) {
                Ok(line) => {
                    writeln!(log, "{line}")?;
                    hear(&line, &mut running, &mut ended, progress);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if interrupt.requested() => child.kill_group()?,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let success = child.wait()?.success();
        if !success && ended.failed == 0 && !interrupt.requested() {
            ended.failed = 1;
        }
        if ended.failed > 0 {
            progress.line(&std::fs::read_to_string(&self.log)?);
        }
        Ok(ended)
    }

    /// Runs it as one test, called `name`: it passes when the program ends well,
    /// and does not count when Ctrl-C ends it.
    ///
    /// # Errors
    /// When it cannot be started or the log cannot be written.
    pub fn run_as_one(
        &self,
        name: &str,
        progress: &mut Progress,
        interrupt: &Interrupt,
    ) -> io::Result<Tally> {
        progress.now(name);
        let failed = self.run(progress, interrupt)?.failed;
        let mut tally = Tally::default();
        if !interrupt.requested() {
            tally.count(failed == 0);
        }
        Ok(tally)
    }
}

/// `ended` counts whole programs, `running` single tests as they end.
fn hear(line: &str, running: &mut Tally, ended: &mut Tally, progress: &mut Progress) {
    match understand(line) {
        Said::Test { name, passed } => {
            if let Some(passed) = passed {
                running.count(passed);
            }
            progress.now(&format!("{running}  {name}"));
        }
        Said::Program(tally) => *ended += tally,
        Said::Step(step) => progress.now(&format!("{running}  {step}")),
        Said::Other => {}
    }
}

fn forward(stream: Option<impl Read + Send + 'static>, to: &Sender<String>) {
    let Some(stream) = stream else { return };
    let to = to.clone();
    thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            if to.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell script takes cargo's place.
    fn run(script: &str, interrupt: &Interrupt) -> (Tally, String) {
        let directory = tempfile::tempdir().unwrap();
        let test = CargoTest {
            cargo: "sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("ENV_OF_TEST".into(), "yes".into())],
            log: directory.path().join("log"),
        };
        let tally = test.run(&mut Progress::silent(), interrupt).unwrap();
        (tally, std::fs::read_to_string(&test.log).unwrap())
    }

    const RESULT: &str = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'";

    #[test]
    fn all_programs_count() {
        let never = Interrupt::never();
        let (tally, log) = run(&format!("{RESULT}; echo $ENV_OF_TEST >&2; {RESULT}"), &never);
        assert_eq!(tally, Tally { passed: 4, failed: 0, skipped: 0 });
        assert!(log.contains("yes\n"), "{log}");
        let script = format!("{RESULT}; echo 'test result: FAILED. 1 passed; 3 failed'; exit 101");
        assert_eq!(run(&script, &never).0, Tally { passed: 3, failed: 3, skipped: 0 });
    }

    #[test]
    fn what_does_not_compile_is_a_failure() {
        let (tally, _) = run("echo error: no >&2; exit 101", &Interrupt::never());
        assert_eq!(tally, Tally { passed: 0, failed: 1, skipped: 0 });
    }

    #[test]
    fn a_program_is_a_test() {
        let directory = tempfile::tempdir().unwrap();
        let run = |program: &str| {
            let (log, mut progress) = (directory.path().join("log"), Progress::silent());
            CargoTest { cargo: program.into(), args: Vec::new(), env: Vec::new(), log }
                .run_as_one("x", &mut progress, &Interrupt::never())
                .unwrap()
        };
        assert_eq!(run("/bin/true"), Tally { passed: 1, failed: 0, skipped: 0 });
        assert_eq!(run("/bin/false"), Tally { passed: 0, failed: 1, skipped: 0 });
    }

    #[test]
    fn an_interrupt_ends_the_whole_tree() {
        let interrupt = Interrupt::never();
        interrupt.request();
        // Killing the shell alone would leave a `sleep` that holds our pipe.
        let (tally, _) = run("sleep 1000; true", &interrupt);
        assert_eq!(tally, Tally::default(), "nothing was found to fail");
    }
}
