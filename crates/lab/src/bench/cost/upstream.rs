//! Guests beside what they are made from: Debian's packages, a crate of FreeRTOS's sources.

use super::changes::{self, Changed};
use crate::guests::Images;
use crate::source;
use miette::{IntoDiagnostic, Result, WrapErr, ensure, miette};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use toml::{Table, Value};

/// The port of Linux to Cassata, from the project's root.
pub const PATCH: &str = "guests/linux-own/cassata.patch";
/// The crate that carries FreeRTOS's sources.
const FREERTOS: &str = "freertos-next";

/// A guest's kernel, and what is changed in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// What it is called.
    pub name: &'static str,
    /// The package that it is from.
    pub upstream: String,
    /// SHA-256 of what was compared or patched, hexadecimal; none where nothing was.
    pub sha256: Option<String>,
    /// Every file that is changed.
    pub changed: Vec<Changed>,
}

impl Kernel {
    /// Returns how many lines are added and removed, in files that the paper counts.
    pub fn lines(&self) -> [u64; 2] {
        let counted = self.changed.iter().filter(|file| file.is_counted());
        counted.fold([0, 0], |[added, removed], file| [added + file.added, removed + file.removed])
    }
}

/// Returns Debian's kernel: its Image must be the package's.
///
/// # Errors
/// When there is no package, or its Image is another one.
pub fn debian(root: &Path) -> Result<Kernel> {
    let package = debian_package(root)?;
    let script = "dpkg-deb --fsys-tarfile \"$1\" | tar -xO --wildcards './boot/vmlinuz-*'";
    let shipped = said_by(Command::new("sh").args(["-ec", script, "-"]).arg(&package), &[0])?;
    let image = Images::of(root).kernel;
    let used = fs::read(&image).into_diagnostic().wrap_err("Linux's Image")?;
    let [sha256, own] = [&shipped.stdout, &used].map(|bytes| sha256(bytes));
    ensure!(
        sha256 == own,
        "{} is not the Image in {}: remove both and let the launcher fetch them",
        image.display(),
        package.display()
    );
    let upstream = package.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Kernel { name: "Debian's Linux", upstream, sha256: Some(sha256), changed: Vec::new() })
}

/// Finds the package of Linux that the launcher has fetched.
fn debian_package(root: &Path) -> Result<PathBuf> {
    let directory = root.join("build/apt/debs");
    let is_kernel = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("linux-image-"))
    };
    let found = entries(&directory)?.into_iter().find(is_kernel);
    found.ok_or_else(|| miette!("there is no kernel in {}", directory.display()))
}

/// Returns FreeRTOS: the sources that are compiled, beside those in the crate whose checksum
/// the guest's lock file has.
///
/// # Errors
/// When they are not where cargo keeps them, or the crate is another one.
pub fn freertos(root: &Path, scratch: &Path) -> Result<Kernel> {
    let lock = root.join("guests/freertos/kernel/Cargo.lock");
    let (version, checksum) = locked(&source::read(&lock)?)
        .ok_or_else(|| miette!("{} has no {FREERTOS}", lock.display()))?;
    let name = format!("{FREERTOS}-{version}");
    let packed = kept("cache", &format!("{name}.crate"))?;
    let bytes = fs::read(&packed).into_diagnostic().wrap_err("a crate")?;
    let sha256 = sha256(&bytes);
    ensure!(sha256 == checksum, "{} has not the checksum in Cargo.lock", packed.display());
    let mut unpack = Command::new("tar");
    said_by(unpack.arg("-xzf").arg(&packed).arg("-C").arg(scratch), &[0])?;
    let [ours, theirs] = [kept("src", &name)?, scratch.join(&name)];
    let mut compare = Command::new("diff");
    compare.args(["--recursive", "--new-file", "--text", "--unified"]);
    compare.args([theirs, ours].map(|path| path.join("FreeRTOS-Kernel")));
    let difference = String::from_utf8_lossy(&said_by(&mut compare, &[0, 1])?.stdout).into_owned();
    let changed = changes::read(&difference)?;
    Ok(Kernel { name: "FreeRTOS", upstream: name, sha256: Some(sha256), changed })
}

/// Returns the version and the checksum of FreeRTOS's sources in a lock file.
fn locked(lock: &str) -> Option<(String, String)> {
    let lock: Table = lock.parse().ok()?;
    let text = |package: &Value, key| Some(package.get(key)?.as_str()?.to_owned());
    let is_it = |package: &&Value| text(package, "name").as_deref() == Some(FREERTOS);
    let package = lock.get("package")?.as_array()?.iter().find(is_it)?;
    Some((text(package, "version")?, text(package, "checksum")?))
}

/// Finds what cargo keeps of a crate of the registry, in `cache` or `src`.
fn kept(kind: &str, name: &str) -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let directory = home.unwrap_or_default().join("registry").join(kind);
    let places = entries(&directory)?;
    let found = places.iter().map(|registry| registry.join(name)).find(|path| path.exists());
    found.ok_or_else(|| {
        miette!(
            help = "remove build/stamps/freertos: the launcher then fetches it again",
            "cargo keeps no {name} in {}",
            directory.display()
        )
    })
}

/// Returns the port of Linux to Cassata.
///
/// # Errors
/// When its patch cannot be read or is damaged.
pub fn own(root: &Path) -> Result<Kernel> {
    let patch = source::read(&root.join(PATCH))?;
    let changed = changes::read(&patch).wrap_err(PATCH)?;
    let package = debian_package(root)?;
    let package = package.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let version = package.split('_').nth(1).unwrap_or_default();
    let upstream = format!("linux-source, {version}");
    Ok(Kernel { name: "Linux with the port", upstream, sha256: None, changed })
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let read = fs::read_dir(directory).into_diagnostic();
    let all = read.wrap_err_with(|| format!("cannot read {}", directory.display()))?;
    let mut all: Vec<_> = all.filter_map(|entry| Some(entry.ok()?.path())).collect();
    all.sort_unstable();
    Ok(all)
}

/// Runs a program that must end with one of the exit codes `good`.
fn said_by(command: &mut Command, good: &[i32]) -> Result<Output> {
    let output = command.output().into_diagnostic();
    let output = output.wrap_err_with(|| format!("cannot run {:?}", command.get_program()))?;
    let is_good = output.status.code().is_some_and(|code| good.contains(&code));
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(is_good, "{:?} failed: {}", command.get_program(), said.trim());
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_names_what_is_compared() {
        let lock = source::read(&crate::testing::root().join("guests/freertos/kernel/Cargo.lock"));
        let (version, checksum) = locked(&lock.unwrap()).unwrap();
        assert!(version.starts_with('0') && checksum.len() == 64, "{version} {checksum}");
        assert_eq!(locked("version = 4"), None);
    }

    #[test]
    fn a_file_that_the_paper_does_not_count_adds_nothing() {
        let changed = |file: &str| Changed { file: file.into(), added: 5, removed: 3 };
        let changed = ["a.c", "Makefile", "Kconfig"].map(changed).to_vec();
        let kernel = Kernel { name: "x", upstream: String::new(), sha256: None, changed };
        assert_eq!(kernel.lines(), [10, 6]);
    }

    /// A file that the patch changes and that Debian's headers have as it is in the source.
    const HEADER: &str = "arch/arm64/include/asm/preempt.h";

    /// Returns the lines that hunks expect before the change, with the number that each has.
    fn expected(hunks: &str) -> Vec<(usize, &str)> {
        let (mut expected, mut number) = (Vec::new(), 0);
        for line in hunks.lines().skip(2) {
            if let Some(head) = line.strip_prefix("@@ -") {
                number = head.split(',').next().unwrap().parse().unwrap();
            } else if !line.starts_with('+') {
                expected.push((number, &line[1..]));
                number += 1;
            }
        }
        expected
    }

    /// The kernel whose source the patch is for. Debian 13 has another.
    const SERIES: &str = "linux-headers-6.1.";

    /// The build shows whether the rest fits: it has the source.
    #[test]
    fn the_patch_fits_the_header_in_debians_package() {
        let root = crate::testing::root();
        let headers = entries(&root.join("build/apt/headers")).unwrap();
        let is_common = |path: &&PathBuf| path.to_string_lossy().contains("-common_");
        let package = headers.iter().find(is_common).expect("the launcher has fetched it");
        if !package.to_string_lossy().contains(SERIES) {
            return;
        }
        let script =
            format!("dpkg-deb --fsys-tarfile \"$1\" | tar -xO --wildcards './usr/src/*/{HEADER}'");
        let header = said_by(Command::new("sh").args(["-ec", &script, "-"]).arg(package), &[0]);
        let header = String::from_utf8(header.unwrap().stdout).unwrap();
        let header: Vec<_> = header.lines().collect();

        let patch = source::read(&root.join(PATCH)).unwrap();
        let hunks = &patch[patch.find(&format!("--- a/{HEADER}")).unwrap()..];
        let end = hunks[1..].find("\n--- ").map_or(hunks.len(), |end| end + 1);
        let expected = expected(&hunks[..end]);
        assert!(expected.len() > 10, "{expected:?}");
        for (number, line) in expected {
            assert_eq!(header[number - 1], line, "{HEADER}:{number}");
        }
    }

    #[test]
    fn the_port_is_no_larger_than_the_papers() {
        let own = own(crate::testing::root()).unwrap();
        let [added, removed] = own.lines();
        assert!(added > 100 && added <= super::super::MOST_ADDED, "{added} lines");
        assert!(removed < 10, "{removed} lines");
        assert!(own.changed.iter().all(Changed::is_counted), "{:?}", own.changed);
    }
}
