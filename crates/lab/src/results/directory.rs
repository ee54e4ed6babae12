//! Directories of results: `results/NAME`, each for one process at a time.

use super::Outcome;
use super::files::{unwritten, write_file, write_json};
use miette::{Report, Result, miette};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names the description whose run the other files are of.
const SUBJECT: &str = "description.txt";
/// What every run leaves behind.
const TRACE: &str = "system.elf";
/// Directories that are tried for one name.
const MOST: u32 = 1000;

/// The directory of one experiment's results, this process's alone while a value of it lives.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
    /// The directory itself, locked. The kernel gives the lock back however we end.
    _lock: Arc<File>,
}

impl Directory {
    /// Makes `results/name` if need be, and takes it until all clones of the value are dropped.
    ///
    /// # Errors
    /// When it cannot be made, or another process has it.
    pub fn create(results: &Path, name: &str) -> Result<Self> {
        let path = results.join(name);
        Self::take(&path, FlockOperation::NonBlockingLockExclusive)?.ok_or_else(|| in_use(&path))
    }

    /// Makes `results/name` if need be, and takes it together with others that share it: no process
    /// can have it alone until all of them have dropped it.
    ///
    /// # Errors
    /// When it cannot be made, or another process has it alone.
    pub fn share(results: &Path, name: &str) -> Result<Self> {
        let path = results.join(name);
        Self::take(&path, FlockOperation::NonBlockingLockShared)?.ok_or_else(|| in_use(&path))
    }

    /// Makes and takes an empty directory for a run of the description at `subject`:
    /// `results/name`, or `results/name-2` and so on where the one before is in use or has the
    /// results of another description. What an earlier run of this one left is deleted.
    ///
    /// # Errors
    /// When none can be made, emptied and written to.
    pub fn create_for(results: &Path, name: &str, subject: &Path) -> Result<Self> {
        let subject = subject.canonicalize().unwrap_or_else(|_| subject.into());
        for number in 1..=MOST {
            let name = if number == 1 { name.into() } else { format!("{name}-{number}") };
            let alone = FlockOperation::NonBlockingLockExclusive;
            let Some(directory) = Self::take(&results.join(name), alone)? else { continue };
            if directory.may_serve(&subject)? {
                directory.clear()?;
                directory.write(SUBJECT, format!("{}\n", subject.display()).as_bytes())?;
                return Ok(directory);
            }
        }
        Err(in_use(&results.join(name)))
    }

    /// Takes the directory at `path`, which is made if need be; `None` when another process has
    /// it.
    fn take(path: &Path, how: FlockOperation) -> Result<Option<Self>> {
        let fail = |cause: io::Error| unwritten(path, cause);
        fs::create_dir_all(path).map_err(fail)?;
        let lock = File::open(path).map_err(fail)?;
        match flock(&lock, how) {
            Ok(()) => Ok(Some(Self { path: path.into(), _lock: Arc::new(lock) })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(fail(error.into())),
        }
    }

    /// Returns true if a run of `subject` may delete what is here: there is nothing, or it is of
    /// an earlier run of it, or of a description that is gone. Files that no run has left stay.
    fn may_serve(&self, subject: &Path) -> Result<bool> {
        let fail = |cause| unwritten(&self.path, cause);
        let is_empty = fs::read_dir(&self.path).map_err(fail)?.next().is_none();
        let Ok(named) = fs::read_to_string(self.path.join(SUBJECT)) else {
            return Ok(is_empty || self.path.join(TRACE).exists());
        };
        let named = Path::new(named.trim_end_matches('\n'));
        Ok(named == subject || !named.exists())
    }

    /// Deletes all that is here.
    ///
    /// # Errors
    /// When something cannot be deleted.
    pub fn clear(&self) -> Result<()> {
        let fail = |cause| unwritten(&self.path, cause);
        for entry in fs::read_dir(&self.path).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let is_directory = entry.file_type().map_err(fail)?.is_dir();
            let path = entry.path();
            if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) }
                .map_err(fail)?;
        }
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `result.json`; answers where.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_outcome(&self, outcome: &Outcome) -> Result<PathBuf> {
        let path = self.path.join("result.json");
        write_json(&path, outcome)?;
        Ok(path)
    }

    /// Deletes files with this extension that an earlier run left, but those to `keep`.
    ///
    /// # Errors
    /// When one cannot be deleted.
    pub fn clear_of(&self, extension: &str, keep: impl Fn(&str) -> bool) -> Result<()> {
        let fail = |cause| unwritten(&self.path, cause);
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
    pub fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf> {
        let path = self.path.join(name);
        write_file(&path, content)?;
        Ok(path)
    }
}

/// Makes an empty file at `path` and locks it. It stays locked while it is open in any process: one
/// that has it for its standard input need not know of the lock.
///
/// # Errors
/// When it cannot be made, or is locked already.
pub fn lock_file(path: &Path) -> Result<File> {
    let fail = |cause: io::Error| unwritten(path, cause);
    let file = File::options().create(true).truncate(false).read(true).write(true).open(path);
    let file = file.map_err(fail)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(in_use(path)),
        Err(error) => Err(fail(error.into())),
    }
}

fn in_use(path: &Path) -> Report {
    miette!(
        help = "wait until that one has ended, or end it",
        "{} is in use: another cassata writes its results there",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
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
        assert_eq!(names(directory.path()), ["kept.svg", "old.csv", "points.svg"]);
    }

    #[test]
    fn replaces_a_file_and_leaves_no_other() {
        let results = tempfile::tempdir().unwrap();
        let directory = Directory::create(results.path(), "demo").unwrap();
        for content in ["old", "new"] {
            directory.write("report.html", content.as_bytes()).unwrap();
        }
        let path = directory.path().join("report.html");
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(directory.path()), ["report.html"]);
    }

    #[test]
    fn a_directory_has_one_writer_at_a_time() {
        let results = tempfile::tempdir().unwrap();
        let first = Directory::create(results.path(), "demo").unwrap();
        let clone = first.clone();
        drop(first);
        let error = Directory::create(results.path(), "demo").unwrap_err();
        assert!(error.to_string().contains("demo is in use"), "{error}");
        drop(clone);
        Directory::create(results.path(), "demo").unwrap();
    }

    #[test]
    fn those_that_share_a_directory_keep_others_out() {
        let results = tempfile::tempdir().unwrap();
        let share = || Directory::share(results.path(), "demo");
        let both = [share().unwrap(), share().unwrap()];
        assert!(Directory::create(results.path(), "demo").is_err());
        drop(both);
        let _alone = Directory::create(results.path(), "demo").unwrap();
        assert!(share().unwrap_err().to_string().contains("demo is in use"));
    }

    #[test]
    fn a_program_that_reads_a_locked_file_keeps_it_locked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let mut command = Command::new("sleep");
        command.arg("600").stdin(lock_file(&path).unwrap());
        let mut child = command.spawn().unwrap();
        drop(command);
        assert!(lock_file(&path).unwrap_err().to_string().contains("lock is in use"));
        child.kill().unwrap();
        child.wait().unwrap();
        lock_file(&path).unwrap();
    }

    /// Descriptions of one name in two directories, and results beside them.
    fn two_of_a_name() -> (tempfile::TempDir, [PathBuf; 2], PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let describe = |at: &str| {
            let path = root.path().join(at);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("a.toml"), at).unwrap();
            path.join("a.toml")
        };
        let descriptions = ["here", "there"].map(describe);
        let results = root.path().join("results");
        (root, descriptions, results)
    }

    /// Where a run of `subject` goes, which leaves a log.
    fn run(results: &Path, subject: &Path) -> (Directory, String) {
        let directory = Directory::create_for(results, "run-a", subject).unwrap();
        assert_eq!(names(directory.path()), [SUBJECT], "emptied first");
        directory.write("console-a.log", b"x").unwrap();
        let name = directory.path().file_name().unwrap().to_str().unwrap().to_owned();
        (directory, name)
    }

    #[test]
    fn each_description_has_a_directory_and_keeps_it() {
        let (_root, [here, there], results) = two_of_a_name();
        for _ in 0..2 {
            assert_eq!(run(&results, &here).1, "run-a");
            assert_eq!(run(&results, &there).1, "run-a-2");
        }
        fs::remove_file(&here).unwrap();
        assert_eq!(run(&results, &there).1, "run-a", "nothing is left to keep it for");
    }

    #[test]
    fn two_runs_at_once_have_a_directory_each() {
        let (_root, [here, _], results) = two_of_a_name();
        let (first, name) = run(&results, &here);
        assert_eq!(name, "run-a");
        assert_eq!(run(&results, &here).1, "run-a-2");
        drop(first);
        assert_eq!(run(&results, &here).1, "run-a");
    }

    #[test]
    fn files_that_no_run_has_left_are_not_deleted() {
        let (_root, [here, _], results) = two_of_a_name();
        fs::create_dir_all(results.join("run-a")).unwrap();
        fs::write(results.join("run-a/thesis.tex"), "").unwrap();
        assert_eq!(run(&results, &here).1, "run-a-2");
        assert_eq!(names(&results.join("run-a")), ["thesis.tex"]);
    }
}
