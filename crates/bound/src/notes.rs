//! Bounds of loops that the source left in the image.
//!
//! The crate `notes` leaves them, in a section that is not loaded: a word for the address, a
//! quarter each for what is said and for what the loop goes round, a half for how often. An address
//! may have several notes.

use crate::Error;

/// The section's name.
pub const SECTION: &str = ".cassata.bounds";
/// Bytes of a note.
const SIZE: usize = 16;
/// A loop begins behind this address.
const BEGINS: u32 = 0;
/// A loop goes round.
const PASSES: u32 = 1;
/// Something happens in some systems only.
const NEEDS: u32 = 2;

/// How often a loop goes round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Times {
    /// At most, in any system.
    pub most: u64,
    /// For what, as in the module `each` of the crate `notes`; above the lowest byte, how much
    /// more often.
    pub of: u32,
}

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A loop is about to be entered; its notes of the other kind count from here on.
    Begins(Times),
    /// A loop goes round here, so often at most since it began.
    Passes(Times),
    /// This is executed only where there is something of this.
    Needs(Times),
}

/// A note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The address of the instruction behind the place that left it.
    pub address: u64,
    /// What it says.
    pub what: What,
}

/// Reads the section.
///
/// # Errors
/// When it holds something else.
pub fn read(section: &[u8]) -> Result<Vec<Note>, Error> {
    let (words, rest) = section.as_chunks::<SIZE>();
    if !rest.is_empty() {
        return Err(Error::Image(format!("{SECTION} ends in the middle of a note")));
    }
    let notes = words.iter().map(|note| {
        let word = |at| u32::from_le_bytes([note[at], note[at + 1], note[at + 2], note[at + 3]]);
        let times = Times { most: word(12).into(), of: word(8) >> 16 };
        let what = match word(8) & 0xffff {
            BEGINS => What::Begins(times),
            PASSES => What::Passes(times),
            NEEDS => What::Needs(times),
            other => return Err(Error::Image(format!("{SECTION} has a note of kind {other}"))),
        };
        Ok(Note { address: u64::from(word(0)) | u64::from(word(4)) << 32, what })
    });
    notes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_and_nothing_else() {
        let note = |address: u64, kind: u32, times: u32| {
            [&address.to_le_bytes()[..], &kind.to_le_bytes(), &times.to_le_bytes()].concat()
        };
        let (vcpus, none) = (1 << 16, 0);
        let section =
            [note(0x1234, PASSES | vcpus, 64), note(0x5_0000_1000, BEGINS | none, 8)].concat();
        let needed = note(0x1234, NEEDS | vcpus, 1);
        let notes = read(&section).unwrap();
        let (passes, begins) = (Times { most: 64, of: 1 }, Times { most: 8, of: 0 });
        assert_eq!(notes[0], Note { address: 0x1234, what: What::Passes(passes) });
        assert_eq!(notes[1], Note { address: 0x5_0000_1000, what: What::Begins(begins) });
        let of_vcpus = Times { most: 1, of: 1 };
        assert_eq!(read(&needed).unwrap()[0].what, What::Needs(of_vcpus));
        assert!(read(&section[..20]).is_err());
        assert!(read(&note(0, 3, 0)).is_err());
    }
}
