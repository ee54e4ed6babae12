//! Where vCPUs go when others take their pCPUs.

use super::consolidation;
use crate::code::Code;
use crate::draft::{At, DraftVm};
use crate::model::Vm;
use crate::problem::Problems;
use abi::system::MAX_DELAY_LIMIT_NS;
use sched::policy::{self, Kind, Mode, Rank};

/// How long others wait at most for a VM that does not say: longer than Linux
/// stays in its kernel at a stretch, mostly.
const DEFAULT_DELAY_LIMIT_US: u64 = 1_000;

/// Whether a policy makes others wait.
fn delays(kind: Kind) -> bool {
    kind.policy().delays(Mode::Kernel)
}

pub(super) fn check(vms: &[DraftVm], problems: &mut Problems) {
    for vm in vms {
        for_whom(vm, problems);
        if let Some(limit) = &vm.delay_limit_us {
            delay_limit(vm, limit, problems);
        }
    }
}

/// Some policies are for real-time VMs, the others are not.
fn for_whom(vm: &DraftVm, problems: &mut Problems) {
    let (kind, realtime) = (vm.policy(), vm.is_realtime());
    let Some(at) = &vm.migration else { return };
    let for_realtime = kind.policy().needs().for_realtime;
    if for_realtime && !realtime {
        let message =
            format!("{} is no real-time VM, and `{}` is for those", vm.title(), kind.name());
        problems
            .add(Code::MigrationPolicy, at.span(), message)
            .hint("give it to the VM that should make way, and rank this one's vCPU above that");
    } else if realtime && !for_realtime && kind != Kind::None {
        let message = format!("a real-time VM cannot have `{}`", kind.name());
        problems
            .add(Code::MigrationPolicy, at.span(), message)
            .hint("give it to the VM that shares its pCPU");
    }
}

fn delay_limit(vm: &DraftVm, limit: &At<u64>, problems: &mut Problems) {
    let most = MAX_DELAY_LIMIT_NS / 1000;
    if !delays(vm.policy()) {
        let message = format!("with `{}` nobody waits for this VM", vm.policy().name());
        problems
            .add(Code::MigrationPolicy, limit.span(), message)
            .hint("leave it out, or say `migration = \"safe-unsafe\"`");
    } else if !(1..=most).contains(limit.get_ref()) {
        let message = format!("a limit of {} us is out of range", limit.get_ref());
        problems.add(Code::MigrationPolicy, limit.span(), message).hint(format!("1 to {most} us"));
    }
}

/// What a VM says, or the default; 0 when nobody waits for it.
pub(super) fn delay_limit_us(vm: &DraftVm) -> u64 {
    let said = vm.delay_limit_us.as_ref().map_or(DEFAULT_DELAY_LIMIT_US, |at| *at.get_ref());
    if delays(vm.policy()) { said } else { 0 }
}

/// Which vCPUs stand on a pCPU, by VM and index in it.
type Id = (usize, usize);

fn all(vms: &[Vm]) -> impl Iterator<Item = Id> + '_ {
    vms.iter().enumerate().flat_map(|(vm, owner)| (0..owner.vcpus.len()).map(move |i| (vm, i)))
}

fn rank(vms: &[Vm], (vm, index): Id) -> Rank {
    Rank { vm, priority: vms[vm].vcpus[index].priority, realtime: vms[vm].realtime }
}

/// Who displaces this vCPU.
fn winners(vms: &[Vm], me: Id) -> Vec<Id> {
    let base = |(vm, index): Id| vms[vm].vcpus[index].pcpu;
    let displaces = |other: &Id| {
        base(*other) == base(me)
            && policy::displaces(rank(vms, *other), rank(vms, me), vms[me.0].policy)
    };
    all(vms).filter(displaces).collect()
}

/// Gives every vCPU that may have to leave its [`havens`], and of these a refuge:
/// one of its [`tour`] if possible, or with another vCPU of its VM, and with the fewest
/// others. Says which vCPUs have to be reached while a real-time one runs.
pub(super) fn assign(vms: &mut [Vm], pcpus: usize, problems: &mut Problems) {
    // vCPUs that are on a pCPU, or will be when all had to leave theirs.
    let mut load = vec![0_usize; pcpus];
    all(vms).for_each(|(vm, i)| load[vms[vm].vcpus[i].pcpu] += 1);
    let displaced: Vec<(Id, Vec<Id>)> =
        all(vms).map(|id| (id, winners(vms, id))).filter(|(_, by)| !by.is_empty()).collect();
    let mut moves: Vec<(Id, usize)> = Vec::new();
    let mut homeless = Vec::new();
    for (id, by) in &displaced {
        let needs = vms[id.0].policy.policy().needs();
        let mut havens = havens(vms, *id, pcpus);
        if needs.for_realtime {
            // Another real-time one that has come there would make it wait.
            havens.retain(|pcpu| !moves.iter().any(|(id, to)| vms[id.0].realtime && to == pcpu));
        }
        if havens.is_empty() && (needs.refuge || needs.wanders) {
            homeless.push(*id);
        }
        // Who has nowhere to go would be told in vain, at the cost of who runs there.
        vms[id.0].vcpus[id.1].urgent |= needs.notices_interrupts && !havens.is_empty();
        let tour = tour(vms, *id, &havens);
        if needs.refuge
            && let Some(refuge) = refuge(vms, *id, &havens, tour, &load)
        {
            load[refuge] += 1;
            moves.push((*id, refuge));
        }
        if needs.refuge && needs.wanders {
            vms[id.0].vcpus[id.1].tour = tour;
        }
        if needs.wanders {
            vms[id.0].vcpus[id.1].havens = set(havens);
        }
        if needs.for_realtime {
            // Who ranks above a real-time vCPU must be reached beside it.
            by.iter().for_each(|&(vm, index)| vms[vm].vcpus[index].urgent = true);
        }
    }
    for ((vm, index), refuge) in moves {
        let lives_there = vms[vm].policy.policy().needs().lives_at_refuge;
        let vcpu = &mut vms[vm].vcpus[index];
        vcpu.refuge = refuge;
        if lives_there {
            vcpu.pcpu = refuge;
        } else {
            vcpu.havens |= 1 << refuge;
        }
    }
    for vm in vms.iter_mut().filter(|vm| vm.realtime) {
        vm.vcpus.iter_mut().for_each(|vcpu| vcpu.urgent = true);
    }
    let displaced: Vec<Id> = displaced.into_iter().map(|(id, _)| id).collect();
    for i in (0..vms.len()).filter(|&i| vms[i].policy != Kind::None) {
        unused(i, vms, &displaced, &homeless, problems);
    }
}

/// The pCPUs, besides its own, where nobody would displace it, and where no
/// real-time vCPU would wait for it; rather those that cannot be powered down.
fn havens(vms: &[Vm], me: Id, pcpus: usize) -> Vec<usize> {
    let base = vms[me.0].vcpus[me.1].pcpu;
    let priority = |(vm, index): Id| vms[vm].vcpus[index].priority;
    let would_stay = |&pcpu: &usize| {
        pcpu != base
            && all(vms).filter(|&(vm, i)| vms[vm].vcpus[i].pcpu == pcpu).all(|other| {
                let displaces =
                    policy::displaces(rank(vms, other), rank(vms, me), vms[me.0].policy);
                // With an equal one it would take turns.
                let equal =
                    vms[me.0].realtime && other.0 != me.0 && priority(other) == priority(me);
                // A real-time one of lower rank would wait for it.
                !displaces && !vms[other.0].realtime && !equal
            })
    };
    let all: Vec<usize> = (0..pcpus).filter(would_stay).collect();
    // One that could be powered down could not any more.
    let stay_on: Vec<usize> =
        all.iter().copied().filter(|&pcpu| !consolidation::may_sleep(vms, pcpu)).collect();
    if stay_on.is_empty() { all } else { stay_on }
}

/// One of its tour rather than one with another vCPU of its VM, behind which it might wait
/// for ever.
fn refuge(vms: &[Vm], me: Id, havens: &[usize], tour: u16, load: &[usize]) -> Option<usize> {
    let own = |pcpu: usize| vms[me.0].vcpus.iter().any(|other| other.pcpu == pcpu);
    let toured = |pcpu: usize| tour >> pcpu & 1 == 1;
    havens.iter().copied().min_by_key(|&pcpu| (!toured(pcpu), !own(pcpu), load[pcpu]))
}

/// The pCPUs of its VM's other vCPUs of its priority, if nobody there ranks above. On
/// others it would take from somebody else's, or have nothing.
fn tour(vms: &[Vm], me: Id, havens: &[usize]) -> u16 {
    let mine = rank(vms, me).priority;
    let bears = |pcpu: usize| {
        let there: Vec<Rank> = all(vms)
            .filter(|&(vm, i)| vms[vm].vcpus[i].pcpu == pcpu)
            .map(|other| rank(vms, other))
            .collect();
        there.iter().any(|other| other.vm == me.0 && other.priority == mine)
            && there.iter().all(|other| other.priority <= mine)
    };
    set(havens.iter().copied().filter(|&pcpu| bears(pcpu)))
}

/// As the tables have it: a bit for each pCPU.
fn set(pcpus: impl IntoIterator<Item = usize>) -> u16 {
    pcpus.into_iter().fold(0, |set, pcpu| set | 1 << pcpu)
}

/// Real-time vCPUs that would make way for another one and have nowhere to go:
/// they would wait as long as that one likes.
pub(super) fn stranded(drafts: &[DraftVm], vms: &[Vm], problems: &mut Problems) {
    let makes_way = |(vm, _): &Id| vms[*vm].policy.policy().needs().for_realtime;
    for id in all(vms).filter(makes_way) {
        let vcpu = vms[id.0].vcpus[id.1];
        let highest = winners(vms, id).into_iter().max_by_key(|&winner| rank(vms, winner).priority);
        let Some(winner) = highest.filter(|_| vcpu.refuge == vcpu.pcpu) else { continue };
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
                 that ranks as high, nor another that makes way",
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
        ("no vCPU of another VM ranks above this one's", "leave `migration` out")
    } else if !concerned && beside_realtime(i, vms) {
        (
            "no real-time vCPU ranks above this VM's, so none takes a pCPU from them",
            "leave `migration` out, or rank them below",
        )
    } else if !concerned {
        ("no vCPU of this VM shares a pCPU with a real-time one", "leave `migration` out")
    } else if !vm.realtime && mine.all(|id| homeless.contains(id)) {
        // Of a real-time one [`stranded`] tells.
        ("every pCPU has a real-time vCPU: there is nowhere to go", "give it one without")
    } else {
        return;
    };
    problems.add(Code::MigrationUnused, vm.spans.migration.clone(), message).hint(hint);
}

/// Whether a vCPU of this VM shares a pCPU with a real-time one.
fn beside_realtime(i: usize, vms: &[Vm]) -> bool {
    let realtime = vms.iter().enumerate().filter(|(other, vm)| *other != i && vm.realtime);
    let mut theirs = realtime.flat_map(|(_, vm)| &vm.vcpus);
    theirs.any(|other| vms[i].vcpus.iter().any(|mine| mine.pcpu == other.pcpu))
}
