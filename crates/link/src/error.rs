//! What is answered instead of what was asked for.

use core::fmt;

/// Why nothing was sent, received or copied. [`Error::Empty`] and [`Error::Full`] are no faults: they say that the peer
/// has to do something first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// Nothing has come.
    Empty,
    /// The peer has to read first.
    Full,
    /// It is longer than the ring, or than the caller's room; one that was received is dropped.
    TooLong,
    /// The peer was opened again; told once.
    Restarted,
    /// What the peer wrote cannot be.
    Broken,
    /// The peer was not opened yet.
    Absent,
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str(match self {
            Self::Empty => "nothing has come",
            Self::Full => "the peer has to read first",
            Self::TooLong => "longer than there is room for",
            Self::Restarted => "the peer was opened again",
            Self::Broken => "what the peer wrote cannot be; it has to be opened again",
            Self::Absent => "the peer was not opened yet",
        })
    }
}

impl core::error::Error for Error {}
