//! An input as a sequence of choices.

/// What is left of an input. Behind its end everything is zero.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    /// Returns true when all of it was taken.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes one byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Takes a number below `end`, which is at most 256.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    /// Takes one of `all`.
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Takes 16 bits.
    pub fn half(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Takes 64 bits, of which most are often alike: a byte says how many follow, and what the
    /// others are.
    pub fn word(&mut self) -> u64 {
        let form = self.byte();
        let fill = if form & 0x80 == 0 { 0 } else { 0xff };
        let mut bytes = [fill; 8];
        let first = usize::from(form >> 4 & 7);
        let count = usize::from(form & 15).min(8 - first);
        bytes[first..first + count].iter_mut().for_each(|byte| *byte = self.byte());
        u64::from_le_bytes(bytes)
    }

    /// Takes so many bytes, or all that are left.
    pub fn take(&mut self, count: usize) -> &[u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
