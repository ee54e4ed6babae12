//! Files that people name as input.
//!
//! A directory is refused, and so is a device or a pipe, which need not end and can be read only once;
//! and what is far longer than any file of its kind, before all of it is read.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Bytes that a text may have: a description, a key, tasks as JSON.
const LONGEST_TEXT: u64 = 64 << 20;

/// Says why a file cannot be read, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// In words, without the file's name.
    pub why: String,
    /// What to do; none where only the system's error is known.
    pub hint: Option<&'static str>,
}

impl Unreadable {
    fn new(why: impl Into<String>, hint: &'static str) -> Self {
        Self { why: why.into(), hint: Some(hint) }
    }
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self { why: error.to_string(), hint: None }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// Opens a file.
///
/// # Errors
/// When there is none, it is none, or it may not be read.
pub fn open(path: &Path) -> Result<File, Unreadable> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(Unreadable::new("a directory, not a file", "name a file in it"));
    }
    if !kind.is_file() {
        return Err(Unreadable::new(
            "a device or a pipe, not a file",
            "write what it gives into a file, and name that",
        ));
    }
    Ok(File::open(path)?)
}

/// Reads a file of at most `longest` bytes.
///
/// # Errors
/// Like [`open`], and when it is longer.
pub fn read(path: &Path, longest: u64) -> Result<Vec<u8>, Unreadable> {
    let (file, mut bytes) = (open(path)?, Vec::new());
    file.take(longest.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        let why = format!("it has more than {} MiB", longest >> 20);
        return Err(Unreadable::new(why, "is it the right file?"));
    }
    Ok(bytes)
}

/// Reads a text.
///
/// # Errors
/// Like [`read`], and when it is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, Unreadable> {
    String::from_utf8(read(path, LONGEST_TEXT)?)
        .map_err(|_| Unreadable::new("it is no text (UTF-8)", "is it the right file?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_of_its_kind_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let why = |path: &Path| read_text(path).unwrap_err().why;
        assert_eq!(why(directory.path()), "a directory, not a file");
        assert_eq!(why(Path::new("/dev/zero")), "a device or a pipe, not a file");
        let file = directory.path().join("file");
        assert!(why(&file).starts_with("No such file"));
        fs::write(&file, [0xff]).unwrap();
        assert_eq!(why(&file), "it is no text (UTF-8)");
        // No disk has to hold it.
        File::create(&file).unwrap().set_len(3 << 30).unwrap();
        assert_eq!(why(&file), "it has more than 64 MiB");
        fs::write(&file, "text").unwrap();
        assert_eq!(read_text(&file), Ok("text".into()));
    }
}
