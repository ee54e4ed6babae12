//! What the source of EL2 says of its loops, left in the image for `cassata bound`.
//!
//! A bound stands where the loop stands: `for id in set.at_most::<64>()`, or, for a loop without
//! an iterator, [`Rounds`]. In the image that ships, it is a note in a section that is not loaded,
//! and no instruction. A build with the feature `checked` counts too, and stops at a loop that
//! goes round more often than it says. On the host there are no notes.
//!
//! Two notes belong together. The one at which a loop *begins* stands before it; the analysis
//! takes the other, in the loop's body, for a bound only of a loop that does not contain the
//! first: so no bound is taken for that of a loop further out.
//!
//! [`needs`] says that something happens only in systems that have something, such as a vCPU with
//! a budget. The analysis leaves it out for a system that has none; the checked build stops there.

#![cfg_attr(not(test), no_std)]

pub mod each;
#[cfg(all(feature = "checked", target_os = "none"))]
mod system;

/// How often a loop goes round, at most `TIMES` each time that it begins: as often as there may be
/// something of which a system has less (`OF`, from [`each`]).
#[derive(Clone, Debug)]
pub struct Rounds<const TIMES: usize, const OF: u32 = { each::ANYTHING }> {
    #[cfg(any(test, feature = "checked"))]
    done: usize,
}

impl<const TIMES: usize, const OF: u32> Rounds<TIMES, OF> {
    /// Says that a loop begins.
    #[inline(always)]
    #[must_use]
    pub fn begin() -> Self {
        image::begins::<TIMES, OF>();
        Self {
            #[cfg(any(test, feature = "checked"))]
            done: 0,
        }
    }

    /// Says that the loop goes round: the first statement of its body.
    #[inline(always)]
    pub fn pass(&mut self) {
        image::passes::<TIMES, OF>();
        #[cfg(any(test, feature = "checked"))]
        {
            self.done += 1;
            assert!(self.done <= TIMES, "a loop goes round more often than {TIMES} times");
        }
    }
}

pub use image::{begins, passes};

/// Says how many of something (a constant of [`each`]) the system has that runs; for [`needs`], in
/// the checked build.
pub fn there_are(of: u32, count: usize) {
    #[cfg(all(feature = "checked", target_os = "none"))]
    system::there_are(of, count);
    let _ = (of, count);
}

/// Says that what stands here is executed only in a system that has at least one of `OF`, a
/// constant of [`each`].
#[inline(always)]
pub fn needs<const OF: u32>() {
    image::needs::<OF>();
    #[cfg(all(feature = "checked", target_os = "none"))]
    system::check(OF);
}

/// An iterator that yields no more than so many items.
#[derive(Clone, Debug)]
pub struct AtMost<I, const TIMES: usize, const OF: u32> {
    items: I,
    rounds: Rounds<TIMES, OF>,
}

impl<I: Iterator, const TIMES: usize, const OF: u32> Iterator for AtMost<I, TIMES, OF> {
    type Item = I::Item;

    #[inline(always)]
    fn next(&mut self) -> Option<I::Item> {
        let item = self.items.next()?;
        self.rounds.pass();
        Some(item)
    }
}

/// Iterators of which it is known how many items they yield at most.
pub trait Bounded: Iterator + Sized {
    /// Says how many items there are at most.
    #[inline(always)]
    fn at_most<const TIMES: usize>(self) -> AtMost<Self, TIMES, { each::ANYTHING }> {
        AtMost { items: self, rounds: Rounds::begin() }
    }

    /// Says that there are at most so many items, one for each thing of which a system has less.
    #[inline(always)]
    fn one_for<const OF: u32, const TIMES: usize>(self) -> AtMost<Self, TIMES, OF> {
        AtMost { items: self, rounds: Rounds::begin() }
    }
}

impl<I: Iterator> Bounded for I {}

#[cfg(target_os = "none")]
mod image {
    //! Notes in the image. The format is that of `bound::notes`.

    use core::arch::asm;

    /// Says that a loop begins, which [`passes`] says of itself; for iterators that know without
    /// counting how often they are asked.
    #[inline(always)]
    pub fn begins<const TIMES: usize, const OF: u32>() {
        // SAFETY: no instruction: an entry in a section that is not loaded.
        unsafe {
            asm!(
                "2:",
                ".pushsection .cassata.bounds, \"\", %progbits",
                ".quad 2b",
                ".hword 0, {of}",
                ".word {times}",
                ".popsection",
                of = const OF,
                times = const TIMES,
                options(nomem, nostack, preserves_flags)
            );
        }
    }

    /// Says that this is executed in some systems only.
    #[inline(always)]
    pub fn needs<const OF: u32>() {
        // SAFETY: as above.
        unsafe {
            asm!(
                "2:",
                ".pushsection .cassata.bounds, \"\", %progbits",
                ".quad 2b",
                ".hword 2, {of}",
                ".word 1",
                ".popsection",
                of = const OF,
                options(nomem, nostack, preserves_flags)
            );
        }
    }

    /// Says that a loop goes round, at most so often.
    #[inline(always)]
    pub fn passes<const TIMES: usize, const OF: u32>() {
        // SAFETY: as above.
        unsafe {
            asm!(
                "2:",
                ".pushsection .cassata.bounds, \"\", %progbits",
                ".quad 2b",
                ".hword 1, {of}",
                ".word {times}",
                ".popsection",
                of = const OF,
                times = const TIMES,
                options(nomem, nostack, preserves_flags)
            );
        }
    }
}

#[cfg(not(target_os = "none"))]
mod image {
    //! The host has no image.

    /// Says nothing.
    #[inline(always)]
    pub fn begins<const TIMES: usize, const OF: u32>() {}

    /// Says nothing.
    #[inline(always)]
    pub fn needs<const OF: u32>() {}

    /// Says nothing.
    #[inline(always)]
    pub fn passes<const TIMES: usize, const OF: u32>() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_go_through() {
        assert_eq!((1..=3).at_most::<3>().collect::<Vec<_>>(), [1, 2, 3]);
        let mut rounds = Rounds::<2>::begin();
        rounds.pass();
        rounds.pass();
    }

    #[test]
    #[should_panic(expected = "more often than 2 times")]
    fn a_round_too_many_is_noticed() {
        (1..=3).at_most::<2>().for_each(drop);
    }
}
