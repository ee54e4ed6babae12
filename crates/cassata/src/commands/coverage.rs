//! What `cassata test --coverage` adds to `cassata test`.

use super::publish;
use crate::place;
use lab::bundle::Builds;
use lab::coverage::report::{self, Extent, Image, NAME};
use lab::executed::Records;
use lab::results::Directory;
use lab::suite::Tally;
use miette::{Result, miette};
use std::path::Path;

/// Where machine tests record what they execute of the hypervisor.
pub struct Coverage {
    directory: Directory,
    /// The records.
    pub records: Records,
}

impl Coverage {
    /// Begins a record without those of an earlier run.
    pub fn begin() -> Result<Self> {
        let directory = Directory::create(&place::results(), NAME)?;
        let records = Records::begin(&directory.path().join("records"))?;
        Ok(Self { directory, records })
    }

    /// Says what the machine tests that `extent` tells executed of the builds that ship and of the
    /// `checked` one; answers the exit code.
    pub fn tell(&self, root: &Path, checked: &Builds, extent: Extent<'_>) -> Result<u8> {
        if extent.tally == Tally::default() {
            return Err(miette!("no machine test ran to its end, so nothing is known"));
        }
        let image = |name, elf, ships| Image { name, elf, ships };
        let images = [
            image("the build that ships", crate::HYPERVISOR.silent, true),
            image("the build that ships with all parts", crate::HYPERVISOR.with_parts, true),
            image("the build that ships and records", crate::HYPERVISOR.tracing, true),
            image("the build that ships for a GICv2", crate::HYPERVISOR.gic_v2, true),
            image("the checked build", checked.silent, false),
            image("the checked build for a GICv2", checked.gic_v2, false),
        ];
        let answer = report::answer(&images, &self.records, root, extent)?;
        // Without a check there is no table of them.
        let is_judged = !answer.outcome.checks().is_empty();
        let text = if is_judged { answer.summary() } else { answer.findings().into() };
        publish(&answer, &format!("\n{text}"), &self.directory)?;
        Ok(answer.outcome.exit_code(false))
    }
}
