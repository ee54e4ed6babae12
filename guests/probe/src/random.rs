//! Numbers by chance, the same in every run.

/// A generator, by xorshift (Marsaglia 2003).
pub struct Random(u64);

impl Random {
    /// Begins with `seed`, which is not 0: else all numbers are.
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number from 0 to `most`, which is not `u64::MAX`.
    pub fn up_to(&mut self, most: u64) -> u64 {
        if most == 0 {
            return 0;
        }
        self.word() % (most + 1)
    }
}
