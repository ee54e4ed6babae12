//! Whether a QEMU can carry the instrument.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use thiserror::Error;

/// The first version with plugin interface 4.
pub const OLDEST: (u32, u32) = (10, 0);

/// A QEMU that cannot carry the instrument, and what to do about it.
#[derive(Debug, Error)]
pub enum QemuError {
    /// It does not start.
    #[error(
        "`{program}` does not start: {error}\n  \
         on Debian: apt-get install -t bookworm-backports qemu-system-arm"
    )]
    Missing {
        /// The program as asked for.
        program: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It emulates something else, or is no QEMU.
    #[error("`{program}` is not QEMU's system emulator for AArch64: name qemu-system-aarch64")]
    Foreign {
        /// The program as asked for.
        program: PathBuf,
    },
    /// It is too old.
    #[error(
        "`{program}` is QEMU {found}; virtual time needs 10.0 or newer\n  \
         on Debian 12: apt-get install -t bookworm-backports qemu-system-arm"
    )]
    Old {
        /// The program as asked for.
        program: PathBuf,
        /// The version.
        found: String,
    },
    /// It was built without plugins.
    #[error(
        "`{program}` was built without TCG plugins: build QEMU with --enable-plugins \
         --enable-modules, or take Debian's"
    )]
    NoPlugins {
        /// The program as asked for.
        program: PathBuf,
    },
}

/// Checks that `program` starts and can carry the instrument. Returns its
/// version, as it writes it.
///
/// # Errors
/// If it cannot, with what to install.
pub fn check(program: &Path) -> Result<String, QemuError> {
    let ask = |argument: &str| -> Result<String, QemuError> {
        let output = Command::new(program)
            .arg(argument)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| QemuError::Missing { program: program.into(), error })?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (found, version) = version(&ask("--version")?)
        .ok_or_else(|| QemuError::Foreign { program: program.into() })?;
    if version < OLDEST {
        return Err(QemuError::Old { program: program.into(), found });
    }
    let help = ask("--help")?;
    if !help.contains("qemu-system-aarch64") {
        return Err(QemuError::Foreign { program: program.into() });
    }
    if !help.contains("-plugin ") {
        return Err(QemuError::NoPlugins { program: program.into() });
    }
    Ok(found)
}

/// Finds the version in what `--version` prints.
fn version(text: &str) -> Option<(String, (u32, u32))> {
    let found = text.strip_prefix("QEMU emulator version ")?.split_whitespace().next()?;
    let mut numbers = found.split('.').map(|n| n.parse().ok());
    Some((found.into(), (numbers.next()??, numbers.next()??)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_version() {
        let debian =
            "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)\nCopyright";
        assert_eq!(version(debian), Some(("10.0.2".into(), (10, 0))));
        assert_eq!(version("QEMU emulator version 7.2.15 (Debian)").unwrap().1, (7, 2));
        assert_eq!(version("GNU bash, version 5.2.15"), None);
        assert_eq!(version("qemu-img version 10.0.2"), None);
    }

    #[test]
    fn says_what_to_install() {
        let error = check(Path::new("/nonexistent/qemu")).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/qemu"), "{error}");
        assert!(error.contains("apt-get install"), "{error}");
        let error = check(Path::new("/bin/true")).unwrap_err().to_string();
        assert!(error.contains("qemu-system-aarch64"), "{error}");
    }
}
