//! What EL2 takes at most, from the longest paths of its image (`cassata bound`).
//!
//! A *whole* visit is a figure's stay; where that has no bound, because EL2 may look for interrupts
//! any number of times, it is the path to the first look, one from a look to the next, and that from
//! the last look on. So it contains one more piece of work than a visit must have: the message for
//! which a doorbell was rung, or a switch.
//!
//! | time | figure |
//! | --- | --- |
//! | release | the longest of `interrupt: virtual timer` and `interrupt: device` |
//! | timer interrupt | `interrupt: EL2 timer` |
//! | doorbell | `interrupt: doorbell` |
//! | gcs call | `synchronous`: the scheduler may decide after the call, which no kind contains |
//! | switch on wake | the longest whole visit: `interrupt` or `synchronous` |
//! | switch on sleep | the same, and `synchronous: WFI or WFE` |
//!
//! A grant is in the call and in the doorbell, a departure in the switch: they take nothing beyond.
//! Other duties are no figure, but an assumption: of how often they come, and of how long they take.

use analysis::overheads::Overheads;
use bound::report::{Figure, Instructions, Report};
use miette::{Result, miette};

/// Returns what EL2 takes at most, on a core that takes `instruction_ps` picoseconds for each
/// instruction. `described`: what is measured for the same system, of which it has the timer advance
/// and other duties.
///
/// # Errors
/// When a figure is missing, or has no bound.
pub fn overheads(report: &Report, instruction_ps: u64, described: Overheads) -> Result<Overheads> {
    let time = |names: &[&str]| -> Result<u64> {
        let all = names.iter().map(|name| whole(report, name)).collect::<Result<Vec<_>>>()?;
        let longest = all.into_iter().max().unwrap_or(0);
        Ok(longest.saturating_mul(instruction_ps).div_ceil(1_000))
    };
    let any = time(&["interrupt", "synchronous"])?;
    Ok(Overheads {
        release_ns: time(&["interrupt: virtual timer", "interrupt: device"])?,
        switch_on_wake_ns: any,
        switch_on_sleep_ns: any.saturating_add(time(&["synchronous: WFI or WFE"])?),
        timer_ns: time(&["interrupt: EL2 timer"])?,
        doorbell_ns: time(&["interrupt: doorbell"])?,
        gcs_call_ns: time(&["synchronous"])?,
        grant_ns: 0,
        departure_ns: 0,
        timer_advance_ns: described.timer_advance_ns,
        duty_ns: described.duty_ns,
        duty_every_ns: described.duty_every_ns,
    })
}

/// Returns the instructions of a whole visit.
fn whole(report: &Report, name: &str) -> Result<u64> {
    let figure = report.figures.iter().find(|figure| figure.name == name);
    let figure = figure.ok_or_else(|| miette!("`cassata bound` has no figure `{name}`"))?;
    whole_of(figure).ok_or_else(|| {
        miette!(
            help =
                "`cassata bound` says what is missing; `--overheads measured` needs nothing of it",
            "`{name}` has no bound"
        )
    })
}

fn whole_of(figure: &Figure) -> Option<u64> {
    let bounded = |found: &Instructions| found.bounded;
    if let Some(stay) = figure.stay.filter(bounded) {
        return Some(stay.instructions);
    }
    let pieces = [figure.before_look, figure.between_looks, figure.after_look];
    let known = pieces.iter().flatten();
    let sum = known.clone().map(|piece| piece.instructions).fold(0, u64::saturating_add);
    let complete = figure.before_look.is_some() && known.clone().all(bounded);
    complete.then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(instructions: u64) -> Option<Instructions> {
        Some(Instructions { instructions, bounded: true })
    }

    fn figure(name: &str, stay: u64) -> Figure {
        Figure {
            name: name.to_owned(),
            stay: found(stay),
            before_look: found(stay),
            between_looks: None,
            after_look: None,
            deaf: found(stay),
            path: Vec::new(),
        }
    }

    /// Entries without a bound of the whole stay.
    fn report() -> Report {
        let open = Some(Instructions { instructions: 900, bounded: false });
        let entry = |name, before| Figure {
            stay: open,
            before_look: found(before),
            between_looks: found(30),
            after_look: found(7),
            ..figure(name, 0)
        };
        let figures = vec![
            entry("interrupt", 400),
            figure("interrupt: virtual timer", 10),
            figure("interrupt: device", 12),
            figure("interrupt: EL2 timer", 20),
            entry("interrupt: doorbell", 100),
            entry("synchronous", 300),
            figure("synchronous: WFI or WFE", 15),
        ];
        Report { figures, ..Report::default() }
    }

    #[test]
    fn each_time_is_the_longest_of_its_figures() {
        let described = Overheads { duty_ns: 9, duty_every_ns: 99, ..Overheads::NONE };
        let described = Overheads { timer_advance_ns: 8, release_ns: 70, ..described };
        let of = overheads(&report(), 2_000, described).unwrap();
        let expected = Overheads {
            release_ns: 2 * 12,
            switch_on_wake_ns: 2 * 437,
            switch_on_sleep_ns: 2 * (437 + 15),
            timer_ns: 2 * 20,
            doorbell_ns: 2 * 137,
            gcs_call_ns: 2 * 337,
            timer_advance_ns: 8,
            duty_ns: 9,
            duty_every_ns: 99,
            ..Overheads::NONE
        };
        assert_eq!(of, expected);
        let rounded = overheads(&report(), 1, described).unwrap();
        assert_eq!(rounded.release_ns, 1, "a part of a nanosecond counts as one");
    }

    #[test]
    fn what_is_missing_is_told() {
        let refusal = |change: &dyn Fn(&mut Vec<Figure>)| {
            let mut report = report();
            change(&mut report.figures);
            overheads(&report, 1_000, Overheads::NONE).unwrap_err().to_string()
        };
        let lost = refusal(&|figures| figures.retain(|one| one.name != "interrupt: doorbell"));
        assert_eq!(lost, "`cassata bound` has no figure `interrupt: doorbell`");
        let open = Some(Instructions { instructions: 1, bounded: false });
        let open = refusal(&|figures| figures[0].between_looks = open);
        assert_eq!(open, "`interrupt` has no bound");
    }
}
