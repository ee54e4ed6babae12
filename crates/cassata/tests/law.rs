//! The laws of the architecture: which crates and folders may depend on which, where
//! the processor shows, where `unsafe` may be, and which words comments do without.

#[path = "law/errata.rs"]
mod errata;
#[path = "law/figures.rs"]
mod figures;
#[path = "law/mutants.rs"]
mod mutants;
#[path = "law/quotes.rs"]
mod quotes;
#[path = "law/reading.rs"]
mod reading;
#[path = "law/rooms.rs"]
mod rooms;
#[path = "law/words.rs"]
mod words;

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each package of the house, and which others it may depend on (tests of its
/// own may use more).
const LAW: &[(&str, &[&str])] = &[
    ("cassata-abi", &[]),
    ("cassata-notes", &[]),
    ("cassata-sched", &["cassata-notes"]),
    ("cassata-vtime", &[]),
    ("cassata-vgic", &["cassata-abi", "cassata-notes"]),
    // The bounds of loops are notes in the image, whose format both know.
    ("cassata-bound", &["cassata-notes"]),
    ("cassata-el2", &["cassata-abi", "cassata-notes", "cassata-sched", "cassata-vgic"]),
    ("cassata-vtime-plugin", &["cassata-vtime"]),
    // A library for guests, and none of the host's.
    ("cassata-link", &["cassata-abi"]),
    ("cassata-probe", &["cassata-abi"]),
    ("cassata-embassy", &["cassata-abi", "cassata-link"]),
    // What a server is: the bounds and the scheduler must mean the same by it.
    ("cassata-analysis", &["cassata-sched"]),
    ("cassata-sim", &["cassata-sched"]),
    ("cassata-system", &["cassata-abi", "cassata-sched", "cassata-analysis"]),
    ("cassata-lab", HOST),
    ("cassata", HOST_AND_LAB),
    // It feeds bytes to what reads them, wherever that is on the host, and ships nowhere.
    (
        "cassata-fuzz",
        &["cassata-abi", "cassata-lab", "cassata-notes", "cassata-system", "cassata-vgic"],
    ),
];
/// What must be asked for: only a build with this feature has it.
const ON_REQUEST: (&str, &str) = ("libfuzzer-sys", "cassata-fuzz");
const HOST: &[&str] = &[
    "cassata-abi",
    // What the loops of EL2 go round for: `cassata bound` says how many of each a system has.
    "cassata-notes",
    "cassata-sched",
    "cassata-vtime",
    "cassata-analysis",
    "cassata-bound",
    "cassata-sim",
    "cassata-system",
];
const HOST_AND_LAB: &[&str] = &[
    "cassata-abi",
    "cassata-notes",
    "cassata-sched",
    "cassata-vtime",
    "cassata-analysis",
    "cassata-bound",
    "cassata-sim",
    "cassata-system",
    "cassata-lab",
];
/// Where `unsafe` may be: at EL2 and in the notes that its loops leave, in a bare-metal guest,
/// and where QEMU's C begins.
const UNSAFE: &[&str] =
    &["crates/el2", "crates/notes", "crates/vtime-plugin", "guests/embassy", "guests/probe"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().into()
}

/// The packages of the workspace, as cargo understands them.
fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CASSATA_CARGO").unwrap_or_else(|| env!("CARGO").into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn name(value: &Value) -> &str {
    value["name"].as_str().unwrap()
}

fn allowed(package: &str) -> &'static [&'static str] {
    let law = LAW.iter().find(|(name, _)| *name == package);
    law.unwrap_or_else(|| panic!("no law says what `{package}` may depend on; add one here")).1
}

fn find_sources(directory: &Path, endings: &[&str], files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            find_sources(&path, endings, files);
        } else if path.extension().is_some_and(|ending| endings.iter().any(|one| ending == *one)) {
            files.push(path);
        }
    }
}

/// Returns every source below `directory` whose name has one of these endings, with its
/// path from the root.
fn sources(directory: &str, endings: &[&str]) -> Vec<(String, String)> {
    let (root, mut files) = (root(), Vec::new());
    find_sources(&root.join(directory), endings, &mut files);
    let relative = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
    files.iter().map(|path| (relative(path), fs::read_to_string(path).unwrap())).collect()
}

/// What the project's root holds: a newcomer sees it first.
const ROOT: [&str; 19] = [
    ".cargo",
    ".ci",
    ".gitignore",
    "CAVEATS.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "campaign",
    "cassata",
    "crates",
    "deny.toml",
    "docs",
    "fuzz",
    "guests",
    "rustfmt.toml",
    "setup",
    "systems",
];

/// What was left over from trying something was once committed by mistake.
#[test]
fn nothing_is_kept_in_the_root_but_what_belongs_there() {
    if !root().join(".git").exists() {
        // Unpacked source has no list of what is kept.
        return;
    }
    let git = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().unwrap();
    assert!(git.status.success(), "{}", String::from_utf8_lossy(&git.stderr));
    let kept = String::from_utf8(git.stdout).unwrap();
    let first = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
    let kept: BTreeSet<_> = kept.split_terminator('\0').map(first).collect();
    assert_eq!(kept, ROOT.map(str::to_owned).into());
}

#[test]
fn dependencies_go_one_way() {
    let packages = packages();
    let ours: BTreeSet<_> = packages.iter().map(name).collect();
    assert!(ours.contains("cassata-el2") && ours.contains("cassata"), "{ours:?}");
    for package in &packages {
        let dependencies = package["dependencies"].as_array().unwrap();
        let shipped = dependencies.iter().filter(|d| d["kind"] != "dev").map(name);
        for dependency in shipped.filter(|dependency| ours.contains(dependency)) {
            let package = name(package);
            assert!(allowed(package).contains(&dependency), "{package} uses {dependency}");
        }
    }
}

#[test]
fn the_fuzzer_is_built_on_request_only() {
    let (name_of, of) = ON_REQUEST;
    let mut users = 0;
    for package in packages() {
        let dependencies = package["dependencies"].as_array().unwrap();
        for dependency in dependencies.iter().filter(|dependency| name(dependency) == name_of) {
            assert_eq!((name(&package), &dependency["optional"]), (of, &Value::Bool(true)));
            assert_eq!(package["features"]["default"], Value::Null, "{of} has no default");
            users += 1;
        }
    }
    assert_eq!(users, 1);
}

#[test]
fn the_architecture_shows_in_one_place() {
    let word = ["target", "arch"].join("_");
    // The host's, whose registers have what translated code passes on.
    let of_the_host = "crates/vtime-plugin/src/wfe.rs";
    for (path, text) in sources("crates", &["rs"]) {
        let at_home = path.starts_with("crates/el2/src/arch/") || path == of_the_host;
        assert!(at_home || !text.contains(&word), "{path}: {word} belongs in crates/el2/src/arch");
    }
}

#[test]
fn unsafe_code_is_where_it_must_be() {
    let word = ["un", "safe "].concat(); // this file is one of them
    let words = ["{", "fn", "impl", "extern", "trait"].map(|next| format!("{word}{next}"));
    let free = |path: &str| !UNSAFE.iter().any(|place| path.starts_with(place));
    for (path, text) in sources("crates", &["rs"]).into_iter().filter(|(path, _)| free(path)) {
        let code = text.lines().map(|line| line.split("//").next().unwrap_or(line));
        let found = code.clone().find(|line| words.iter().any(|word| line.contains(word)));
        assert_eq!(found, None, "{path}");
    }
}

#[test]
fn every_other_crate_forbids_it() {
    for package in packages() {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let directory = manifest.parent().unwrap();
        if UNSAFE.iter().any(|place| directory.ends_with(place)) {
            continue;
        }
        let targets = package["targets"].as_array().unwrap().iter();
        let shipped = |target: &&Value| {
            ["lib", "bin"]
                .iter()
                .any(|kind| target["kind"].as_array().unwrap().contains(&(*kind).into()))
        };
        for target in targets.filter(shipped) {
            let path = target["src_path"].as_str().unwrap();
            let text = fs::read_to_string(path).unwrap();
            assert!(text.contains("#![forbid(unsafe_code)]"), "{path} does not forbid unsafe code");
        }
    }
}

#[test]
fn planted_bugs_fit_the_code() {
    let unfit = mutants::unfit(&root(), "crates/el2/mutants");
    assert!(
        unfit.is_empty(),
        "`crates/el2/mutants/run` cannot plant these:\n{}",
        unfit.join("\n\n")
    );
}
