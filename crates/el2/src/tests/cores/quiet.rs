//! What must hold when nothing happens any more: guests end what they began and
//! sleep, and nothing is left undone.

use super::drive::World;
use super::guests;
use crate::arch::boot;
use crate::arch::context::General;
use crate::arch::fake::machine;
use crate::pcpu::Pcpu;
use crate::shared::power::Affinity;
use crate::shared::{BOARD, POWER, REQUESTED, VMS};
use abi::MAX_PCPUS;
use abi::system::{System, server, vm_flags};
use core::sync::atomic::Ordering;
use sched::policy::MigrationPolicy;
use sched::{Instant, Member, Message, VcpuId};
use vgic::frames::v3;

/// More steps than any of these machines needs until its guests sleep. Few need more than [`RESTLESS`].
const ENOUGH: u32 = 100_000;
/// Steps for which one that never rests is looked at.
const RESTLESS: u32 = 4_000;

/// What must have been taken out of every mailbox.
const MESSAGES: [Message; 9] = [
    Message::Vcpus,
    Message::HaltVms,
    Message::HaltedVms,
    Message::Arrivals,
    Message::Recalls,
    Message::Coscheduled,
    Message::IdleCores,
    Message::AwayCores,
    Message::Sections,
];

/// Policies under which a vCPU is back at its base as soon as that is free.
const COME_BACK: [MigrationPolicy; 5] = [
    MigrationPolicy::OnDemand,
    MigrationPolicy::Adaptive,
    MigrationPolicy::OnDemandFixed,
    MigrationPolicy::RtVcpu,
    MigrationPolicy::Balance,
];

/// Lets the machine come to rest and looks at what is there then. Returns true if it did: it has to, unless something is to
/// be done again and again, or it was switched off.
pub fn check(world: &mut World) -> bool {
    let is_restless = is_restless(&world.tables);
    for _ in 0..if is_restless { RESTLESS } else { ENOUGH } {
        if machine::with(|machine| machine.off) {
            return false;
        }
        if !world.go_on() {
            nothing_is_left(world);
            return true;
        }
    }
    assert!(is_restless, "{}: the guests sleep, and EL2 does not", world.system.name);
    false
}

/// Cores that may be powered down look at their load for ever, a watchdog is reset for ever, and budgets of periodic servers are
/// idled away and come again.
fn is_restless(system: &System) -> bool {
    let cores = 0..system.board.pcpu_count as usize;
    let vcpus = &system.vcpus[..system.header.vcpu_count as usize];
    system.header.watchdog_ns != 0
        || cores.zip(system.board.consolidation_target).any(|(core, to)| core != usize::from(to))
        || vcpus.iter().any(|vcpu| vcpu.server == server::PERIODIC)
}

fn nothing_is_left(world: &World) {
    for core in 0..MAX_PCPUS {
        for message in MESSAGES {
            let unread = BOARD.mailbox(core).take(message).count();
            // A core that is powered down reads its mail when it is back.
            assert!(unread == 0 || BOARD.is_away(core), "core {core} has not read {message:?}");
        }
    }
    let now = machine::with(|machine| Instant(machine.now));
    let count = world.tables.board.pcpu_count as usize;
    let cores: Vec<_> = (0..count).map(state_of).collect();
    cores.iter().flatten().for_each(|core| core.check_rest(now));
    for id in (0..world.tables.header.vcpu_count as usize).map(VcpuId::numbered) {
        for (index, core) in cores.iter().enumerate() {
            let Some(core) = core else { continue };
            let (owns, is_owner) = (core.owns(id), BOARD.find(id) == index);
            assert_eq!(owns, is_owner, "core {index} and vCPU {}, which it owns or not", id.0);
            let has = owns && world.tables.vcpus[id.number()].server != server::NONE;
            assert_eq!(core.has_account(id), has, "core {index} and the account of vCPU {}", id.0);
        }
        let power = &POWER[id.number()];
        let waits_for_its_end = power.affinity() == Affinity::On && !power.hears();
        assert!(!waits_for_its_end, "vCPU {} was to be stopped, and never is", id.0);
        let is_asked_for = power.affinity() == Affinity::OnPending;
        let is_away = BOARD.is_away(BOARD.find(id));
        assert!(!is_asked_for || is_away, "vCPU {} was to be switched on, and never is", id.0);
        is_where_it_may_be(world, id);
    }
    no_interrupt_is_stuck(world, &cores);
    for (vm, shared) in VMS.iter().enumerate() {
        assert!(!shared.erred.load(Ordering::Relaxed), "VM {vm} has caused an error, and runs on");
    }
    let errors = machine::with(|machine| {
        machine.cores.iter().filter(|core| core.on && core.error.is_some()).count()
    });
    assert_eq!(errors, 0, "system errors, which would end each WFI");
}

/// Each device's interrupt that is active is one that its guest has still to take or to end, so
/// that it can come again. A guest that sleeps for ever may have taken it before.
fn no_interrupt_is_stuck(world: &World, cores: &[Option<&Pcpu>]) {
    /// GICD_ISPENDR.
    const PENDING: u64 = 0x200;
    for spi in &world.tables.spis[..world.tables.header.spi_count as usize] {
        let (word, bit) = (spi.physical as usize / 32, spi.physical % 32);
        let active = machine::with(|machine| machine.distributor.active[word] >> bit & 1 == 1);
        let routed = machine::with(|machine| machine.distributor.route[spi.physical as usize]);
        let stays = world.tables.vms[usize::from(spi.vm)].is(vm_flags::INTERRUPTS_STAY);
        let first_core = world.tables.board.pcpu_mpidr[usize::from(spi.pcpu)];
        assert!(!stays || routed == first_core, "interrupt {} does not stay", spi.physical);
        let (word, bit) = (u64::from(spi.virtual_ / 32), spi.virtual_ % 32);
        let gic = &VMS[usize::from(spi.vm)].gic;
        let (pending, _) = v3::read_distributor_state(gic, 0, PENDING + 4 * word, 4);
        let first = usize::from(world.tables.vms[usize::from(spi.vm)].vcpu_first);
        let count = usize::from(world.tables.vms[usize::from(spi.vm)].vcpu_count);
        let is_taken = |general: &General| guests::has_taken(general, spi.virtual_);
        let taken = (first..first + count)
            .map(VcpuId::numbered)
            .any(|id| cores.iter().flatten().any(|core| core.general(id).is_some_and(is_taken)));
        let held = pending >> bit & 1 == 1 || taken;
        assert!(!active || held, "interrupt {} of VM {} is active for ever", spi.physical, spi.vm);
    }
}

/// Returns the state of a core that has run a guest.
pub fn state_of(core: usize) -> Option<&'static Pcpu> {
    // SAFETY: `start` left the address of the core's state there, which is static; no core
    // executes.
    unsafe { (boot::stack_top(core).read() as *const Pcpu).as_ref() }
}

fn is_where_it_may_be(world: &World, id: VcpuId) {
    let vcpu = &world.tables.vcpus[id.number()];
    let (core, base) = (BOARD.find(id), usize::from(vcpu.pcpu));
    let target = world.tables.board.consolidation_target[base];
    let may = vcpu.affinity | 1 << target;
    assert!(may >> core & 1 == 1, "vCPU {} is on core {core}, where it may not be", id.0);
    let policy =
        MigrationPolicy::from_number(world.tables.vms[usize::from(vcpu.vm)].migration_policy);
    let goes = policy == Some(MigrationPolicy::OnRequest);
    if goes && POWER[id.number()].affinity() == Affinity::On {
        let asked = usize::from(REQUESTED[id.number()].load(Ordering::Relaxed));
        assert_eq!(core, asked, "where vCPU {} is, and where it was asked to be", id.0);
    }
    let comes_back = policy.is_some_and(|policy| COME_BACK.contains(&policy));
    if comes_back && core != base {
        assert!(BOARD.is_away(base), "vCPU {} is on core {core}, and its base is free", id.0);
    }
}
