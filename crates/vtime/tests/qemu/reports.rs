//! What the instrument says of itself while QEMU runs, and at its end.

use crate::board::Mute;
use std::time::Duration;
use vtime::options::Options;

#[test]
fn the_watchdog_reports_every_core_and_the_machine_goes_on_when_it_can() {
    for serial in [true, false] {
        let watchdog = Duration::from_millis(100);
        let mut mute = Mute::start(4, Options { serial, watchdog, ..Options::default() });
        while !mute.error_line().starts_with("virtual time: no progress for ") {}
        for core in 0..4 {
            let line = mute.error_line();
            assert!(line.starts_with(&format!("  core {core}: ")), "{line}");
            assert!(line.contains(" own time "), "{line}");
        }
        let (console, _) = mute.drain();
        assert!(console.contains("metronome: done"), "{console}");
    }
}

#[test]
fn a_summary_comes_at_the_end_if_asked_for() {
    for summary in [true, false] {
        let (_, said) = Mute::start(2, Options { summary, ..Options::default() }).drain();
        let lines = said.lines().filter(|line| line.contains(" instructions"));
        assert_eq!(lines.count(), if summary { 2 } else { 0 }, "{said}");
        assert_eq!(said.contains("virtual time: 0."), summary, "{said}");
    }
}
