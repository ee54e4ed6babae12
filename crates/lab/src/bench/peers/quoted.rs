//! What the book quotes, and how much of the bench that is: a whole run, or a quick one, which says what it lacks.

use super::Found;
use super::case::{Case, Measure};
use super::plan::{self, Own};
use super::system::System;
use crate::answer::Answer;
use crate::bench::Extent;

/// Rows that a quick run lacks and that differ in what is beside them only.
#[derive(Debug, PartialEq, Eq)]
struct Lacking {
    what: &'static str,
    cores: u32,
    /// Whatever is beside them, in the order of the plan.
    beside: Vec<String>,
    /// The systems, if other systems' rows are there.
    systems: Option<Vec<String>>,
}

impl Found {
    /// Returns what the book quotes: the tables, in Markdown; nothing of a part of the bench.
    pub fn quoted(&self, answer: &Answer) -> Option<String> {
        let extent = self.extent()?;
        let tables = self.data();
        let tables = tables.iter().filter(|data| !data.is_empty());
        let tables: Vec<_> = tables.map(|data| data.table().titled_markdown()).collect();
        let (sizes, goals) = (self.sizes(), answer.outcome.table().markdown());
        let tables = tables.join("\n");
        Some(format!("{extent} {sizes}\n\n{tables}\nFound, and the goals:\n\n{goals}"))
    }

    /// Says whether all of the bench was measured, or all of a quick run and what that lacks; `None` if
    /// it was neither.
    fn extent(&self) -> Option<String> {
        let own = Own::of_cases(&self.planned);
        let [whole, quick] = [Extent::Full, Extent::Quick].map(|extent| plan::cases(extent, own));
        if self.covers(&whole) {
            return Some("Measured by a whole run.".into());
        }
        self.covers(&quick).then(|| {
            let lacking: Vec<_> = lacking(&whole, &quick).iter().map(Lacking::words).collect();
            let lacking = lacking.join("; ");
            format!(
                "Measured with `--quick`: fewer of each, and these rows of a whole run are missing: \
                 {lacking}."
            )
        })
    }

    /// Says how much of each was measured.
    fn sizes(&self) -> String {
        let most = |of: fn(Measure) -> Option<u32>| {
            let counts = self.planned.iter().filter_map(|case| of(case.measure));
            counts.max().unwrap_or(0)
        };
        let periods = most(|measure| match measure {
            Measure::Wake { periods, .. } => Some(periods),
            _ => None,
        });
        let interrupts = most(|measure| match measure {
            Measure::Woken { interrupts, .. } => Some(interrupts),
            _ => None,
        });
        let repetitions = most(|measure| match measure {
            Measure::Call { repetitions } => Some(repetitions),
            _ => None,
        });
        let runs = most(|measure| match measure {
            Measure::Hackbench { runs, .. } => Some(runs),
            _ => None,
        });
        let activations = most(|measure| match measure {
            Measure::Freertos { activations, .. } => Some(activations),
            _ => None,
        });
        let wakes = most(|measure| match measure {
            Measure::Cyclictest { wakes, .. } => Some(wakes),
            _ => None,
        });
        format!(
            "It has up to {periods} periods and {interrupts} interrupts in each row, \
             {activations} activations of FreeRTOS and {wakes} wake-ups of cyclictest, {repetitions} times each \
             call, and {runs} runs of hackbench, the first of which is not counted."
        )
    }
}

impl Lacking {
    fn words(&self) -> String {
        let Self { what, cores, beside, systems } = self;
        let cores = if *cores == 1 { "one core".into() } else { format!("{cores} cores") };
        let of = systems.as_ref().map_or_else(String::new, |all| format!(" ({})", all.join("; ")));
        format!("{what} on {cores} beside {}{of}", listed(beside))
    }
}

/// Returns words as a sentence lists them.
fn listed(words: &[String]) -> String {
    match words {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => words.concat(),
    }
}

/// Returns the rows of `whole` that are not in `part`.
fn lacking(whole: &[Case], part: &[Case]) -> Vec<Lacking> {
    let row = |case: &Case| (case.system, case.cores, case.measure.row());
    let is_there = |case: &&Case| part.iter().any(|there| row(there) == row(case));
    let mut all: Vec<Lacking> = Vec::new();
    let mut rows: Vec<(u32, Measure)> = Vec::new();
    for case in whole.iter().filter(|case| !is_there(case)) {
        let (_, cores, measure) = row(case);
        if rows.contains(&(cores, measure)) {
            continue;
        }
        rows.push((cores, measure));
        let of_it = |case: &&Case| (case.cores, case.measure.row()) == (cores, measure);
        let (there, missing): (Vec<_>, Vec<_>) = whole.iter().filter(of_it).partition(is_there);
        let words = |case: &Case| System::words(case.system);
        let systems = (!there.is_empty()).then(|| missing.into_iter().map(words).collect());
        let (what, beside) = measure.words();
        let one = Lacking { what, cores, beside: vec![beside], systems };
        let alike = all
            .iter_mut()
            .find(|other| (other.what, other.cores, &other.systems) == (what, cores, &one.systems));
        match alike {
            Some(other) => other.beside.extend(one.beside),
            None => all.push(one),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::peers::case::Load;
    use std::path::Path;

    fn own() -> Own<'static> {
        let [xen, kernel] = ["/tmp/xen", "/tmp/kernel"].map(Path::new).map(Some);
        Own { xen, kernel, bao: None }
    }

    fn words(whole: &[Case], part: &[Case]) -> Vec<String> {
        lacking(whole, part).iter().map(Lacking::words).collect()
    }

    #[test]
    fn what_a_quick_run_lacks_follows_from_the_plan() {
        let [whole, quick] = [Extent::Full, Extent::Quick].map(|extent| plan::cases(extent, own()));
        let expected = [
            "FreeRTOS on one core beside nothing, computing and hackbench (Xen, credit)",
            "cyclictest on one core beside nothing, computing and hackbench (Xen, credit)",
            "hackbench on 4 cores beside a guest that burns 0 %, a guest that burns 30 % and a guest \
             that burns 80 %",
            "wake-ups by timer on 4 cores beside hackbench",
        ];
        assert_eq!(words(&whole, &quick), expected);
        assert_eq!(words(&whole, &whole), Vec::<String>::new());
        assert_eq!(words(&quick, &whole), Vec::<String>::new(), "counts are no rows");
    }

    #[test]
    fn rows_of_some_systems_are_told_from_whole_ones() {
        let measure = Measure::Wake { load: Load::Compute, periods: 9 };
        let [one, other] = [System::PLAIN, System::KVM].map(|system| Case::new(system, 4, measure));
        let both = [one.clone(), other];
        assert_eq!(words(&both, &[one]), ["wake-ups by timer on 4 cores beside computing (KVM)"]);
        assert_eq!(words(&both, &[]), ["wake-ups by timer on 4 cores beside computing"]);
    }

    #[test]
    fn the_users_own_images_are_those_that_were_measured() {
        let planned = plan::cases(Extent::Quick, own());
        let of = Own::of_cases(&planned);
        assert_eq!((of.xen, of.kernel, of.bao), (own().xen, own().kernel, None));
        assert_eq!(plan::cases(Extent::Quick, of), planned);
    }
}
