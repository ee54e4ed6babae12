//! A QEMU command line under the instrument.

use crate::options::Options;
use crate::qemu::{self, QemuError};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use thiserror::Error;

/// The shared object's file name.
pub const FILE_NAME: &str = "libcassata_vtime.so";

/// Why a command line cannot run under the instrument.
#[derive(Debug, Error)]
pub enum WrapError {
    /// The QEMU cannot.
    #[error(transparent)]
    Qemu(#[from] QemuError),
    /// An argument contradicts virtual time.
    #[error("`{argument}` does not go with virtual time: {mend}")]
    Argument {
        /// The argument.
        argument: String,
        /// Why, and what to do.
        mend: &'static str,
    },
    /// What starts is not QEMU itself.
    #[error(
        "`{program}` starts something else before QEMU, which cannot have the instrument \
         preloaded: name QEMU's own program, and give what is added there as arguments\n  {said}"
    )]
    Indirect {
        /// The program as asked for.
        program: PathBuf,
        /// What it said.
        said: String,
    },
    /// The shared object's path cannot be preloaded or named in an option.
    #[error("{path}: {mend}")]
    Path {
        /// The path.
        path: PathBuf,
        /// Why, and what to do.
        mend: &'static str,
    },
    /// The shared object cannot be put into place.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// The instrument's shared object, on disk.
#[derive(Clone, Debug)]
pub struct Instrument {
    path: PathBuf,
}

impl Instrument {
    /// Uses a shared object that is there already.
    ///
    /// # Errors
    /// If it is missing, or its path holds a character that the dynamic linker
    /// takes for a separator.
    pub fn at(path: &Path) -> Result<Self, WrapError> {
        let error = |mend| WrapError::Path { path: path.into(), mend };
        let path = path.canonicalize().map_err(|_| error("no such file; build it first"))?;
        let text = path.to_str().ok_or_else(|| error("must be UTF-8"))?;
        if text.contains([' ', ':', ';']) {
            return Err(error(
                "the dynamic linker takes blanks and colons in LD_PRELOAD for separators; move it",
            ));
        }
        Ok(Self { path })
    }

    /// Puts a shared object whose contents the program carries into
    /// `directory`, unless it is there already.
    ///
    /// # Errors
    /// As [`Instrument::at`], or if the directory cannot be written to.
    pub fn unpack(contents: &[u8], directory: &Path) -> Result<Self, WrapError> {
        let path = directory.join(FILE_NAME);
        if fs::read(&path).ok().as_deref() != Some(contents) {
            put(contents, directory, &path)
                .map_err(|error| WrapError::Write { path: path.clone(), error })?;
        }
        Self::at(&path)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A command that runs `program` with `arguments` under the instrument.
    ///
    /// # Errors
    /// If the program is no fitting QEMU, or an argument contradicts virtual
    /// time.
    pub fn command(
        &self,
        program: &Path,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
        options: &Options,
    ) -> Result<Command, WrapError> {
        let arguments: Vec<OsString> =
            arguments.into_iter().map(|a| a.as_ref().to_owned()).collect();
        check_arguments(&arguments)?;
        qemu::check(program)?;
        self.check_preload(program)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .arg("-plugin")
            .arg(self.plugin_option(options))
            .env("LD_PRELOAD", self.preload());
        Ok(command)
    }

    /// Returns true if `program`, which is a QEMU by all that it says, starts with this
    /// object preloaded. The object refers to symbols of QEMU's, so a shell for
    /// one, in which a script may have been written, does not.
    fn check_preload(&self, program: &Path) -> Result<(), WrapError> {
        let mut command = Command::new(program);
        let command = command.arg("--version").env("LD_PRELOAD", self.preload());
        let output = command.stdin(Stdio::null()).output().map_err(|error| {
            WrapError::Qemu(QemuError::Missing { program: program.into(), error })
        })?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(WrapError::Indirect { program: program.into(), said })
    }

    /// What follows `-plugin` on QEMU's command line.
    #[must_use]
    pub fn plugin_option(&self, options: &Options) -> String {
        let mut option = format!("file={}", escape(&self.path.to_string_lossy()));
        for argument in options.arguments() {
            option.push(',');
            option.push_str(&escape(&argument));
        }
        option
    }

    /// The value of `LD_PRELOAD`: this object before all that the user's own
    /// environment asks for.
    #[must_use]
    pub fn preload(&self) -> OsString {
        let mut value = self.path.clone().into_os_string();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
            value.push(":");
            value.push(others);
        }
        value
    }
}

fn put(contents: &[u8], directory: &Path, path: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    // Not in place: a QEMU that runs has the old one mapped.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    io::Write::write_all(&mut file, contents)?;
    file.persist(path)?;
    Ok(())
}

/// QEMU's option syntax ends a value at a comma unless it is doubled.
fn escape(value: &str) -> String {
    value.replace(',', ",,")
}

/// Arguments that would take time out of the instrument's hands.
fn check_arguments(arguments: &[OsString]) -> Result<(), WrapError> {
    let mut option = "";
    for argument in arguments.iter().map(|a| a.to_str().unwrap_or("")) {
        let mend = match (option, argument) {
            (_, "-icount" | "--icount") => "it has a time of its own; leave it out",
            (_, "-enable-kvm" | "--enable-kvm") => {
                "it counts translated instructions; leave it out"
            }
            (_, "-daemonize" | "--daemonize") => {
                "the instrument's thread would be lost; put it into the background"
            }
            ("object", value) if value.contains("iothread") => {
                "the instrument does not see when an I/O thread sleeps; leave it out"
            }
            ("accel", value) if !value.starts_with("tcg") => {
                "it counts translated instructions; use -accel tcg"
            }
            ("accel", value) if value.contains("thread=single") => {
                "it needs a thread for each core"
            }
            ("machine" | "M", value)
                if value.contains("accel=") && !value.contains("accel=tcg") =>
            {
                "it counts translated instructions; use -accel tcg"
            }
            _ => {
                option = argument.trim_start_matches('-');
                continue;
            }
        };
        return Err(WrapError::Argument { argument: argument.to_string(), mend });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(arguments: &[&str]) -> Option<String> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        check_arguments(&arguments).err().map(|e| e.to_string())
    }

    #[test]
    fn refuses_what_takes_time_out_of_its_hands() {
        assert_eq!(refused(&["-M", "virt", "-accel", "tcg,thread=multi", "-smp", "4"]), None);
        for arguments in [
            &["-icount", "shift=0"][..],
            &["-accel", "kvm"],
            &["-machine", "virt,accel=kvm"],
            &["-enable-kvm"],
            &["--accel", "tcg,thread=single"],
            &["-daemonize"],
            &["-object", "iothread,id=disk"],
        ] {
            assert!(refused(arguments).is_some(), "{arguments:?}");
        }
    }

    #[test]
    fn unpacks_once_and_replaces_an_old_one() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("deep/er");
        let old = Instrument::unpack(b"old", &place).unwrap();
        assert_eq!(fs::read(&old.path).unwrap(), b"old");
        let new = Instrument::unpack(b"new", &place).unwrap();
        assert_eq!(new.path, old.path);
        assert_eq!(fs::read(&new.path).unwrap(), b"new");
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
    }

    #[test]
    fn refuses_a_path_that_cannot_be_preloaded() {
        let directory = tempfile::Builder::new().prefix("two words").tempdir().unwrap();
        let error = Instrument::unpack(b"x", directory.path()).unwrap_err().to_string();
        assert!(error.contains("LD_PRELOAD"), "{error}");
        assert!(
            Instrument::at(Path::new("/nonexistent")).unwrap_err().to_string().contains("build it")
        );
    }

    #[test]
    fn commas_survive_the_option_syntax() {
        let directory = tempfile::Builder::new().prefix("a,b").tempdir().unwrap();
        let instrument = Instrument::unpack(b"x", directory.path()).unwrap();
        let options = Options { statistics: Some("s,t.json".into()), ..Options::default() };
        let option = instrument.plugin_option(&options);
        assert!(option.starts_with("file=") && option.contains("a,,b"), "{option}");
        assert!(option.ends_with("statistics=s,,t.json"), "{option}");
    }
}
