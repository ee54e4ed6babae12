//! What EL2 takes in bounds.

use crate::cli::{OverheadArgs, OverheadSource};
use analysis::overheads::{DEFAULT_MARGIN_PERMILLE, Overheads, VIRTUAL_INSTRUCTION_PS};
use lab::computed;
use lab::paths::Paths;
use miette::{Result, WrapErr, miette};
use system::Checked;

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
    let margin = margin.unwrap_or(DEFAULT_MARGIN_PERMILLE);
    let measured = described.map_or_else(
        || Overheads::measured(VIRTUAL_INSTRUCTION_PS, margin),
        |checked| checked.overheads(margin),
    );
    match source {
        OverheadSource::Measured => Ok(measured),
        OverheadSource::Computed => {
            let instruction_ps = described
                .map_or(VIRTUAL_INSTRUCTION_PS, |checked| checked.machine.board.instruction_ps);
            let report = Paths::of(crate::HYPERVISOR.silent, described).report();
            let computed =
                report.and_then(|report| computed::overheads(&report, instruction_ps, measured));
            computed.wrap_err("what EL2 takes cannot be computed from the hypervisor's image")
        }
    }
}
