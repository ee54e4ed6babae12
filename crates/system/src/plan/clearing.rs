//! Memory that a guest finds cleared, whatever was there before.

use super::guest::{GuestLoad, Piece};
use abi::system::{LOAD_ALIGN, Region};

/// Makes loads, none of which overlaps another, fill all of a guest's memory: with zeros where they
/// bring nothing.
pub(crate) fn fill_gaps(loads: &mut Vec<GuestLoad>, ram: Region) {
    loads.sort_by_key(|load| load.ipa);
    if loads.first().is_none_or(|load| load.ipa > ram.start) {
        loads.insert(0, GuestLoad { ipa: ram.start, piece: Piece::own(Vec::new()), zeros: 0 });
    }
    let ends: Vec<u64> = loads.iter().skip(1).map(|load| load.ipa).collect();
    let ends = ends.into_iter().chain([ram.start + ram.size]);
    for (load, end) in loads.iter_mut().zip(ends) {
        debug_assert!(load.ipa.is_multiple_of(LOAD_ALIGN) && load.end() <= end);
        load.zeros += end - load.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(loads: &[(u64, usize, u64)], ram: Region) -> Vec<(u64, u64, u64)> {
        let load = |&(ipa, size, zeros)| GuestLoad { ipa, piece: Piece::own(vec![1; size]), zeros };
        let mut loads = loads.iter().map(load).collect();
        fill_gaps(&mut loads, ram);
        loads.iter().map(|load| (load.ipa, load.piece.len(), load.zeros)).collect()
    }

    #[test]
    fn each_gap_is_cleared_once() {
        let ram = Region::new(0x1000, 0x1000);
        let loads = [(0x1800, 0x41, 7), (0x1100, 0x10, 0)];
        let expected = [(0x1000, 0, 0x100), (0x1100, 0x10, 0x6f0), (0x1800, 0x41, 0x7bf)];
        assert_eq!(filled(&loads, ram), expected);
    }

    #[test]
    fn what_is_full_stays_as_it_is() {
        let ram = Region::new(0x1000, 0x100);
        let loads = [(0x1000, 0x80, 0), (0x1080, 0x40, 0x40)];
        assert_eq!(filled(&loads, ram), [(0x1000, 0x80, 0), (0x1080, 0x40, 0x40)]);
    }

    #[test]
    fn nothing_loaded_is_all_zeros() {
        assert_eq!(filled(&[], Region::new(0, 0x1000)), [(0, 0, 0x1000)]);
    }
}
