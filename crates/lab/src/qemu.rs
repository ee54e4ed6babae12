//! Which QEMU there is, and whether it is new enough.

use miette::{Result, miette};
use shared_child::SharedChild;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The program looked for on the PATH.
pub const PROGRAM: &str = "qemu-system-aarch64";
/// Names another program than [`PROGRAM`].
pub const PROGRAM_VARIABLE: &str = "CASSATA_QEMU";
/// Oldest QEMU that has what a machine here uses (`-cpu cortex-a76`,
/// `memory-backend` of `virt`).
pub const OLDEST: Version = Version { major: 7, minor: 2, patch: 0 };

/// How long it may take to say its version: less than a second, on a host that is not very busy.
const LIMIT: Duration = Duration::from_secs(30);

/// A QEMU that was found and asked for its version.
#[derive(Clone, Debug)]
pub struct Qemu {
    /// The program.
    pub program: PathBuf,
    /// What it said it is.
    pub version: Version,
}

/// A version of QEMU; later ones compare greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// Third number.
    pub patch: u32,
}

impl Qemu {
    /// Finds the QEMU that [`PROGRAM_VARIABLE`] names, or else [`PROGRAM`] on
    /// the PATH.
    ///
    /// # Errors
    /// When there is none, or one older than [`OLDEST`].
    pub fn find() -> Result<Self> {
        let program = std::env::var_os(PROGRAM_VARIABLE).unwrap_or_else(|| PROGRAM.into());
        Self::at(Path::new(&program))
    }

    /// Takes `program`.
    ///
    /// # Errors
    /// As [`Qemu::find`].
    pub fn at(program: &Path) -> Result<Self> {
        Self::within(program, LIMIT)
    }

    fn within(program: &Path, limit: Duration) -> Result<Self> {
        let program = program.to_path_buf();
        let name = program.display();
        let said = version_text(&program, limit).map_err(|cause| {
            miette!(
                help = format!(
                    "on Debian: apt-get install qemu-system-arm (from bookworm-backports on \
                     Debian 12); `./cassata` does that for you; {PROGRAM_VARIABLE} names a QEMU \
                     elsewhere"
                ),
                "cannot start {name}: {cause}"
            )
        })?;
        let said = said.ok_or_else(|| {
            miette!(
                help = format!(
                    "is it QEMU's {PROGRAM}, and what does it wait for? {PROGRAM_VARIABLE} names \
                     another one"
                ),
                "{name} --version has not ended after {} s",
                limit.as_secs_f64()
            )
        })?;
        let version = Version::parse(&said).ok_or_else(|| {
            miette!(
                help = format!("is it QEMU's {PROGRAM}?"),
                "{name} does not say which version of QEMU it is"
            )
        })?;
        Self { program, version }.supported()
    }

    /// Passes on when this QEMU is [`OLDEST`] or newer.
    fn supported(self) -> Result<Self> {
        if self.version >= OLDEST {
            return Ok(self);
        }
        Err(miette!(
            help = format!(
                "on Debian 12: apt-get install -t bookworm-backports qemu-system-arm; \
                 {PROGRAM_VARIABLE} names a QEMU elsewhere"
            ),
            "{} is QEMU {}, but running a machine needs {OLDEST} or newer",
            self.program.display(),
            self.version
        ))
    }
}

/// Asks for the version; `None` if there is no answer within `limit`.
fn version_text(program: &Path, limit: Duration) -> io::Result<Option<String>> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = SharedChild::spawn(&mut command)?;
    if child.wait_timeout(limit)?.is_none() {
        child.kill()?;
        child.wait()?;
        return Ok(None);
    }
    let mut said = Vec::new();
    child.take_stdout().into_iter().try_for_each(|mut out| out.read_to_end(&mut said).map(drop))?;
    Ok(Some(String::from_utf8_lossy(&said).into_owned()))
}

impl Version {
    /// Finds the version in what `--version` prints:
    /// `QEMU emulator version 10.0.2 (Debian ...)`.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("QEMU emulator version ")?;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let mut numbers = rest[..end].split('.').map(str::parse);
        Some(Self {
            major: numbers.next()?.ok()?,
            minor: numbers.next()?.ok()?,
            patch: numbers.next().and_then(Result::ok).unwrap_or(0),
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_versions_of_releases_and_packages() {
        let debian = "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)\n";
        let release = "QEMU emulator version 7.2.0\nCopyright (c) 2003-2022";
        let candidate = "QEMU emulator version 11.1-rc3";
        let version = |major, minor, patch| Some(Version { major, minor, patch });
        assert_eq!(Version::parse(debian), version(10, 0, 2));
        assert_eq!(Version::parse(release), version(7, 2, 0));
        assert_eq!(Version::parse(candidate), version(11, 1, 0));
        assert_eq!(Version::parse("GNU bash, version 5.2"), None);
    }

    #[test]
    fn an_absent_program_is_named_with_the_mend() {
        let error = Qemu::at(Path::new("/nonexistent/qemu")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/qemu"));
        assert!(error.help().unwrap().to_string().contains("qemu-system-arm"));
    }

    #[test]
    fn an_old_one_is_refused() {
        let qemu = |version| Qemu { program: "q".into(), version };
        assert!(qemu(OLDEST).supported().is_ok());
        let error = qemu(Version { major: 7, minor: 1, patch: 9 }).supported().unwrap_err();
        let expected = "q is QEMU 7.1.9, but running a machine needs 7.2.0 or newer";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn one_that_hangs_is_told_and_ended() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("qemu");
        std::fs::write(&program, "#!/bin/sh\nexec sleep 3600\n").unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let error = Qemu::within(&program, Duration::from_millis(200)).unwrap_err();
        let expected = format!("{} --version has not ended after 0.2 s", program.display());
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn another_program_is_not_taken_for_qemu() {
        let error = Qemu::at(Path::new("/bin/true")).unwrap_err();
        assert!(error.to_string().contains("does not say which version"), "{error}");
    }
}
