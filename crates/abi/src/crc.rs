//! CRC-32 (IEEE 802.3, reflected, as zlib and AArch64's `CRC32` instructions
//! compute it).
//!
//! The host uses a table-driven crate and EL2 the instruction; this bitwise
//! one is the definition both are tested against, and serves where neither is
//! at hand.

/// Continues a CRC-32 over `bytes`; begin with 0.
///
/// `update(update(0, a), b) == update(0, a ++ b)`.
#[must_use]
pub fn update(crc: u32, bytes: &[u8]) -> u32 {
    let mut state = !crc;
    for &byte in bytes {
        state ^= u32::from(byte);
        for _ in 0..8 {
            let lowest_set = state & 1;
            state = (state >> 1) ^ (0xedb8_8320 & lowest_set.wrapping_neg());
        }
    }
    !state
}

#[cfg(test)]
mod tests {
    #[test]
    fn agrees_with_the_published_check_value() {
        assert_eq!(super::update(0, b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn continues_where_it_stopped() {
        let whole = super::update(0, b"lock holder preemption");
        let parts = super::update(super::update(0, b"lock holder"), b" preemption");
        assert_eq!(whole, parts);
    }
}
