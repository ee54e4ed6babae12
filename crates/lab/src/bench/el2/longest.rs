//! What EL2 takes at most for a kind of visit, computed from its image (`cassata bound`).

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
