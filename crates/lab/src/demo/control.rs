//! The demonstration of a link: while hackbench runs, Linux orders the speed of a motor that FreeRTOS controls, changes
//! the controller's gains, and watches what comes of it.

use super::{LINUX, RTOS, vm};
use crate::answer::Answer;
use crate::dataset::{Dataset, Unit};
use crate::figures;
use crate::guests::words::number;
use crate::quantity::{count, real};
use crate::report::Plot;
use crate::results::{Check, Goal};
use crate::session::{Run, Session};
use maud::html;
use miette::{Result, miette};

/// What it boots, from the project's root.
pub const SYSTEM: &str = "systems/control.toml";
/// What is replaced in it: Linux watches for longer, and orders more; so the motor runs for longer, too.
const EDITS: [(&str, &str); 2] = [
    (
        "latest control 12 25",
        "latest control 25 10; ask control 'kp 2000' 'target 600'; latest control 25 10; \
         ask control 'ki 8000' 'target 2000'; latest control 25 10",
    ),
    ("activations=6000", "activations=9000"),
];
/// Returns [`EDITS`] as they are asked for.
pub fn edits() -> Vec<(String, String)> {
    EDITS.map(|(from, to)| (from.to_owned(), to.to_owned())).to_vec()
}

/// Orders that FreeRTOS carries out, each of which it answers.
const ORDERS: usize = 6;
/// Fewest states of the motor that make a curve.
const LEAST_STATES: f64 = 50.0;
/// The last speed that is ordered, and how far from it the motor may be in the end: turns per minute.
const LAST_TARGET: u64 = 2_000;
const MOST_OFF: f64 = 200.0;
/// How late FreeRTOS's task may be at worst, as with any other load: us.
const LATEST_US: f64 = 1.0;

/// A state of the motor, as FreeRTOS publishes it and Linux reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    /// When, in periods' time since FreeRTOS's start.
    time_us: u64,
    /// Turns per minute: ordered, and reached.
    target: u64,
    speed: u64,
    /// How much of the supply it gives the motor, thousandths.
    duty: u64,
}

impl State {
    fn read(line: &str) -> Option<Self> {
        let [time_us, target, speed, duty] =
            ["t_us", "target", "speed", "duty"].map(|name| number(line, name));
        Some(Self { time_us: time_us?, target: target?, speed: speed?, duty: duty? })
    }
}

/// What was seen.
#[derive(Debug)]
pub struct Control {
    /// What was seen of the whole system.
    pub run: Run,
}

/// Gives the demonstration in `session`, until both guests have done their work.
///
/// # Errors
/// When the machine fails. Guests that fail are no error here but a finding ([`Control::answer`]).
pub fn run(session: Session<'_>) -> Result<Control> {
    let (linux, rtos) = (vm(&session.layout, LINUX)?, vm(&session.layout, RTOS)?);
    let run = session.run(|now| [linux, rtos].iter().all(|&vm| now.observer.is_over(vm)))?;
    Ok(Control { run })
}

impl Control {
    /// Returns what the demonstration showed, with its checks.
    ///
    /// # Errors
    /// When the system has no Linux.
    pub fn answer(&self) -> Result<Answer> {
        let layout = &self.run.observer.layout;
        let linux = layout.vm(LINUX).ok_or_else(|| miette!("there is no Linux"))?;
        let said = &self.run.said.guests[linux].linux;
        let lead = "FreeRTOS controls a simulated motor each millisecond. Linux, which has hackbench to do on the \
                    same cores, orders its speed, changes the gains, and watches, by memory that both have and \
                    doorbells. Time is virtual: every instruction takes one nanosecond.";
        let mut answer = Answer::new("control", "A motor, watched from Linux", lead);
        let states: Vec<_> = said.links.iter().filter_map(|line| State::read(line)).collect();
        let done = said.links.iter().filter(|line| line.starts_with("done: ")).count();
        self.add_tiles(&mut answer, &states, done);
        let plot = Plot::curves(&speeds(&states), "time_s", "speed").by("what");
        let speeds =
            answer.plot("speed", &plot, "As Linux has read it from the link's latest value.");
        let plot = Plot::curves(&duties(&states), "time_s", "duty");
        let duty = answer.plot("duty", &plot, "What the controller makes of it, of a thousand.");
        answer.section("Speed, turns per minute", speeds);
        answer.section("Duty", duty);
        let lines = html! { pre { @for line in &said.links { (line) "\n" } } };
        answer.section("What Linux printed", lines);
        figures::tell(&mut answer, &self.run);
        let outcome = &mut answer.outcome;
        outcome.figure("links", serde_json::json!(said.links));
        outcome.figure("hackbench_s", said.hackbench_s.clone());
        outcome.check(Check::done("Linux did its work", said.done && said.failed.is_none()));
        let enough = Goal::AtLeast(LEAST_STATES);
        outcome.check(Check::new("states that Linux read", real(states.len() as u64), "", enough));
        let orders = Goal::Exactly(real(ORDERS as u64));
        outcome.check(Check::new("orders carried out", real(done as u64), "", orders));
        let last = states.last().filter(|state| state.target == LAST_TARGET);
        let off = last.map(|state| real(state.speed.abs_diff(LAST_TARGET)));
        let goal = Goal::AtMost(MOST_OFF);
        outcome.check(Check::new("from the ordered speed in the end", off, "turns/min", goal));
        self.check_rtos(&mut answer);
        figures::check_bugs(&mut answer.outcome, &self.run.observer);
        Ok(answer)
    }

    fn check_rtos(&self, answer: &mut Answer) {
        let late = self.lateness();
        let outcome = &mut answer.outcome;
        let missed = late.map(|(missed, _)| real(missed));
        outcome.check(Check::new("RTOS activations missed", missed, "", Goal::Exactly(0.0)));
        let worst = late.and_then(|(_, worst_ns)| worst_ns).map(|ns| real(ns) / 1e3);
        let goal = Goal::AtMost(LATEST_US);
        outcome.check(Check::new("dispatch latency of the RTOS, max", worst, "us", goal));
    }

    /// Returns how many periods FreeRTOS missed, and how late its task was at worst, ns.
    fn lateness(&self) -> Option<(u64, Option<u64>)> {
        let observer = &self.run.observer;
        let seen = observer.reports(observer.layout.vm(RTOS)?)?.lateness()?;
        Some((seen.missed, seen.worst_dispatch_ns()))
    }

    fn add_tiles(&self, answer: &mut Answer, states: &[State], done: usize) {
        answer.tile(count(done as u64), "orders carried out");
        answer.tile(count(states.len() as u64), "states read by Linux");
        if let Some((missed, worst_ns)) = self.lateness() {
            answer.tile(count(missed), "periods missed");
            let worst = worst_ns.map_or_else(|| "-".into(), |ns| format!("{} ns", count(ns)));
            answer.tile(worst, "the control task, at its latest");
        }
    }
}

const fn seconds(state: &State) -> f64 {
    state.time_us as f64 / 1e6
}

/// The ordered and the reached speed over time.
fn speeds(states: &[State]) -> Dataset {
    let rows = states.iter().flat_map(|state| {
        [("ordered", state.target), ("reached", state.speed)]
            .map(|(what, speed)| (what, *state, speed))
    });
    Dataset::of("speeds", "The motor's speed", rows)
        .name("what", |row| row.0)
        .column("time", Unit::Seconds, |row| seconds(&row.1))
        .column("speed", Unit::None, |row| real(row.2))
        .done()
}

/// The controller's duty over time.
fn duties(states: &[State]) -> Dataset {
    Dataset::of("duties", "The motor's duty", states)
        .column("time", Unit::Seconds, |state| seconds(state))
        .column("duty", Unit::None, |state| real(state.duty))
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::End;
    use crate::testing;

    const STATE: &str = "t_us=3374000 target=1500 speed=995 duty=332 orders=0";

    #[test]
    fn a_state_is_read_as_it_is_published() {
        let state = State { time_us: 3_374_000, target: 1_500, speed: 995, duty: 332 };
        assert_eq!(State::read(STATE), Some(state));
        assert_eq!(State::read("done: target 1500"), None);
        assert_eq!(State::read("nothing yet"), None);
    }

    #[test]
    fn what_linux_has_read_is_drawn_and_what_it_did_not_do_fails() {
        let observer = testing::observer(&testing::status(), &testing::report(1_990, 0));
        let text = format!("\x1f1cassata: link {STATE}\ncassata: link done: target 1500\n");
        let control = Control { run: testing::run(observer, &text, End::TimeOver) };
        let answer = control.answer().unwrap();
        assert!(answer.page().contains("done: target 1500"));
        let failing = answer.outcome.objections();
        for check in ["Linux did its work", "states that Linux read", "orders carried out"] {
            assert!(failing.iter().any(|text| text.contains(check)), "{check}: {failing:?}");
        }
    }

    #[test]
    fn the_description_has_what_is_replaced() {
        let text = std::fs::read_to_string(testing::root().join(SYSTEM)).unwrap();
        for (from, _) in EDITS {
            assert_eq!(text.matches(from).count(), 1, "{from}");
        }
    }
}
