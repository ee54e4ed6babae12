//! Servers: can EL2 keep to them, and does nothing else on a core take what they promise?

use super::time_in;
use crate::board::Board;
use crate::code::Code;
use crate::draft::server::EXAMPLE;
use crate::draft::{At, Draft, DraftServer, DraftVcpu, DraftVm};
use crate::model::{Server, Vm, overheads};
use crate::problem::Problems;
use crate::time::text;
use crate::topology;
use abi::system::{MAX_PERIOD_NS, MIN_BUDGET_NS};
use analysis::bounds::{Bounds, Workload};
use analysis::model::System;
use analysis::overheads::DEFAULT_MARGIN_PERMILLE;
use sched::topology::Placed;

/// A vCPU whose pCPU and priority are known.
pub(super) struct Candidate<'a> {
    pub(super) vm: &'a DraftVm,
    /// Its index there.
    pub(super) index: usize,
    pub(super) vcpu: &'a DraftVcpu,
    pub(super) pcpu: u64,
    pub(super) priority: u64,
}

/// Returns the vCPUs whose pCPUs and priorities are known.
pub(super) fn candidates(draft: &Draft) -> Vec<Candidate<'_>> {
    let all = draft.vms.iter().flat_map(|vm| {
        vm.vcpus.iter().enumerate().filter_map(move |(index, vcpu)| {
            let pcpu = *vcpu.pcpu.as_ref()?.get_ref();
            let priority = *vcpu.priority.as_ref()?.get_ref();
            Some(Candidate { vm, index, vcpu, pcpu, priority })
        })
    });
    all.collect()
}

/// Checks each server by itself, and beside those that are described on the same pCPU.
pub(super) fn check(all: &[Candidate<'_>], board: Option<&Board>, problems: &mut Problems) {
    for one in all {
        match &one.vcpu.server {
            Some(server) => {
                ranges(server, problems);
                if let Some(board) = board {
                    whole_ticks(server, board, problems);
                }
                rivals(one, all, problems);
                stays(one, server, problems);
            }
            None => wanted(one.vcpu, problems),
        }
    }
}

/// Tasks are analysed in the time of a server.
fn wanted(vcpu: &DraftVcpu, problems: &mut Problems) {
    if !vcpu.tasks.is_empty() {
        let message = "a vCPU with tasks has no `server`";
        let hint = format!("for example `server = {EXAMPLE}`");
        problems.add(Code::MissingKey, vcpu.span.clone(), message).hint(hint);
    }
}

/// A switch must stay small against a budget, and a first period begins before the second
/// would.
fn ranges(server: &DraftServer, problems: &mut Problems) {
    for (what, time) in [("a budget", &server.budget), ("a period", &server.period)] {
        time_in(MIN_BUDGET_NS..=MAX_PERIOD_NS, time.as_ref(), what, Code::Timing, problems);
    }
    if let (Some(offset), Some(period)) = (&server.offset, &server.period)
        && offset.get_ref() >= period.get_ref()
    {
        let (late, whole) = (text(*offset.get_ref()), text(*period.get_ref()));
        let message = format!("an offset of {late} is not below the period, {whole}");
        let hint = "periods follow one another: what is left of it after whole periods is the same";
        problems.add(Code::Timing, offset.span(), message).hint(hint);
    }
}

/// Refuses periods and offsets that EL2 cannot keep: it counts ticks, and rounds up, so that
/// each release would be later than the analysed one, by more from period to period.
fn whole_ticks(server: &DraftServer, board: &Board, problems: &mut Problems) {
    let grain = board.tick_grain_ns();
    for (what, time) in [("a period", &server.period), ("an offset", &server.offset)] {
        let Some(time) = time.as_ref().filter(|at| !at.get_ref().is_multiple_of(grain)) else {
            continue;
        };
        let nearest = ((time.get_ref() + grain / 2) / grain * grain).max(grain);
        let message = format!(
            "{what} of {} is no whole number of ticks of the board's counter",
            text(*time.get_ref())
        );
        problems.add(Code::Timing, time.span(), message).hint(format!(
            "periods would begin later and later: the nearest that EL2 can keep is \"{}\"",
            text(nearest)
        ));
    }
}

/// Checks that each vCPU of the same or a higher priority than one with a budget has a
/// budget too: nothing else bounds the time it takes.
fn rivals(me: &Candidate<'_>, all: &[Candidate<'_>], problems: &mut Problems) {
    let others = all.iter().filter(|other| other.pcpu == me.pcpu);
    for other in others.filter(|other| other.vcpu.span != me.vcpu.span) {
        let unbounded = other.vcpu.server.is_none() && other.priority >= me.priority;
        let equal = other.vcpu.server.is_some()
            && other.priority == me.priority
            && other.vcpu.span.start < me.vcpu.span.start;
        let (message, hint) = if unbounded {
            (
                "a vCPU without a budget can keep this one from running for ever",
                "give it a server, or a lower priority",
            )
        } else if equal {
            (
                "two vCPUs with budgets have one priority on one pCPU",
                "bounds are for fixed priorities: give one more",
            )
        } else {
            continue;
        };
        let span = me.vcpu.priority_span();
        let see = other.vcpu.priority_span();
        problems.add(Code::Timing, span, message).see(see, "the other one").hint(hint);
    }
}

/// Checks the same for vCPUs that a policy or consolidation may bring to the pCPU of a vCPU
/// with a budget: they have none. `targets`: where the vCPUs of each pCPU go when that is
/// powered down.
pub(super) fn visitors(drafts: &[DraftVm], vms: &[Vm], targets: &[usize], problems: &mut Problems) {
    let placed: Vec<(topology::Id, Placed)> =
        topology::ids(vms).zip(topology::all_placed(vms, targets)).collect();
    let place = |(vm, index): topology::Id| drafts[vm].vcpus[index].priority_span();
    for (id, me) in placed.iter().filter(|((vm, index), _)| vms[*vm].vcpus[*index].server.is_some())
    {
        let comes = |(_, other): &&(topology::Id, Placed)| {
            other.base != me.base
                && other.priority >= me.priority
                && (other.affinity.has(me.base) || other.target == me.base)
        };
        let Some((visitor, _)) = placed.iter().find(comes) else { continue };
        let message = format!(
            "a vCPU of {} has no budget, may come to pCPU {}, and can keep this one from running",
            vms[visitor.0].title(),
            me.base
        );
        problems
            .add(Code::Timing, place(*id), message)
            .see(place(*visitor), "the one that comes")
            .hint("give it a lower priority, or another policy");
    }
}

/// Bounds are for vCPUs that stay on their pCPU, and so is EL2's account.
fn stays(me: &Candidate<'_>, server: &DraftServer, problems: &mut Problems) {
    let consolidate = me.vm.consolidate.as_ref().filter(|at| *at.get_ref()).map(At::span);
    let why = consolidate.or(me.vm.migration_policy.as_ref().map(At::span));
    if let Some(why) = why
        && me.vm.migrates()
    {
        problems
            .add(Code::Timing, server.span.clone(), "a budget for a vCPU that moves between pCPUs")
            .see(why, "this lets it move")
            .hint("leave out one of the two: bounds are for vCPUs that stay");
    }
}

/// Gives the vCPUs the servers that are described.
pub(super) fn assign(vms: &mut [Vm], drafts: &[DraftVm]) {
    for (vm, draft) in vms.iter_mut().zip(drafts) {
        for (vcpu, described) in vm.vcpus.iter_mut().zip(&draft.vcpus) {
            vcpu.server = described.server.as_ref().and_then(sound);
        }
    }
}

fn sound(server: &DraftServer) -> Option<Server> {
    Some(Server {
        kind: *server.kind.as_ref()?.get_ref(),
        budget_ns: *server.budget.as_ref()?.get_ref(),
        period_ns: *server.period.as_ref()?.get_ref(),
        overrun_ns: 0,
        offset_ns: server.offset.as_ref().map_or(0, |at| *at.get_ref()),
    })
}

/// Gives the servers their overruns: what the analysis takes for the longest, with the
/// usual margin for what EL2 takes. `timing`: the model of these vCPUs, in the same order.
pub(super) fn allow_overruns(
    vms: &mut [Vm],
    drafts: &[DraftVm],
    board: &Board,
    timing: &System,
    problems: &mut Problems,
) {
    let overheads = overheads(board, vms, DEFAULT_MARGIN_PERMILLE);
    let workload = match Workload::with_overheads(timing, Bounds::Corrected, overheads) {
        Ok(workload) => workload,
        Err(cause) => {
            let span = drafts.first().map_or(0..0, |vm| vm.span.clone());
            problems
                .add(Code::Timing, span, format!("the servers cannot be analysed: {cause}"))
                .hint("give servers and tasks longer periods");
            return;
        }
    };
    let described = drafts.iter().flat_map(|vm| &vm.vcpus).map(|vcpu| &vcpu.server);
    let vcpus = vms.iter_mut().flat_map(|vm| &mut vm.vcpus).zip(described);
    let served = vcpus.filter_map(|(vcpu, described)| vcpu.server.as_mut().zip(described.as_ref()));
    for (number, (server, described)) in served.enumerate() {
        server.overrun_ns = workload.overrun_time(number);
        if server.overrun_ns > server.period_ns.saturating_sub(server.budget_ns) {
            let message = format!(
                "global critical sections of {} may overrun the budget, which leaves too little of \
                 the period of {} for them and for what EL2 takes meanwhile",
                text(workload.global_resource_holding_time(number)),
                text(server.period_ns)
            );
            let hint = "give it less budget, or `overrun = false`";
            problems.add(Code::Timing, described.span.clone(), message).hint(hint);
        }
    }
}
