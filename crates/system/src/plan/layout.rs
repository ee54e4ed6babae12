//! Which physical memory each part of the system gets.
//!
//! From the bottom: what the board wants left alone, the hypervisor, the
//! bundle, the status area, the trace, stolen-time pages, lines of preemption, report areas, shared
//! memory, that of links, guests. Guests at fixed physical addresses come before everything that can move.

use crate::check::Sound;
use crate::model::Vm;
use crate::size::show;
use abi::platform::{LINES_SIZE, MAX_LINKS, MAX_SHARED, OCCUPIED, STOLEN_SIZE};
use abi::status::Status;
use abi::system::{HYPERVISOR_SIZE, PAGE_SIZE, RAM_ALIGN, Region, SMMU_SIZE};
use abi::trace;
use std::collections::BTreeMap;

/// Physical memory, shared out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) bundle: Region,
    pub(crate) status: Region,
    /// Right behind the status area; empty when there is none.
    pub(crate) trace: Region,
    pub(crate) vms: Vec<VmMemory>,
    /// Memory that VMs share, in the order of the description; empty where no VM has it.
    pub(crate) shared: Vec<Region>,
    /// The memory of links, by their numbers; empty where there is none.
    pub(crate) links: Vec<Region>,
    /// The registers of the SMMU, if a VM has a device behind it.
    pub(crate) smmu: Option<Region>,
    /// The configuration space of the PCI functions behind it.
    pub(crate) functions: Vec<Region>,
    /// The memory of virtio devices, by the VM that gets them; empty where one gets none.
    pub(crate) virtio: Vec<Region>,
}

/// What one VM has of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VmMemory {
    pub(crate) ram: Region,
    pub(crate) stolen: Region,
    /// The page of lines of preemption; empty when it has none.
    pub(crate) lines: Region,
    /// Empty when it has none.
    pub(crate) report: Region,
}

/// Why a layout is impossible: which VM's memory, and what is in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The fixed address is taken; from `free` on it would surely not be.
    Taken { vm: usize, free: u64 },
    /// There is no free piece of that size; the largest has so much.
    Full { vm: usize, largest: u64 },
}

/// Shares out the board's memory, with `bundle_size` bytes for the bundle.
pub(crate) fn layout(system: &Sound, bundle_size: u64) -> Result<Layout, NoRoom> {
    let (board, vms) = (system.machine.board, &system.vms[..]);
    let bundle = Region::new(board.hypervisor_pa + HYPERVISOR_SIZE, bundle_size);
    let bottom = Region::new(board.ram_pa, bundle.start + bundle.size - board.ram_pa);
    let mut free = Free(vec![Region::new(board.ram_pa, system.machine.memory)]);
    if !free.take(bottom) {
        return Err(NoRoom::Full { vm: 0, largest: 0 });
    }
    let mut rams = BTreeMap::new();
    for (vm, ram) in fixed(vms) {
        if !free.take(ram) {
            let surely_free = bundle.start + bundle_size.max(files(vms)) + SLACK;
            return Err(NoRoom::Taken { vm, free: surely_free.next_multiple_of(RAM_ALIGN) });
        }
        rams.insert(vm, ram);
    }
    let mut take = |vm: usize, size: u64, align: u64| {
        let full = NoRoom::Full { vm, largest: free.largest() };
        free.take_lowest(size, align).ok_or(full)
    };
    let status_size = (size_of::<Status>() as u64).next_multiple_of(PAGE_SIZE);
    let trace_size = trace::size(system.trace.into(), system.machine.pcpus as u64);
    let both = take(0, status_size + trace_size, PAGE_SIZE)?;
    let status = Region::new(both.start, status_size);
    let trace = Region::new(both.start + status_size, trace_size);
    let stolen = (0..vms.len()).map(|vm| take(vm, STOLEN_SIZE, PAGE_SIZE));
    let stolen = stolen.collect::<Result<Vec<_>, _>>()?;
    let lines = vms.iter().enumerate().map(|(i, vm)| match vm.yields {
        false => Ok(Region::new(0, 0)),
        true => take(i, LINES_SIZE, PAGE_SIZE),
    });
    let lines = lines.collect::<Result<Vec<_>, _>>()?;
    let reports = vms.iter().enumerate().map(|(i, vm)| match vm.report {
        0 => Ok(Region::new(0, 0)),
        size => take(i, size, block_align(size)),
    });
    let reports = reports.collect::<Result<Vec<_>, _>>()?;
    let mut take_for_several = |size: &dyn Fn(&Vm) -> Option<u64>| match first(vms, size) {
        None => Ok(Region::new(0, 0)),
        Some((i, size)) => take(i, size, block_align(size)),
    };
    let shared = (0..MAX_SHARED).map(|number| {
        take_for_several(&|vm| {
            let memory = vm.shared_memory.iter().find(|memory| memory.number == number);
            memory.map(|memory| memory.guest.size)
        })
    });
    let shared = shared.collect::<Result<Vec<_>, _>>()?;
    let links = (0..MAX_LINKS).map(|number| {
        take_for_several(&|vm| vm.links.iter().find(|end| end.number == number).map(|end| end.size))
    });
    let links = links.collect::<Result<Vec<_>, _>>()?;
    let virtio = (0..vms.len()).map(|number| {
        take_for_several(&|vm| vm.virtio.as_ref().filter(|v| v.number == number).map(|v| v.size))
    });
    let virtio = virtio.collect::<Result<Vec<_>, _>>()?;
    for (i, vm) in movable(vms) {
        // At the board's addresses a guest has the virtual platform, too.
        let platform = OCCUPIED.iter().filter(|_| vm.identity);
        let mut usable = free.without(platform.map(|&(base, size)| Region::new(base, size)));
        let full = NoRoom::Full { vm: i, largest: usable.largest() };
        let ram = usable.take_lowest(vm.ram_size, RAM_ALIGN).filter(|&ram| free.take(ram));
        rams.insert(i, ram.ok_or(full)?);
    }
    let memory = rams.into_values().zip(stolen).zip(lines).zip(reports);
    let memory =
        memory.map(|(((ram, stolen), lines), report)| VmMemory { ram, stolen, lines, report });
    let confined = || vms.iter().flat_map(|vm| &vm.devices).filter(|one| one.streams.is_some());
    let smmu = board.smmu_pa.filter(|_| confined().next().is_some());
    let smmu = smmu.map(|pa| Region::new(pa, SMMU_SIZE));
    let functions = confined().filter(|one| one.window.is_some()).map(|one| one.registers());
    let functions = functions.collect();
    let vms = memory.collect();
    Ok(Layout { bundle, status, trace, vms, shared, links, virtio, smmu, functions })
}

/// A large area in whole blocks needs fewer tables and TLB entries.
const fn block_align(size: u64) -> u64 {
    if size >= RAM_ALIGN { RAM_ALIGN } else { PAGE_SIZE }
}

/// The first VM that has some memory which several have, and how many bytes that is.
fn first(vms: &[Vm], size: impl Fn(&Vm) -> Option<u64>) -> Option<(usize, u64)> {
    vms.iter().enumerate().find_map(|(i, vm)| Some((i, size(vm)?)))
}

/// What a hint allows for tables and device trees.
const SLACK: u64 = 1 << 20;

/// Bytes of all files, those that VMs share counted for each.
fn files(vms: &[Vm]) -> u64 {
    let sizes = vms.iter().flat_map(|vm| [Some(&vm.kernel.bytes), vm.initramfs.as_ref()]);
    sizes.flatten().map(|bytes| bytes.len() as u64).sum()
}

/// VMs whose physical address the description states.
fn fixed(vms: &[Vm]) -> impl Iterator<Item = (usize, Region)> {
    let address = |vm: &Vm| vm.ram_ipa.filter(|_| vm.identity);
    vms.iter()
        .enumerate()
        .filter_map(move |(i, vm)| Some((i, Region::new(address(vm)?, vm.ram_size))))
}

/// The others, identity first.
fn movable(vms: &[Vm]) -> Vec<(usize, &Vm)> {
    let is_fixed = |vm: &Vm| vm.identity && vm.ram_ipa.is_some();
    let mut vms: Vec<_> = vms.iter().enumerate().filter(|(_, vm)| !is_fixed(vm)).collect();
    vms.sort_by_key(|(_, vm)| !vm.identity);
    vms
}

impl NoRoom {
    /// Index of the VM whose memory is at fault.
    pub(crate) const fn vm(&self) -> usize {
        match self {
            Self::Taken { vm, .. } | Self::Full { vm, .. } => *vm,
        }
    }

    /// What is wrong, and how to mend it.
    pub(crate) fn explain(&self, vm: &Vm) -> (String, String) {
        match self {
            Self::Taken { free, .. } => (
                format!("{}'s memory lies where the hypervisor keeps its images", vm.title()),
                format!("choose an address from {free:#x} on, or leave `address` out"),
            ),
            Self::Full { largest, .. } => (
                format!(
                    "there is no room for {}'s {}: the largest free piece has {} KiB",
                    vm.title(),
                    show(vm.ram_size),
                    largest >> 10
                ),
                "lower this, or raise `memory` of the board".to_owned(),
            ),
        }
    }
}

/// Free memory, in ascending order.
struct Free(Vec<Region>);

impl Free {
    /// Takes exactly that; false when part of it is not free.
    fn take(&mut self, region: Region) -> bool {
        let Some(i) = self.0.iter().position(|free| free.contains(region)) else { return false };
        let free = self.0[i];
        let end = region.start + region.size;
        let before = Region::new(free.start, region.start - free.start);
        let behind = Region::new(end, free.start + free.size - end);
        self.0.splice(i..=i, [before, behind].into_iter().filter(|piece| piece.size > 0));
        true
    }

    /// Takes the lowest free piece of that size and alignment.
    fn take_lowest(&mut self, size: u64, align: u64) -> Option<Region> {
        let candidate = |free: &Region| {
            let region = Region::new(free.start.checked_next_multiple_of(align)?, size);
            free.contains(region).then_some(region)
        };
        let region = self.0.iter().find_map(candidate)?;
        self.take(region).then_some(region)
    }

    /// Returns what is free and in none of these.
    fn without(&self, taken: impl Iterator<Item = Region>) -> Self {
        let cut = |free: Vec<Region>, taken: Region| {
            let end = taken.start + taken.size;
            let outside = |piece: Region| {
                let piece_end = piece.start + piece.size;
                let before = piece.start..piece_end.min(taken.start);
                let behind = piece.start.max(end)..piece_end;
                [before, behind]
                    .map(|range| Region::new(range.start, range.end.saturating_sub(range.start)))
            };
            free.into_iter().flat_map(outside).filter(|piece| piece.size > 0).collect()
        };
        Self(taken.fold(self.0.clone(), cut))
    }

    fn largest(&self) -> u64 {
        self.0.iter().map(|free| free.size).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_from_the_bottom_and_never_twice() {
        let mut free = Free(vec![Region::new(0x1000, 0x9000)]);
        assert!(free.take(Region::new(0x4000, 0x2000)));
        assert!(!free.take(Region::new(0x5000, 0x2000)));
        assert_eq!(free.take_lowest(0x2000, 0x2000), Some(Region::new(0x2000, 0x2000)));
        assert_eq!(free.take_lowest(0x2000, 0x2000), Some(Region::new(0x6000, 0x2000)));
        assert_eq!(free.take_lowest(0x3000, 0x1000), None);
        assert_eq!(free.largest(), 0x2000);
    }

    #[test]
    fn what_is_kept_clear_is_not_free() {
        let free = Free(vec![Region::new(0x1000, 0x4000), Region::new(0x8000, 0x1000)]);
        let piece = Region::new;
        let clear = |taken| free.without([taken].into_iter()).0;
        assert_eq!(
            clear(piece(0x2000, 0x1000)),
            [piece(0x1000, 0x1000), piece(0x3000, 0x2000), piece(0x8000, 0x1000)]
        );
        assert_eq!(clear(piece(0, 0x2000)), [piece(0x2000, 0x3000), piece(0x8000, 0x1000)]);
        assert_eq!(clear(piece(0x4000, 0x8000)), [piece(0x1000, 0x3000)]);
        assert_eq!(clear(piece(0x6000, 0x1000)), free.0);
    }
}
