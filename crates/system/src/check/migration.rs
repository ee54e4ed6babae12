//! Where vCPUs go when others take their pCPUs.

use super::consolidation;
use super::time_in;
use crate::code::Code;
use crate::draft::{At, DraftVm, flag};
use crate::model::Vm;
use crate::problem::Problems;
use crate::topology::{Id, ids as all, placed};
use abi::system::{MAX_DELAY_LIMIT_NS, MIN_DELAY_LIMIT_NS, NO_DELAY_LIMIT};
use sched::policy::{MigrationPolicy, Request};
use sched::topology::Placed;

/// How long others wait at most for a VM that does not say: longer than Linux
/// stays in its kernel at a stretch, mostly.
const DEFAULT_DELAY_LIMIT_NS: u64 = 1_000_000;
/// Where Linux's count may lie behind the beginning of `thread_info`, bytes, and where it does by default
/// (arch/arm64/include/asm/thread_info.h).
const COUNTS_AT: [u64; 2] = [8, 16];

pub(super) fn check(vms: &[DraftVm], problems: &mut Problems) {
    for vm in vms {
        check_realtime(vm, problems);
        if let Some(limit) = &vm.delay_limit {
            delay_limit(vm, limit, problems);
        }
        if let Some(at) = &vm.preempt_count_at {
            count_at(vm, at, problems);
        }
        if let Some(at) = vm.yields.as_ref().filter(|at| *at.get_ref() && vm.is_realtime()) {
            let message = format!("{} is a real-time VM: none of its vCPUs yields", vm.title());
            problems
                .add(Code::MigrationPolicy, at.span(), message)
                .hint("leave `yield` out: it is for VMs whose vCPUs spin for each other");
        }
    }
}

/// Some policies are for real-time VMs, the others are not.
fn check_realtime(vm: &DraftVm, problems: &mut Problems) {
    let (kind, realtime) = (vm.migration_policy(), vm.is_realtime());
    let Some(at) = &vm.migration_policy else { return };
    let needs = kind.needs();
    let for_realtime = needs.for_realtime;
    if needs.moves_on_request {
        // For both: the places are looked at one by one.
    } else if for_realtime && !realtime {
        let message =
            format!("{} is no real-time VM, and `{}` is for those", vm.title(), kind.name());
        problems
            .add(Code::MigrationPolicy, at.span(), message)
            .hint("give it to the VM that should make way, and this one's vCPU a higher priority");
    } else if realtime && !for_realtime && kind != MigrationPolicy::None {
        let message = format!("a real-time VM cannot have `{}`", kind.name());
        problems
            .add(Code::MigrationPolicy, at.span(), message)
            .hint("give it to the VM that shares its pCPU");
    }
}

fn delay_limit(vm: &DraftVm, limit: &At<u64>, problems: &mut Problems) {
    let allowed = MIN_DELAY_LIMIT_NS..=MAX_DELAY_LIMIT_NS;
    if !vm.migration_policy().delays() {
        let message = format!("with `{}` no vCPU waits for this VM", vm.migration_policy().name());
        problems
            .add(Code::MigrationPolicy, limit.span(), message)
            .hint("leave it out, or say `migration_policy = \"safe-unsafe\"`");
    } else if *limit.get_ref() != NO_DELAY_LIMIT {
        time_in(allowed, Some(limit), "a limit", Code::MigrationPolicy, problems);
    }
}

/// Returns the limit that a VM states, or the default; 0 if its policy makes no vCPU
/// wait.
pub(super) fn delay_limit_ns(vm: &DraftVm) -> u64 {
    // Where masking delays others, nothing limits it.
    let default = match vm.migration_policy() {
        MigrationPolicy::Masked => NO_DELAY_LIMIT,
        _ => DEFAULT_DELAY_LIMIT_NS,
    };
    let said = vm.delay_limit.as_ref().map_or(default, |at| *at.get_ref());
    if vm.migration_policy().delays() { said } else { 0 }
}

fn count_at(vm: &DraftVm, at: &At<u64>, problems: &mut Problems) {
    let policy = vm.migration_policy();
    if policy.policy().request() != Request::Peek {
        let message = format!("with `{}` no count of this VM's kernel is read", policy.name());
        problems
            .add(Code::MigrationPolicy, at.span(), message)
            .hint("leave it out, or say `migration_policy = \"delayed-peek\"`");
    } else if !COUNTS_AT.contains(at.get_ref()) {
        problems
            .add(Code::MigrationPolicy, at.span(), "the count is nowhere else than at 8 or 16")
            .hint("16 if the kernel has CONFIG_ARM64_SW_TTBR0_PAN, else 8");
    }
}

/// Returns how far behind the beginning of a thread's `thread_info` its count lies, bytes.
pub(super) fn preempt_count_at(vm: &DraftVm) -> u64 {
    vm.preempt_count_at.as_ref().map_or(COUNTS_AT[0], |at| *at.get_ref())
}

/// Returns true if vCPUs of a VM may give up their turns: it says so, or its policy has them give
/// way when they are waited for.
pub(super) fn yields(vm: &DraftVm) -> bool {
    let by_page = vm.migration_policy().policy().request() == Request::Page;
    by_page || flag(&vm.yields, false)
}

/// Warns of real-time VMs that may wait for another one without end.
pub(super) fn unlimited(drafts: &[DraftVm], vms: &[Vm], problems: &mut Problems) {
    for (i, vm) in vms.iter().enumerate().filter(|(_, vm)| vm.delay_limit_ns == NO_DELAY_LIMIT) {
        let mine = all(vms).filter(|id| id.0 == i);
        let Some(winner) = mine.flat_map(|id| winners(vms, id)).next() else { continue };
        let stated = drafts[i].delay_limit.as_ref().map(At::span);
        let at = stated.unwrap_or_else(|| vm.spans.migration_policy.clone());
        let waits = vms[winner.0].title();
        let message = format!("{waits} waits for {} as long as its guest likes", vm.title());
        problems
            .add(Code::DelayUnlimited, at, message)
            .see(drafts[winner.0].vcpus[winner.1].priority_span(), "this vCPU")
            .hint("it is what the paper has; for any other use, state a limit");
    }
}

/// Returns the vCPUs that displace this one where it is based: before others have an affinity, those
/// that are based there, too, or may be asked to come.
fn winners(vms: &[Vm], me: Id) -> Vec<Id> {
    let me = placed(vms, me);
    let displaces = |other: &Id| {
        let other = placed(vms, *other);
        other.places().has(me.base) && other.displaces(&me)
    };
    all(vms).filter(displaces).collect()
}

/// Returns true if another real-time vCPU is above a real-time one on its pCPU. If any of them might go
/// to another pCPU, none is: there, what keeps messages for this one pending might not be above it.
fn is_lower(vms: &[Vm], (vm, index): Id) -> bool {
    let me = &vms[vm].vcpus[index];
    let stays = |vm: &&Vm| !vm.consolidate && vm.migration_policy == MigrationPolicy::None;
    let realtime = || vms.iter().filter(|vm| vm.realtime);
    let mut others = realtime().flat_map(|vm| &vm.vcpus);
    vms[vm].realtime
        && realtime().all(|vm| stays(&vm))
        && others.any(|vcpu| vcpu.pcpu == me.pcpu && vcpu.priority > me.priority)
}

/// Gives every vCPU that may have to leave an affinity ([`elsewhere`]), and of that a
/// fallback: one of its [`rotation`] if possible, or with another vCPU of its VM, and with
/// the fewest others. Says which vCPUs have to be reached while a real-time one runs.
pub(super) fn assign(vms: &mut [Vm], pcpus: usize, problems: &mut Problems) {
    // vCPUs that are on a pCPU, or will be when all had to leave theirs.
    let mut load = vec![0_usize; pcpus];
    all(vms).for_each(|(vm, i)| load[vms[vm].vcpus[i].pcpu] += 1);
    let displaced: Vec<(Id, Vec<Id>)> =
        all(vms).map(|id| (id, winners(vms, id))).filter(|(_, by)| !by.is_empty()).collect();
    let mut moves: Vec<(Id, usize)> = Vec::new();
    let mut homeless = Vec::new();
    for (id, by) in &displaced {
        let needs = placed(vms, *id).needs();
        let mut elsewhere = elsewhere(vms, *id, pcpus);
        if needs.for_realtime {
            // Another real-time vCPU that has come there would make it wait.
            elsewhere.retain(|pcpu| !moves.iter().any(|(id, to)| vms[id.0].realtime && to == pcpu));
        }
        if elsewhere.is_empty() && (needs.fallback || needs.wanders) {
            homeless.push(*id);
        }
        // A vCPU that has nowhere to go would be told in vain, at the cost of the one that
        // runs there.
        vms[id.0].vcpus[id.1].urgent |= needs.notices_interrupts && !elsewhere.is_empty();
        let rotation = rotation(vms, *id, &elsewhere);
        if needs.fallback
            && let Some(fallback) = fallback(vms, *id, &elsewhere, rotation, &load)
        {
            load[fallback] += 1;
            moves.push((*id, fallback));
        }
        if needs.fallback && needs.wanders {
            vms[id.0].vcpus[id.1].rotation = rotation;
        }
        if needs.wanders {
            vms[id.0].vcpus[id.1].affinity |= set(elsewhere);
        }
        if needs.for_realtime {
            // A vCPU of higher priority than a real-time one must be reached beside it.
            by.iter().for_each(|&(vm, index)| vms[vm].vcpus[index].urgent = true);
        }
    }
    for ((vm, index), fallback) in moves {
        let lives_there = vms[vm].migration_policy.needs().lives_at_fallback;
        let vcpu = &mut vms[vm].vcpus[index];
        vcpu.fallback = fallback;
        if lives_there {
            vcpu.pcpu = fallback;
            vcpu.affinity = 1 << fallback;
        } else {
            vcpu.affinity |= 1 << fallback;
        }
    }
    for vm in vms.iter_mut().filter(|vm| vm.realtime) {
        vm.vcpus.iter_mut().for_each(|vcpu| vcpu.urgent = true);
    }
    let lower: Vec<Id> = all(vms).filter(|id| is_lower(vms, *id)).collect();
    lower.into_iter().for_each(|(vm, index)| vms[vm].vcpus[index].lower = true);
    let displaced: Vec<Id> = displaced.into_iter().map(|(id, _)| id).collect();
    let decides = |vm: &Vm| {
        vm.migration_policy != MigrationPolicy::None
            && vm.migration_policy != MigrationPolicy::OnRequest
    };
    for i in (0..vms.len()).filter(|&i| decides(&vms[i])) {
        unused(i, vms, &displaced, &homeless, problems);
    }
}

/// Returns the pCPUs, besides its own, where no vCPU would displace it, and where no
/// real-time vCPU would wait for it; rather those that cannot be powered down.
fn elsewhere(vms: &[Vm], me: Id, pcpus: usize) -> Vec<usize> {
    let base = vms[me.0].vcpus[me.1].pcpu;
    let priority = |(vm, index): Id| vms[vm].vcpus[index].priority;
    let would_stay = |&pcpu: &usize| {
        let settles = |id: &Id| placed(vms, *id).may_settle_at(pcpu);
        pcpu != base
            && all(vms).filter(settles).all(|other| {
                let displaces = placed(vms, other).displaces(&placed(vms, me));
                // With a vCPU of equal priority it would take turns.
                let equal =
                    vms[me.0].realtime && other.0 != me.0 && priority(other) == priority(me);
                // A real-time vCPU of lower priority would wait for it.
                !displaces && !vms[other.0].realtime && !equal
            })
    };
    let all: Vec<usize> = (0..pcpus).filter(would_stay).collect();
    // One that could be powered down could not any more.
    let stay_on: Vec<usize> =
        all.iter().copied().filter(|&pcpu| !consolidation::may_sleep(vms, pcpu, pcpus)).collect();
    if stay_on.is_empty() { all } else { stay_on }
}

/// Returns a pCPU of its rotation rather than one with another vCPU of its VM, behind which
/// it might wait for ever.
fn fallback(
    vms: &[Vm],
    me: Id,
    elsewhere: &[usize],
    rotation: u16,
    load: &[usize],
) -> Option<usize> {
    let own = |pcpu: usize| vms[me.0].vcpus.iter().any(|other| other.pcpu == pcpu);
    let in_rotation = |pcpu: usize| rotation >> pcpu & 1 == 1;
    elsewhere.iter().copied().min_by_key(|&pcpu| (!in_rotation(pcpu), !own(pcpu), load[pcpu]))
}

/// Returns the pCPUs of its VM's other vCPUs of its priority, if no vCPU there has a higher
/// one. On others it would take time from another VM's vCPUs, or have none.
fn rotation(vms: &[Vm], me: Id, elsewhere: &[usize]) -> u16 {
    let mine = placed(vms, me).priority;
    let bears = |pcpu: usize| {
        let there: Vec<Placed> =
            all(vms).map(|other| placed(vms, other)).filter(|other| other.base == pcpu).collect();
        there.iter().any(|other| other.vm == me.0 && other.priority == mine)
            && there.iter().all(|other| other.priority <= mine)
    };
    set(elsewhere.iter().copied().filter(|&pcpu| bears(pcpu)))
}

/// As the tables have it: a bit for each pCPU.
pub(super) fn set(pcpus: impl IntoIterator<Item = usize>) -> u16 {
    pcpus.into_iter().fold(0, |set, pcpu| set | 1 << pcpu)
}

/// Real-time vCPUs that would make way for another one and have nowhere to go:
/// they would wait as long as that one likes.
pub(super) fn stranded(drafts: &[DraftVm], vms: &[Vm], problems: &mut Problems) {
    let makes_way = |(vm, _): &Id| vms[*vm].migration_policy.needs().for_realtime;
    for id in all(vms).filter(makes_way) {
        let vcpu = vms[id.0].vcpus[id.1];
        let highest =
            winners(vms, id).into_iter().max_by_key(|&winner| placed(vms, winner).priority);
        let Some(winner) = highest.filter(|_| vcpu.fallback == vcpu.pcpu) else { continue };
        let place = |(vm, index): Id| drafts[vm].vcpus[index].priority_span();
        let message = format!(
            "real-time {} cannot make way on pCPU {}: there is no pCPU for it to go to",
            vms[id.0].title(),
            vcpu.pcpu
        );
        problems
            .add(Code::RealtimePriority, place(id), message)
            .see(place(winner), "this one would delay it without bound")
            .hint(
                "give it more than that one, or let a pCPU have neither a real-time vCPU, nor one \
                 of such a priority, nor another that makes way",
            );
    }
}

/// A policy that has nothing to decide. `homeless`: those of the displaced that would
/// leave, and have nowhere to go.
fn unused(i: usize, vms: &[Vm], displaced: &[Id], homeless: &[Id], problems: &mut Problems) {
    let vm = &vms[i];
    let mut mine = displaced.iter().filter(|(owner, _)| *owner == i).peekable();
    let concerned = mine.peek().is_some();
    let (message, hint) = if !concerned && vm.realtime {
        (
            "no vCPU of another VM has a higher priority than this one's",
            "leave `migration_policy` out",
        )
    } else if !concerned && beside_realtime(i, vms) {
        (
            "no real-time vCPU has a higher priority than this VM's, so none takes a pCPU from them",
            "leave `migration_policy` out, or give them a lower priority",
        )
    } else if !concerned {
        ("no vCPU of this VM shares a pCPU with a real-time one", "leave `migration_policy` out")
    } else if !vm.realtime && mine.all(|id| homeless.contains(id)) {
        // Of a real-time one [`stranded`] tells.
        ("every pCPU has a real-time vCPU: there is nowhere to go", "give it one without")
    } else {
        return;
    };
    problems.add(Code::MigrationUnused, vm.spans.migration_policy.clone(), message).hint(hint);
}

/// Returns true if a vCPU of this VM shares a pCPU with a real-time one.
fn beside_realtime(i: usize, vms: &[Vm]) -> bool {
    let realtime = vms.iter().enumerate().filter(|(other, vm)| *other != i && vm.realtime);
    let mut theirs = realtime.flat_map(|(_, vm)| &vm.vcpus);
    theirs.any(|other| vms[i].vcpus.iter().any(|mine| mine.pcpu == other.pcpu))
}
