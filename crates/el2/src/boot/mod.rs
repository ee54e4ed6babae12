//! From the first Rust instruction of a core to its first guest.

mod alike;
#[cfg(any(test, feature = "signature"))]
mod signature;
mod slots;
mod verify;

use crate::arch::firmware::Started;
#[cfg(any(test, feature = "smmu"))]
use crate::arch::smmu;
use crate::arch::{boot, cpu, firmware, gic, statics, timer, vectors};
use crate::bug::bug;
use crate::pcpu::{self, Pcpu, console, requests};
use crate::shared::{ALIVE, BOARD, EPOCH, REQUESTED, VMS, VmSet};
use crate::status::{self, trace::Trace};
use crate::tables::{self, Vcpus};
use crate::vcpu::{Account, Holds, Vcpu, VcpuConfig};
use abi::system::{Part, System, flags, vm_flags};
use abi::{MAX_PCPUS, MAX_VCPUS};
use core::sync::atomic::Ordering;
use sched::topology::Topology;
use sched::{Member, VcpuId};
use slots::Slots;

boot::boot!(start);

statics! {
    static PCPUS: Slots<Pcpu, MAX_PCPUS> = Slots::new();
    static VCPUS: Slots<Vcpu, MAX_VCPUS> = Slots::new();
    static CONSOLE: Slots<console::Console, 1> = Slots::new();
}

/// Begins on a core, with its index in the system's table.
pub extern "C-unwind" fn start(index: usize) -> ! {
    let system = tables::find();
    if index == 0 {
        prepare(system);
    } else {
        verify::core(system, index).unwrap_or_else(|what| refuse(what));
    }
    cpu::configure();
    match pcpu::returning(index) {
        Some(core) => {
            core.come_back();
            go(core)
        }
        None => run(index, system),
    }
}

/// Prepares, on the boot core, what all cores find when they begin.
#[inline(never)]
fn prepare(system: &'static System) {
    let boot = timer::now();
    verify::level().unwrap_or_else(|what| refuse(what));
    verify::tables(system).unwrap_or_else(|what| refuse(what));
    gic::place(&system.board);
    firmware::place(&system.board);
    verify::core(system, /* index */ 0).unwrap_or_else(|what| refuse(what));
    verify::own_table(system).unwrap_or_else(|part| damaged(system, part));
    verify::own_reach(system).unwrap_or_else(|what| refuse(what));
    // SAFETY: the tables' digest matches, so this is the map the host built; and nothing in it is
    // other than an identity of what is EL2's.
    unsafe { boot::enable_mmu(system.board.stage1_pa) };
    verify::own_parts(system).unwrap_or_else(|part| damaged(system, part));
    verify::reach_of_vms(system).unwrap_or_else(|what| refuse(what));
    verify::policies(system).unwrap_or_else(|what| refuse(what));
    timer::calibrate();
    status::prepare(system, timer::frequency_hz(), boot.0);
    #[cfg(any(test, feature = "smmu"))]
    match smmu::confine(system) {
        Ok(faults) => status::note_dma_faults(system, faults),
        Err(what) => refuse(what),
    }
    EPOCH.store(boot.0, Ordering::Relaxed);
    ALIVE.store(VmSet::of_first(system.header.vm_count as usize), Ordering::Release);
    for vm in &VMS[..system.header.vm_count as usize] {
        vm.gic.reset();
        vm.gic.link(timer::VIRTUAL_INTID, timer::VIRTUAL_INTID);
    }
    let vcpus = &system.vcpus[..system.header.vcpu_count as usize];
    for (id, vcpu) in vcpus.iter().enumerate() {
        BOARD.place(VcpuId::numbered(id), vcpu.pcpu.into());
        REQUESTED[id].store(vcpu.pcpu as u8, Ordering::Relaxed);
    }
    requests::set_policies(system);
    #[cfg(feature = "checked")]
    Vcpus::of(system).tell_notes(system);
    route_interrupts(system);
    console::write_line!(
        env!("CARGO_PKG_VERSION"),
        " on ",
        system.board.pcpu_count as usize,
        " pCPUs, ",
        system.header.vm_count as usize,
        " VMs",
    );
    let mpidrs = &system.board.pcpu_mpidr[..system.board.pcpu_count as usize];
    for (core, &mpidr) in mpidrs.iter().enumerate().skip(1) {
        if firmware::start_core(mpidr, core) != Started::Yes {
            console::write_line!("pCPU ", core, " does not start");
        }
    }
}

/// Says which part of the image is not what was packed, and stops the machine.
fn damaged(system: &System, part: &Part) -> ! {
    console::refuse(format_args!("{}", system.damaged(part)))
}

/// Says what is wrong with the system and stops the machine.
fn refuse(what: &str) -> ! {
    console::refuse(format_args!("{}", console::Text::new(what)))
}

/// Routes each device's interrupt to its core, where it is handed on.
fn route_interrupts(system: &System) {
    let separate = system.header.flags & flags::PRIORITY_SEPARATION != 0;
    let gicd = system.board.gicd_pa;
    gic::reset_distributor(gicd);
    for spi in &system.spis[..system.header.spi_count as usize] {
        let (vm, core) = (usize::from(spi.vm), usize::from(spi.pcpu));
        let table = system.vm(vm);
        let first = system.vcpu(table.vcpu_first.into());
        let priority = if !separate || !table.is(vm_flags::REALTIME) {
            gic::PRIORITY_ORDINARY
        } else if first.is_lower() {
            gic::PRIORITY_LOWER_REALTIME
        } else {
            gic::PRIORITY_REALTIME
        };
        VMS[vm].gic.link(spi.virtual_, spi.physical);
        let edge = spi.trigger == abi::system::EDGE;
        gic::route(gicd, spi.physical, system.board.pcpu_mpidr[core], priority, edge);
    }
    let affinity = system.board.pcpu_mpidr[Vcpus::of(system).topology().uart_core()];
    gic::route(gicd, system.board.uart_intid, affinity, gic::PRIORITY_ORDINARY, false);
}

/// Sets up what is this core's and runs it.
fn run(index: usize, system: &'static System) -> ! {
    // One for all: each takes an eighth of the stack.
    let vcpus = Vcpus::of(system);
    let topology = vcpus.topology();
    alike::check(&topology, index).unwrap_or_else(|what| refuse(what));
    let Some(core) = set_up(index, system, &topology) else {
        bug!("a core begins that has begun");
        cpu::halt()
    };
    core.configure();
    adopt(core, &topology);
    core.log_has_output();
    go(core)
}

/// Puts a core together. It is not inlined: what it needs of the stack is free again when guests
/// run.
#[inline(never)]
#[expect(clippy::mut_from_ref, reason = "the core is from `PCPUS`, not from the tables")]
fn set_up(
    index: usize,
    system: &'static System,
    topology: &Topology<'_>,
) -> Option<&'static mut Pcpu> {
    // SAFETY: this core asks for its own part, once.
    let status = unsafe { status::pcpu(system, index) };
    // SAFETY: as above.
    let trace = unsafe { Trace::of(system, index) };
    let own = console::Console::of(index, system, topology);
    let console = own.and_then(|own| CONSOLE.fill(0, own));
    PCPUS.fill(index, Pcpu::new(index, system, topology, status, trace, console))
}

/// Finds a guest to run, and runs it.
fn go(core: &'static mut Pcpu) -> ! {
    // No guest has caused what pends now.
    core.end_errors(None);
    core.read_mail(gic::Doorbell::Ordinary);
    core.schedule();
    let stack = boot::stack_top(core.index());
    // SAFETY: the word at `stack` is this core's own; the exception vectors
    // find the core there and are the only ones to use it from now on.
    unsafe {
        stack.write((&raw mut *core) as u64);
        vectors::enter_guest(stack)
    }
}

/// Takes possession of this core's vCPUs, and starts the VMs that it coordinates.
#[inline(never)]
fn adopt(core: &mut Pcpu, topology: &Topology<'_>) {
    let system = core.system();
    if let Err(id) = core.introduce() {
        console::write_line!("vCPU ", id.number(), " was refused");
        bug!("the scheduler refuses a vCPU");
    }
    for id in topology.based_at(core.index()) {
        let config = VcpuConfig::new(id, system, topology);
        let (vm, index) = (config.vm(), config.index());
        // SAFETY: this core owns the vCPU and asks once.
        let (status, stolen, holds) = unsafe {
            (
                status::vcpu(system, id.number()),
                status::stolen_ns(system, vm, index),
                status::holds(system, vm, index),
            )
        };
        let vcpu = Vcpu::new(config, Account::new(status, stolen), Holds::new(holds));
        let Some(vcpu) = VCPUS.fill(id.number(), vcpu) else {
            bug!("a vCPU is set up twice");
            continue;
        };
        core.own(vcpu);
        if index == 0 {
            // SAFETY: this core coordinates the VM and asks once.
            core.coordinate(vm, unsafe { status::vm(system, vm) });
        }
    }
    core.begin_to_look();
    core.begin_to_watch();
}
