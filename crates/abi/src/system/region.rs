//! Half-open ranges of addresses, with arithmetic that cannot overflow.

/// `size` bytes from `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// Bytes; may be 0.
    pub size: u64,
}

impl Region {
    /// `size` bytes from `start`.
    #[must_use]
    pub const fn new(start: u64, size: u64) -> Self {
        Self { start, size }
    }

    /// One past the last address, or `None` when there is no such address.
    #[must_use]
    pub const fn end(self) -> Option<u64> {
        self.start.checked_add(self.size)
    }

    /// Returns true if every address of `inner` is one of ours. A range that runs
    /// over the end of the address space contains nothing and lies nowhere.
    #[must_use]
    pub const fn contains(self, inner: Self) -> bool {
        match (self.end(), inner.end()) {
            (Some(end), Some(inner_end)) => self.start <= inner.start && inner_end <= end,
            _ => false,
        }
    }

    /// Returns true if the two share an address. An empty range shares none.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        let before_end = self.start.saturating_add(self.size) > other.start;
        let after_start = other.start.saturating_add(other.size) > self.start;
        self.size != 0 && other.size != 0 && before_end && after_start
    }

    /// Returns true if both ends are multiples of `align`, a power of two.
    #[must_use]
    pub const fn is_aligned(self, align: u64) -> bool {
        (self.start | self.size) & (align - 1) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::Region;

    #[test]
    fn neighbours_do_not_overlap_and_the_last_address_is_inside() {
        let (low, high) = (Region::new(0x1000, 0x1000), Region::new(0x2000, 0x1000));
        assert!(!low.overlaps(high) && !high.overlaps(low));
        assert!(low.overlaps(Region::new(0x1fff, 1)));
        assert!(low.contains(Region::new(0x1fff, 1)));
        assert!(!low.contains(Region::new(0x1fff, 2)));
    }

    #[test]
    fn a_range_that_wraps_is_nowhere_and_an_empty_one_touches_nothing() {
        let wraps = Region::new(u64::MAX, 2);
        assert!(!Region::new(0, u64::MAX).contains(wraps));
        assert!(!wraps.contains(wraps));
        assert!(!Region::new(5, 0).overlaps(Region::new(0, 10)));
    }
}
