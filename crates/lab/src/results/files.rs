//! Files that are written whole or not at all.

use miette::{Report, Result, miette};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use system::temporary::without_name;

/// Returns that `path` could not be written because of `cause`.
pub(super) fn unwritten(path: &Path, cause: io::Error) -> Report {
    let advice = advice(path, &cause, rustix::process::geteuid().as_raw());
    miette!(help = advice, "cannot write {}: {}", path.display(), without_name(cause))
}

/// Returns what user `own` can do about `cause`.
fn advice(path: &Path, cause: &io::Error, own: u32) -> String {
    let owner = || {
        let there = path.ancestors().find_map(|path| Some((path, fs::metadata(path).ok()?)));
        let (path, uid) = there.map(|(path, there)| (path, there.uid()))?;
        (uid != own).then(|| format!("{} belongs to user {}", path.display(), user_name(uid)))
    };
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    match cause.kind() {
        io::ErrorKind::PermissionDenied => owner().map_or_else(
            || "may you write there?".into(),
            |owner| format!("{owner}: delete it as that user, or give it away with chown"),
        ),
        io::ErrorKind::NotFound if !directory.exists() => {
            format!("make it first: mkdir -p {}", directory.display())
        }
        _ => "is there room, and may you write there?".into(),
    }
}

/// Returns the name that passwd(5) has for `uid`, else the number.
fn user_name(uid: u32) -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let known = users.lines().map(fields).find(|fields| fields.get(2) == Some(&uid.to_string()));
    known.map_or_else(|| uid.to_string(), |fields| fields[0].clone())
}

/// Writes a value as indented JSON to `path`.
///
/// # Errors
/// When it cannot be written.
pub fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<()> {
    let fail = |cause| unwritten(path, cause);
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| fail(e.into()))?;
    text.push(b'\n');
    write_file(path, &text)
}

/// Checks that there is a place for a file at `path`: a command that works long for one asks
/// before. What the shell makes of `>(program)` is one; a named pipe is none, as the command would
/// wait for a reader at its end.
///
/// # Errors
/// When there is no such directory, or a directory itself, or a named pipe.
pub fn has_place(path: &Path) -> Result<()> {
    let is_pipe = fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo());
    let why = if path.is_dir() {
        "a directory"
    } else if is_pipe && !path.starts_with("/dev") && !path.starts_with("/proc") {
        "a named pipe"
    } else {
        return directory_of(path).map(drop).map_err(|cause| unwritten(path, cause));
    };
    Err(miette!(help = "name a file", "cannot write {}: {why}, not a file", path.display()))
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

/// Writes `content` to `path`, wherever that is.
///
/// A reader sees the old file or the new one, never half of it. What is no file,
/// such as `/dev/stdout`, is written to and stays what it is; a link stays one.
///
/// # Errors
/// When it cannot be written.
pub fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    let fail = |cause| unwritten(path, cause);
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
    use super::*;

    #[test]
    fn what_is_no_file_stays_what_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let (link, file) = (directory.path().join("link"), directory.path().join("file"));
        write_file(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_file(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        // A directory can be neither written to nor replaced.
        assert!(write_file(directory.path(), b"new").is_err());
        assert!(directory.path().is_dir());
    }

    #[test]
    fn a_file_that_cannot_be_is_known_before() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        assert!(has_place(&file).is_ok() && has_place(Path::new("/dev/stdout")).is_ok());
        assert!(!file.exists());
        let nowhere = has_place(&directory.path().join("none/file")).unwrap_err().to_string();
        assert!(nowhere.contains("there is no directory") && nowhere.ends_with("none"));
        let there = has_place(directory.path()).unwrap_err().to_string();
        assert!(there.ends_with("a directory, not a file"), "{there}");
        let pipe = directory.path().join("pipe");
        let status = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        let there = has_place(&pipe).unwrap_err().to_string();
        assert!(status.success() && there.ends_with("a named pipe, not a file"), "{there}");
    }

    #[test]
    fn a_failure_names_the_file_and_no_temporary_one() {
        let results = tempfile::tempdir().unwrap();
        fs::create_dir(results.path().join("taken")).unwrap();
        let error = write_file(&results.path().join("taken"), b"x").unwrap_err();
        assert!(error.to_string().contains("taken"), "{error}");
        assert_eq!(fs::read_dir(results.path()).unwrap().count(), 1);
        // Where no file can be made, not even a temporary one.
        let error = write_file(Path::new("/proc/1/new"), b"x").unwrap_err();
        assert!(error.to_string().starts_with("cannot write /proc/1/new: "), "{error}");
        assert!(!error.to_string().contains(".tmp"), "{error}");
    }

    #[test]
    fn a_file_of_another_user_is_told_with_its_owner() {
        assert_eq!(user_name(0), "root");
        assert_eq!(user_name(u32::MAX - 7), (u32::MAX - 7).to_string());
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let directory = tempfile::tempdir().unwrap();
        let (uid, file) = (rustix::process::geteuid().as_raw(), directory.path().join("new"));
        assert_eq!(advice(&file, &denied, uid), "may you write there?");
        let named = format!("{} belongs to user {}: ", directory.path().display(), user_name(uid));
        assert!(advice(&file, &denied, uid + 1).starts_with(&named));
    }

    /// A place that is not there lacks neither room nor rights.
    #[test]
    fn a_directory_that_is_not_there_is_to_be_made() {
        let directory = tempfile::tempdir().unwrap();
        let gone = directory.path().join("gone");
        let unwritten = write_file(&gone.join("new"), b"x").unwrap_err();
        let help = unwritten.help().unwrap().to_string();
        assert_eq!(help, format!("make it first: mkdir -p {}", gone.display()));
    }
}
