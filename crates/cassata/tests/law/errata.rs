//! Instructions on which cores err: the image has none of them.

use super::root;
use std::fs;

/// A word of the image's code, with its address.
type Word = (u64, u32);

/// Words of the longest sequence.
const LONGEST: usize = 4;

/// Returns the words of what the image may execute.
fn code(image: &[u8]) -> Vec<Word> {
    let number = |at: usize, bytes: usize| {
        let bytes = &image[at..at + bytes];
        bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    // Elf64_Ehdr: e_phoff, e_phnum; Elf64_Phdr: p_type, p_flags, p_offset, p_vaddr, p_filesz.
    let (table, count) = (number(32, 8) as usize, number(56, 2) as usize);
    let headers = (0..count).map(|index| table + 56 * index);
    let executable = headers.filter(|&at| number(at, 4) == 1 && number(at + 4, 4) & 1 == 1);
    let words = executable.flat_map(|at| {
        let (offset, address) = (number(at + 8, 8) as usize, number(at + 16, 8));
        let words = (0..number(at + 32, 8) as usize).step_by(4);
        words.map(move |word| (address + word as u64, number(offset + word, 4) as u32))
    });
    words.collect()
}

/// Loads, stores and prefetches (DDI 0487, C4.1).
fn accesses_memory(word: u32) -> bool {
    word & 0x0a00_0000 == 0x0800_0000
}

/// Erratum 835769: a 64-bit multiply-accumulate behind a memory access may compute wrong. (A
/// multiplication accumulates XZR, and is right.)
fn multiplies_wrong(sequence: &[Word]) -> bool {
    let accumulates = |word: u32| word & 0xff00_0000 == 0x9b00_0000 && word >> 10 & 31 != 31;
    accesses_memory(sequence[0].1) && accumulates(sequence[1].1)
}

/// Erratum 843419: an address that ADRP computes in a page's last two words may be wrong if a
/// memory access follows, and one of the next two instructions is an access with an unsigned offset
/// from that address.
fn addresses_wrong(sequence: &[Word]) -> bool {
    let (at, word) = sequence[0];
    let is_relative = |&(_, word_behind): &Word| {
        word_behind & 0x3b00_0000 == 0x3900_0000 && word_behind >> 5 & 31 == word & 31
    };
    at & 0xfff >= 0xff8
        && word & 0x9f00_0000 == 0x9000_0000
        && accesses_memory(sequence[1].1)
        && sequence[2..].iter().any(is_relative)
}

/// Errata 1165522 (Cortex-A76), 1530923 (A55), 1319367 (A72) and 1319537 (A57): an AT instruction,
/// executed only in speculation while registers of two VMs stand side by side, leaves a translation of
/// neither in the TLB. That is at EL2, between loading VTTBR_EL2 and the last register of EL1; and
/// EL2 may execute nothing but its image's code (`System::check_stage1`).
fn translates(word: u32) -> bool {
    // SYS with CRn = 7 and CRm = 8 or 9 (DDI 0487, C5.5).
    word & 0xfff8_fe00 == 0xd508_7800
}

/// Returns the code of the images that ship, without parts and with all.
fn code_that_ships() -> [Vec<Word>; 2] {
    ["build/el2.elf", "build/el2-parts.elf"].map(|image| {
        let image = fs::read(root().join(image)).expect("the launcher has built it");
        let code = code(&image);
        assert!(code.len() > 10_000, "{} words", code.len());
        code
    })
}

#[test]
fn nothing_in_the_image_may_pass_for_a_translation_of_an_address() {
    let hits = code_that_ships().into_iter().flatten().filter(|&(_, word)| translates(word));
    assert_eq!(hits.map(|(at, _)| at).collect::<Vec<_>>(), [0; 0]);
    // AT S1E1R, X0; AT S12E0W, X30; AT S1E1RP, X1.
    assert!([0xd508_7800, 0xd50c_78fe, 0xd508_7901].into_iter().all(translates));
    // DC CIVAC, X0; TLBI VMALLS12E1; MSR VTTBR_EL2, X0.
    assert!(![0xd50b_7e20, 0xd50c_87df, 0xd51c_2100].into_iter().any(translates));
}

#[test]
fn the_image_has_no_sequence_on_which_cortex_a53_errs() {
    let images = code_that_ships();
    for (erratum, is_hit) in
        [(835_769, multiplies_wrong as fn(&[Word]) -> bool), (843_419, addresses_wrong)]
    {
        let windows = images.iter().flat_map(|code| code.windows(LONGEST));
        let hits = windows.filter(|words| is_hit(words)).map(|words| words[0].0);
        assert_eq!(hits.collect::<Vec<_>>(), [0; 0], "erratum {erratum}");
    }
}

#[test]
fn the_sequences_are_found() {
    const LDR: u32 = 0xf940_0000;
    const MADD: u32 = 0x9b02_0c20;
    const MUL: u32 = 0x9b02_7c20;
    const ADRP: u32 = 0x9000_0000;
    assert!(multiplies_wrong(&[(0, LDR), (4, MADD)]));
    assert!(!multiplies_wrong(&[(0, LDR), (4, MUL)]));
    assert!(!multiplies_wrong(&[(0, ADRP), (4, MADD)]));
    let (other, based) = ((8, LDR | 1 << 5), (12, LDR));
    for at in [0x1ff8, 0x1ffc] {
        assert!(addresses_wrong(&[(at, ADRP), (at + 4, LDR), based, other]));
        assert!(addresses_wrong(&[(at, ADRP), (at + 4, LDR), other, based]));
        assert!(!addresses_wrong(&[(at, ADRP), (at + 4, LDR), other, other]));
        assert!(!addresses_wrong(&[(at, ADRP), (at + 4, MUL), other, based]));
    }
    assert!(!addresses_wrong(&[(0x1ff4, ADRP), (0x1ff8, LDR), based, based]));
}
