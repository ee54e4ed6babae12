//! Lines of the hypervisor's own console, put together from few kinds of pieces.
//!
//! `core::fmt` does more, through pointers to functions, so that nothing could be said of how
//! long a line takes; and guests cause lines, while others wait for their interrupts.

use notes::{Bounded, Rounds};

/// What a line is made of.
#[derive(Clone, Copy)]
pub enum Piece<'a> {
    /// Text, of which [`TEXT`] bytes are written.
    Text(&'a str),
    /// A number such as `10`.
    Decimal(u64),
    /// A number such as `10`, filled up to two places.
    Column(u64),
    /// A number such as `0x1f`.
    Hexadecimal(u64),
    /// A register such as `0x000000000000001f`.
    Word(u64),
}

/// Bytes of a text that are written at most.
const TEXT: usize = 64;
/// Decimal digits of a number at most.
const DIGITS: usize = 20;
/// Hexadecimal digits of a number.
const NIBBLES: usize = 16;

impl<'a> From<&'a str> for Piece<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<usize> for Piece<'_> {
    fn from(number: usize) -> Self {
        Self::Decimal(number as u64)
    }
}

impl Piece<'_> {
    /// Writes the piece, byte by byte. Inlined where the kind of piece is known.
    #[inline(always)]
    pub fn write(self, put: &mut impl FnMut(u8)) {
        match self {
            Self::Text(text) => write_text(text, put),
            Self::Decimal(number) => decimal(number, put),
            Self::Column(number) => {
                decimal(number, put);
                if number < 10 {
                    put(b' ');
                }
            }
            Self::Hexadecimal(number) => {
                let nibbles = (u64::BITS - number.leading_zeros()).div_ceil(4).max(1);
                hexadecimal(number, nibbles as usize, put);
            }
            Self::Word(number) => hexadecimal(number, NIBBLES, put),
        }
    }
}

#[inline(never)]
fn write_text(text: &str, put: &mut impl FnMut(u8)) {
    text.bytes().take(TEXT).at_most::<TEXT>().for_each(put);
}

#[inline(never)]
fn decimal(mut number: u64, put: &mut impl FnMut(u8)) {
    let mut digits = [0; DIGITS];
    let mut count = 0;
    let mut rounds = Rounds::<DIGITS>::begin();
    while count == 0 || number > 0 {
        rounds.pass();
        digits[count % DIGITS] = b'0' + (number % 10) as u8;
        number /= 10;
        count += 1;
    }
    let mut rounds = Rounds::<DIGITS>::begin();
    while count > 0 {
        rounds.pass();
        count -= 1;
        put(digits[count % DIGITS]);
    }
}

#[inline(never)]
fn hexadecimal(number: u64, nibbles: usize, put: &mut impl FnMut(u8)) {
    put(b'0');
    put(b'x');
    for at in (0..nibbles).rev().at_most::<NIBBLES>() {
        let nibble = (number >> (4 * at) & 0xf) as u8;
        put(if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(piece: Piece<'_>) -> String {
        let mut bytes = Vec::new();
        piece.write(&mut |byte| bytes.push(byte));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn numbers_look_as_the_library_writes_them() {
        for number in [0, 1, 9, 10, 15, 16, 99, 100, 0x1234_5678_9abc_def0, u64::MAX] {
            assert_eq!(text(Piece::Decimal(number)), format!("{number}"));
            assert_eq!(text(Piece::Column(number)), format!("{number:<2}"));
            assert_eq!(text(Piece::Hexadecimal(number)), format!("{number:#x}"));
            assert_eq!(text(Piece::Word(number)), format!("{number:#018x}"));
        }
    }

    #[test]
    fn text_is_written_as_it_is_and_cut_where_it_is_too_long() {
        assert_eq!(text("two words".into()), "two words");
        assert_eq!(text("x".repeat(TEXT + 1).as_str().into()), "x".repeat(TEXT));
    }
}
