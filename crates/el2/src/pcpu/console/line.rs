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
    /// Short text, of which [`LABEL`] bytes are written.
    Label(&'a str),
    /// A name that is filled with zeros.
    Name(&'a [u8; NAME]),
    /// A number such as `10`.
    Decimal(u8),
    /// A number such as `10` of two digits at most, filled up to two places.
    Column(u8),
    /// A number such as `0x1f`.
    Hexadecimal(u64),
    /// A register such as `0x000000000000001f`.
    Word(u64),
}

/// A line that is put together, to be written at once.
pub struct Line {
    bytes: [u8; Line::MOST],
    length: usize,
}

impl Line {
    /// Bytes of a line at most. What does not fit is left out.
    pub const MOST: usize = 160;

    /// Begins a line.
    #[inline(always)]
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; Self::MOST], length: 0 }
    }

    /// Adds a byte.
    #[inline(always)]
    pub fn put(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    /// Returns where the bytes are, and how many.
    #[must_use]
    pub const fn bytes(&self) -> (&[u8; Self::MOST], usize) {
        (&self.bytes, self.length)
    }
}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}

/// Bytes of a text that are written at most.
const TEXT: usize = 64;
/// Bytes of a label that are written at most.
const LABEL: usize = 24;
/// Bytes of a name at most.
const NAME: usize = 16;
/// Decimal digits of a number at most.
const DIGITS: usize = 3;
/// Hexadecimal digits of a number.
const NIBBLES: usize = 16;

/// Begins a line for the hypervisor's ring.
#[inline(never)]
pub fn begin_line(line: &mut Line) {
    const WORDS: &str = "cassata: ";
    write_text::<{ WORDS.len() }>(WORDS, line);
}

impl<'a> From<&'a str> for Piece<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8; NAME]> for Piece<'a> {
    fn from(name: &'a [u8; NAME]) -> Self {
        Self::Name(name)
    }
}

/// The index of a vCPU or a core, which are few.
impl From<usize> for Piece<'_> {
    fn from(index: usize) -> Self {
        Self::Decimal(index as u8)
    }
}

impl Piece<'_> {
    /// Adds the piece to a line. Inlined where the kind of piece is known.
    #[inline(always)]
    pub fn write(self, line: &mut Line) {
        match self {
            Self::Text(text) => write_text::<TEXT>(text, line),
            Self::Label(text) => write_text::<LABEL>(text, line),
            Self::Name(name) => write_name(name, line),
            Self::Decimal(number) => decimal(number, line),
            Self::Column(number) => column(number, line),
            Self::Hexadecimal(number) => hexadecimal(number, 1, line),
            Self::Word(number) => hexadecimal(number, NIBBLES, line),
        }
    }
}

#[inline(never)]
fn write_text<const MOST: usize>(text: &str, line: &mut Line) {
    let places = line.bytes.get_mut(line.length..).unwrap_or_default();
    let mut count = 0;
    for (place, byte) in places.iter_mut().zip(text.bytes()).take(MOST).at_most::<MOST>() {
        *place = byte;
        count += 1;
    }
    line.length += count;
}

#[inline(never)]
fn write_name(name: &[u8; NAME], line: &mut Line) {
    let used = name.iter().take_while(|&&byte| byte != 0);
    used.at_most::<NAME>().for_each(|&byte| line.put(byte));
}

#[inline(never)]
fn column(number: u8, line: &mut Line) {
    let (tens, ones) = (b'0' + number / 10 % 10, b'0' + number % 10);
    let two = if number < 10 { [ones, b' '] } else { [tens, ones] };
    two.iter().at_most::<2>().for_each(|&byte| line.put(byte));
}

#[inline(never)]
fn decimal(mut number: u8, line: &mut Line) {
    let mut digits = [0; DIGITS];
    let mut count = 0;
    let mut rounds = Rounds::<DIGITS>::begin();
    while count == 0 || number > 0 {
        rounds.pass();
        digits[count % DIGITS] = b'0' + number % 10;
        number /= 10;
        count += 1;
    }
    let mut rounds = Rounds::<DIGITS>::begin();
    while count > 0 {
        rounds.pass();
        count -= 1;
        line.put(digits[count % DIGITS]);
    }
}

/// Writes as few digits as `number` has, but `least` at least.
#[inline(never)]
fn hexadecimal(number: u64, least: usize, line: &mut Line) {
    let nibbles = ((u64::BITS - number.leading_zeros()).div_ceil(4) as usize).max(least);
    line.put(b'0');
    line.put(b'x');
    for at in (0..nibbles).rev().at_most::<NIBBLES>() {
        let nibble = (number >> (4 * at) & 0xf) as u8;
        line.put(if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(piece: Piece<'_>) -> String {
        let mut line = Line::new();
        piece.write(&mut line);
        let (bytes, length) = line.bytes();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn numbers_look_as_the_library_writes_them() {
        for number in 0..=u8::MAX {
            assert_eq!(text(Piece::Decimal(number)), format!("{number}"));
        }
        for number in [0, 1, 9, 10, 15, 16, 99, 100, 0x1234_5678_9abc_def0, u64::MAX] {
            assert_eq!(text(Piece::Hexadecimal(number)), format!("{number:#x}"));
            assert_eq!(text(Piece::Word(number)), format!("{number:#018x}"));
        }
    }

    #[test]
    fn columns_have_two_places() {
        for number in 0..100 {
            assert_eq!(text(Piece::Column(number)), format!("{number:<2}"));
        }
    }

    #[test]
    fn text_is_written_as_it_is_and_cut_where_it_is_too_long() {
        assert_eq!(text("two words".into()), "two words");
        assert_eq!(text("x".repeat(TEXT + 1).as_str().into()), "x".repeat(TEXT));
        assert_eq!(text(Piece::Label(&"x".repeat(LABEL + 1))), "x".repeat(LABEL));
    }

    /// The longest one of a guest that cannot go on, with its line feed.
    #[test]
    fn every_line_of_a_report_fits() {
        let mut line = Line::new();
        Piece::Label("cassata: ").write(&mut line);
        for label in ["  sctlr_el1 ", "  vbar_el1 ", "  elr_el1 ", "  esr_el1 ", "  far_el1 "] {
            Piece::Label(label).write(&mut line);
            Piece::Hexadecimal(u64::MAX).write(&mut line);
        }
        line.put(b'\n');
        let (bytes, length) = line.bytes();
        assert!(length < Line::MOST && bytes[length - 1] == b'\n', "{length}");
    }

    #[test]
    fn a_line_takes_what_fits() {
        let mut line = Line::new();
        (0..=Line::MOST).for_each(|at| line.put(at as u8));
        let (bytes, length) = line.bytes();
        assert_eq!((length, bytes[Line::MOST - 1]), (Line::MOST, (Line::MOST - 1) as u8));
    }
}
