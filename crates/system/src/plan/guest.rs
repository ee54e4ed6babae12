//! What lies where in a guest's memory when it starts.
//!
//! The device tree has the last 64 KiB, or the first; an initramfs lies at the end, below the
//! device tree, the kernel where its format wants it.

use super::{clearing, devicetree, segments};
use crate::board::Gic;
use crate::code::Code;
use crate::image::{Bytes, ElfImage, KernelKind, LinuxImage};
use crate::model::{DevicetreePlace, Vm};
use crate::problem::Span;
use crate::size::show;
use abi::system::{LOAD_ALIGN, PAGE_SIZE, RAM_ALIGN, Region};
use std::ops::Range;
use std::sync::Arc;

/// Room for the device tree. Linux wants it 8-byte aligned and within one
/// 2 MiB block, which the end of 2 MiB aligned memory always gives.
const DEVICETREE_SIZE: u64 = 0x1_0000;

/// A guest, ready to be copied into its memory.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    pub(crate) entry: u64,
    pub(crate) devicetree: u64,
    pub(crate) loads: Vec<GuestLoad>,
}

/// Bytes for a place in guest memory, and zeros behind them.
#[derive(Clone, Debug)]
pub(crate) struct GuestLoad {
    /// Guest-physical, 64-byte aligned.
    pub(crate) ipa: u64,
    pub(crate) piece: Piece,
    pub(crate) zeros: u64,
}

/// Bytes of a file, or made here.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) bytes: Bytes,
    pub(crate) range: Range<usize>,
}

impl Piece {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        let range = 0..bytes.len();
        Self { bytes, range }
    }

    pub(crate) fn own(bytes: Vec<u8>) -> Self {
        Self::whole(Arc::new(bytes))
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }

    pub(crate) fn len(&self) -> u64 {
        self.range.len() as u64
    }

    /// Returns true if it is the very same part of the same file.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.bytes, &other.bytes) && self.range == other.range
    }
}

/// A guest that does not fit its memory.
#[derive(Clone, Debug)]
pub(crate) struct Misfit {
    pub(crate) code: Code,
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// Places a VM's files in its memory, `ram` as the guest sees it, on a board with such an interrupt
/// controller.
pub(crate) fn guest(vm: &Vm, gic: Gic, ram: Region) -> Result<Guest, Misfit> {
    let end = ram.start + ram.size;
    let (devicetree, first, top) = match vm.devicetree {
        DevicetreePlace::Start => (ram.start, ram.start + DEVICETREE_SIZE, end),
        DevicetreePlace::End => (end - DEVICETREE_SIZE, ram.start, end - DEVICETREE_SIZE),
    };
    let initramfs =
        vm.initramfs.as_ref().map(|bytes| initramfs(vm, bytes, first, top)).transpose()?;
    let room = Region::new(first, initramfs.map_or(top, |region| region.start) - first);
    let (entry, mut loads) = match &vm.kernel.kind {
        KernelKind::Image(image) => linux(vm, image, room)?,
        KernelKind::Elf(elf) => self::elf(vm, elf, room)?,
        KernelKind::Flat => flat(vm, room)?,
    };
    if let (Some(region), Some(bytes)) = (initramfs, &vm.initramfs) {
        loads.push(GuestLoad { ipa: region.start, piece: Piece::whole(bytes.clone()), zeros: 0 });
    }
    let tree = devicetree::build(vm, gic, ram, initramfs);
    if tree.len() as u64 > DEVICETREE_SIZE {
        return Err(too_much_to_say(vm));
    }
    loads.push(GuestLoad { ipa: devicetree, piece: Piece::own(tree), zeros: 0 });
    if vm.clear_memory {
        clearing::fill_gaps(&mut loads, ram);
    }
    Ok(Guest { entry, devicetree, loads })
}

fn initramfs(vm: &Vm, bytes: &Bytes, first: u64, top: u64) -> Result<Region, Misfit> {
    let size = bytes.len() as u64;
    let start = top.checked_sub(size).map(|start| start & !(PAGE_SIZE - 1));
    let start = start.filter(|&start| start > first).ok_or_else(|| Misfit {
        code: Code::ImageTooLarge,
        span: vm.spans.initramfs.clone(),
        message: format!("the initramfs ({} KiB) does not fit {}", size >> 10, vm.title()),
        hint: format!("raise `memory` (now {})", show(vm.ram_size)),
    })?;
    Ok(Region::new(start, size))
}

/// That the device tree does not fit. The checks bound everything in it but tasks.
fn too_much_to_say(vm: &Vm) -> Misfit {
    let message = format!(
        "the tasks of {} do not fit its device tree, which has {} KiB",
        vm.title(),
        DEVICETREE_SIZE >> 10
    );
    let hint = "describe fewer tasks, or fewer segments".to_owned();
    Misfit { code: Code::TooMany, span: vm.spans.memory.clone(), message, hint }
}

/// That the kernel does not fit.
fn too_large(vm: &Vm, need: u64, room: Region) -> Misfit {
    let message = format!(
        "the kernel needs {} KiB, {} has {} KiB for it",
        need.div_ceil(1024),
        vm.title(),
        room.size >> 10
    );
    let hint = format!("raise `memory` (now {})", show(vm.ram_size));
    Misfit { code: Code::ImageTooLarge, span: vm.spans.kernel.clone(), message, hint }
}

type Placed = Result<(u64, Vec<GuestLoad>), Misfit>;

fn linux(vm: &Vm, image: &LinuxImage, room: Region) -> Placed {
    // An Image lies at a multiple of 2 MiB (Documentation/arch/arm64/booting.rst).
    let base = room.start.next_multiple_of(RAM_ALIGN);
    let need = (base - room.start).saturating_add(image.text_offset);
    let need = need.saturating_add(image.image_size);
    if need > room.size {
        return Err(too_large(vm, need, room));
    }
    let ipa = base + image.text_offset;
    let piece = Piece::whole(vm.kernel.bytes.clone());
    if ipa.is_multiple_of(LOAD_ALIGN) {
        return Ok((ipa, vec![GuestLoad { ipa, piece, zeros: 0 }]));
    }
    let message = format!("the Image wants to lie at an odd offset ({:#x})", image.text_offset);
    let hint = "the file is damaged; fetch or build it again".to_owned();
    Err(Misfit { code: Code::ImageKind, span: vm.spans.kernel.clone(), message, hint })
}

fn flat(vm: &Vm, room: Region) -> Placed {
    let piece = Piece::whole(vm.kernel.bytes.clone());
    if piece.len() > room.size {
        return Err(too_large(vm, piece.len(), room));
    }
    Ok((room.start, vec![GuestLoad { ipa: room.start, piece, zeros: 0 }]))
}

fn elf(vm: &Vm, elf: &ElfImage, room: Region) -> Placed {
    for segment in &elf.segments {
        if !room.contains(Region::new(segment.address, segment.size)) {
            let message = format!(
                "the ELF file wants memory {:#x} to {:#x}, {} has {:#x} to {:#x} for it",
                segment.address,
                segment.end(),
                vm.title(),
                room.start,
                room.start + room.size
            );
            let hint = "link it for the VM's memory, or change `address` or `size`".to_owned();
            let span = vm.spans.kernel.clone();
            return Err(Misfit { code: Code::ImageTooLarge, span, message, hint });
        }
    }
    Ok((elf.entry, segments::loads(elf, &vm.kernel.bytes)))
}
