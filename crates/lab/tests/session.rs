//! How sessions end.

mod guest;

use guest::{ECHO, OFF, SOON, config};
use lab::interrupt::Interrupt;
use lab::qemu::Qemu;
use lab::session::{End, Moment, Run, Session};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::Duration;

/// Runs the guest that stops as `code` says until `until` has seen enough.
fn run(
    code: &[u32],
    limit: Duration,
    interrupt: Interrupt,
    until: impl FnMut(&Moment) -> bool,
) -> miette::Result<Run> {
    let (directory, qemu) = (tempfile::tempdir().unwrap(), Qemu::find().unwrap());
    let config = config(directory.path(), code, &[]);
    let session = Session::plain(config, "guest", &qemu, directory.path());
    session.within(limit).interrupted_by(interrupt).run(until)
}

/// Returns true if the guest has said `text`, and little since.
fn said(now: &Moment, text: &str) -> bool {
    now.said.guests[0].tail.lines().any(|line| line == text)
}

fn is_gone(id: u32) -> bool {
    !Path::new(&format!("/proc/{id}")).exists()
}

#[test]
fn power_off_ends_it_and_the_last_words_are_heard() {
    let run = run(&OFF, SOON, Interrupt::never(), |_| false).unwrap();
    assert_eq!((run.end, run.said.guests[0].tail.text()), (End::PoweredOff, "hi".into()));
}

#[test]
fn what_was_waited_for_ends_it() {
    let mut id = 0;
    let run = run(&ECHO, SOON, Interrupt::never(), |now| {
        id = now.machine.id();
        said(now, "hi")
    });
    assert_eq!(run.unwrap().end, End::Reached);
    assert!(is_gone(id));
}

#[test]
fn time_and_ctrl_c_end_it() {
    for interrupted in [false, true] {
        let interrupt = Interrupt::never();
        let limit = if interrupted { SOON } else { Duration::from_millis(100) };
        if interrupted {
            interrupt.request();
        }
        let mut id = 0;
        let run = run(&ECHO, limit, interrupt, |now| {
            id = now.machine.id();
            false
        });
        let expected = if interrupted { End::Interrupted } else { End::TimeOver };
        assert_eq!(run.unwrap().end, expected);
        assert!(is_gone(id));
    }
}

#[test]
fn a_qemu_that_fails_is_an_error() {
    let (directory, qemu) = (tempfile::tempdir().unwrap(), Qemu::find().unwrap());
    let config = config(directory.path(), &OFF, &["-no-such-option"]);
    let session = Session::plain(config, "guest", &qemu, directory.path());
    let error = session.within(SOON).run(|_| false).unwrap_err();
    assert!(error.to_string().starts_with("QEMU ended with "), "{error}");
}

#[test]
fn a_qemu_that_a_signal_ends_has_not_switched_itself_off() {
    for (signal, name) in [(Signal::TERM, "SIGTERM"), (Signal::KILL, "SIGKILL")] {
        let (mut id, mut is_told) = (0, false);
        let end = run(&ECHO, SOON, Interrupt::never(), |now| {
            id = now.machine.id();
            // It runs: its signal handlers are there.
            if !is_told && said(now, "hi") {
                is_told = true;
                kill_process(i32::try_from(id).ok().and_then(Pid::from_raw).unwrap(), signal)
                    .unwrap();
            }
            false
        });
        let error = end.unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
        assert!(is_gone(id));
    }
}
