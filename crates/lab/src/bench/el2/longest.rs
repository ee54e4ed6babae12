//! What EL2 takes at most for a kind of visit, computed from its image (`cassata bound`).

use super::case::Seen;
use crate::looks::Stretch;
use bound::report::Report;
use std::collections::BTreeMap;

/// Returns the instructions of the longest stay by the names of the figures, of those that have a
/// bound.
pub fn stays(report: &Report) -> BTreeMap<String, u64> {
    let stays = report.figures.iter().filter_map(|figure| {
        let stay = figure.stay.filter(|stay| stay.bounded)?;
        Some((figure.name.clone(), stay.instructions))
    });
    stays.collect()
}

/// Returns how far EL2 went without a look in machines of the image without parts: others have
/// longer paths.
pub fn stretches(seen: &[Seen], report: &Report) -> Vec<Stretch> {
    let shipped = seen.iter().filter(|seen| !seen.case.has_parts());
    Stretch::all(shipped.filter_map(|seen| seen.statistics.as_ref()), report)
}
