//! A machine that runs a bare-metal guest.

mod guest;

use guest::{ECHO, MARK_PA, OFF, SOON, start};
use lab::console::Cursor;
use lab::machine::Machine;
use std::path::Path;
use std::time::Duration;

#[test]
fn a_machine_that_switches_off_leaves_memory_and_logs() {
    let directory = tempfile::tempdir().unwrap();
    let mut machine = start(directory.path(), &OFF, &[]);
    assert!(machine.ended_within(SOON).unwrap(), "it still runs");
    assert_eq!(machine.memory.read::<u64>(MARK_PA).unwrap(), 0x5a);
    let log = std::fs::read_to_string(directory.path().join("console-guest.log")).unwrap();
    assert_eq!(log, "hi\n");
}

/// Waits for a line that has `text`.
fn hears(machine: &Machine, cursor: &mut Cursor, text: &str) -> bool {
    let mut new = || machine.consoles.follow(cursor, SOON);
    std::iter::repeat_with(&mut new)
        .take_while(|lines| !lines.is_empty())
        .any(|lines| lines.iter().any(|line| line.text.contains(text)))
}

#[test]
fn a_running_machine_is_heard_typed_to_read_and_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut machine = start(directory.path(), &ECHO, &[]);
    let mut cursor = Cursor::default();
    assert!(hears(&machine, &mut cursor, "hi"));
    assert_eq!(machine.memory.read::<u64>(MARK_PA).unwrap(), 0x5a);
    machine.consoles.send(0, b"echo\n").unwrap();
    assert!(hears(&machine, &mut cursor, "echo"));
    assert!(!machine.ended_within(Duration::ZERO).unwrap());
    let counted = Path::new("/proc/self/schedstat").exists();
    assert_eq!(machine.host_use().is_some(), counted);
    machine.kill().unwrap();
    assert!(!Path::new(&format!("/proc/{}", machine.id())).exists());
    assert!(machine.consoles.ended());
}

#[test]
fn what_qemu_complains_of_is_passed_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut machine = start(directory.path(), &OFF, &["-no-such-option"]);
    let error = machine.ended_within(SOON).unwrap_err();
    assert!(error.to_string().starts_with("QEMU ended with "), "{error}");
    assert!(error.to_string().contains("no-such-option"), "{error}");
}
