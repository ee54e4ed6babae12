//! Whether a mutex went from each holder to the task that came first in its queue.
//!
//! Guests write down when they asked, when they certainly were in the queue, when they saw that they
//! had the mutex, and when they began to give it back. A vCPU may be stopped between two of these,
//! so each is a bound on what happened at EL2. In virtual time the counters of two cores differ by up to
//! a quantum. What is objected to here is certainly wrong.

use abi::report::tasks::Section;

/// What a task reported of one mutex.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The name.
    pub task: String,
    /// The place in the queue, 0 for the first.
    pub rank: usize,
    /// The sections, in the order of time.
    pub sections: Vec<Section>,
    /// The counter until which all of them are there.
    pub until: u64,
}

/// Returns what is wrong about one mutex, given all its claims; counters of two cores differ by up
/// to `skew` ticks, which is less than any section takes.
#[must_use]
pub fn objections(claims: &[Claim], skew: u64) -> Vec<String> {
    let until = claims.iter().map(|claim| claim.until).min().unwrap_or(0);
    let all = claims.iter().flat_map(|claim| claim.sections.iter().map(move |s| (claim, s)));
    // Nothing is known of what came after that.
    let mut all: Vec<_> = all.filter(|(_, section)| section.gave <= until).collect();
    // Sections do not overlap, so they began in the order in which they ended.
    all.sort_by_key(|(_, section)| section.gives);
    let mut found = Vec::new();
    for (place, pair) in all.windows(2).enumerate() {
        let [(first, before), (second, after)] = pair else { continue };
        if after.had.saturating_add(skew) < before.gives {
            found.push(format!(
                "{} had it at {}, before {} gave it back at {}",
                second.task, after.had, first.task, before.gives
            ));
        }
        // That waited when it was given back, and was served later.
        let passed_over = all[place + 2..].iter().find(|(other, waits)| {
            let waited = waits.queued > 0 && waits.queued.saturating_add(skew) < before.gives;
            waited && (other.rank < second.rank || after.queued == 0)
        });
        if let Some((other, waits)) = passed_over {
            found.push(format!(
                "{} waited since {} and was passed over for {} when {} gave it back at {}",
                other.task, waits.queued, second.task, first.task, before.gives
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section: asked, queued (0: not), had, gives; and when that was over.
    fn section([asked, queued, had, gives]: [u64; 4]) -> Section {
        Section { mutex: 1, asked, queued, had, gives, gave: gives + 1 }
    }

    fn claim(rank: usize, sections: &[[u64; 4]]) -> Claim {
        let sections = sections.iter().map(|&times| section(times)).collect();
        Claim { task: format!("t{rank}"), rank, sections, until: u64::MAX }
    }

    #[test]
    fn the_first_in_the_queue_is_served_first() {
        let low = claim(2, &[[0, 0, 1, 10], [40, 0, 41, 50]]);
        let middle = claim(1, &[[2, 3, 30, 35]]);
        let high = claim(0, &[[4, 5, 12, 20]]);
        assert_eq!(objections(&[low.clone(), middle.clone(), high], 0), [""; 0]);
        let late = claim(0, &[[4, 5, 36, 38]]);
        let said = objections(&[low.clone(), middle.clone(), late], 0);
        assert!(said.len() == 1 && said[0].contains("passed over for t1"), "{said:?}");
        // It asked when the mutex was given back, and need not have been in the queue.
        let just = claim(0, &[[9, 11, 36, 38]]);
        assert_eq!(objections(&[low, middle, just], 0), [""; 0]);
    }

    #[test]
    fn a_task_that_comes_later_does_not_take_what_others_wait_for() {
        let holder = claim(0, &[[0, 0, 1, 10]]);
        let waits = claim(2, &[[2, 3, 30, 35]]);
        let comes = claim(1, &[[11, 0, 12, 20]]);
        let said = objections(&[holder.clone(), waits.clone(), comes], 0);
        assert!(said.len() == 1 && said[0].contains("t2 waited since 3"), "{said:?}");
        let queued = claim(1, &[[2, 4, 12, 20]]);
        assert_eq!(objections(&[holder, waits, queued], 0), [""; 0]);
    }

    #[test]
    fn one_task_has_it_at_a_time() {
        let said = objections(&[claim(0, &[[0, 0, 1, 10]]), claim(1, &[[2, 0, 9, 20]])], 0);
        assert!(said.len() == 1 && said[0].contains("before t0 gave it back"), "{said:?}");
    }

    #[test]
    fn cores_that_differ_are_not_taken_for_tasks_that_do() {
        let both = [claim(0, &[[0, 0, 1, 10]]), claim(1, &[[2, 0, 9, 20]])];
        assert_eq!((objections(&both, 0).len(), objections(&both, 1).len()), (1, 0));
        let low = claim(2, &[[0, 0, 1, 10]]);
        let middle = claim(1, &[[2, 3, 12, 20]]);
        let high = claim(0, &[[4, 8, 30, 35]]);
        let all = [low, middle, high];
        assert_eq!((objections(&all, 1).len(), objections(&all, 2).len()), (1, 0));
    }

    #[test]
    fn what_was_not_written_down_is_not_judged() {
        let mut cut = claim(1, &[[2, 3, 12, 15]]);
        cut.until = 16;
        let later = claim(0, &[[0, 0, 1, 10], [14, 15, 40, 50]]);
        let last = claim(2, &[[16, 17, 30, 35]]);
        assert_eq!(objections(&[cut, later, last], 0), [""; 0]);
    }

    #[test]
    fn times_may_be_any() {
        let most = u64::MAX;
        let all = [claim(0, &[[0, most, most, 10]]), claim(1, &[[most, most, 11, most - 1]])];
        assert_eq!(objections(&all, 2_000), [""; 0]);
    }
}
