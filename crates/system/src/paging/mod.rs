//! Translation tables, built here so that EL2 needs no code for it.
//!
//! VMSAv8-64, 4 KiB granule, 39-bit input addresses: one root at level 1,
//! blocks of 1 GiB and 2 MiB, pages of 4 KiB (Arm DDI 0487, section D8.3).
//!
//! The crate `aarch64-paging` builds such tables for the machine it runs on:
//! it takes a table's physical address from where the table lies in its own
//! memory, and another rule means implementing an unsafe trait. Ours lie in a
//! file, so this small builder counts table pages instead of following
//! pointers.

pub(crate) mod stage1;
pub(crate) mod stage2;

use abi::system::{PAGE_SIZE, Region};
use zerocopy::IntoBytes;

/// Descriptors in one table.
const ENTRIES: usize = 512;
/// Bits\[1:0\] of a table, and of a page at level 3.
const TABLE_OR_PAGE: u64 = 0b11;
/// Bits\[1:0\] of a block.
const BLOCK: u64 = 0b01;
/// Output address of any descriptor.
const ADDRESS: u64 = 0x0000_ffff_ffff_f000;
/// The last level.
const PAGES: u32 = 3;

/// How much a descriptor of that level maps, as a power of two.
const fn shift(level: u32) -> u32 {
    12 + 9 * (PAGES - level)
}

/// Trees of tables that will lie side by side at a known physical address.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    base_pa: u64,
    tables: Vec<[u64; ENTRIES]>,
}

/// One of the roots of [`Tables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root(usize);

/// What to map, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
    /// Input addresses.
    pub(crate) input: Region,
    /// First output address.
    pub(crate) output: u64,
    /// Attribute bits of the descriptors.
    pub(crate) attributes: u64,
    /// True if blocks may be used; otherwise everything is mapped in pages.
    pub(crate) blocks: bool,
}

impl Tables {
    /// An empty tree whose root lies at `base_pa`.
    pub(crate) fn new(base_pa: u64) -> Self {
        debug_assert!(base_pa.is_multiple_of(PAGE_SIZE));
        Self { base_pa, tables: vec![[0; ENTRIES]] }
    }

    /// How many pages the tables take.
    pub(crate) fn pages(&self) -> u64 {
        self.tables.len() as u64
    }

    /// The tables as they lie in memory.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.tables.as_bytes()
    }

    /// Makes another root, which has so far all that the first one has, by the same tables.
    pub(crate) fn second_root(&mut self) -> Root {
        let root = Root(self.tables.len());
        self.tables.push(self.tables[0]);
        root
    }

    /// Returns where a root is, physically.
    pub(crate) fn root_pa(&self, root: Root) -> u64 {
        self.base_pa + root.0 as u64 * PAGE_SIZE
    }

    /// Maps a range below the first root, with the largest blocks that fit.
    ///
    /// # Panics
    /// When something is mapped there already: the layout gives no address
    /// twice, and a table that did would break a VM's isolation.
    pub(crate) fn map(&mut self, mapping: Mapping) {
        self.map_below(Root(0), mapping);
    }

    /// Like [`Self::map`], below any root. Tables that the root shares are changed for all.
    pub(crate) fn map_below(&mut self, root: Root, mapping: Mapping) {
        let Mapping { input, output, attributes, blocks } = mapping;
        assert!(input.is_aligned(PAGE_SIZE) && output.is_multiple_of(PAGE_SIZE), "{mapping:x?}");
        let largest = if blocks { 1 } else { PAGES };
        let mut done = 0;
        while done < input.size {
            let (from, to) = (input.start + done, output + done);
            let fits = |&level: &u32| {
                let size = 1_u64 << shift(level);
                (from | to).is_multiple_of(size) && input.size - done >= size
            };
            let level = (largest..PAGES).find(fits).unwrap_or(PAGES);
            self.set(root, from, level, to | attributes);
            done += 1 << shift(level);
        }
    }

    /// Writes one leaf descriptor, making the tables above it.
    fn set(&mut self, root: Root, input: u64, leaf: u32, descriptor: u64) {
        let index = |level: u32| (input >> shift(level)) as usize % ENTRIES;
        assert!(input >> shift(0) == 0, "{input:#x} is beyond 39 bits");
        let Root(mut table) = root;
        for level in 1..leaf {
            table = self.descend(table, index(level));
        }
        let slot = &mut self.tables[table][index(leaf)];
        assert!(*slot == 0, "{input:#x} is mapped twice");
        *slot = descriptor | if leaf == PAGES { TABLE_OR_PAGE } else { BLOCK };
    }

    /// The table below an entry; a new one if there is none yet.
    fn descend(&mut self, table: usize, entry: usize) -> usize {
        let descriptor = self.tables[table][entry];
        if descriptor == 0 {
            let new = self.tables.len();
            self.tables.push([0; ENTRIES]);
            self.tables[table][entry] = (self.base_pa + new as u64 * PAGE_SIZE) | TABLE_OR_PAGE;
            return new;
        }
        assert!(descriptor & TABLE_OR_PAGE == TABLE_OR_PAGE, "a block is in the way");
        (((descriptor & ADDRESS) - self.base_pa) / PAGE_SIZE) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn map(tables: &mut Tables, input: u64, output: u64, size: u64) {
        let input = Region::new(input, size);
        tables.map(Mapping { input, output, attributes: 1 << 10, blocks: true });
    }

    #[test]
    fn takes_the_largest_block_that_fits_at_each_step() {
        let mut tables = Tables::new(0x8000_0000);
        map(&mut tables, 0x3fff_f000, 0x7fff_f000, 0x1000 + (1 << 30) + 2 * MIB + 0x1000);
        let [root, ..] = tables.tables[..] else { panic!() };
        assert_eq!(root[0], 0x8000_1003, "a table for the first page");
        assert_eq!(root[1], 0x8000_0401, "a gibibyte block");
        assert_eq!(root[2], 0x8000_3003, "a table for the rest");
        assert_eq!(tables.tables[3][0], 0xc000_0401, "a 2 MiB block");
        assert_eq!(tables.tables[4][0], 0xc020_0403, "a page");
        assert_eq!(tables.pages(), 5);
    }

    #[test]
    fn a_second_root_shares_the_tables_that_are_there() {
        let mut tables = Tables::new(0x8000_0000);
        map(&mut tables, 0x1000, 0x1000, 0x1000);
        let root = tables.second_root();
        assert_eq!(tables.root_pa(root), 0x8000_3000);
        let (input, output) = (Region::new(1 << 38, 2 * MIB), 0x4000_0000);
        tables.map_below(root, Mapping { input, output, attributes: 0, blocks: true });
        let [first, _, _, second, private] = tables.tables[..] else { panic!() };
        assert_eq!(second[..256], first[..256]);
        assert_eq!((first[256], second[256]), (0, 0x8000_4003));
        assert_eq!(private[0], 0x4000_0001);
    }

    #[test]
    fn output_alignment_counts_too() {
        let mut tables = Tables::new(0);
        map(&mut tables, 0, 0x1000, 2 * MIB);
        assert_eq!(tables.pages(), 3);
    }

    #[test]
    #[should_panic(expected = "mapped twice")]
    fn refuses_to_map_twice() {
        let mut tables = Tables::new(0);
        map(&mut tables, 0x1000, 0x1000, 0x2000);
        map(&mut tables, 0x2000, 0x9000, 0x1000);
    }
}
