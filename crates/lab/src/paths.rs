//! The longest paths of EL2 in a system (`cassata bound`).

use abi::MAX_PCPUS;
use bound::Error;
use bound::facts::Facts;
use bound::report::{self, Report};
use bound::sizes::Sizes;
use miette::{Result, miette};
use notes::each;
use system::Checked;
use system::model::{Counts, Features};

/// What the image does not say, from the project's root.
pub const FACTS: &str = "crates/el2/bounds.toml";

/// What the longest paths depend on.
#[derive(Clone, Debug)]
pub struct Paths {
    image: &'static [u8],
    sizes: Sizes,
}

impl Paths {
    /// Those of the hypervisor's ELF file `image` in a system that is described, or in any.
    #[must_use]
    pub fn of(image: &'static [u8], system: Option<&Checked>) -> Self {
        Self { image, sizes: sizes(system) }
    }

    /// Computes them.
    ///
    /// # Errors
    /// When what is said beside the image does not fit it.
    pub fn report(&self) -> Result<Report> {
        compute(self.image, include_str!("../../el2/bounds.toml"), &self.sizes)
    }
}

/// Computes those of any `image` with these `facts`, in a system that is described or in any.
///
/// # Errors
/// When the facts cannot be understood, or do not fit the image.
pub fn analyse(image: &[u8], facts: &str, system: Option<&Checked>) -> Result<Report> {
    compute(image, facts, &sizes(system))
}

fn compute(image: &[u8], facts: &str, sizes: &Sizes) -> Result<Report> {
    let facts = Facts::parse(facts).map_err(wrong(FACTS))?;
    report::analyse(image, &facts, sizes).map_err(wrong("the hypervisor"))
}

/// How large the system is, or may be where a set has room for more.
fn sizes(system: Option<&Checked>) -> Sizes {
    let any = Sizes::default().with(each::CORE, MAX_PCPUS);
    let Some(counts) = system.map(Checked::counts) else { return any };
    let Counts { vms, vcpus, siblings, pcpus, mutexes, claimants, device_interrupts, .. } = counts;
    let Features {
        migrants,
        candidates,
        extras,
        sections,
        advances,
        leavers,
        watched,
        lines,
        peeks,
        marks,
        boosts,
    } = counts.features;
    let sizes = any
        .with(each::VM, vms)
        .with(each::VCPU, vcpus)
        .with(each::SIBLING, siblings)
        .with(each::CORE, pcpus)
        .with(each::MUTEX, mutexes)
        .with(each::CLAIMANT, claimants)
        .with(each::DEVICE_INTERRUPT, device_interrupts)
        .with(each::MIGRANT, migrants)
        .with(each::CANDIDATE, candidates)
        .with(each::EXTRA, extras)
        .with(each::SECTION, sections)
        .with(each::ADVANCE, advances)
        .with(each::LEAVER, leavers)
        .with(each::WATCHED, watched)
        .with(each::LINE, lines)
        .with(each::PEEK, peeks)
        .with(each::MARK, marks)
        .with(each::BOOST, boosts);
    match counts.list_registers {
        Some(count) => sizes.with(each::LIST_REGISTER, count),
        None => sizes,
    }
}

fn wrong(what: &str) -> impl FnOnce(Error) -> miette::Report {
    let what = what.to_owned();
    move |error| miette!("{what}: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use std::path::Path;

    /// What EL2 promises: so far it goes at most without a look, and then perhaps through a switch,
    /// which no kind of visit contains.
    const MOST: u64 = 3_000;

    /// What the launcher makes only when it is asked for, below `build/guests`.
    const ON_REQUEST: [&str; 8] = [
        "board/initramfs.cpio.gz",
        "debian/disk.img",
        "embassy.elf",
        "others/backports.Image",
        "others/rt.Image",
        "others/u-boot.bin",
        "pcie/initramfs.cpio.gz",
        "virtio/initramfs.cpio.gz",
    ];

    #[test]
    fn in_no_system_does_a_visit_go_further_without_a_look_than_is_promised() {
        let root = testing::root();
        let facts = include_str!("../../el2/bounds.toml");
        let hypervisor = testing::hypervisor();
        // What it names is made only when it is asked for.
        let is_absent = |path: &Path| {
            let text = crate::source::read(path).unwrap();
            let mut named = ON_REQUEST.iter().filter(|file| text.contains(*file));
            named.any(|file| !root.join("build/guests").join(file).exists())
        };
        let mut seen = 0;
        for folder in ["guests/probe/systems", "systems", "systems/bench"] {
            for file in std::fs::read_dir(root.join(folder)).expect(folder) {
                let path = file.expect(folder).path();
                if path.extension().is_none_or(|extension| extension != "toml") || is_absent(&path)
                {
                    continue;
                }
                let system = system::load(&path).expect("a sound description");
                let report = analyse(&hypervisor, facts, Some(&system)).unwrap();
                let kinds = report.figures.iter().filter(|one| one.name.contains(": "));
                let far = kinds.clone().filter(|figure| {
                    let deaf = figure.deaf.as_ref().expect(&figure.name);
                    !deaf.bounded || deaf.instructions > MOST
                });
                let far: Vec<_> = far.map(|figure| (&figure.name, &figure.deaf)).collect();
                assert!(kinds.count() > 10 && far.is_empty(), "{}: {far:?}", path.display());
                seen += 1;
            }
        }
        assert!(seen > 80, "{seen} systems");
    }
}
