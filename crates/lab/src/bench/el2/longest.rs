//! What EL2 takes at most for a kind of visit, computed from its image (`cassata bound`).

use bound::facts::Facts;
use bound::report;
use bound::sizes::Sizes;
use miette::{IntoDiagnostic, Result};
use std::collections::BTreeMap;

/// What the image does not say.
const FACTS: &str = include_str!("../../../../el2/bounds.toml");

/// Returns the instructions of the longest stay by the names of the figures, of those that have a
/// bound, in any system.
///
/// # Errors
/// When `image` is not the hypervisor's ELF file.
pub fn stays(image: &[u8]) -> Result<BTreeMap<String, u64>> {
    let facts = Facts::parse(FACTS).into_diagnostic()?;
    let report = report::analyse(image, &facts, &Sizes::default()).into_diagnostic()?;
    let stays = report.figures.into_iter().filter_map(|figure| {
        let stay = figure.stay.filter(|stay| stay.bounded)?;
        Some((figure.name, stay.instructions))
    });
    Ok(stays.collect())
}
