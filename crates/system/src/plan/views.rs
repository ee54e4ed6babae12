//! What each VM can reach, and what EL2 can reach.

use super::guest_ram;
use super::layout::{Layout, VmMemory};
use crate::board::{Gic, GicV2, SpinTable};
use crate::model::{Machine, Vm};
use crate::paging::{Tables, stage1, stage2};
use abi::platform::{GICC_BASE, GICC_PAGE, LINES_BASE, REPORT_BASE, STOLEN_BASE, UART_SIZE};
use abi::system::{PAGE_SIZE, Region};
use sched::policy::View;
use std::collections::BTreeSet;

/// A VM's view: its memory, its stolen-time page, lines of preemption and report area, what it has of shared
/// memory, its ends of links, that of virtio devices, its devices. The emulated devices are left out, so that every access to them traps.
pub(super) fn stage2(
    root_pa: u64,
    gic: Gic,
    vm: &Vm,
    memory: &VmMemory,
    layout: &Layout,
    view: View,
) -> Tables {
    let mut tables = Tables::new(root_pa);
    if let Gic::V2(GicV2 { gicv_pa, .. }) = gic {
        // Its other page, with the register that deactivates, is emulated.
        let interface = Region::new(gicv_pa, GICC_PAGE);
        stage2::map(&mut tables, GICC_BASE, interface, stage2::Kind::Device);
    }
    let ram = guest_ram(vm, memory.ram);
    stage2::map(&mut tables, ram.start, memory.ram, stage2::Kind::Ram(view));
    stage2::map(&mut tables, STOLEN_BASE, memory.stolen, stage2::Kind::ReadOnly);
    if memory.lines.size > 0 {
        stage2::map(&mut tables, LINES_BASE, memory.lines, stage2::Kind::Data);
    }
    if memory.report.size > 0 {
        stage2::map(&mut tables, REPORT_BASE, memory.report, stage2::Kind::Data);
    }
    for part in &vm.shared_memory {
        let kind = if part.read_only { stage2::Kind::ReadOnly } else { stage2::Kind::Data };
        stage2::map(&mut tables, part.guest.start, layout.shared[part.number], kind);
    }
    for end in &vm.links {
        let memory = layout.links[end.number];
        for side in [0, 1] {
            let (half, size) = (end.half(side), end.size / 2);
            let output = Region::new(memory.start + size * side as u64, size);
            let kind = stage2::Kind::Link { cached: end.cached, writable: side == end.side };
            stage2::map(&mut tables, half.start, output, kind);
        }
    }
    for front in vm.virtio.iter().chain(vm.backs.iter().map(|back| &back.front)) {
        let memory = layout.virtio[front.number];
        stage2::map(&mut tables, front.memory().start, memory, stage2::Kind::Data);
    }
    // Several small devices of one VM may share a page.
    let pages = vm.devices.iter().flat_map(|device| {
        let pages = device.pages();
        (pages.start..pages.start + pages.size).step_by(PAGE_SIZE as usize)
    });
    for window in vm.devices.iter().filter_map(|device| device.window) {
        let window = Region::new(window.address, window.size);
        stage2::map(&mut tables, window.start, window, stage2::Kind::Window);
    }
    for page in pages.collect::<BTreeSet<_>>() {
        stage2::map(&mut tables, page, Region::new(page, PAGE_SIZE), stage2::Kind::Device);
    }
    tables
}

/// EL2's views: the one that it has always, and for each VM the root of the one that it has while
/// it fills the VM's memory. Report areas, shared memory, that of links and that of virtio are left out: only their
/// guests and the host touch them.
pub(crate) fn stage1(
    root_pa: u64,
    machine: &Machine,
    layout: &Layout,
    hypervisor: &[(Region, stage1::Kind)],
) -> (Tables, Vec<u64>) {
    use stage1::Kind;
    let board = machine.board;
    let mut tables = Tables::new(root_pa);
    for &(region, kind) in hypervisor {
        stage1::map_pages(&mut tables, region, kind);
    }
    stage1::map(&mut tables, layout.bundle, Kind::Constant);
    stage1::map(&mut tables, layout.status, Kind::Data);
    if layout.trace.size > 0 {
        stage1::map(&mut tables, layout.trace, Kind::Data);
    }
    for memory in &layout.vms {
        stage1::map(&mut tables, memory.stolen, Kind::Data);
        if memory.lines.size > 0 {
            stage1::map(&mut tables, memory.lines, Kind::Data);
        }
    }
    for frame in board.gic.frames(machine.pcpus) {
        stage1::map(&mut tables, frame, Kind::Device);
    }
    stage1::map(&mut tables, Region::new(board.uart_pa, UART_SIZE), Kind::Device);
    if let Some(SpinTable { release_pa, power_pa }) = board.spin_table {
        // The cores that wait look past all caches.
        let release = Region::new(release_pa & !(PAGE_SIZE - 1), PAGE_SIZE);
        stage1::map(&mut tables, release, Kind::Device);
        stage1::map(&mut tables, Region::new(power_pa, PAGE_SIZE), Kind::Device);
    }
    for region in layout.smmu.iter().chain(&layout.functions) {
        stage1::map(&mut tables, *region, Kind::Device);
    }
    // Last: a root shares what is there.
    let rams = layout.vms.iter().map(|memory| memory.ram);
    let roots: Vec<_> = rams.map(|ram| stage1::alias(&mut tables, ram)).collect();
    let roots = roots.into_iter().map(|root| tables.root_pa(root)).collect();
    (tables, roots)
}
