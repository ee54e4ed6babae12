//! The way of one interrupt, from the marks that a core came to.
//!
//! | stage | from | to |
//! | --- | --- | --- |
//! | raise | the interrupt is raised | EL2's vector, or EL2 goes on behind its WFI; or, if EL2 ran, it reads which interrupt it is |
//! | entry | there | EL2 reads which interrupt it is |
//! | handling | there | the interrupt is handled: a vCPU has been woken, or a virtual interrupt listed |
//! | scheduling | there | EL2 takes the vCPU that had the core off the hardware, before which other guests may go on; where none had it, EL2 has decided; and where vCPUs leave for it, that |
//! | loading | there | the general registers of the vCPU |
//! | resume | there | the guest's vector |
//! | guest | there | the guest's handler |
//!
//! An exception takes no instruction, so the paper's first stage takes no time of its own here: points
//! *a* and *b* of its Figure 2 are one.

use super::marks::{
    ACKNOWLEDGE, DECIDED, DEPART, DEPARTED, ENTRY, HANDLED, HANDLER, RESUME, SWITCH, VECTOR, WAKE,
};
use serde::{Deserialize, Serialize};
use vtime::marks::{AllSequences, Noted};

/// The stages, and what the paper (Ma and others, Section 3.1) calls each.
pub const STAGES: [(&str, &str); 7] = [
    ("raise", "-"),
    ("entry", "1, 2: VM exit, and after it"),
    ("handling", "3: host ISR"),
    ("scheduling", "4: host scheduling"),
    ("loading", "5: before VM entry"),
    ("resume", "6: VM entry"),
    ("guest", "-"),
];
/// How many.
pub const COUNT: usize = STAGES.len();
/// The last stage that belongs to the interrupt response time: the guest's handler is behind it.
pub const RESPONSE: usize = COUNT - 1;

/// Where the interrupt found the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// In a guest, at this exception level.
    Guest(u8),
    /// Asleep at EL2.
    Idle,
    /// At EL2, which does not let itself be interrupted.
    Busy,
}

/// The way of one interrupt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// What each stage took, ns.
    pub stages: [u64; COUNT],
    pub found: Found,
    /// True if EL2 loaded another vCPU.
    pub switched: bool,
    /// True if EL2 went through those that lose the core.
    pub departed: bool,
}

/// A sequence of marks, from the raise of an interrupt on.
struct Marks<'a> {
    all: &'a AllSequences,
    notes: &'a [Noted],
}

impl Marks<'_> {
    fn is(&self, at: usize, name: &str) -> bool {
        self.all.name(&self.notes[at]) == name
    }

    /// Returns the index of the last mark of this name before index `end`.
    fn last(&self, name: &str, end: usize) -> Option<usize> {
        (0..end).rev().find(|&at| self.is(at, name))
    }

    fn first(&self, name: &str, end: usize) -> Option<usize> {
        (0..end).find(|&at| self.is(at, name))
    }

    fn first_behind(&self, name: &str, begin: usize) -> Option<usize> {
        (begin..self.notes.len()).find(|&at| self.is(at, name))
    }

    fn time(&self, at: usize) -> u64 {
        self.notes[at].2
    }

    /// Returns the time that passed between marks of two names, from index `begin` to `end`.
    fn between(&self, [from, to]: [&str; 2], begin: usize, end: usize) -> u64 {
        let (mut sum, mut since) = (0, None);
        for at in begin..end {
            if self.is(at, from) {
                since = Some(self.time(at));
            } else if self.is(at, to) {
                sum += since.take().map_or(0, |since| self.time(at) - since);
            }
        }
        sum
    }
}

/// Returns the way of an interrupt that was raised at `raised_ns`, at whose end are the marks `notes` of `all`.
///
/// # Errors
/// When marks are missing, or do not come in the order of the stages.
pub fn way(all: &AllSequences, notes: &[Noted], raised_ns: u64) -> Result<Way, String> {
    let begin = notes.partition_point(|noted| noted.2 < raised_ns);
    let marks = Marks { all, notes: &notes[begin..] };
    let told = || {
        let tell = |noted: &Noted| format!("{}+{}", all.name(noted), noted.2 - raised_ns);
        marks.notes.iter().map(tell).collect::<Vec<_>>().join(" ")
    };
    let missing = |what: &str| format!("no {what} in the order of the stages: {}", told());
    let handler = marks.notes.len().checked_sub(1).filter(|&at| marks.is(at, HANDLER));
    let handler = handler.ok_or_else(|| missing(HANDLER))?;
    let vector = marks.last(VECTOR, handler).ok_or_else(|| missing(VECTOR))?;
    let resume = marks.last(RESUME, vector).ok_or_else(|| missing(RESUME))?;
    let switch = marks.last(SWITCH, resume);
    let acknowledge = marks.first(ACKNOWLEDGE, switch.unwrap_or(resume));
    let Some(acknowledge) = acknowledge else {
        // EL2 saw by itself that it is time, or was about to load the vCPU: it was not interrupted.
        let begun = switch.unwrap_or(resume);
        let times = [begun, begun, begun, begun, resume, vector, handler];
        return Ok(of_times(&marks, raised_ns, times, Found::Busy, switch.is_some()));
    };
    // If EL2 goes back to another guest, the vCPU waits for the core from then on, which is no handling.
    let back = marks.first_behind(RESUME, acknowledge).unwrap_or(resume);
    let stay_ends = back.min(switch.unwrap_or(resume));
    let handled = marks.last(HANDLED, stay_ends).filter(|&at| at > acknowledge);
    let handled = handled.ok_or_else(|| missing(HANDLED))?;
    let (arrival, found) = arrival(&marks, acknowledge);
    // Where the same vCPU goes on, EL2 has decided so if it slept; if not, there was nothing to decide.
    let decided = marks.last(DECIDED, resume).filter(|&at| at > handled);
    let scheduled = switch.or(decided).unwrap_or(handled);
    let times = [arrival, acknowledge, handled, scheduled, resume, vector, handler];
    Ok(of_times(&marks, raised_ns, times, found, switch.is_some()))
}

/// Returns the mark at which EL2 noticed, and where the interrupt found the core.
fn arrival(marks: &Marks, acknowledge: usize) -> (usize, Found) {
    let came = (0..acknowledge).find(|&at| marks.is(at, ENTRY) || marks.is(at, WAKE));
    match came {
        // It went back to a guest before, so it was at work when the interrupt was raised.
        Some(at) if marks.first(RESUME, at).is_some() => (at, Found::Busy),
        Some(at) if marks.is(at, WAKE) => (at, Found::Idle),
        Some(at) => (at, marks.notes[at].1.map_or(Found::Busy, Found::Guest)),
        None => (acknowledge, Found::Busy),
    }
}

/// Makes a way of the marks at which its stages end. What takes vCPUs off the core that lose it counts as
/// scheduling, though EL2 does it while it loads the other one.
fn of_times(
    marks: &Marks,
    raised_ns: u64,
    ends: [usize; COUNT],
    found: Found,
    switched: bool,
) -> Way {
    let mut stages = [0; COUNT];
    let mut last_ns = raised_ns;
    for (stage, &at) in stages.iter_mut().zip(&ends) {
        *stage = marks.time(at) - last_ns;
        last_ns = marks.time(at);
    }
    let leaving_ns = marks.between([DEPART, DEPARTED], ends[3], ends[4]);
    stages[3] += leaving_ns;
    stages[4] -= leaving_ns;
    Way { stages, found, switched, departed: leaving_ns > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> AllSequences {
        let of_el2 = [ENTRY, WAKE, ACKNOWLEDGE, HANDLED, DECIDED, SWITCH, DEPART, DEPARTED, RESUME];
        let names = of_el2.into_iter().chain([VECTOR, HANDLER]);
        AllSequences { names: names.map(str::to_owned).collect(), vcpus: Vec::new() }
    }

    fn fold(raised_ns: u64, notes: &[(&str, u64)]) -> Result<Way, String> {
        let all = all();
        let index = |wanted: &str| all.names.iter().position(|name| name == wanted).unwrap();
        let level = |name: &str| (name == ENTRY).then_some(1);
        let noted = |&(name, at): &(&str, u64)| Noted(index(name) as u8, level(name), at);
        let notes: Vec<_> = notes.iter().map(noted).collect();
        way(&all, &notes, raised_ns)
    }

    #[test]
    fn a_switch_with_a_departure() {
        let way = fold(
            100,
            &[
                (RESUME, 50),
                (ENTRY, 103),
                (ACKNOWLEDGE, 140),
                (HANDLED, 190),
                (SWITCH, 260),
                (DEPART, 400),
                (DEPARTED, 450),
                (RESUME, 500),
                (VECTOR, 520),
                (HANDLER, 580),
            ],
        )
        .unwrap();
        assert_eq!(way.stages, [3, 37, 50, 120, 190, 20, 60]);
        assert_eq!((way.found, way.switched, way.departed), (Found::Guest(1), true, true));
        assert_eq!(way.stages.iter().sum::<u64>(), 480);
    }

    #[test]
    fn a_core_that_sleeps_one_that_is_at_el2_and_one_that_keeps_its_vcpu() {
        let asleep = [
            (WAKE, 100),
            (ACKNOWLEDGE, 110),
            (HANDLED, 150),
            (RESUME, 190),
            (VECTOR, 210),
            (HANDLER, 230),
        ];
        let way = fold(100, &asleep).unwrap();
        assert_eq!((way.stages, way.found), ([0, 10, 40, 0, 40, 20, 20], Found::Idle));
        assert!(!way.switched && !way.departed);
        // Raised after the core woke for something else: EL2 finds it when it looks.
        let way = fold(105, &asleep).unwrap();
        assert_eq!((way.stages, way.found), ([5, 0, 40, 0, 40, 20, 20], Found::Busy));
        // EL2 had been entered for something else, and went back first.
        let busy = [(RESUME, 140), (ENTRY, 160), (ACKNOWLEDGE, 190), (HANDLED, 230)];
        let rest = [(SWITCH, 240), (RESUME, 300), (VECTOR, 320), (HANDLER, 340)];
        let way = fold(100, &[busy, rest].concat()).unwrap();
        assert_eq!((way.stages, way.found), ([60, 30, 40, 10, 60, 20, 20], Found::Busy));
        // Raised while EL2 was about to load the vCPU.
        let way = fold(160, &asleep).unwrap();
        assert_eq!((way.stages, way.found), ([30, 0, 0, 0, 0, 20, 20], Found::Busy));
    }

    #[test]
    fn a_decision_for_the_vcpu_that_slept_is_scheduling() {
        let begin =
            [(DECIDED, 99), (WAKE, 100), (ACKNOWLEDGE, 110), (HANDLED, 150), (DECIDED, 175)];
        let rest = [(RESUME, 190), (VECTOR, 210), (HANDLER, 230)];
        let stages = |marks: &[(&str, u64)]| fold(98, marks).unwrap().stages;
        let same = [&begin[..], &rest].concat();
        assert_eq!(stages(&same), [2, 10, 40, 25, 15, 20, 20]);
        // Another interrupt was taken then, and EL2 decided again.
        let twice = [(ACKNOWLEDGE, 176), (HANDLED, 180), (DECIDED, 186)];
        assert_eq!(stages(&[&begin[..], &twice, &rest].concat()), [2, 10, 70, 6, 4, 20, 20]);
        // With a switch it ends where that begins, as ever.
        let switched = [&begin[..], &[(SWITCH, 180)], &rest].concat();
        assert_eq!(stages(&switched), [2, 10, 40, 30, 10, 20, 20]);
    }

    #[test]
    fn a_vcpu_that_waits_for_an_equal_one_is_scheduled_until_it_has_the_core() {
        let wait =
            [(ENTRY, 100), (ACKNOWLEDGE, 130), (HANDLED, 180), (RESUME, 220), (RESUME, 5_000)];
        let end = [(ENTRY, 9_000), (ACKNOWLEDGE, 9_030), (HANDLED, 9_050), (SWITCH, 9_100)];
        let rest = [(RESUME, 9_400), (VECTOR, 9_420), (HANDLER, 9_450)];
        let way = fold(95, &[&wait[..], &end, &rest].concat()).unwrap();
        assert_eq!(way.stages, [5, 30, 50, 8_920, 300, 20, 30]);
        assert_eq!((way.found, way.switched), (Found::Guest(1), true));
    }

    #[test]
    fn another_interrupt_that_is_taken_first_is_handling() {
        let marks = [
            (ENTRY, 100),
            (ACKNOWLEDGE, 130),
            (HANDLED, 150),
            (ACKNOWLEDGE, 160),
            (HANDLED, 200),
            (SWITCH, 220),
            (RESUME, 300),
            (VECTOR, 320),
            (HANDLER, 350),
        ];
        let way = fold(98, &marks).unwrap();
        assert_eq!(way.stages, [2, 30, 70, 20, 80, 20, 30]);
    }

    #[test]
    fn what_is_missing_is_named() {
        for (notes, name) in [
            (&[][..], HANDLER),
            (&[(ENTRY, 100), (ACKNOWLEDGE, 120)], HANDLER),
            (&[(RESUME, 150), (HANDLER, 200)], VECTOR),
            (&[(VECTOR, 150), (HANDLER, 200)], RESUME),
            (&[(ACKNOWLEDGE, 120), (RESUME, 150), (VECTOR, 170), (HANDLER, 200)], HANDLED),
        ] {
            let error = fold(100, notes).unwrap_err();
            assert!(error.contains(&format!("no {name} ")), "{error}");
        }
    }
}
