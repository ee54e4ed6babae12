//! Where the project is, and its tools.

use lab::suite::Toolchain;
use miette::{Result, miette};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use vtime::wrap::{Instrument, WrapError};

/// Set by the launcher: the project's root.
const ROOT: &str = "CASSATA_ROOT";
/// Set by the launcher: the cargo it chose.
const CARGO: &str = "CASSATA_CARGO";
/// Set by the launcher: the rustc it chose.
const RUSTC: &str = "CASSATA_RUSTC";
/// Set by the launcher: where `core` for bare metal comes from.
const CORE: &str = "CASSATA_CORE";
/// What a root has.
const LANDMARK: &str = "systems/demo.toml";

/// The project's root: what the launcher says, or else the nearest directory
/// from here upwards that looks like it.
pub fn root() -> Result<PathBuf> {
    if let Some(root) = env::var_os(ROOT) {
        return Ok(root.into());
    }
    let here = env::current_dir().map_err(|error| miette!("there is no here: {error}"))?;
    let found = root_above(&here).map(Path::to_path_buf);
    found.ok_or_else(|| {
        miette!(
            help = format!("call it there, or name its root in {ROOT}"),
            "this is not Cassata's source tree: no {LANDMARK} here or above"
        )
    })
}

fn root_above(here: &Path) -> Option<&Path> {
    here.ancestors().find(|directory| directory.join(LANDMARK).is_file())
}

/// Where results go: `results` in the project, or here when there is none.
pub fn results() -> PathBuf {
    root().unwrap_or_default().join("results")
}

/// The directory of a run: as it was named, or of that name among the results.
pub fn of_run(run: &Path) -> PathBuf {
    below(run, &results())
}

fn below(run: &Path, results: &Path) -> PathBuf {
    if run.is_dir() { run.into() } else { results.join(run) }
}

/// Returns true if a file is one of those that the launcher has built: the hypervisor, the
/// instrument, a guest, this program.
pub fn is_product(path: &Path) -> bool {
    const PRODUCTS: [&str; 17] = [
        "build/el2.elf",
        "build/el2.crates",
        "build/el2-parts.elf",
        "build/el2-parts.crates",
        "build/el2-trace.elf",
        "build/el2-trace.crates",
        "build/el2-gicv2.elf",
        "build/el2-gicv2.crates",
        "build/el2-checked.elf",
        "build/el2-checked-gicv2.elf",
        "build/el2-signed.elf",
        "build/el2-signed.crates",
        "build/el2-signed-gicv2.elf",
        "build/el2-signed-gicv2.crates",
        "build/libcassata_vtime.so",
        "build/guests",
        "target/release/cassata",
    ];
    let real = |path: &Path| path.canonicalize().ok();
    let Some((root, path)) = root().ok().zip(real(path)) else { return false };
    PRODUCTS.iter().filter_map(|product| real(&root.join(product))).any(|p| path.starts_with(p))
}

/// The instrument of virtual time, as a file.
///
/// It is put where the launcher builds it, so that as a rule it is there
/// already; or, outside the project and where its path cannot be preloaded,
/// among the user's caches.
pub fn instrument() -> Result<Instrument> {
    let unpack = |directory: &Path| Instrument::unpack(crate::INSTRUMENT, directory);
    let built = root().ok().and_then(|root| unpack(&root.join("build")).ok());
    let instrument: Result<_, WrapError> = built.map_or_else(|| unpack(&cache()), Ok);
    instrument.map_err(|error| miette!("{error}"))
}

/// The user's own cache directory for this program (XDG Base Directory
/// Specification).
fn cache() -> PathBuf {
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let caches = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    caches.unwrap_or_else(env::temp_dir).join("cassata")
}

/// The cargo to run.
pub fn cargo() -> OsString {
    env::var_os(CARGO).unwrap_or_else(|| "cargo".into())
}

/// The toolchain that the launcher chose; without it, there is none.
pub fn chosen_toolchain() -> Option<Toolchain> {
    let rustc = PathBuf::from(env::var_os(RUSTC)?);
    let builds_core = env::var_os(CORE).is_some_and(|core| core == "build-std");
    Some(Toolchain { bin: rustc.parent()?.into(), builds_core })
}

/// Environment that makes cargo use the compiler the launcher chose, and the
/// rustdoc that belongs to it: another one cannot read what it compiled.
pub fn toolchain() -> Vec<(OsString, OsString)> {
    env::var_os(RUSTC).map(|rustc| toolchain_of(Path::new(&rustc))).unwrap_or_default()
}

fn toolchain_of(rustc: &Path) -> Vec<(OsString, OsString)> {
    vec![
        ("RUSTC".into(), rustc.into()),
        ("RUSTDOC".into(), rustc.with_file_name("rustdoc").into_os_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_tests_use_the_compiler_of_the_library() {
        let environment = toolchain_of(Path::new("/usr/bin/rustc"));
        assert!(environment.contains(&("RUSTC".into(), "/usr/bin/rustc".into())));
        assert!(environment.contains(&("RUSTDOC".into(), "/usr/bin/rustdoc".into())));
    }

    #[test]
    fn a_run_is_found_by_path_and_by_name() {
        let results = tempfile::tempdir().unwrap();
        assert_eq!(below(results.path(), Path::new("/none")), results.path());
        assert_eq!(below(Path::new("run-a"), Path::new("/r")), Path::new("/r/run-a"));
    }

    #[test]
    fn the_root_is_found_from_below() {
        let root = tempfile::tempdir().unwrap();
        let below = root.path().join("crates/lab/src");
        std::fs::create_dir_all(&below).unwrap();
        assert_eq!(root_above(&below), None);
        std::fs::create_dir(root.path().join("systems")).unwrap();
        std::fs::write(root.path().join(LANDMARK), "").unwrap();
        assert_eq!(root_above(&below), Some(root.path()));
    }
}
