//! The table, and what is demanded of it.

use super::case::{Caller, Case, Seen};
use super::rows::{self, ROWS, Row};
use crate::answer::Answer;
use crate::dataset::{Dataset, Unit};
use crate::guests::TimedCall;
use crate::quantity::{count, real};
use crate::results::{Check, Goal, Outcome};

/// Everything that was measured.
#[derive(Clone, Debug)]
pub struct Table {
    repetitions: u64,
    seen: Vec<(Caller, Vec<TimedCall>)>,
    /// Rows whose part at EL2 was to be counted, and what it is, instructions.
    at_el2: Vec<(usize, Option<u64>)>,
}

impl Table {
    /// Returns what boots have brought: each call made so often, and of the rows `counted` what
    /// EL2 executed.
    pub fn of(seen: &[Seen], repetitions: u64, counted: impl IntoIterator<Item = usize>) -> Self {
        let find = |case: &Case| seen.iter().find(|seen| seen.case == *case);
        let part = |row| {
            let [before, after] = Case::around(row).each_ref().map(find);
            after?.at_el2.checked_sub(before?.at_el2)
        };
        let whole = Case::measuring(repetitions);
        let whole =
            whole.iter().filter_map(find).map(|seen| (seen.case.caller, seen.taken.clone()));
        let at_el2 = counted.into_iter().map(|row| (row, part(row)));
        Self { repetitions, seen: whole.collect(), at_el2: at_el2.collect() }
    }

    fn taken(&self, caller: Caller, key: &str) -> Option<&TimedCall> {
        let (_, taken) = self.seen.iter().find(|seen| seen.0 == caller)?;
        taken.iter().find(|taken| taken.key == key)
    }

    fn at_el2(&self, row: usize) -> Option<u64> {
        self.at_el2.iter().find(|part| part.0 == row)?.1
    }

    pub fn answer(&self) -> Answer {
        let lead = "How long a guest's calls take, as FreeRTOS and a program of Linux measure \
                    them, alone on a core; beside the figures of the paper, from Linux. Time is \
                    virtual: a nanosecond is an instruction of whatever the core executes between \
                    two looks at its counter, at any exception level. The paper's are microseconds \
                    of a Core i7-2600 at 3.4 GHz under KVM. So the two may be compared by their \
                    ratios only. The longest contain interrupts: replenishments of the \
                    vCPU's budget, and Linux's timer.";
        let mut answer = Answer::new("vmpcp", "vMPCP, what its calls take", lead);
        answer.outcome.parameter("paper", "Kim, Wang, Rajkumar: vMPCP, RTSS 2014, Table II");
        answer.outcome.parameter("repetitions", self.repetitions);
        for caller in Caller::ALL {
            for (key, call) in [("intra_lock", "intra-VM lock"), ("inter_lock", "inter-VM lock")] {
                let mean = self.taken(caller, key).map(|taken| count(taken.mean_ns));
                let mean = mean.unwrap_or_else(|| "-".into());
                answer.tile(mean, &format!("instructions, {call}, {}", caller.name()));
            }
        }
        let data = self.data();
        answer.data(&data);
        answer.data(&self.ratios());
        self.judge(&mut answer.outcome);
        answer.document("bench vmpcp", self.quoted(&data));
        answer
    }

    /// What the book quotes.
    fn quoted(&self, data: &Dataset) -> String {
        let repetitions = count(self.repetitions);
        let [calls, ratios] = [data, &self.ratios()].map(|data| data.table().markdown());
        format!("Each call made {repetitions} times:\n\n{calls}\nRatios of means:\n\n{ratios}")
    }

    fn data(&self) -> Dataset {
        let (instructions, ns) = (Unit::Instructions, Unit::Nanoseconds);
        let rows = ROWS.iter().enumerate().map(|(place, row)| {
            let [rtos, linux] = Caller::ALL.map(|caller| self.taken(caller, row.key));
            (row, rtos, linux, self.at_el2(place))
        });
        Dataset::of("calls", "Calls from FreeRTOS and Linux, and the paper's from Linux", rows)
            .name("key", |(row, ..): &(&Row, _, _, _)| row.key)
            .for_programs()
            .name("call", |(row, ..)| row.name)
            .head("")
            .column("min", instructions, |(_, t, ..)| t.map(TimedCall::min_instructions))
            .for_programs()
            .column("mean", instructions, |(_, t, ..)| t.map(TimedCall::mean_instructions))
            .head("FreeRTOS, instructions: mean")
            .column("max", instructions, |(_, t, ..)| t.map(TimedCall::max_instructions))
            .head("max")
            .column("at_el2", instructions, |(.., part)| *part)
            .head("of these at EL2")
            .column("min", ns, |(_, taken, ..)| taken.map(|taken| taken.min_ns))
            .for_programs()
            .column("mean", ns, |(_, taken, ..)| taken.map(|taken| taken.mean_ns))
            .head("time: mean")
            .column("max", ns, |(_, taken, ..)| taken.map(|taken| taken.max_ns))
            .head("max")
            .column("linux_min", instructions, |(_, _, t, _)| t.map(TimedCall::min_instructions))
            .for_programs()
            .column("linux_mean", instructions, |(_, _, t, _)| t.map(TimedCall::mean_instructions))
            .head("Linux, instructions: mean")
            .column("linux_max", instructions, |(_, _, t, _)| t.map(TimedCall::max_instructions))
            .head("max")
            .column("linux_min", ns, |(_, _, t, _)| t.map(|taken| taken.min_ns))
            .for_programs()
            .column("linux_mean", ns, |(_, _, t, _)| t.map(|taken| taken.mean_ns))
            .head("time: mean")
            .column("linux_max", ns, |(_, _, t, _)| t.map(|taken| taken.max_ns))
            .head("max")
            .column("paper_mean", Unit::Microseconds, |(row, ..)| row.paper_us[0])
            .head("the paper: mean")
            .digits(2)
            .column("paper_max", Unit::Microseconds, |(row, ..)| row.paper_us[1])
            .head("max")
            .digits(2)
            .done()
    }

    /// Returns how many times as long the mean of one call is as that of another.
    fn ratio(&self, caller: Caller, one: &str, other: &str) -> Option<f64> {
        let [one, other] = [self.taken(caller, one)?, self.taken(caller, other)?];
        Some(real(one.mean_ns) / real(other.mean_ns.max(1)))
    }

    fn judge(&self, outcome: &mut Outcome) {
        for caller in Caller::ALL {
            let often = |row: &Row| self.taken(caller, row.key).map(|taken| taken.count);
            let all = ROWS.iter().all(|row| often(row) == Some(self.repetitions));
            let name = format!("{} made every call as often as asked for", caller.name());
            outcome.check(Check::done(&name, all));
        }
        for &(row, part) in &self.at_el2 {
            // Without the whole, no part is small enough.
            let whole = self.taken(Caller::Freertos, ROWS[row].key);
            let most = whole.map_or(-1.0, |taken| real(taken.min_instructions()));
            let least = if ROWS[row].is_served { 1.0 } else { 0.0 };
            let name = format!("FreeRTOS, {}: at EL2, of the shortest", ROWS[row].name);
            let goal = Goal::Between(least, most);
            outcome.check(Check::new(&name, part.map(real), "instructions", goal));
        }
        self.compare(outcome);
    }

    /// Adds what the paper says of its own figures.
    fn compare(&self, outcome: &mut Outcome) {
        for caller in Caller::ALL {
            for statement in &STATEMENTS {
                outcome.check(self.compared(caller, statement));
            }
        }
    }

    /// Returns the ratios of which the paper says something.
    fn ratios(&self) -> Dataset {
        let ratio = |caller, of: &Statement| self.ratio(caller, of.calls[0], of.calls[1]);
        Dataset::of("ratios", "Means of one call by those of another", &STATEMENTS)
            .name("statement", |of| of.text)
            .head("the paper says")
            .column("freertos", Unit::None, |of| ratio(Caller::Freertos, of))
            .head("FreeRTOS")
            .digits(2)
            .column("linux", Unit::None, |of| ratio(Caller::Linux, of))
            .head("Linux")
            .digits(2)
            .column("paper", Unit::None, |of| {
                let [one, other] = of.calls.map(rows::paper_mean_us);
                Some(one? / other?)
            })
            .head("the paper")
            .digits(2)
            .name("agree", |of| self.agreeing(of))
            .done()
    }

    /// Returns of whose calls a statement is true, in words.
    fn agreeing(&self, of: &Statement) -> &'static str {
        match Caller::ALL.map(|caller| self.compared(caller, of).holds()) {
            [true, true] => "both",
            [true, false] => "FreeRTOS",
            [false, true] => "Linux",
            [false, false] => "neither",
        }
    }

    /// Compares the calls of a caller with a statement.
    fn compared(&self, caller: Caller, of: &Statement) -> Check {
        let name = format!("{}: {}", caller.name(), of.text);
        let ratio = self.ratio(caller, of.calls[0], of.calls[1]);
        Check::new(&name, ratio, "times", of.goal).as_statement()
    }
}

/// What the paper says of the means of two calls.
#[derive(Debug)]
struct Statement {
    text: &'static str,
    calls: [&'static str; 2],
    goal: Goal,
}

const ABOUT_EQUAL: Goal = Goal::Between(1.0 / 1.5, 1.5);
const DEARER: Goal = Goal::AtLeast(1.0);
const MOST_OF: Goal = Goal::Between(0.5, 1.0);

/// All of them: each about the mean of the first call, divided by that of the second.
const STATEMENTS: [Statement; 6] = [
    Statement {
        text: "open (create), intra-VM is dearer",
        calls: ["intra_open_create", "inter_open_create"],
        goal: DEARER,
    },
    Statement {
        text: "destroy, intra-VM is dearer",
        calls: ["intra_destroy", "inter_destroy"],
        goal: DEARER,
    },
    Statement { text: "lock, about equal", calls: ["intra_lock", "inter_lock"], goal: ABOUT_EQUAL },
    Statement {
        text: "trylock, about equal",
        calls: ["intra_trylock", "inter_trylock"],
        goal: ABOUT_EQUAL,
    },
    Statement {
        text: "unlock, about equal",
        calls: ["intra_unlock", "inter_unlock"],
        goal: ABOUT_EQUAL,
    },
    Statement {
        text: "vmpcp_start_gcs is most of an intra-VM lock",
        calls: ["start_gcs", "intra_lock"],
        goal: MOST_OF,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// What boots bring in which a call takes so long, two thirds of it at EL2.
    fn seen(mean_ns: impl Fn(&Row) -> u64) -> Vec<Seen> {
        let boot =
            |case: &Case, taken, at_el2| Seen { case: case.clone(), real_s: 1.0, taken, at_el2 };
        let taken = |row: &Row| {
            let mean_ns = mean_ns(row);
            let (min_ns, max_ns) = (mean_ns, 2 * mean_ns);
            TimedCall { key: row.key.into(), count: 100, min_ns, mean_ns, max_ns }
        };
        let all: Vec<_> = ROWS.iter().map(taken).collect();
        let around = ROWS.iter().enumerate().flat_map(|(place, row)| {
            let [before, after] = Case::around(place);
            [boot(&before, vec![], 5_000), boot(&after, vec![], 5_000 + 2 * mean_ns(row) / 3)]
        });
        Case::measuring(100).iter().map(|case| boot(case, all.clone(), 9)).chain(around).collect()
    }

    fn table(seen: &[Seen]) -> Table {
        Table::of(seen, 100, 0..ROWS.len())
    }

    fn papers(row: &Row) -> u64 {
        (1_000.0 * row.paper_us[0]) as u64
    }

    fn statements(table: &Table) -> Vec<bool> {
        let mut outcome = Outcome::new("x");
        table.compare(&mut outcome);
        outcome.checks().iter().map(Check::holds).collect()
    }

    fn failing(table: &Table) -> Vec<String> {
        let outcome = table.answer().outcome;
        let failing = outcome.checks().iter().filter(|check| check.fails());
        failing.map(|check| check.name.clone()).collect()
    }

    #[test]
    fn the_papers_own_figures_agree_with_its_statements() {
        let table = table(&seen(papers));
        assert_eq!((statements(&table), failing(&table)), (vec![true; 12], vec![]));
    }

    #[test]
    fn statements_may_differ_and_fail_nothing() {
        let odd = table(&seen(|row| if row.key.starts_with("intra") { 100 } else { 1_000 }));
        assert_eq!(statements(&odd), [false; 12]);
        assert_eq!(odd.answer().outcome.exit_code(false), 0);
    }

    #[test]
    fn a_call_that_was_not_measured_fails() {
        let all = seen(|_| 100);
        let mut few = all.clone();
        few[1].taken.pop();
        assert_eq!(failing(&table(&few)), ["Linux made every call as often as asked for"]);
        let mut seldom = all.clone();
        seldom[0].taken[0].count = 99;
        assert_eq!(failing(&table(&seldom)), ["FreeRTOS made every call as often as asked for"]);
        assert_eq!(failing(&table(&all[..1])).len(), 1 + ROWS.len());
        assert_eq!(failing(&table(&all[1..])).len(), 1 + ROWS.len(), "no part of nothing");
    }

    #[test]
    fn a_part_at_el2_that_cannot_be_fails() {
        let around = |key: &str, [before, after]: [u64; 2]| {
            let mut seen = seen(|_| 100);
            let place = 2 + 2 * ROWS.iter().position(|row| row.key == key).unwrap();
            (seen[place].at_el2, seen[place + 1].at_el2) = (before, after);
            failing(&table(&seen)).len()
        };
        assert_eq!(around("start_gcs", [1_000, 1_100]), 0);
        assert_eq!(around("start_gcs", [1_000, 1_101]), 1, "more than all");
        assert_eq!(around("start_gcs", [1_000, 1_000]), 1, "EL2 does it");
        assert_eq!(around("intra_destroy", [1_000, 1_000]), 0);
        assert_eq!(around("intra_destroy", [1_000, 999]), 1);
    }

    #[test]
    fn instructions_and_time_are_told_beside_the_papers() {
        let answer = table(&seen(papers)).answer();
        let row = &answer.outcome.figures["calls"][6];
        for (key, value) in [
            ("mean_instructions", 2_050),
            ("max_instructions", 4_100),
            ("at_el2_instructions", 1_366),
            ("mean_ns", 2_050),
            ("linux_mean_instructions", 2_050),
            ("linux_max_ns", 4_100),
        ] {
            assert_eq!(row[key], value, "{key}");
        }
        assert_eq!(row["paper_max_us"], 2.88);
        assert!(answer.summary().contains("of these at EL2"));
        let ratio = &answer.outcome.figures["ratios"][5];
        let [paper, linux] = ["paper", "linux"].map(|key| ratio[key].as_f64().unwrap());
        assert!((paper - 2.05 / 3.51).abs() < 1e-9 && (paper - linux).abs() < 1e-9, "{ratio}");
    }
}
