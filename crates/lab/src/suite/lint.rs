//! What the source must satisfy as it stands, each a test of its own: format,
//! lints, documentation, known faults of dependencies.
//!
//! The programs are those of the toolchain that builds Cassata: clippy cannot read
//! what another compiler has compiled, and rustfmt's format differs from version to
//! version. Where they are not installed the test is skipped, and says so. cargo-deny
//! alone may come from anywhere, and is skipped as well where the list of faults cannot
//! be fetched.

use super::Tally;
use super::host::CargoTest;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The target of what runs on bare metal.
const BARE_METAL: &str = "aarch64-unknown-none-softfloat";

/// What runs on the host. The hypervisor is in it with its library: its program
/// compiles for bare metal only. The profile is the one that the command line is
/// built with, so that the two share build scripts and macros.
const HOST: &[&str] = &[
    "--release",
    "--workspace",
    "--exclude",
    "cassata-probe",
    "--exclude",
    "cassata-embassy",
    "--lib",
    "--bin",
    "cassata",
];
/// What runs on bare metal, with the code of all builds of the hypervisor that images have.
const BARE: &[&str] = &[
    "--profile",
    "bare",
    "-p",
    "cassata-el2",
    "-p",
    "cassata-probe",
    "-p",
    "cassata-embassy",
    "--features",
    "cassata-el2/trace,cassata-el2/signature,cassata-el2/smmu,cassata-el2/virtio",
];

/// The program that is part of no toolchain.
const ANYWHERE: &str = "cargo-deny";
/// What it says where the database of advisories is out of reach.
const UNREACHABLE: &str = "failed to fetch advisory database";

/// The toolchain that builds Cassata.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The directory of its programs.
    pub bin: PathBuf,
    /// It has no compiled `core` for bare metal, but the source.
    pub builds_core: bool,
}

/// One requirement.
#[derive(Clone, Copy, Debug)]
pub struct Lint {
    /// A test's name: `lint-format`.
    pub name: &'static str,
    /// What checks it.
    check: Check,
    /// It is about what runs on bare metal, not on the host.
    bare_metal: bool,
}

#[derive(Clone, Copy, Debug)]
enum Check {
    Format,
    Clippy,
    Documentation,
    Advisories,
}

/// All there are.
pub const LINTS: [Lint; 6] = [
    Lint { name: "lint-format", check: Check::Format, bare_metal: false },
    Lint { name: "lint-clippy", check: Check::Clippy, bare_metal: false },
    Lint { name: "lint-clippy-bare-metal", check: Check::Clippy, bare_metal: true },
    Lint { name: "lint-doc", check: Check::Documentation, bare_metal: false },
    Lint { name: "lint-doc-bare-metal", check: Check::Documentation, bare_metal: true },
    Lint { name: "lint-advisories", check: Check::Advisories, bare_metal: false },
];

impl Lint {
    /// Checks the project in `root`; everything that is said goes to
    /// `NAME.log` in `logs`.
    ///
    /// # Errors
    /// When a program cannot be started or the log cannot be written.
    pub fn run(
        &self,
        root: &Path,
        toolchain: &Toolchain,
        logs: &Path,
        progress: &mut Progress,
        interrupt: &Interrupt,
    ) -> io::Result<Tally> {
        let name = self.name;
        if let Some(missing) = self.check.needs().iter().find(|need| toolchain.find(need).is_none())
        {
            let place = toolchain.bin.display();
            let why = format!("there is no {missing} in {place}");
            return Ok(skipped(name, &why, progress));
        }
        let log = logs.join(format!("{name}.log"));
        let (cargo, args) = (self.program(toolchain), self.arguments(root, toolchain));
        let call = CargoTest { cargo, args, env: self.environment(toolchain), log };
        let start = Instant::now();
        let tally = call.run_as_one(name, progress, interrupt)?;
        if tally.failed > 0 && fs::read_to_string(&call.log)?.contains(UNREACHABLE) {
            return Ok(skipped(name, "the list of advisories cannot be fetched", progress));
        }
        let verdict = match tally.passed {
            _ if interrupt.requested() => "interrupted",
            0 => "FAILED",
            _ => "ok",
        };
        let seconds = start.elapsed().as_secs_f64();
        progress.line(&format!("test {name} ... {verdict} ({seconds:.1} s)"));
        Ok(tally)
    }

    /// Returns the program to call.
    fn program(&self, toolchain: &Toolchain) -> OsString {
        toolchain.find(self.check.needs()[0]).unwrap_or_default().into()
    }

    fn arguments(&self, root: &Path, toolchain: &Toolchain) -> Vec<OsString> {
        let which = if self.bare_metal { BARE } else { HOST };
        let of_check: &[&[&str]] = match self.check {
            Check::Format => &[&["fmt", "--all", "--check"]],
            Check::Clippy if self.bare_metal => &[&["clippy", "--locked"], which],
            Check::Clippy => &[&["clippy", "--locked", "--tests", "--benches"], which],
            Check::Advisories => &[],
            Check::Documentation => {
                &[&["doc", "--locked", "--no-deps", "--document-private-items"], which]
            }
        };
        let mut arguments: Vec<OsString> = of_check.concat().iter().map(Into::into).collect();
        arguments.extend(["--manifest-path".into(), root.join("Cargo.toml").into()]);
        if self.bare_metal {
            arguments.extend(["--target".into(), BARE_METAL.into()]);
            arguments.extend(toolchain.builds_core.then(|| "-Zbuild-std=core".into()));
        }
        if matches!(self.check, Check::Advisories) {
            arguments.extend(["check", "advisories"].map(Into::into));
        }
        if matches!(self.check, Check::Clippy) {
            arguments.extend(["--", "-D", "warnings"].map(Into::into));
        }
        arguments
    }

    fn environment(&self, toolchain: &Toolchain) -> Vec<(OsString, OsString)> {
        let programs = ["cargo", "rustc", "rustdoc", "rustfmt"];
        let mut environment: Vec<(OsString, OsString)> = programs
            .iter()
            .map(|program| (program.to_uppercase().into(), toolchain.bin.join(program).into()))
            .collect();
        // The documentation is for developers: private items are part of it.
        let flags = "-D warnings -A rustdoc::private_intra_doc_links";
        environment.push(("RUSTDOCFLAGS".into(), flags.into()));
        if self.bare_metal && toolchain.builds_core {
            // Building core is not stable yet; the compiler is a stable one.
            environment.push(("RUSTC_BOOTSTRAP".into(), "1".into()));
        }
        environment
    }
}

impl Check {
    /// Returns the program to call, and those that it calls.
    fn needs(self) -> &'static [&'static str] {
        match self {
            Self::Format => &["cargo-fmt", "rustfmt"],
            Self::Clippy => &["cargo-clippy", "clippy-driver"],
            Self::Documentation => &["cargo", "rustdoc"],
            Self::Advisories => &["cargo-deny"],
        }
    }
}

fn skipped(name: &str, why: &str, progress: &mut Progress) -> Tally {
    progress.line(&format!("test {name} ... skipped: {why}"));
    Tally { skipped: 1, ..Tally::default() }
}

impl Toolchain {
    /// Finds a program of the toolchain, or one that goes with any toolchain.
    fn find(&self, program: &str) -> Option<PathBuf> {
        let elsewhere = env::var_os("PATH").filter(|_| program == ANYWHERE);
        let elsewhere: Vec<_> = elsewhere.iter().flat_map(|path| env::split_paths(path)).collect();
        let directories = std::iter::once(self.bin.clone()).chain(elsewhere);
        directories.map(|directory| directory.join(program)).find(|path| path.is_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A toolchain whose programs are shell scripts.
    fn toolchain(scripts: &[(&str, &str)]) -> (tempfile::TempDir, Toolchain) {
        let directory = tempfile::tempdir().unwrap();
        for (name, script) in scripts {
            let path = directory.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let bin = directory.path().into();
        (directory, Toolchain { bin, builds_core: true })
    }

    fn run(name: &str, scripts: &[(&str, &str)]) -> (Tally, String) {
        let (directory, toolchain) = toolchain(scripts);
        let lint = LINTS.iter().find(|lint| lint.name == name).unwrap();
        let (root, never) = (Path::new("/project"), Interrupt::never());
        let progress = &mut Progress::silent();
        let tally = lint.run(root, &toolchain, directory.path(), progress, &never).unwrap();
        let log = fs::read_to_string(directory.path().join(format!("{name}.log")));
        (tally, log.unwrap_or_default())
    }

    const PASSED: Tally = Tally { passed: 1, failed: 0, skipped: 0 };
    const FAILED: Tally = Tally { passed: 0, failed: 1, skipped: 0 };
    const SKIPPED: Tally = Tally { passed: 0, failed: 0, skipped: 1 };

    #[test]
    fn a_requirement_is_a_test() {
        let clippy = |script| [("cargo-clippy", script), ("clippy-driver", "")];
        let (tally, log) = run("lint-clippy", &clippy("echo $* with $RUSTC"));
        assert_eq!(tally, PASSED);
        assert!(log.contains("-D warnings with /"), "{log}");
        assert!(log.contains("--manifest-path /project/Cargo.toml"), "{log}");
        assert_eq!(run("lint-clippy", &clippy("exit 101")).0, FAILED);
    }

    #[test]
    fn what_cannot_be_checked_here_has_not_passed() {
        assert_eq!(run("lint-clippy", &[("cargo-clippy", "")]).0, SKIPPED);
        assert_eq!(run("lint-format", &[]).0, SKIPPED);
    }

    #[test]
    fn advisories_that_cannot_be_had_are_not_passed() {
        let deny = |script| run("lint-advisories", &[("cargo-deny", script)]);
        let (tally, log) = deny("echo $*");
        assert_eq!(tally, PASSED);
        assert!(log.contains("--manifest-path /project/Cargo.toml check advisories"), "{log}");
        assert_eq!(deny("echo error: a vulnerability; exit 1").0, FAILED);
        let offline = "echo '[ERROR] failed to fetch advisory database https://x'; exit 1";
        assert_eq!(deny(offline).0, SKIPPED);
    }

    #[test]
    fn bare_metal_is_built_as_its_toolchain_can() {
        let script = [("cargo", "echo $* bootstrap=$RUSTC_BOOTSTRAP"), ("rustdoc", "")];
        let (tally, log) = run("lint-doc-bare-metal", &script);
        assert_eq!(tally, PASSED);
        assert!(log.contains("-Zbuild-std=core") && log.contains("bootstrap=1"), "{log}");
        let (_, log) = run("lint-doc", &script);
        assert!(!log.contains("-Zbuild-std") && !log.contains("bootstrap=1"), "{log}");
    }
}
