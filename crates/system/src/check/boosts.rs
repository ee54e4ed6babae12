//! vCPUs that may be boosted.

use super::time_in;
use crate::code::Code;
use crate::draft::boost::EXAMPLE;
use crate::draft::{At, DraftBoost, DraftVcpu, DraftVm, flag};
use crate::model::{Boost, Vm};
use crate::problem::Problems;
use crate::topology::{Id, ids, placed};
use abi::system::{MAX_BOOST_PERIOD_NS, MAX_BOOSTS, MIN_BUDGET_NS};
use abi::{MAX_PCPUS, MAX_VCPUS};
use sched::policy::MigrationPolicy;

/// The period of a boost of which the description says none.
const DEFAULT_PERIOD_NS: u64 = 10_000_000;
/// The shortest time for which an interrupt may boost: less would end before a guest has taken it.
const MIN_WINDOW_NS: u64 = 10_000;

pub(super) fn check(vms: &[DraftVm], problems: &mut Problems) {
    for vm in vms {
        for vcpu in &vm.vcpus {
            let Some(boost) = &vcpu.boost else { continue };
            if let Some((why, hint)) = fault(vm, vcpu, boost) {
                let message = format!("a vCPU of {} that may be boosted {why}", vm.title());
                problems.add(Code::Boost, boost.span.clone(), message).hint(hint);
            }
            times(boost, problems);
        }
    }
    room(vms, problems);
}

/// Returns what such a vCPU is or has that it cannot, and how to mend that.
fn fault(
    vm: &DraftVm,
    vcpu: &DraftVcpu,
    boost: &DraftBoost,
) -> Option<(&'static str, &'static str)> {
    let priority = |at: &Option<At<u64>>| at.as_ref().map(|at| *at.get_ref());
    let rises = priority(&vcpu.priority)
        .zip(priority(&boost.priority))
        .is_none_or(|(own, boosted)| own < boosted);
    if vm.is_realtime() {
        return Some(("is of a real-time VM", "leave `boost` out, or `realtime`"));
    }
    if !rises {
        return Some(("would not rise by that", "give `boost` a priority above the vCPU's"));
    }
    if vcpu.server.is_some() {
        return Some(("has a budget", "leave `server` out, or `boost`"));
    }
    if vcpu.unmarked.is_some() {
        return Some(("may mark itself", "leave `rt_priority` out, or `boost`"));
    }
    let moves = vm.migration_policy() != MigrationPolicy::None
        || !vm.may_switch_to.is_empty()
        || flag(&vm.consolidate, false);
    moves.then_some((
        "may leave its pCPU",
        "leave `migration_policy`, `may_switch_to` and `consolidate` of its VM out",
    ))
}

fn times(boost: &DraftBoost, problems: &mut Problems) {
    let period = boost.period.as_ref().map_or(DEFAULT_PERIOD_NS, |at| *at.get_ref());
    time_in(
        MIN_BUDGET_NS..=MAX_BOOST_PERIOD_NS.into(),
        boost.period.as_ref(),
        "a boost's period",
        Code::Boost,
        problems,
    );
    time_in(
        MIN_BUDGET_NS..=period,
        boost.budget.as_ref(),
        "a boost's budget",
        Code::Boost,
        problems,
    );
    time_in(
        MIN_WINDOW_NS..=period,
        boost.window.as_ref(),
        "a boost's window",
        Code::Boost,
        problems,
    );
}

/// A pCPU has room for so many, and the scheduler for so many vCPUs besides.
fn room(vms: &[DraftVm], problems: &mut Problems) {
    let all = || vms.iter().flat_map(|vm| &vm.vcpus);
    let boosted = || all().filter_map(|vcpu| Some((vcpu.boost.as_ref()?, vcpu)));
    for pcpu in 0..MAX_PCPUS as u64 {
        let here = |(_, vcpu): &(&DraftBoost, &DraftVcpu)| {
            vcpu.pcpu.as_ref().is_some_and(|at| *at.get_ref() == pcpu)
        };
        if let Some((boost, _)) = boosted().filter(here).nth(MAX_BOOSTS) {
            let message = format!("more than {MAX_BOOSTS} vCPUs of pCPU {pcpu} may be boosted");
            problems
                .add(Code::Boost, boost.span.clone(), message)
                .hint(format!("leave `boost` out, as in all but {MAX_BOOSTS}"));
        }
    }
    let most = MAX_VCPUS - MAX_BOOSTS;
    if let Some((boost, _)) = boosted().next().filter(|_| all().count() > most) {
        let message = format!("a system in which vCPUs may be boosted has at most {most} vCPUs");
        problems.add(Code::Boost, boost.span.clone(), message).hint("leave `boost` out");
    }
}

/// Refuses one whose boosts would delay a real-time vCPU or one with a budget: no bound has room for
/// them. Every vCPU's affinity must be known.
pub(super) fn among_others(drafts: &[DraftVm], vms: &[Vm], problems: &mut Problems) {
    for id in ids(vms) {
        let me = vms[id.0].vcpus[id.1];
        let (Some(boost), Some(draft)) = (me.boost, &drafts[id.0].vcpus[id.1].boost) else {
            continue;
        };
        let delayed = |other: &Id| {
            let its = placed(vms, *other);
            let here = *other != id && its.places().has(me.pcpu);
            let is_promised = its.realtime || drafts[other.0].vcpus[other.1].server.is_some();
            here && is_promised && its.priority <= boost.priority
        };
        let Some(other) = ids(vms).find(delayed) else { continue };
        let message =
            format!("boosts of a vCPU of {} would delay one with a promise", vms[id.0].title());
        problems
            .add(Code::Boost, draft.span.clone(), message)
            .see(drafts[other.0].vcpus[other.1].priority_span(), "this one may be on its pCPU")
            .hint(format!("give `boost` a lower priority: {EXAMPLE}"));
    }
}

/// Returns the boosts of a vCPU, as EL2 has them.
pub(super) fn sound(draft: &DraftVcpu) -> Option<Boost> {
    let boost = draft.boost.as_ref()?;
    let nanoseconds = |at: &Option<At<u64>>| at.as_ref().map(|at| *at.get_ref());
    let period_ns = nanoseconds(&boost.period).unwrap_or(DEFAULT_PERIOD_NS);
    Some(Boost {
        priority: (*boost.priority.as_ref()?.get_ref()).try_into().ok()?,
        budget_ns: nanoseconds(&boost.budget).unwrap_or(period_ns).try_into().ok()?,
        period_ns: period_ns.try_into().ok()?,
        window_ns: nanoseconds(&boost.window).unwrap_or(0).try_into().ok()?,
    })
}
