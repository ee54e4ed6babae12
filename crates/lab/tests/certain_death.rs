//! Children end with us, whatever ends us.

use lab::machine::child::Child;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(30);
const PARENT: &str = "CASSATA_TEST_DOOMED_PARENT";

fn sleeper() -> Child {
    Child::start("sleep".as_ref(), &["1000".into()], &[]).unwrap()
}

/// A process that waits to be reaped by another process counts as gone.
fn runs(id: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
    !matches!(state, Some('Z' | 'X'))
}

fn is_gone_soon(id: u32) -> bool {
    let deadline = Instant::now() + SOON;
    while runs(id) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    !runs(id)
}

#[test]
fn dropping_kills() {
    let child = sleeper();
    let id = child.id();
    assert!(runs(id));
    drop(child);
    assert!(!runs(id));
}

#[test]
fn a_panic_kills() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let panicked = thread::spawn(move || {
        let child = sleeper();
        sender.send(child.id()).unwrap();
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    assert!(!runs(receiver.recv().unwrap()));
}

#[test]
fn the_end_of_the_starting_thread_does_not_kill() {
    let child = thread::spawn(sleeper).join().unwrap();
    assert_eq!(child.wait_timeout(Duration::from_millis(200)).unwrap(), None);
    assert!(child.kill().unwrap().code().is_none());
}

#[test]
fn how_it_ended_is_told() {
    let child = Child::start("sh".as_ref(), &["-c".into(), "exit 7".into()], &[]).unwrap();
    assert_eq!(child.wait_timeout(SOON).unwrap().unwrap().code(), Some(7));
    let absent = Child::start("/nonexistent".as_ref(), &[], &[]).unwrap();
    assert_eq!(absent.wait_timeout(SOON).unwrap().unwrap().code(), Some(127));
}

#[test]
fn the_environment_is_injected() {
    let script = r#"[ "$LAB_TEST" = "a b" ]"#;
    let env = [("LAB_TEST".into(), "a b".into())];
    let child = Child::start("sh".as_ref(), &["-c".into(), script.into()], &env).unwrap();
    assert!(child.wait_timeout(SOON).unwrap().unwrap().success());
}

#[test]
fn sigkill_of_the_parent_kills() {
    if std::env::var_os(PARENT).is_some() {
        return doomed_parent();
    }
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "sigkill_of_the_parent_kills"])
        .env(PARENT, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let id: u32 = lines
        .map(Result::unwrap)
        .find_map(|line| line.split_once("child=")?.1.trim().parse().ok())
        .unwrap();
    assert!(runs(id));
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(is_gone_soon(id));
}

/// What the test's second process does: holds a child until it is killed.
fn doomed_parent() {
    let child = sleeper();
    println!("\nchild={}", child.id());
    child.wait_timeout(SOON).unwrap();
    panic!("nothing killed the parent");
}
