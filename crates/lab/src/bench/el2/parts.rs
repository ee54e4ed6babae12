//! What each optional part adds to the hypervisor: lines of source, and bytes of code.
//!
//! A part's lines are those of its modules. Its code is what the image that has the part has of these
//! lines, beyond what is left of them in the image without parts.

use super::features::{code_by, is_inside, lines_by};
use crate::bundle::Builds;
use miette::{IntoDiagnostic, Result};
use std::collections::BTreeMap;
use std::path::Path;
use system::pack::image_size;

/// An optional part.
struct Kind {
    /// The feature of `cassata-el2`.
    feature: &'static str,
    about: &'static str,
    /// The modules of the part, below `crates`.
    modules: &'static [&'static str],
    /// The build that has it; none: it is built on request.
    build: Option<fn(&Builds) -> &'static [u8]>,
}

const KINDS: [Kind; 11] = [
    Kind {
        feature: "boosts",
        about: "boosts",
        modules: &["sched/src/scheduler/boosts", "el2/src/pcpu/boosts"],
        build: Some(|builds| builds.with_parts),
    },
    Kind {
        feature: "consolidation",
        about: "cores that are powered down",
        modules: &[
            "sched/src/consolidation",
            "el2/src/parts/consolidation",
            "el2/src/pcpu/consolidation",
            "el2/src/shared/rest",
        ],
        build: Some(|builds| builds.with_parts),
    },
    Kind {
        feature: "links",
        about: "links between VMs",
        modules: &["abi/src/link", "el2/src/pcpu/links"],
        build: Some(|builds| builds.with_parts),
    },
    Kind {
        feature: "sections",
        about: "critical sections, ceilings, mutexes",
        modules: &[
            "sched/src/ceiling",
            "sched/src/claims",
            "sched/src/scheduler/sections",
            "el2/src/pcpu/sections",
            "el2/src/shared/mutex",
            "el2/src/shared/sections",
            "el2/src/vcpu/holds",
        ],
        build: Some(|builds| builds.with_parts),
    },
    Kind {
        feature: "smmu",
        about: "an SMMU",
        modules: &["abi/src/dma", "el2/src/arch/smmu"],
        build: Some(|builds| builds.with_parts),
    },
    Kind {
        feature: "virtio",
        about: "virtio devices of one VM for another one",
        modules: &["abi/src/virtio", "el2/src/pcpu/virtio"],
        build: Some(|builds| builds.with_parts),
    },
    Kind {
        feature: "trace",
        about: "records for a trace",
        modules: &["abi/src/trace", "el2/src/status/trace", "el2/src/pcpu/notes"],
        build: Some(|builds| builds.tracing),
    },
    Kind {
        feature: "gic-v2",
        about: "a GICv2, in place of a GICv3",
        modules: &[
            "vgic/src/frames/v2",
            "el2/src/arch/gic/v2",
            "el2/src/devices/gicc_v2",
            "el2/src/devices/gicd_v2",
        ],
        build: Some(|builds| builds.gic_v2),
    },
    Kind {
        feature: "spin-table",
        about: "a spin table, beside PSCI",
        modules: &["el2/src/arch/aarch64/spin_table"],
        build: Some(|builds| builds.gic_v2),
    },
    Kind {
        feature: "uarts",
        about: "any UART, not only a PL011",
        modules: &[
            "el2/src/arch/uart/cadence",
            "el2/src/arch/uart/chosen",
            "el2/src/arch/uart/imx",
            "el2/src/arch/uart/ns16550",
        ],
        build: Some(|builds| builds.tracing),
    },
    Kind {
        feature: "signature",
        about: "signed images; with a crate of others",
        modules: &["el2/src/boot/signature"],
        build: None,
    },
];

/// An optional part, and what it adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The feature of `cassata-el2`.
    pub feature: &'static str,
    pub about: &'static str,
    /// Lines of source, comments included, tests not.
    pub lines: u64,
    /// Lines among these that are code.
    pub code_lines: u64,
    /// Bytes of code; none: no image that is at hand has the part.
    pub code: Option<u64>,
}

/// The optional parts, and the images with and without them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// All there are.
    pub all: Vec<Part>,
    /// Bytes of the image that has those that any system may want on a board with a GICv3.
    pub image: u64,
}

impl Parts {
    /// Measures the `builds`, whose source is below the project's `root`.
    ///
    /// # Errors
    /// When the source cannot be read or a build is no ELF file with debug information.
    pub fn measure(builds: &Builds, root: &Path) -> Result<Self> {
        let mut lines = lines_by(root, |path| Ok(part(path)))?;
        let without = code(builds.silent)?;
        let mut images = BTreeMap::new();
        let mut all = Vec::new();
        for (at, kind) in KINDS.iter().enumerate() {
            let code = match kind.build.map(|build| build(builds)) {
                None => None,
                Some(build) => {
                    if !images.contains_key(build) {
                        images.insert(build, code(build)?);
                    }
                    let of = |image: &BTreeMap<_, u64>| image.get(&Some(at)).copied().unwrap_or(0);
                    Some(of(&images[build]).saturating_sub(of(&without)))
                }
            };
            let [lines, code_lines] = lines.remove(&Some(at)).unwrap_or_default();
            let Kind { feature, about, .. } = *kind;
            all.push(Part { feature, about, lines, code_lines, code });
        }
        Ok(Self { all, image: image_size(builds.with_parts).into_diagnostic()? })
    }
}

/// Counts the bytes of code of each part.
fn code(image: &[u8]) -> Result<BTreeMap<Option<usize>, u64>> {
    code_by(image, |path| Ok(path.and_then(part)))
}

/// Returns the index of the part to which the file at `path`, from the project's root, belongs.
fn part(path: &Path) -> Option<usize> {
    KINDS.iter().position(|kind| kind.modules.iter().any(|at| is_inside(path, at)))
}

/// Returns the modules of all parts.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = &'static &'static str> {
    KINDS.iter().flat_map(|kind| kind.modules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::root;
    use std::collections::BTreeSet;
    use toml::Table;

    /// What is no part: it changes how the others behave, or stands for several.
    const OTHERS: [&str; 2] = ["checked", "parts"];

    #[test]
    fn every_feature_of_the_hypervisor_is_a_part() {
        let manifest = std::fs::read_to_string(root().join("crates/el2/Cargo.toml")).unwrap();
        let manifest: Table = manifest.parse().unwrap();
        let features = manifest["features"].as_table().unwrap().keys().map(String::as_str);
        let features: BTreeSet<_> = features.filter(|name| !OTHERS.contains(name)).collect();
        assert_eq!(features, KINDS.iter().map(|kind| kind.feature).collect());
    }

    /// An image without parts has next to nothing of them.
    #[test]
    fn what_a_part_adds_is_not_in_the_image_without() {
        let read = |name: &str| &*std::fs::read(root().join("build").join(name)).unwrap().leak();
        let with_parts = read("el2-parts.elf");
        let builds = Builds { silent: read("el2.elf"), ..Builds::one(with_parts, false) };
        let parts = Parts::measure(&builds, root()).unwrap();
        for part in &parts.all {
            assert!(part.lines > part.code_lines && part.code_lines > 10, "{part:?}");
        }
        let code = |feature| parts.all.iter().find(|part| part.feature == feature).unwrap().code;
        for (feature, least) in [
            ("boosts", 1_000),
            ("consolidation", 1_000),
            ("links", 100),
            ("sections", 1_000),
            ("smmu", 250),
            ("virtio", 1_000),
        ] {
            assert!(code(feature).unwrap() > least, "{feature}");
        }
        // This image does not record, and none that checks signatures is at hand.
        assert!(code("trace").unwrap() < 100 && code("signature").is_none());
        let without = image_size(builds.silent).unwrap();
        let added: u64 = parts.all.iter().filter_map(|part| part.code).sum();
        assert!(parts.image - without > added, "{} {without} {added}", parts.image);
    }
}
