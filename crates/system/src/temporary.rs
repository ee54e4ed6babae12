//! Temporary files, whose names mean nothing to the reader of a message.

use std::io;

/// Returns `error` without the name of a temporary file, which the crate `tempfile` puts behind
/// the system's own words and offers no other way to get rid of.
#[must_use]
pub fn without_name(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.rsplit_once(" at path \"") {
        Some((own, name)) if name.contains("/.tmp") => io::Error::new(error.kind(), own),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_stays_and_the_name_goes() {
        let error = tempfile::tempfile_in("/nonexistent").unwrap_err();
        let named = tempfile::NamedTempFile::new_in("/nonexistent").unwrap_err();
        assert!(named.to_string().contains(".tmp"), "{named}");
        let plain = without_name(named);
        assert_eq!(plain.kind(), io::ErrorKind::NotFound);
        assert_eq!(plain.to_string(), "No such file or directory (os error 2)");
        assert_eq!(without_name(error).kind(), io::ErrorKind::NotFound);
    }
}
