//! The flat tables of a planned system; digests are still to be filled in.

use super::sections;
use crate::board::{Gic, GicV2, GicV3, Trigger, UartKind};
use crate::model::{Checked, Vcpu, Vm};
use crate::plan::guest_ram;
use abi::system::{
    self, Confined, Header, MAGIC, MAX_CONFINED, Smmu, Spi, System, VERSION, flags, parts, server,
    vcpu_flags, vm_flags,
};
use sched::server::ServerKind;
use std::ops::BitOr;
use zerocopy::FromZeros;

/// The bits of those flags that are set.
fn bits<T: BitOr<Output = T> + Default, const N: usize>(flags: [(bool, T); N]) -> T {
    let set = flags.into_iter().filter(|(set, _)| *set);
    set.fold(T::default(), |bits, (_, flag)| bits | flag)
}

/// The flags of a vCPU.
fn vcpu_bits(vcpu: &Vcpu) -> u16 {
    bits([
        (vcpu.urgent, vcpu_flags::URGENT),
        (vcpu.lower, vcpu_flags::LOWER),
        (vcpu.adapts_timer_advance, vcpu_flags::ADAPTS),
        (vcpu.unmarked_priority.is_some(), vcpu_flags::MARKABLE),
    ])
}

/// A kind of server, as EL2 reads it.
fn number(kind: ServerKind) -> u32 {
    match kind {
        ServerKind::Periodic => server::PERIODIC,
        ServerKind::Deferrable => server::DEFERRABLE,
    }
}

pub(super) fn tables(checked: &Checked) -> Box<System> {
    let mut tables = Box::<System>::default();
    tables.board = board(checked);
    let (mut vcpus, mut loads, mut spis) = (0, 0, 0);
    for (i, vm) in checked.vms.iter().enumerate() {
        tables.vms[i] = self::vm(checked, i, vcpus, loads);
        for (index, vcpu) in vm.vcpus.iter().enumerate() {
            tables.vcpus[vcpus] = system::Vcpu {
                vm: i as u16,
                index: index as u16,
                pcpu: vcpu.pcpu as u16,
                priority: vcpu.unmarked_priority.unwrap_or(vcpu.priority),
                quantum_ns: vcpu.quantum_ns,
                fallback: vcpu.fallback as u16,
                flags: vcpu_bits(vcpu),
                affinity: vcpu.affinity,
                rotation: vcpu.rotation,
                timer_advance_ns: vcpu.timer_advance_ns,
                server: vcpu.server.map_or(server::NONE, |server| number(server.kind)),
                budget_ns: vcpu.server.map_or(0, |server| server.budget_ns),
                period_ns: vcpu.server.map_or(0, |server| server.period_ns),
                overrun_ns: vcpu.server.map_or(0, |server| server.overrun_ns),
                offset_ns: vcpu.server.map_or(0, |server| server.offset_ns),
                gcs_ns: 0,
                gcs_calls: 0,
                mutexes: 0,
                boost_budget_ns: vcpu.boost.map_or(0, |boost| boost.budget_ns),
                boost_period_ns: vcpu.boost.map_or(0, |boost| boost.period_ns),
                boost_window_ns: vcpu.boost.map_or(0, |boost| boost.window_ns),
                boost_priority: vcpu.boost.map_or(0, |boost| boost.priority),
                reserved: 0,
            };
            vcpus += 1;
        }
        for load in &checked.plan.loads[i] {
            tables.loads[loads] = *load;
            loads += 1;
        }
        for irq in &vm.interrupts {
            let (physical, virtual_) = (irq.physical, irq.virtual_);
            let trigger = match irq.trigger {
                Trigger::Level => system::LEVEL,
                Trigger::Edge => system::EDGE,
            };
            let pcpu = vm.interrupts_to.unwrap_or(vm.vcpus[0].pcpu) as u16;
            tables.spis[spis] = Spi { physical, virtual_, vm: i as u16, pcpu, trigger };
            spis += 1;
        }
    }
    let bundle = checked.plan.layout.bundle;
    tables.header = Header {
        magic: MAGIC,
        version: checked.parts().fold(VERSION, |version, (_, bit)| version | bit)
            | bits([
                (checked.machine.board.gic.is_v2(), parts::GIC_V2),
                (checked.machine.board.spin_table.is_some(), parts::SPIN_TABLE),
            ])
            | match checked.machine.board.uart {
                UartKind::Pl011 => 0,
                UartKind::Cadence => parts::UART_CADENCE,
                UartKind::Imx => parts::UART_IMX,
                UartKind::Ns16550 => parts::UART_16550,
                UartKind::Mini => parts::UART_MINI,
            },
        part_count: 0,
        bundle_pa: bundle.start,
        bundle_size: bundle.size,
        flags: bits([
            (checked.priority_separation, flags::PRIORITY_SEPARATION),
            (checked.off_when_done, flags::OFF_WHEN_DONE),
            (checked.reset_on_fault, flags::RESET_ON_FAULT),
            (checked.directed_yield, flags::DIRECTED_YIELD),
        ]),
        vm_count: checked.vms.len() as u32,
        vcpu_count: vcpus as u32,
        load_count: loads as u32,
        spi_count: spis as u32,
        consolidation_window_ns: checked.consolidation.window_ns,
        sibling_grace_ns: checked.sibling_grace_ns,
        mutex_count: 0,
        trace_size: checked.trace,
        watchdog_ns: checked.watchdog_ns,
        tables_sha256: [0; system::DIGEST_SIZE],
    };
    for (i, vm) in checked.vms.iter().enumerate() {
        for end in &vm.links {
            tables.links[end.number].vms[end.side] = i as u16;
        }
        for back in &vm.backs {
            let devices = back.front.devices.len() as u16;
            tables.virtio[back.front.number] = system::Virtio { back: i as u16, devices };
        }
    }
    tables.smmu = smmu(checked);
    sections::write(&mut tables, checked);
    tables
}

/// What confines devices, and which.
fn smmu(checked: &Checked) -> Smmu {
    let registers_pa = checked.plan.layout.smmu.map_or(0, |registers| registers.start);
    let mut smmu = Smmu { registers_pa, confined: [Confined::NONE; MAX_CONFINED] };
    let given = checked.vms.iter().enumerate();
    let given = given.flat_map(|(vm, given)| given.devices.iter().map(move |device| (vm, device)));
    let confined = given.filter_map(|(vm, device)| {
        let streams = device.streams?;
        let functions_pa = device.window.map_or(0, |_| device.address);
        let (first, count) = (streams.first, streams.count);
        Some(Confined { functions_pa, first, count, vm: vm as u16, reserved: 0 })
    });
    for (slot, device) in smmu.confined.iter_mut().zip(confined) {
        *slot = device;
    }
    smmu
}

fn board(checked: &Checked) -> system::Board {
    let machine = &checked.machine;
    let board = machine.board;
    let mut pcpu_mpidr = [0; abi::MAX_PCPUS];
    pcpu_mpidr[..machine.pcpus].copy_from_slice(&board.pcpu_mpidr[..machine.pcpus]);
    let mut consolidation_target = [0; abi::MAX_PCPUS];
    for (slot, &target) in consolidation_target.iter_mut().zip(&checked.consolidation.targets) {
        *slot = target as u16;
    }
    let hypervisor = machine.hypervisor();
    let none = system::Board::new_zeroed();
    let gic = match board.gic {
        Gic::V3(GicV3 { gicd_pa, gicr_pa, gicr_stride }) => {
            system::Board { gicd_pa, gicr_pa, gicr_stride, ..none }
        }
        Gic::V2(GicV2 { gicd_pa, gicc_pa, gich_pa, gicv_pa }) => {
            system::Board { gicd_pa, gicc_pa, gich_pa, gicv_pa, ..none }
        }
    };
    let spin_table = board.spin_table;
    system::Board {
        ram_pa: board.ram_pa,
        ram_size: machine.memory,
        hypervisor_pa: hypervisor.start,
        hypervisor_size: hypervisor.size,
        stage1_pa: checked.plan.stage1.start,
        status_pa: checked.plan.layout.status.start,
        uart_pa: board.uart_pa,
        uart_intid: board.uart_intid,
        pcpu_count: machine.pcpus as u32,
        pcpu_mpidr,
        consolidation_target,
        release_pa: spin_table.map_or(0, |table| table.release_pa),
        power_pa: spin_table.map_or(0, |table| table.power_pa),
        ..gic
    }
}

fn vm(checked: &Checked, i: usize, vcpu_first: usize, load_first: usize) -> system::Vm {
    let plan = &checked.plan;
    let vm: &Vm = &checked.vms[i];
    let memory = &plan.layout.vms[i];
    let mut name = [0; 16];
    name[..vm.name.len()].copy_from_slice(vm.name.as_bytes());
    system::Vm {
        name,
        flags: bits([
            (vm.realtime, vm_flags::REALTIME),
            (vm.console, vm_flags::CONSOLE),
            (vm.restart_on_fault, vm_flags::RESTART_ON_FAULT),
            (!vm.devices.is_empty(), vm_flags::DEVICES),
            (vm.yields, vm_flags::YIELD),
            (vm.preempt_count_at == 16, vm_flags::COUNT_AT_16),
            (vm.interrupts_to.is_some(), vm_flags::INTERRUPTS_STAY),
        ]),
        vcpu_first: vcpu_first as u16,
        vcpu_count: vm.vcpus.len() as u16,
        load_first: load_first as u16,
        load_count: plan.loads[i].len() as u16,
        migration_policy: vm.migration_policy as u16,
        other_policies: vm.other_policies.bits() as u16,
        entry_ipa: plan.guests[i].entry,
        entry_x0: plan.guests[i].devicetree,
        stage2_pa: plan.stage2_roots(i),
        stage1_pa: plan.stage1_roots[i],
        ram_ipa: guest_ram(vm, memory.ram).start,
        ram_pa: memory.ram.start,
        ram_size: memory.ram.size,
        stolen_pa: memory.stolen.start,
        lines_pa: memory.lines.start,
        report_pa: memory.report.start,
        report_size: memory.report.size,
        delay_limit_ns: vm.delay_limit_ns,
    }
}
