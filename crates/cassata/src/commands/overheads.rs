//! What EL2 takes in bounds.

use crate::cli::{OverheadArgs, OverheadSource};
use crate::messages::note;
use analysis::misses::exact;
use analysis::overheads::{
    DEFAULT_MARGIN_PERMILLE, Overheads, PER_MILLE, Paces, VIRTUAL_INSTRUCTION_PS,
};
use lab::calibrate::identity;
use lab::computed;
use lab::paths::Paths;
use miette::{Result, WrapErr, miette};
use system::Checked;
use system::calibration::Calibration;

/// Returns what EL2 takes, as it was asked for: nothing, what was measured, or what is computed
/// from its image. Without a description an instruction is a nanosecond, and the system is any.
///
/// # Errors
/// When there is a margin on what is computed, or nothing can be computed from the image.
pub fn choose(arguments: &OverheadArgs, described: Option<&Checked>) -> Result<Overheads> {
    if arguments.no_overheads {
        return Ok(Overheads::NONE);
    }
    from(arguments.overheads, arguments.margin, described)
}

/// Returns what EL2 takes according to `source`; `margin`, thousandths, is that on what was measured,
/// 1.2 if none is given.
///
/// # Errors
/// When there is a margin on what is computed, or nothing can be computed from the image.
pub fn from(
    source: OverheadSource,
    margin: Option<u64>,
    described: Option<&Checked>,
) -> Result<Overheads> {
    if source == OverheadSource::Computed && margin.is_some() {
        return Err(miette!(
            help = "leave `--margin` out, or take `--overheads measured`",
            "what is computed from the hypervisor's image has no margin"
        ));
    }
    described
        .and_then(|checked| stale(checked.calibration.as_ref()?))
        .iter()
        .for_each(|text| note(text));
    let margin = margin.unwrap_or(DEFAULT_MARGIN_PERMILLE);
    let measured = described.map_or_else(
        || Overheads::measured(&Paces::all(VIRTUAL_INSTRUCTION_PS), margin),
        |checked| checked.overheads(margin),
    );
    match source {
        OverheadSource::Measured => Ok(measured),
        OverheadSource::Computed => {
            let instruction_ps = described.map_or(VIRTUAL_INSTRUCTION_PS, Checked::instruction_ps);
            let any = crate::HYPERVISOR.with_parts;
            let image = described.map_or(any, |checked| crate::HYPERVISOR.of(checked));
            let report = Paths::of(image, described).report();
            let computed =
                report.and_then(|report| computed::overheads(&report, instruction_ps, measured));
            computed.wrap_err("what EL2 takes cannot be computed from the hypervisor's image")
        }
    }
}

/// Says that a calibration is of another build of the hypervisor than any of these, if it is.
fn stale(calibration: &Calibration) -> Option<String> {
    let is_known =
        crate::HYPERVISOR.all().iter().any(|build| identity(build) == calibration.hypervisor);
    (!is_known).then(|| {
        format!(
            "the calibration of `{}` is of another build of the hypervisor ({}, version {}): measure again",
            calibration.board, calibration.hypervisor, calibration.cassata
        )
    })
}

/// Returns what is to be known of these lengths of visits, in a sentence, if anything is.
pub fn reservation(arguments: &OverheadArgs) -> Option<&'static str> {
    let computed = arguments.overheads == OverheadSource::Computed && !arguments.no_overheads;
    computed.then_some(
        "what is computed of a visit without a bound is the way to its first look, one piece between two \
         looks and the way from the last one: further pieces are in no bound",
    )
}

/// Says in a clause what is assumed of EL2 in bounds.
pub fn assumed(arguments: &OverheadArgs, overheads: &Overheads) -> String {
    if overheads.is_none() {
        return "EL2 takes no time".into();
    }
    let visits = match arguments.overheads {
        OverheadSource::Computed => "its longest paths say".into(),
        OverheadSource::Measured => {
            let margin = arguments.margin.unwrap_or(DEFAULT_MARGIN_PERMILLE);
            let (whole, part) = (margin / PER_MILLE, margin % PER_MILLE);
            let factor = format!("{whole}.{part:03}");
            let factor = factor.trim_end_matches('0').trim_end_matches('.');
            format!("{factor} times what was measured")
        }
    };
    format!(
        "EL2's visits take no more than {visits}, and its other duties on a core no more than {} in \
         each {}",
        exact(overheads.duty_ns),
        exact(overheads.duty_every_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_assumed_has_the_margin_and_the_duties() {
        let measured =
            OverheadArgs { no_overheads: false, overheads: OverheadSource::Measured, margin: None };
        let overheads = Overheads { duty_ns: 3_600, duty_every_ns: 100_000, ..Overheads::NONE };
        let said = assumed(&measured, &overheads);
        let expected = "EL2's visits take no more than 1.2 times what was measured, and its other \
                        duties on a core no more than 3.6 µs in each 100 µs";
        assert_eq!(said, expected);
        let twice = OverheadArgs { margin: Some(2_000), ..measured };
        assert!(assumed(&twice, &overheads).contains("no more than 2 times"));
        let computed = OverheadArgs { overheads: OverheadSource::Computed, ..measured };
        assert!(assumed(&computed, &overheads).contains("its longest paths say"));
        assert_eq!(assumed(&measured, &Overheads::NONE), "EL2 takes no time");
    }

    #[test]
    fn a_calibration_of_another_hypervisor_is_noticed() {
        let of = |hypervisor: String| {
            let load = ("none".into(), 64);
            Calibration::new("zcu102".into(), hypervisor, 1, load, (1_000, 1), Vec::new())
        };
        assert_eq!(stale(&of(identity(crate::HYPERVISOR.gic_v2))), None);
        let said = stale(&of("0123456789abcdef".into())).unwrap();
        assert!(said.starts_with("the calibration of `zcu102` is of another build"), "{said}");
    }

    #[test]
    fn what_is_computed_says_that_a_visit_has_one_piece() {
        let of = |no_overheads, overheads| {
            reservation(&OverheadArgs { no_overheads, overheads, margin: None })
        };
        let said = of(false, OverheadSource::Computed);
        assert!(said.is_some_and(|said| said.contains("one piece between two looks")));
        assert_eq!(of(false, OverheadSource::Measured), None);
        assert_eq!(of(true, OverheadSource::Computed), None, "there are no lengths");
    }
}
