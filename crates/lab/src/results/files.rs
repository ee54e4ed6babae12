//! `results/NAME/`: written whole or not at all.

use super::Outcome;
use miette::Diagnostic;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The directory of one experiment's results.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
}

/// A result could not be written.
#[derive(Debug, Error, Diagnostic)]
#[error("cannot write {}: {cause}", path.display())]
#[diagnostic(help("is there room, and may you write there?"))]
pub struct WriteError {
    path: PathBuf,
    cause: io::Error,
}

impl Directory {
    /// Makes `results/name` if need be.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(results: &Path, name: &str) -> Result<Self, WriteError> {
        let path = results.join(name);
        fs::create_dir_all(&path).map_err(|cause| WriteError { path: path.clone(), cause })?;
        Ok(Self { path })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `result.json`; answers where.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_outcome(&self, outcome: &Outcome) -> Result<PathBuf, WriteError> {
        let path = self.path.join("result.json");
        write_json(&path, outcome)?;
        Ok(path)
    }

    /// Deletes files with this extension that an earlier run left, but those to `keep`.
    ///
    /// # Errors
    /// When one cannot be deleted.
    pub fn clear_of(&self, extension: &str, keep: impl Fn(&str) -> bool) -> Result<(), WriteError> {
        let fail = |cause| WriteError { path: self.path.clone(), cause };
        for entry in fs::read_dir(&self.path).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_file() && path.extension().is_some_and(|e| e == extension) && !keep(&name) {
                fs::remove_file(&path).map_err(fail)?;
            }
        }
        Ok(())
    }

    /// Writes `name` in this directory; answers where.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, WriteError> {
        let path = self.path.join(name);
        write_atomically(&path, content)?;
        Ok(path)
    }
}

/// Writes a value as indented JSON to `path`.
///
/// # Errors
/// When it cannot be written.
pub fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), WriteError> {
    let fail = |cause| WriteError { path: path.into(), cause };
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| fail(e.into()))?;
    text.push(b'\n');
    write_atomically(path, &text)
}

/// Writes `content` to `path`, wherever that is.
///
/// # Errors
/// When it cannot be written.
pub fn write_file(path: &Path, content: &[u8]) -> Result<(), WriteError> {
    write_atomically(path, content)
}

/// Whether there is a place for a file at `path`: whoever works long for one asks
/// before.
///
/// # Errors
/// When there is no such directory, or a directory itself.
pub fn has_place(path: &Path) -> Result<(), WriteError> {
    let fail = |cause| WriteError { path: path.into(), cause };
    if path.is_dir() {
        return Err(fail(io::ErrorKind::IsADirectory.into()));
    }
    directory_of(path).map(drop).map_err(fail)
}

/// Where the file at `path` is, or would be.
fn directory_of(path: &Path) -> io::Result<&Path> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if directory.is_dir() {
        return Ok(directory);
    }
    let cause = format!("there is no directory {}", directory.display());
    Err(io::Error::new(io::ErrorKind::NotFound, cause))
}

/// A reader sees the old file or the new one, never half of it. What is no file,
/// such as `/dev/stdout`, is written to and stays what it is; a link stays one.
fn write_atomically(path: &Path, content: &[u8]) -> Result<(), WriteError> {
    let fail = |cause| WriteError { path: path.into(), cause };
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(content))
            .map_err(fail);
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let path = target.as_path();
    let directory = directory_of(path).map_err(fail)?;
    let write = || -> io::Result<()> {
        let mut file = tempfile::Builder::new().permissions(readable()).tempfile_in(directory)?;
        file.write_all(content)?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(fail)
}

/// What `File::create` asks for; the umask takes its share.
fn readable() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_no_file_stays_what_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let (link, file) = (directory.path().join("link"), directory.path().join("file"));
        super::write_file(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        super::write_file(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        // A directory can be neither written to nor replaced.
        assert!(super::write_file(directory.path(), b"new").is_err());
        assert!(directory.path().is_dir());
    }

    #[test]
    fn drawings_of_before_are_deleted_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::create(root.path(), "lhp").unwrap();
        for name in ["old.svg", "kept.svg", "old.csv"] {
            directory.write(name, b"x").unwrap();
        }
        fs::create_dir(directory.path().join("points.svg")).unwrap();
        directory.clear_of("svg", |name| name == "kept.svg").unwrap();
        let left = fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name());
        let mut left: Vec<_> = left.map(|name| name.into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, ["kept.svg", "old.csv", "points.svg"]);
    }

    #[test]
    fn a_file_that_cannot_be_is_known_before() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        assert!(has_place(&file).is_ok() && has_place(Path::new("/dev/stdout")).is_ok());
        assert!(!file.exists());
        let nowhere = has_place(&directory.path().join("none/file")).unwrap_err().to_string();
        assert!(nowhere.contains("there is no directory") && nowhere.ends_with("none"));
        assert!(has_place(directory.path()).is_err());
    }

    use super::*;

    #[test]
    fn replaces_a_file_and_leaves_no_other() {
        let results = tempfile::tempdir().unwrap();
        let directory = Directory::create(results.path(), "demo").unwrap();
        for content in ["old", "new"] {
            directory.write("report.html", content.as_bytes()).unwrap();
        }
        let path = directory.path().join("report.html");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn failure_names_the_file() {
        let results = tempfile::tempdir().unwrap();
        fs::create_dir(results.path().join("taken")).unwrap();
        let directory = Directory { path: results.path().into() };
        let error = directory.write("taken", b"x").unwrap_err();
        assert!(error.to_string().contains("taken"), "{error}");
        assert_eq!(fs::read_dir(results.path()).unwrap().count(), 1);
    }
}
