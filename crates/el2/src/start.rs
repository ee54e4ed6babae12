//! From the first Rust instruction of a core to its first guest.

use crate::arch::firmware::Started;
use crate::arch::gic::{self, Redistributor};
use crate::arch::ich::Interface;
use crate::arch::{boot, cpu, firmware, timer, vectors};
use crate::console::{self, Console};
use crate::lifecycle::Home;
use crate::pcpu::Pcpu;
use crate::shared::{ALIVE, PLACES, VMS};
use crate::slots::Slots;
use crate::vcpu::Vcpu;
use crate::{consolidation, policies, status, tables};
use abi::system::{System, flags, vm_flags};
use abi::{MAX_PCPUS, MAX_VCPUS};
use core::sync::atomic::Ordering;
use sched::VcpuId;

static PCPUS: Slots<Pcpu, MAX_PCPUS> = Slots::new();
static VCPUS: Slots<Vcpu, MAX_VCPUS> = Slots::new();

/// A core begins, with its index in the system's table.
pub extern "C" fn start(index: usize) -> ! {
    let system = tables::find();
    if index == 0 {
        prepare(system);
    } else {
        // SAFETY: the boot core has verified the tables, this one among them.
        unsafe { cpu::enable_mmu(system.board.stage1_pa) };
    }
    cpu::configure();
    match consolidation::resting(index) {
        Some(core) => {
            core.come_back();
            go(core)
        }
        None => run(index, system),
    }
}

/// What the boot core does before there are others.
fn prepare(system: &'static System) {
    let boot = timer::now();
    tables::verify(system).unwrap_or_else(|what| refuse(what));
    // SAFETY: the tables' checksum matches, so this is the map the host built.
    unsafe { cpu::enable_mmu(system.board.stage1_pa) };
    tables::verify_payload(system).unwrap_or_else(|what| refuse(what));
    policies::verify(system).unwrap_or_else(|what| refuse(what));
    timer::calibrate();
    status::prepare(system, timer::frequency_hz(), boot.0);
    ALIVE.store((1 << system.header.vm_count) - 1, Ordering::Release);
    for vm in &VMS[..system.header.vm_count as usize] {
        vm.gic.reset();
        vm.gic.link(timer::VIRTUAL_INTID, timer::VIRTUAL_INTID);
    }
    for (place, vcpu) in PLACES.iter().zip(&system.vcpus[..system.header.vcpu_count as usize]) {
        place.set(vcpu.pcpu.into());
    }
    route_interrupts(system);
    console::write(format_args!(
        "{} on {} pCPUs, {} VMs",
        env!("CARGO_PKG_VERSION"),
        system.board.pcpu_count,
        system.header.vm_count
    ));
    let mpidrs = &system.board.pcpu_mpidr[..system.board.pcpu_count as usize];
    for (core, &mpidr) in mpidrs.iter().enumerate().skip(1) {
        if firmware::start_core(mpidr, core) != Started::Yes {
            console::write(format_args!("pCPU {core} does not start"));
        }
    }
}

/// Says what is wrong with the system and stops the machine.
fn refuse(what: &str) -> ! {
    console::emergency(format_args!("refused to start: {what}\n"));
    firmware::power_off();
    cpu::halt()
}

/// Each device's interrupt goes to the core that owns the first vCPU of its VM,
/// where it is handed on.
fn route_interrupts(system: &System) {
    let separate = system.header.flags & flags::PRIORITY_SEPARATION != 0;
    let gicd = system.board.gicd_pa;
    gic::reset_distributor(gicd);
    for spi in &system.spis[..system.header.spi_count as usize] {
        let table = &system.vms[spi.vm as usize];
        let core = usize::from(system.vcpus[usize::from(table.vcpu_first)].pcpu);
        let urgent = separate && table.is(vm_flags::REALTIME);
        let priority = if urgent { gic::PRIORITY_REALTIME } else { gic::PRIORITY_NORMAL };
        VMS[spi.vm as usize].gic.link(spi.virtual_, spi.physical);
        let edge = spi.trigger == abi::system::EDGE;
        gic::route(gicd, spi.physical, system.board.pcpu_mpidr[core], priority, edge);
    }
    let affinity = system.board.pcpu_mpidr[console::core_of(system)];
    gic::route(gicd, system.board.uart_intid, affinity, gic::PRIORITY_NORMAL, false);
}

/// This core's own interrupts.
pub fn start_redistributor(index: usize, system: &System) -> Redistributor {
    let separate = system.header.flags & flags::PRIORITY_SEPARATION != 0;
    let frame = system.board.gicr_pa + index as u64 * system.board.gicr_stride;
    Redistributor::start(frame, separate)
}

/// Takes what is this core's and runs it.
fn run(index: usize, system: &'static System) -> ! {
    let redistributor = start_redistributor(index, system);
    // SAFETY: the host mapped the board's UART as device memory; one core only
    // drives it.
    let console = (index == console::core_of(system))
        .then(|| unsafe { Console::new(system.board.uart_pa) })
        .flatten();
    // SAFETY: this core asks for its own part, once.
    let status = unsafe { status::pcpu(system, index) };
    status.online = 1;
    let core = Pcpu::new(index, system, redistributor, Interface::start(), console, status);
    let Some(core) = PCPUS.fill(index, core) else { cpu::halt() };
    adopt(core);
    core.console_has_output(abi::MAX_VMS);
    go(core)
}

/// Finds a guest to run, and runs it.
fn go(core: &'static mut Pcpu) -> ! {
    core.read_mail();
    core.settle();
    let stack = boot::stack_top(core.index);
    // SAFETY: the word at `stack` is this core's own; the exception vectors
    // find the core there and are the only ones to use it from now on.
    unsafe {
        stack.write((&raw mut *core) as u64);
        vectors::enter_guest(stack)
    }
}

/// Takes possession of this core's vCPUs, and starts the VMs whose home it is.
fn adopt(core: &mut Pcpu) {
    let system = core.system;
    for (at, table) in system.vcpus[..system.header.vcpu_count as usize].iter().enumerate() {
        let id = VcpuId(at as u8);
        let params = policies::params(system, at);
        let comes_here = table.havens >> core.index & 1 == 1;
        core.tell_idle |= comes_here && policies::chooses(system, at);
        let core_knows = consolidation::places(system, table) >> core.index & 1 == 1;
        if core_knows && core.scheduler.arrive(id, params, false).is_err() {
            console::write(format_args!("vCPU {at} was refused"));
        }
        if usize::from(table.pcpu) != core.index {
            continue;
        }
        let (vm, index) = (usize::from(table.vm), usize::from(table.index));
        // SAFETY: this core owns the vCPU and asks once.
        let (status, stolen) =
            unsafe { (status::vcpu(system, at), status::stolen_ns(system, vm, index)) };
        status.pcpu = core.index as u64;
        let Some(vcpu) = VCPUS.fill(at, Vcpu::new(id, system, status, stolen)) else {
            continue;
        };
        core.own(vcpu);
        core.learn_displacers(at);
        if index == 0 {
            // SAFETY: this core is the VM's home and asks once.
            core.homes[vm] = Some(Home::new(unsafe { status::vm(system, vm) }));
            core.start(vm);
        }
    }
    core.learn_siblings();
    core.learn_consolidation();
}
