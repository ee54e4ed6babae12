//! Guest memory and report areas, as far as they can be judged before the
//! layout.

use super::devices;
use crate::code::Code;
use crate::draft::{At, DraftVm};
use crate::model::Machine;
use crate::problem::Problems;
use crate::size::show;
use abi::platform::{IPA_BITS, OCCUPIED, REPORT_MAX_SIZE};
use abi::system::{HYPERVISOR_SIZE, PAGE_SIZE, RAM_ALIGN, Region};

pub(super) fn check(vms: &[DraftVm], machine: Option<&Machine>, problems: &mut Problems) {
    for vm in vms {
        alignment(vm, problems);
        guest_side(vm, machine, problems);
        if let Some(report) = &vm.report {
            self::report(report, problems);
        }
    }
    if let Some(machine) = machine {
        sum(vms, machine, problems);
        identity(vms, machine, problems);
    }
}

fn alignment(vm: &DraftVm, problems: &mut Problems) {
    if let Some(size) = &vm.memory.size {
        let bytes = *size.get_ref();
        if bytes == 0 {
            problems
                .add(Code::MemoryRange, size.span(), "a VM without memory cannot run")
                .hint("for example \"64M\"");
        } else if !bytes.is_multiple_of(RAM_ALIGN) {
            let message = format!("memory of {} is no multiple of 2 MiB", show(bytes));
            let next = bytes.checked_next_multiple_of(RAM_ALIGN).unwrap_or(RAM_ALIGN);
            problems
                .add(Code::Unaligned, size.span(), message)
                .hint(format!("for example \"{}\"", show(next)));
        }
    }
    if let Some(address) = &vm.memory.address
        && !address.get_ref().is_multiple_of(RAM_ALIGN)
    {
        let down = address.get_ref() / RAM_ALIGN * RAM_ALIGN;
        let message = format!("memory at {:#x} is not 2 MiB aligned", address.get_ref());
        problems
            .add(Code::Unaligned, address.span(), message)
            .hint(format!("for example {down:#x}"));
    }
}

/// Where its memory lies for the guest, if that is known.
fn guest_ram(vm: &DraftVm) -> Option<Region> {
    Some(Region::new(vm.ram_ipa()?, *vm.memory.size.as_ref()?.get_ref()))
}

fn guest_side(vm: &DraftVm, machine: Option<&Machine>, problems: &mut Problems) {
    let Some(ram) = guest_ram(vm) else { return };
    if ram.end().is_none_or(|end| end > 1 << IPA_BITS) {
        let message = format!("guest memory from {:#x} ends above {IPA_BITS} bits", ram.start);
        problems.add(Code::MemoryRange, vm.memory_span(), message).hint("choose a lower address");
        return;
    }
    let platform = OCCUPIED.iter().map(|&(base, size)| Region::new(base, size));
    if let Some(taken) = platform.into_iter().find(|taken| taken.overlaps(ram)) {
        let message =
            format!("guest memory covers what the virtual platform has at {:#x}", taken.start);
        problems
            .add(Code::MemoryOverlap, vm.memory_span(), message)
            .hint("memory usually begins at 0x4000_0000; leave `address` out");
    }
    let Some(machine) = machine else { return };
    for (at, device) in devices::of(vm, machine.board) {
        if device.overlaps(ram) {
            let message = format!("device `{}` lies inside the guest's memory", device.name);
            problems
                .add(Code::MemoryOverlap, at.span(), message)
                .see(vm.memory_span(), "this memory")
                .hint("move the memory: `address`");
        }
    }
}

fn report(at: &At<u64>, problems: &mut Problems) {
    let size = *at.get_ref();
    let range = PAGE_SIZE..=REPORT_MAX_SIZE;
    if !range.contains(&size) || !size.is_multiple_of(PAGE_SIZE) {
        problems
            .add(
                Code::ReportSize,
                at.span(),
                format!("a report area of {} is impossible", show(size)),
            )
            .hint(format!("a multiple of 4K, from 4K to {}", show(REPORT_MAX_SIZE)));
    }
}

/// RAM that guests may have.
pub(super) fn available(machine: &Machine) -> Region {
    let start = machine.board.hypervisor_pa + HYPERVISOR_SIZE;
    Region::new(start, machine.board.ram_pa + machine.memory - start)
}

fn sum(vms: &[DraftVm], machine: &Machine, problems: &mut Problems) {
    let sizes = || vms.iter().filter_map(|vm| vm.memory.size.as_ref());
    let wanted: u128 = sizes().map(|at| u128::from(*at.get_ref())).sum();
    let available = available(machine).size;
    if wanted > available.into() {
        let largest = sizes().max_by_key(|at| *at.get_ref());
        let message = format!(
            "the VMs want {} MiB of memory, the board has {} MiB for them",
            wanted >> 20,
            available >> 20
        );
        problems
            .add(Code::MemoryFull, largest.map_or(0..0, At::span), message)
            .hint("lower this, or raise `memory` of the board");
    }
}

/// Memory at fixed physical addresses.
fn identity(vms: &[DraftVm], machine: &Machine, problems: &mut Problems) {
    let fixed: Vec<_> = vms
        .iter()
        .filter(|vm| vm.is_identity())
        .filter_map(|vm| Some((vm, guest_ram(vm)?)))
        .collect();
    let available = available(machine);
    for (i, (vm, ram)) in fixed.iter().enumerate() {
        let own = Region::new(machine.board.ram_pa, available.start - machine.board.ram_pa);
        if ram.overlaps(own) {
            let message = format!("memory at {:#x} is the hypervisor's", ram.start);
            problems.add(Code::MemoryOverlap, vm.memory_span(), message).hint(format!(
                "with `identity` it can begin above {:#x}; or leave `address` out",
                own.start + own.size
            ));
        } else if !available.contains(*ram) {
            let message = format!(
                "memory {:#x} to {:#x} is not in the board's RAM ({:#x} to {:#x})",
                ram.start,
                ram.start.saturating_add(ram.size),
                machine.board.ram_pa,
                available.start + available.size
            );
            problems
                .add(Code::MemoryRange, vm.memory_span(), message)
                .hint("with `identity` the guest's addresses are physical ones");
        }
        if let Some((other, _)) = fixed[..i].iter().find(|(_, other)| other.overlaps(*ram)) {
            let message = format!("{} and {} would share memory", other.title(), vm.title());
            problems
                .add(Code::MemoryOverlap, vm.memory_span(), message)
                .see(other.memory_span(), "the other one")
                .hint("move one of them, or leave `address` out");
        }
    }
}
