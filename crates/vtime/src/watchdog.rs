//! Notices when nothing moves though something should.

use crate::lockstep::View;
use crate::machine::{MainLoop, State};
use std::fmt::Write;
use std::time::Duration;

/// Looks at the lockstep from time to time.
#[derive(Debug)]
pub struct Watchdog {
    patience: Duration,
    /// What was seen last that was different, when, and when to speak.
    last: Option<(View, Duration, Duration)>,
}

impl Watchdog {
    /// A watchdog that speaks after `patience` of real time without progress,
    /// and again each time that doubles.
    #[must_use]
    pub fn new(patience: Duration) -> Self {
        Self { patience, last: None }
    }

    /// Takes a look at real time `now`. Returns what to tell the user: nothing
    /// while some core makes progress, all sleep, or the machine is held.
    pub fn look(&mut self, view: &View, now: Duration) -> Option<String> {
        let works = |state| !matches!(state, State::Absent | State::Idle { .. });
        let is_held = matches!(view.main_loop, MainLoop::Held { .. });
        let busy = !is_held && view.vcpus.iter().any(|v| works(v.state));
        match &mut self.last {
            Some((last, since, speak_at)) if busy && last == view => {
                if now < *speak_at {
                    return None;
                }
                let stuck = now.saturating_sub(*since);
                *speak_at = now + stuck;
                Some(report(view, stuck))
            }
            _ => {
                self.last = Some((view.clone(), now, now + self.patience));
                None
            }
        }
    }
}

fn report(view: &View, stuck: Duration) -> String {
    let mut text = format!(
        "virtual time: no progress for {stuck:.1?} at {} ns; main loop: {:?}\n",
        view.now_ns, view.main_loop
    );
    for (index, v) in view.vcpus.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  core {index}: {:?}{}{}, own time {} ns, {} instructions, left for a block {:?} times",
            v.state,
            if v.blocked { " (blocked)" } else { "" },
            if v.called { " (to go on)" } else { "" },
            v.time_ns,
            v.instructions,
            v.leaves
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lockstep::VcpuView;
    use crate::machine::{Counts, MainLoop};

    fn view(states: &[State]) -> View {
        let vcpu = |state: &State| VcpuView {
            state: *state,
            blocked: false,
            called: false,
            time_ns: 7,
            instructions: 7,
            idle_ns: 0,
            leaves: [0; 3],
        };
        View {
            now_ns: 5,
            main_loop: MainLoop::Awake,
            counts: Counts::default(),
            vcpus: states.iter().map(vcpu).collect(),
        }
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn reports_every_core_when_nothing_moves_and_again_later() {
        let stuck = view(&[State::Arrived { at_ns: 7 }, State::Waking { at_ns: 6 }]);
        let mut dog = Watchdog::new(seconds(10));
        assert_eq!(dog.look(&stuck, seconds(0)), None);
        assert_eq!(dog.look(&stuck, seconds(9)), None);
        let report = dog.look(&stuck, seconds(10)).unwrap();
        assert!(report.contains("no progress for 10.0s at 5 ns; main loop: Awake"), "{report}");
        assert!(report.contains("core 0: Arrived { at_ns: 7 }, own time 7 ns"), "{report}");
        assert!(report.contains("core 1: Waking { at_ns: 6 }"), "{report}");
        assert_eq!(dog.look(&stuck, seconds(19)), None);
        assert!(dog.look(&stuck, seconds(20)).is_some());
    }

    #[test]
    fn is_silent_while_something_moves_and_while_all_sleep() {
        let mut dog = Watchdog::new(seconds(10));
        let mut moving = view(&[State::Running { limit_ns: 100 }]);
        for second in 0..100 {
            moving.vcpus[0].instructions += 1;
            assert_eq!(dog.look(&moving, seconds(second)), None);
        }
        let asleep = view(&[State::Idle { since_ns: 7 }, State::Absent]);
        for second in 100..200 {
            assert_eq!(dog.look(&asleep, seconds(second)), None);
        }
    }
}
