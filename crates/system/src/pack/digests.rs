//! The parts of an image, and their digests (SHA-256).

use super::container::Chunk;
use super::hypervisor::Hypervisor;
use crate::model::Checked;
use crate::paging::stage1::Kind;
use crate::plan::Piece;
use abi::system::{DIGEST_SIZE, Part, System, part};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Returns the digest of bytes that follow one another.
pub(crate) fn sha256<'a>(bytes: impl IntoIterator<Item = &'a [u8]>) -> [u8; DIGEST_SIZE] {
    let mut hasher = Sha256::new();
    bytes.into_iter().for_each(|bytes| hasher.update(bytes));
    hasher.finalize().into()
}

fn sha256_of(chunks: [Chunk<'_>; 3]) -> [u8; DIGEST_SIZE] {
    let mut hasher = Sha256::new();
    chunks.iter().for_each(|chunk| chunk.feed(&mut |bytes| hasher.update(bytes)));
    hasher.finalize().into()
}

/// Returns the parts: what EL2 executes and never writes, then the bundle behind the tables, each
/// piece with the zeros behind it, the first with those before it.
pub(super) fn parts(
    checked: &Checked,
    tables: &System,
    hypervisor: &Hypervisor,
    pieces: &[(u64, Piece)],
) -> Vec<Part> {
    let fixed = hypervisor.segments.iter().filter(|segment| segment.kind() != Kind::Data);
    let fixed = fixed.filter(|segment| !segment.data.is_empty()).map(|segment| {
        let size = segment.data.len() as u64;
        let sha256 = sha256([&*segment.data]);
        Part { pa: segment.region.start, size, kind: part::HYPERVISOR, vms: 0, sha256 }
    });
    let payload = tables.header.payload();
    let filled: Vec<_> = pieces.iter().filter(|(_, piece)| piece.len() > 0).collect();
    let ends = filled.iter().skip(1).map(|(pa, _)| *pa).chain([payload.start + payload.size]);
    let mut start = payload.start;
    let behind = filled.iter().zip(ends).map(|((pa, piece), end)| {
        let (kind, vms) = whose(checked, tables, *pa, piece);
        let zeros = |count: u64| Chunk::Zeros(count);
        let behind = zeros(end - pa - piece.len());
        let sha256 = sha256_of([zeros(pa - start), Chunk::Data(piece.as_slice()), behind]);
        let own = Part { pa: start, size: end - start, kind, vms, sha256 };
        start = end;
        own
    });
    fixed.chain(behind).collect()
}

/// Returns of which kind a piece is, and the VMs that use it, a bit for each.
fn whose(checked: &Checked, tables: &System, pa: u64, piece: &Piece) -> (u32, u32) {
    if pa == tables.board.stage1_pa {
        return (part::STAGE1, 0);
    }
    let is_root = |(root, _): &(u64, _)| *root == pa;
    let stage2 = checked.plan.stage2.iter().position(|views| views.iter().any(is_root));
    if let Some(vm) = stage2 {
        return (part::STAGE2, 1 << vm);
    }
    let loads = |vm: usize| checked.plan.loads[vm].iter().find(|load| load.src_pa == pa);
    let users = (0..checked.vms.len()).filter(|&vm| loads(vm).is_some());
    let vms = users.fold(0u32, |vms, vm| vms | 1 << vm);
    let first = vms.trailing_zeros() as usize;
    let Some(load) = checked.vms.get(first).and_then(|_| loads(first)) else {
        return (part::KERNEL, 0);
    };
    let table = &tables.vms[first];
    let initramfs = checked.vms[first].initramfs.as_ref();
    let devicetree = checked.plan.guests[first].devicetree;
    let kind = if load.dst_pa - table.ram_pa == devicetree - table.ram_ipa {
        part::DEVICETREE
    } else if initramfs.is_some_and(|bytes| Arc::ptr_eq(bytes, &piece.bytes)) {
        part::INITRAMFS
    } else {
        part::KERNEL
    };
    (kind, vms)
}

/// Makes the digests right of what lies behind these tables, and that of the tables.
pub fn seal(tables: &mut System, payload: &[u8]) {
    let begin = tables.header.payload().start;
    for part in tables.parts.iter_mut().take(tables.header.part_count as usize) {
        if part.kind != part::HYPERVISOR {
            let bytes = payload.get((part.pa - begin) as usize..).unwrap_or_default();
            part.sha256 = sha256(bytes.get(..part.size as usize));
        }
    }
    tables.header.tables_sha256 = tables.digest(|bytes| sha256(bytes));
}
