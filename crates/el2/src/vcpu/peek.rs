//! What the kernel of an unmodified guest counts: how many locks and the like keep the thread that it
//! executes from being preempted.
//!
//! A Linux with preemption has that in `thread_info` of the thread, at which SP_EL0 points while a core
//! executes the kernel. All of it is what a guest says: SP_EL0, the tables by which it is translated, and
//! the count. So EL2 reads nothing but memory of that guest's VM, by the VM's root, five words at most;
//! what cannot be read is no count.

use crate::arch::sysreg::read_sysreg;
use crate::arch::{cpu, memory};
use abi::system::{System, Vm, stage1, vm_flags};
use notes::{Rounds, each};

/// TCR_EL1.TG1: granule of 4 KiB.
const GRANULE_4K: u64 = 2;
/// TCR_EL1.T1SZ: four levels at most, and two at least.
const T1SZ: core::ops::RangeInclusive<u64> = 16..=42;
const LEVELS: usize = 4;
/// Output address of a descriptor, and of TTBR1_EL1.
const ADDRESS: u64 = 0xffff_ffff_f000;
const PAGE_SHIFT: u64 = 12;
const INDEX_BITS: u64 = 9;

/// Returns true if the kernel that the loaded vCPU of `vm` executes counts something.
#[cold]
#[inline(never)]
pub fn counts(system: &System, vm: usize) -> bool {
    notes::needs::<{ each::PEEK }>();
    let table = system.vm(vm);
    let offset = if table.is(vm_flags::COUNT_AT_16) { 16 } else { 8 };
    let at = read_sysreg!("sp_el0").wrapping_add(offset);
    let mut count = 0;
    let read = || {
        let (tcr, root) = (read_sysreg!("tcr_el1"), read_sysreg!("ttbr1_el1"));
        count = translate(at, tcr, root, |ipa| word(table, ipa))
            .and_then(|ipa| word(table, ipa))
            .unwrap_or(0) as u32;
    };
    // SAFETY: the core's root is the board's, as it is here and where a VM is filled only that it is
    // another one; what they map was verified (`System::check_stage1`).
    unsafe { cpu::with_root(table.stage1_pa, system.board.stage1_pa, read) };
    count != 0
}

/// Returns the word there, if it is in the VM's memory; only by its root.
fn word(table: &Vm, ipa: u64) -> Option<u64> {
    let offset = ipa.wrapping_sub(table.ram_ipa);
    // SAFETY: the VM's root maps its memory at its alias, and whole pages of it.
    (offset < table.ram_size && ipa.is_multiple_of(8))
        .then(|| unsafe { memory::word(stage1::ALIAS + table.ram_pa + offset) })
}

/// Translates an address of a guest's kernel by tables of the guest's (DDI 0487, D8.3). `read` returns
/// the descriptor at an address of guest memory.
#[inline]
fn translate(at: u64, tcr: u64, root: u64, read: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    let t1sz = tcr >> 16 & 0x3f;
    let bits = 64 - t1sz;
    if tcr >> 30 & 3 != GRANULE_4K || !T1SZ.contains(&t1sz) || !at >> bits != 0 {
        return None;
    }
    let mut left = at & ((1 << bits) - 1);
    let mut shift = (bits - PAGE_SHIFT - 1) / INDEX_BITS * INDEX_BITS + PAGE_SHIFT;
    let mut table = root & ADDRESS;
    let mut rounds = Rounds::<LEVELS>::begin();
    loop {
        rounds.pass();
        let descriptor = read(table + (left >> shift) * 8)?;
        left &= (1 << shift) - 1;
        table = descriptor & ADDRESS;
        match (descriptor & 3, shift) {
            (3, PAGE_SHIFT) => return Some(table | left),
            (3, _) => shift -= INDEX_BITS,
            (1, 21 | 30) => return Some(table & !((1 << shift) - 1) | left),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const TCR_48: u64 = GRANULE_4K << 30 | 16 << 16;
    const TCR_39: u64 = GRANULE_4K << 30 | 25 << 16;

    /// Memory in which these words are.
    fn of(words: &[(u64, u64)]) -> impl Fn(u64) -> Option<u64> {
        move |at| words.iter().find(|word| word.0 == at).map(|word| word.1)
    }

    #[test]
    fn pages_and_blocks_are_found() {
        let at = 0xffff_8000_1234_5678;
        let tables = [
            (0x1000 + 256 * 8, 0x2003),
            (0x2000, 0x3003),
            (0x3000 + 0x91 * 8, 0x4003),
            (0x4000 + 0x145 * 8, 0x0060_0000_4567_8703),
        ];
        assert_eq!(translate(at, TCR_48, 0xab00_0000_0000_1001, of(&tables)), Some(0x4567_8678));
        let block = [tables[0], tables[1], (0x3000 + 0x91 * 8, 0x4020_0701)];
        assert_eq!(translate(at, TCR_48, 0x1000, of(&block)), Some(0x4034_5678));
        let giga = [(0x1000 + 511 * 8, 0x8000_0701)];
        let top = 0xffff_ffff_c000_0010;
        assert_eq!(translate(top, TCR_39, 0x1000, of(&giga)), Some(0x8000_0010));
    }

    #[test]
    fn what_is_no_translation_is_none() {
        let at = 0xffff_8000_1234_5678;
        let root = |descriptor| [(0x1000 + 256 * 8, descriptor)];
        assert_eq!(translate(at, TCR_48, 0x1000, of(&[])), None, "no memory");
        assert_eq!(translate(at, TCR_48, 0x1000, of(&root(0x2002))), None, "invalid");
        assert_eq!(translate(at, TCR_48, 0x1000, of(&root(0x2001))), None, "no block is so large");
        let user = 0x0000_8000_1234_5678;
        assert_eq!(translate(user, TCR_48, 0x1000, |_| Some(3)), None, "a program's address");
        assert_eq!(translate(at, TCR_39, 0x1000, |_| Some(3)), None, "beyond what is translated");
        for tcr in [0, 16 << 16, 3 << 30 | 16 << 16, GRANULE_4K << 30, GRANULE_4K << 30 | 63 << 16]
        {
            assert_eq!(translate(at, tcr, 0x1000, |_| Some(3)), None, "{tcr:#x}");
        }
    }

    /// A guest may write any tables, such as one that names itself.
    #[test]
    fn no_tables_take_longer_than_four_words() {
        for t1sz in T1SZ {
            let reads = Cell::new(0);
            let itself = |_| {
                reads.set(reads.get() + 1);
                Some(0x1003)
            };
            let tcr = GRANULE_4K << 30 | t1sz << 16;
            assert!(translate(u64::MAX, tcr, 0x1000, itself).is_some());
            assert!((2..=LEVELS).contains(&reads.get()), "{t1sz}");
        }
    }
}
