//! Marks: addresses at which each core notes its time.
//!
//! A core keeps its latest marks. When it comes to one that ends a sequence, those that led there are
//! kept for good: so the way of an interrupt to its handler is known step by step, and what else the core
//! did takes no room.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fmt, fs, io};

/// How many of a core's latest marks belong to a sequence at most.
pub const LONGEST: usize = 64;
/// How many sequences of a core are kept: of more, the latest.
pub const KEPT: usize = 1 << 17;

/// What a mark is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A core notes its time.
    Plain,
    /// And which exception level was interrupted: the address is that of a vector of EL2.
    Vector,
    /// And the sequence of marks that led there is complete.
    End,
}

impl Kind {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Plain, "mark"), (Self::Vector, "mark-vector"), (Self::End, "mark-end")];

    /// Returns the option's name.
    #[must_use]
    pub fn option(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// Returns the kind that the option of this name asks for.
    #[must_use]
    pub fn of_option(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}

/// A name for an instruction. Several instructions may have one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The name.
    pub name: String,
    /// Physical address of the instruction, before which the time is noted.
    pub address: u64,
}

impl FromStr for Mark {
    type Err = String;

    /// Reads `NAME@ADDRESS`, the address in hexadecimal with `0x`.
    fn from_str(text: &str) -> Result<Self, String> {
        let address = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let parts = text.split_once('@').and_then(|(name, at)| Some((name, address(at)?)));
        let (name, address) = parts
            .filter(|(name, at)| !name.is_empty() && at % 4 == 0)
            .ok_or("give NAME@ADDRESS of an instruction, for example entry@0x40200480")?;
        Ok(Self { name: name.into(), address })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}@{:#x}", self.name, self.address)
    }
}

/// Which marks there are, and the file for what cores note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// `marks`: the file.
    pub file: PathBuf,
    /// All of them.
    pub all: Vec<(Kind, Mark)>,
}

impl Marks {
    /// Returns the index of the mark at a physical address.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<usize> {
        self.all.iter().position(|(_, mark)| mark.address == address)
    }
}

/// A core came to a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted(
    /// Index of the mark's name.
    pub u8,
    /// The exception level that was interrupted, at a vector.
    pub Option<u8>,
    /// Virtual time of the core, ns.
    pub u64,
);

/// What one core has noted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequences {
    /// Marks that led to one which ends a sequence, and that one, each time.
    pub kept: VecDeque<Vec<Noted>>,
    /// How many sequences before those are lost.
    pub lost: u64,
    #[serde(skip)]
    latest: VecDeque<Noted>,
}

impl Sequences {
    /// Takes what the core notes at a mark.
    pub fn note(&mut self, noted: Noted, ends: bool) {
        if self.latest.len() == LONGEST {
            self.latest.pop_front();
        }
        self.latest.push_back(noted);
        if !ends {
            return;
        }
        if self.kept.len() == KEPT {
            self.kept.pop_front();
            self.lost += 1;
        }
        self.kept.push_back(self.latest.drain(..).collect());
    }
}

/// What all cores have noted, as the file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllSequences {
    /// Names of the marks, one for each address, in the order in which they were asked for.
    pub names: Vec<String>,
    /// Each core.
    pub vcpus: Vec<Sequences>,
}

impl AllSequences {
    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be read, or is not whole.
    pub fn read(path: &Path) -> io::Result<Self> {
        serde_json::from_slice(&fs::read(path)?).map_err(io::Error::from)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, serde_json::to_vec(self).map_err(io::Error::from)?)
    }

    /// Returns the name of the mark that was come to.
    #[must_use]
    pub fn name(&self, noted: &Noted) -> &str {
        self.names.get(usize::from(noted.0)).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_led_to_an_end_is_kept_and_nothing_else() {
        let mut one = Sequences::default();
        for time in 0..100 {
            one.note(Noted(0, Some(1), time), false);
        }
        one.note(Noted(1, None, 100), true);
        one.note(Noted(0, None, 101), false);
        one.note(Noted(1, None, 102), true);
        one.note(Noted(0, None, 103), false);
        assert_eq!((one.kept.len(), one.lost), (2, 0));
        assert_eq!((one.kept[0].len(), one.kept[0][0].2, one.kept[1].len()), (LONGEST, 37, 2));
        let all = AllSequences { names: vec!["a".into(), "h".into()], vcpus: vec![one] };
        let file = std::env::temp_dir().join(format!("cassata-marks-{}", std::process::id()));
        all.write(&file).unwrap();
        let read = AllSequences::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(read.vcpus[0].kept, all.vcpus[0].kept);
        assert_eq!(read.name(&read.vcpus[0].kept[1][1]), "h");
    }

    #[test]
    fn the_latest_sequences_are_kept() {
        let mut one = Sequences::default();
        for time in 0..KEPT as u64 + 2 {
            one.note(Noted(0, None, time), true);
        }
        assert_eq!((one.kept.len(), one.lost, one.kept[0][0].2), (KEPT, 2, 2));
    }

    #[test]
    fn only_addresses_of_instructions_are_marks() {
        assert_eq!("a@0x40".parse(), Ok(Mark { name: "a".into(), address: 0x40 }));
        for wrong in ["a", "a@40", "@0x40", "a@0x42", "a@0x"] {
            assert!(wrong.parse::<Mark>().unwrap_err().contains("NAME@ADDRESS"), "{wrong}");
        }
    }
}
