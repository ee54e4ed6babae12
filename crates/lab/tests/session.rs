//! How sessions end.

mod guest;

use guest::{ECHO, OFF, SOON, start};
use lab::console::Line;
use lab::interrupt::Interrupt;
use lab::machine::Machine;
use lab::observe::{Layout, Observer, Pace};
use lab::session::{End, Limit, Session, SessionError};
use lab::view::Silent;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::Duration;

/// Runs `machine` and answers how that ended and every line it said.
fn run(
    machine: &mut Machine,
    limit: Duration,
    interrupt: Interrupt,
    mut until: impl FnMut(&[Line]) -> bool,
) -> (Result<End, SessionError>, Vec<String>) {
    // A guest without a hypervisor: the status area is memory nobody writes.
    let nothing = Layout { status_pa: 0x4200_0000, pcpus: 1, vms: Vec::new(), vcpus: Vec::new() };
    let (mut observer, mut said) = (Observer::new(nothing, Pace::Real), Vec::new());
    let (observer, view, limit) = (&mut observer, &mut Silent, Some(Limit::Real(limit)));
    let end = Session { machine, observer, view, interrupt, limit }.run(|lines, _| {
        said.extend(lines.iter().map(|line| line.text.clone()));
        until(lines)
    });
    (end, said)
}

fn is_gone(machine: &Machine) -> bool {
    !Path::new(&format!("/proc/{}", machine.id())).exists()
}

#[test]
fn power_off_ends_it_and_the_last_words_are_heard() {
    let directory = tempfile::tempdir().unwrap();
    let mut machine = start(directory.path(), &OFF, &[]);
    let (end, said) = run(&mut machine, SOON, Interrupt::never(), |_| false);
    assert_eq!((end.unwrap(), said), (End::PoweredOff, vec!["hi".to_owned()]));
}

#[test]
fn what_was_waited_for_ends_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut machine = start(directory.path(), &ECHO, &[]);
    let heard = |lines: &[Line]| lines.iter().any(|line| line.text == "hi");
    let (end, _) = run(&mut machine, SOON, Interrupt::never(), heard);
    assert_eq!(end.unwrap(), End::Reached);
    assert!(is_gone(&machine));
}

#[test]
fn time_and_ctrl_c_end_it() {
    for interrupted in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (mut machine, interrupt) = (start(directory.path(), &ECHO, &[]), Interrupt::never());
        let limit = if interrupted { SOON } else { Duration::from_millis(100) };
        if interrupted {
            interrupt.request();
        }
        let (end, _) = run(&mut machine, limit, interrupt, |_| false);
        let expected = if interrupted { End::Interrupted } else { End::TimeOver };
        assert_eq!(end.unwrap(), expected);
        assert!(is_gone(&machine));
    }
}

#[test]
fn a_qemu_that_fails_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let mut machine = start(directory.path(), &OFF, &["-no-such-option"]);
    let (end, _) = run(&mut machine, SOON, Interrupt::never(), |_| false);
    assert!(matches!(end, Err(SessionError::Machine(_))));
}

#[test]
fn a_qemu_that_somebody_ends_has_not_switched_itself_off() {
    for (signal, name) in [(Signal::TERM, "SIGTERM"), (Signal::KILL, "SIGKILL")] {
        let directory = tempfile::tempdir().unwrap();
        let mut machine = start(directory.path(), &ECHO, &[]);
        let id = i32::try_from(machine.id()).ok().and_then(Pid::from_raw).unwrap();
        let (end, _) = run(&mut machine, SOON, Interrupt::never(), |lines| {
            // It runs: its signal handlers are there.
            if lines.iter().any(|line| line.text == "hi") {
                kill_process(id, signal).unwrap();
            }
            false
        });
        let error = end.unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
        assert!(is_gone(&machine));
    }
}
