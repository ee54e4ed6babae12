//! What each feature adds to the hypervisor: lines of source, and bytes of code.
//!
//! Every instruction is counted where its source stands, also when the compiler has put it into
//! another function: the debug information of the image says from which lines it comes. What an
//! inlined function of the language's library does counts for the line that calls it.

use crate::{executed, source};
use bound::lines::Lines;
use miette::{IntoDiagnostic, Result, WrapErr, ensure, miette};
use std::collections::BTreeMap;
use std::path::Path;
use vtime::coverage::INSTRUCTION;

/// What has no line of the house: the language's library out of line, and padding.
const LIBRARY: &str = "the language's library, padding";

/// Which feature the source below a path serves; of several paths the longest counts.
const FEATURES: [(&str, &[&str]); 12] = [
    (
        "boot, description and its check",
        &["el2/src/boot", "el2/src/tables", "abi", "el2/src/lib", "el2/src/main", "el2/src/bug"],
    ),
    ("registers, vectors, drivers", &["el2/src/arch"]),
    (
        "cores and vCPUs: run loop, switch, timers, power",
        &["el2/src/pcpu", "el2/src/parts", "el2/src/vcpu", "el2/src/shared", "notes"],
    ),
    ("scheduler without extras", &["sched/src"]),
    ("traps and calls", &["el2/src/exits", "abi/src/service"]),
    ("virtual GIC", &["vgic", "el2/src/devices"]),
    (
        "migration and its policies",
        &[
            "sched/src/consolidation",
            "sched/src/location",
            "sched/src/mailbox",
            "sched/src/policy",
            "sched/src/recall",
            "sched/src/switchboard",
            "sched/src/topology",
            "el2/src/parts/consolidation",
            "el2/src/parts/displacement",
            "el2/src/parts/idle_news",
            "el2/src/parts/kernel_wait",
            "el2/src/parts/visitors",
            "el2/src/pcpu/consolidation",
            "el2/src/pcpu/coscheduling",
            "el2/src/pcpu/displacement",
            "el2/src/pcpu/handover",
            "el2/src/pcpu/mail",
            "el2/src/pcpu/views",
            "el2/src/pcpu/visitors",
            "el2/src/shared/rest",
            "el2/src/shared/hand_over",
        ],
    ),
    (
        "budgets",
        &[
            "sched/src/server",
            "sched/src/scheduler/budgets",
            "sched/src/scheduler/extras",
            "el2/src/pcpu/budgets",
            "el2/src/vcpu/account",
        ],
    ),
    ("boosts", &["sched/src/scheduler/boosts", "el2/src/pcpu/boosts"]),
    (
        "critical sections, ceilings, mutexes",
        &[
            "sched/src/ceiling",
            "sched/src/claims",
            "sched/src/scheduler/sections",
            "el2/src/pcpu/sections",
            "el2/src/shared/mutex",
            "el2/src/shared/sections",
            "el2/src/vcpu/holds",
        ],
    ),
    (
        "consoles",
        &[
            "abi/src/console",
            "el2/src/devices/uart",
            "el2/src/pcpu/console",
            "el2/src/shared/pl011",
            "el2/src/shared/ring",
        ],
    ),
    (
        "status area and trace",
        &[
            "abi/src/status",
            "abi/src/trace",
            "abi/src/report",
            "el2/src/status",
            "el2/src/pcpu/notes",
        ],
    ),
];

/// A feature, and how much of the hypervisor it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    pub name: &'static str,
    /// Lines of source, comments included, tests not.
    pub lines: u64,
    /// Lines among these that are code.
    pub code_lines: u64,
    /// Bytes of code in the image.
    pub code: u64,
}

/// Splits the hypervisor whose ELF file is `image`, and whose source is below the project's `root`.
///
/// # Errors
/// When the source cannot be read or `image` is no ELF file with debug information.
pub fn measure(image: &[u8], root: &Path) -> Result<Vec<Feature>> {
    let mut code = code_by(image, |path| path.map_or(Ok(LIBRARY), feature))?;
    let mut lines = lines_by(root, feature)?;
    let all = FEATURES.iter().map(|(name, _)| *name).chain([LIBRARY]).map(|name| {
        let [lines, code_lines] = lines.remove(name).unwrap_or_default();
        Feature { name, lines, code_lines, code: code.remove(name).unwrap_or(0) }
    });
    Ok(all.collect())
}

/// Counts the lines of each kind of source, and those among them that are code; `kind` is given paths from
/// the project's `root`.
pub(super) fn lines_by<K: Ord>(
    root: &Path,
    kind: impl Fn(&Path) -> Result<K>,
) -> Result<BTreeMap<K, [u64; 2]>> {
    let mut found: BTreeMap<_, [u64; 2]> = BTreeMap::new();
    for package in source::linked(root)? {
        for (file, text) in source::shipped_files(&root.join(package))? {
            let kind = kind(file.strip_prefix(root).into_diagnostic()?)?;
            let [lines, code] = found.entry(kind).or_default();
            *lines += source::lines_of(&text);
            *code += source::code_lines(&text);
        }
    }
    Ok(found)
}

/// Names the feature that the file at `path`, from the project's root, serves.
fn feature(path: &Path) -> Result<&'static str> {
    let all = FEATURES.iter().flat_map(|(name, below)| below.iter().map(move |at| (*at, *name)));
    let longest = all.filter(|(at, _)| is_inside(path, at)).max_by_key(|(at, _)| at.len());
    let none = || miette!("{} belongs to no feature", path.display());
    longest.map(|(_, name)| name).ok_or_else(none)
}

/// Returns true if the file at `path`, from the project's root, is of the module `at`, below `crates`.
pub(super) fn is_inside(path: &Path, at: &str) -> bool {
    let path = path.to_string_lossy();
    let inside = path.strip_prefix("crates/").unwrap_or(&path);
    // A module is a file or a directory of its name.
    inside.strip_prefix(at).is_some_and(|rest| rest.starts_with(['/', '.']))
}

/// Counts the bytes of each kind of code in an image; `kind` is given the path of its source, or none for
/// code that is not from a line of the house.
pub(super) fn code_by<K: Ord>(
    image: &[u8],
    kind: impl Fn(Option<&Path>) -> Result<K>,
) -> Result<BTreeMap<K, u64>> {
    let debug = Lines::parse(image)
        .map_err(|error| miette!("{error}"))
        .wrap_err("the hypervisor's debug information")?;
    let code = executed::code(image)?;
    let mut found: BTreeMap<_, u64> = BTreeMap::new();
    let (mut ours, all) = (0, (code.end - code.start) / INSTRUCTION);
    for address in code.step_by(usize::try_from(INSTRUCTION).into_diagnostic()?) {
        let own = debug.own(address);
        ours += u64::from(own.is_some());
        let kind = kind(own.as_ref().map(|frame| Path::new(&frame.file)))?;
        *found.entry(kind).or_default() += INSTRUCTION;
    }
    ensure!(
        2 * ours > all,
        "it names lines of the project's crates for {ours} of {all} instructions only"
    );
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::root;

    #[test]
    fn the_longest_path_decides() {
        for (path, name) in [
            ("crates/el2/src/pcpu/run_loop.rs", "cores and vCPUs: run loop, switch, timers, power"),
            ("crates/el2/src/pcpu/budgets.rs", "budgets"),
            ("crates/sched/src/scheduler/mod.rs", "scheduler without extras"),
            ("crates/sched/src/policy/none.rs", "migration and its policies"),
            ("crates/abi/src/trace.rs", "status area and trace"),
        ] {
            assert_eq!(feature(Path::new(path)).unwrap(), name, "{path}");
        }
        assert!(feature(Path::new("crates/other/src/lib.rs")).is_err());
    }

    #[test]
    fn every_path_is_there() {
        let root = root();
        let parts = super::super::parts::all();
        for at in FEATURES.iter().flat_map(|(_, below)| *below).chain(parts) {
            let path = root.join("crates").join(at);
            assert!(path.exists() || path.with_extension("rs").exists(), "{at}");
        }
    }

    /// Nothing would be found below a root that the image names otherwise.
    #[test]
    fn most_of_the_image_belongs_to_a_feature() {
        let features = measure(&crate::testing::hypervisor(), root()).unwrap();
        let all: u64 = features.iter().map(|feature| feature.code).sum();
        let library = features.iter().find(|feature| feature.name == LIBRARY).unwrap().code;
        assert!(all > 50_000 && 10 * library < all, "{library} of {all} bytes");
    }

    #[test]
    fn an_image_without_debug_information_is_refused() {
        assert!(measure(b"no ELF file", root()).is_err());
    }
}
