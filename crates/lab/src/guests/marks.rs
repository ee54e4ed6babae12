//! What Linux's init writes into its trace (`guests/linux/init`).

use super::words::number;

/// A mark of init.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A run of its work begins on a CPU, or ends there.
    Work {
        /// Which run.
        run: usize,
        /// On which CPU.
        cpu: usize,
        /// It ends.
        ends: bool,
    },
    /// It is about to look how many switches the kernel has counted.
    Counting,
    /// So many the kernel had.
    Switches(u64),
}

impl Mark {
    /// Reads the text of a marker; none if it is another's.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        if text == "counting" {
            return Some(Self::Counting);
        }
        if let Some(count) = text.strip_prefix("switches ") {
            return count.parse().ok().map(Self::Switches);
        }
        let (words, end) = text.strip_prefix("work ")?.rsplit_once(' ')?;
        let ends = match end {
            "begin" => false,
            "end" => true,
            _ => return None,
        };
        Some(Self::Work { run: number(words, "run")?, cpu: number(words, "cpu")?, ends })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_told_apart() {
        assert_eq!(Mark::of("counting"), Some(Mark::Counting));
        assert_eq!(Mark::of("switches 17"), Some(Mark::Switches(17)));
        let work = |ends| Some(Mark::Work { run: 2, cpu: 1, ends });
        assert_eq!(Mark::of("work run=2 cpu=1 begin"), work(false));
        assert_eq!(Mark::of("work run=2 cpu=1 end"), work(true));
        for text in ["", "switches many", "work run=2 cpu=1", "work run=2 end", "works begin"] {
            assert_eq!(Mark::of(text), None, "{text}");
        }
    }
}
