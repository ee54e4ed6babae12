//! EL2's check of page tables, beside a walk that knows nothing of it.

use crate::bytes::Bytes;
use crate::packed::{believed, changed};
use abi::system::{PAGE_SIZE, Region, System};
use system::Unpacked;
use zerocopy::{FromBytes, IntoBytes};

/// A packed system in whose page tables words are changed, and whose checksums are right.
pub fn walk(input: &[u8]) {
    let mut file = changed(&mut Bytes(input), |file, at| {
        let tables = roots(file);
        let (_, first) = tables[usize::from(at >> 12) % tables.len()];
        // Three tables are behind each root, or the next root's.
        first + usize::from(at & 0x7ff) * 8
    });
    seal(&mut file);
    if let Ok(unpacked) = system::unpack(&file) {
        believed(&unpacked);
    }
}

/// Where in a file each root of page tables is, by its physical address.
fn roots(file: &[u8]) -> Vec<(u64, usize)> {
    let (bundle, tables) = bundle(file);
    let vms = tables.vms().iter().flat_map(|vm| vm.stage2_pa.into_iter().chain([vm.stage1_pa]));
    let mut roots: Vec<_> = [tables.board.stage1_pa].into_iter().chain(vms).collect();
    roots.dedup();
    roots.iter().map(|&pa| (pa, bundle + (pa - tables.header.bundle_pa) as usize)).collect()
}

/// Where in a file the bundle begins, and its tables.
fn bundle(file: &[u8]) -> (usize, System) {
    let at = file
        .chunks(PAGE_SIZE as usize)
        .position(|page| page.starts_with(&abi::system::MAGIC))
        .expect("a bundle is aligned in the file");
    let at = at * PAGE_SIZE as usize;
    (at, System::read_from_prefix(&file[at..]).expect("it begins with the tables").0)
}

/// Makes the digests right.
fn seal(file: &mut [u8]) {
    let (at, mut tables) = bundle(file);
    let payload = &file[at + size_of::<System>()..at + tables.header.bundle_size as usize];
    system::pack::seal(&mut tables, payload);
    file[at..at + size_of::<System>()].copy_from_slice(tables.as_bytes());
}

/// One translation: addresses and size in bytes, and the descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leaf {
    input: u64,
    output: u64,
    size: u64,
    descriptor: u64,
}

impl Leaf {
    fn bit(self, number: u32) -> bool {
        self.descriptor >> number & 1 == 1
    }

    fn output(self) -> Region {
        Region::new(self.output, self.size)
    }
}

/// Every translation below a table, as the architecture's pseudocode finds them (AArch64.S2Walk and
/// S1Walk, 4 KiB granule, start at level 1). What is reserved translates nothing.
fn leaves(unpacked: &Unpacked<'_>, table: u64, level: u32, base: u64, found: &mut Vec<Leaf>) {
    let bytes = unpacked.at(Region::new(table, PAGE_SIZE)).expect("tables lie in the bundle");
    let size = 1 << (39 - 9 * level);
    for (input, bytes) in (base..).step_by(size as usize).zip(bytes.chunks_exact(8)) {
        let descriptor = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let output = descriptor & 0x0000_ffff_ffff_f000;
        match (level, descriptor & 0b11) {
            (1 | 2, 0b11) => leaves(unpacked, output, level + 1, input, found),
            (1 | 2, 0b01) | (3, 0b11) => found.push(Leaf { input, output, size, descriptor }),
            _ => {}
        }
    }
}

/// Panics where a VM would reach what is EL2's or another VM's, or EL2 what is not its own.
pub fn sound(unpacked: &Unpacked<'_>) {
    let tables = &*unpacked.tables;
    let owned = crate::tables::owned(tables);
    for (number, vm) in tables.vms().iter().enumerate() {
        let mut all = Vec::new();
        vm.stage2_pa.iter().for_each(|&root| leaves(unpacked, root, 1, 0, &mut all));
        for leaf in all {
            let others = owned.iter().filter(|(owner, _)| *owner != Some(number));
            for (_, region) in others {
                assert!(!overlap(leaf, *region), "VM {number}: {leaf:x?} reaches {region:x?}");
            }
        }
    }
    let common = reached_by_el2(unpacked, tables.board.stage1_pa);
    for leaf in &common {
        let reached = tables.vms().iter().find(|vm| overlap(*leaf, vm.ram()));
        assert!(reached.is_none(), "EL2 reaches a guest's memory always: {leaf:x?}");
        assert_eq!(leaf.input, leaf.output, "EL2's own is identical");
    }
    for (number, vm) in tables.vms().iter().enumerate() {
        let all = reached_by_el2(unpacked, vm.stage1_pa);
        let (own, alias): (Vec<&Leaf>, Vec<&Leaf>) =
            all.iter().partition(|leaf| leaf.input < 1 << 38);
        assert_eq!(own, common.iter().collect::<Vec<_>>(), "VM {number}: all else is the same");
        for leaf in alias {
            assert!(vm.ram().contains(leaf.output()), "VM {number}: {leaf:x?}");
            assert_eq!(leaf.input, leaf.output | 1 << 38, "VM {number}");
            assert!(leaf.bit(54), "VM {number}: {leaf:x?}");
        }
    }
}

/// What EL2 reaches by a root, of which nothing is both writable and executable.
fn reached_by_el2(unpacked: &Unpacked<'_>, root: u64) -> Vec<Leaf> {
    let mut all = Vec::new();
    leaves(unpacked, root, 1, 0, &mut all);
    for leaf in &all {
        let (writable, executable) = (!leaf.bit(7), !leaf.bit(54));
        assert!(!(writable && executable), "{leaf:x?}");
        let hypervisor = unpacked.tables.board.hypervisor();
        assert!(!executable || hypervisor.contains(leaf.output()), "{leaf:x?}");
    }
    all
}

fn overlap(leaf: Leaf, region: Region) -> bool {
    let (start, end) = (u128::from(leaf.output), u128::from(leaf.output) + u128::from(leaf.size));
    let (from, to) = (u128::from(region.start), u128::from(region.start) + u128::from(region.size));
    start < to && from < end
}
