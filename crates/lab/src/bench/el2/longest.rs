//! What EL2 takes at most for a kind of visit, computed from its image (`cassata bound`).

use bound::facts::Facts;
use bound::report::{self, Report};
use bound::sizes::Sizes;
use miette::{IntoDiagnostic, Result};
use std::collections::BTreeMap;

/// What the image does not say.
const FACTS: &str = include_str!("../../../../el2/bounds.toml");

/// Computes the longest paths in any system.
///
/// # Errors
/// When `image` is not the hypervisor's ELF file.
pub fn paths(image: &[u8]) -> Result<Report> {
    let facts = Facts::parse(FACTS).into_diagnostic()?;
    report::analyse(image, &facts, &Sizes::default()).into_diagnostic()
}

/// Returns the instructions of the longest stay by the names of the figures, of those that have a
/// bound.
pub fn stays(report: &Report) -> BTreeMap<String, u64> {
    let stays = report.figures.iter().filter_map(|figure| {
        let stay = figure.stay.filter(|stay| stay.bounded)?;
        Some((figure.name.clone(), stay.instructions))
    });
    stays.collect()
}
