//! Servers: can EL2 keep to them, and does nothing else on a core take what they promise?

use super::time_in;
use crate::board::Board;
use crate::code::Code;
use crate::draft::server::EXAMPLE;
use crate::draft::{Draft, DraftServer, DraftVcpu, DraftVm};
use crate::model::{Server, Vm, overheads};
use crate::problem::Problems;
use crate::time::text;
use crate::topology;
use abi::system::{MAX_PERIOD_NS, MIN_BUDGET_NS, NO_DELAY_LIMIT};
use analysis::bounds::{Bounds, Workload};
use analysis::model::{Service, System};
use analysis::overheads::{DEFAULT_MARGIN_PERMILLE, Paces};
use sched::CoreSet;
use sched::server::ServerKind;
use sched::topology::Placed;
use std::collections::BTreeMap;

/// A vCPU whose pCPU and priority are known.
pub(super) struct Candidate<'a> {
    pub(super) vm: &'a DraftVm,
    /// The index there.
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
            }
            None => wanted(one.vcpu, problems),
        }
        handlers(one.vcpu, problems);
    }
}

/// Tasks and handlers are analysed in the time of a server.
fn wanted(vcpu: &DraftVcpu, problems: &mut Problems) {
    let message = match (vcpu.tasks.is_empty(), vcpu.handlers.is_empty()) {
        (true, true) => return,
        (false, _) => "a vCPU with tasks has no `server`",
        (true, false) => "a vCPU with handlers has no `server`",
    };
    let hint = format!("for example `server = {EXAMPLE}`");
    problems.add(Code::MissingKey, vcpu.span.clone(), message).hint(hint);
}

/// Interrupts that come closer together than EL2 may be told to replenish are none that a guest with
/// deadlines could have. What else is wrong with a handler, the model refuses.
fn handlers(vcpu: &DraftVcpu, problems: &mut Problems) {
    for handler in &vcpu.handlers {
        let allowed = MIN_BUDGET_NS..=MAX_PERIOD_NS;
        time_in(allowed, handler.period.as_ref(), "a period", Code::Timing, problems);
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

/// vCPUs of the model: by vCPU, and pCPU where it may be.
pub(super) type Admitted = BTreeMap<(topology::Id, usize), usize>;

/// A vCPU by its VM and its index there, and where it may be.
type Where = (topology::Id, Placed);

/// Checks the same wherever a policy or consolidation may bring a vCPU with a budget, or another
/// one to it. `targets`: where the vCPUs of each pCPU go when that is powered down.
pub(super) fn wherever(drafts: &[DraftVm], vms: &[Vm], targets: &[usize], problems: &mut Problems) {
    let placed: Vec<Where> = topology::ids(vms).zip(topology::all_placed(vms, targets)).collect();
    let described = |(vm, index): topology::Id| &drafts[vm].vcpus[index];
    let has_server = |(vm, index): topology::Id| vms[vm].vcpus[index].server.is_some();
    for (at, me) in placed.iter().enumerate().filter(|(_, (id, _))| has_server(*id)) {
        tasks_stay(drafts, vms, me, problems);
        keeps_its_core(drafts, vms, (me, &placed), problems);
        // Those that are described on one pCPU were compared before.
        let pcpu = |id: topology::Id| described(id).pcpu.as_ref().map(|at| *at.get_ref());
        let meets = |(_, other): &(usize, &Where)| {
            pcpu(other.0) != pcpu(me.0) && !me.1.shared_with(&other.1).is_empty()
        };
        let others = || placed.iter().enumerate().filter(meets);
        let unbounded =
            others().find(|(_, (id, other))| !has_server(*id) && other.priority >= me.1.priority);
        let equal = others().find(|(before, (id, other))| {
            has_server(*id) && other.priority == me.1.priority && *before < at
        });
        let Some((_, other)) = unbounded.or(equal) else { continue };
        let shared = me.1.shared_with(&other.1);
        let place = if shared.has(me.1.base) { Some(me.1.base) } else { shared.first() };
        let pcpu = place.unwrap_or(me.1.base);
        let title = vms[other.0.0].title();
        let (message, see, hint) = if unbounded.is_none() {
            (
                format!("two vCPUs with budgets have one priority, and may share pCPU {pcpu}"),
                "the other one",
                "bounds are for fixed priorities: give one more",
            )
        } else if pcpu == other.1.base {
            (
                format!(
                    "this one may come to pCPU {pcpu}, where a vCPU of {title} has no budget and \
                     can keep it from running"
                ),
                "the other one",
                "give that one a server, or a lower priority",
            )
        } else {
            (
                format!(
                    "a vCPU of {title} has no budget, may come to pCPU {pcpu}, and can keep this \
                     one from running"
                ),
                "the one that comes",
                "give it a server, a lower priority, or another policy",
            )
        };
        problems
            .add(Code::Timing, described(me.0).priority_span(), message)
            .see(described(other.0).priority_span(), see)
            .hint(hint);
    }
}

/// Refuses tasks and handlers of a vCPU that may be on several pCPUs: no bound is known for them,
/// because how often it migrates is not.
fn tasks_stay(drafts: &[DraftVm], vms: &[Vm], (id, me): &Where, problems: &mut Problems) {
    let vcpu = &drafts[id.0].vcpus[id.1];
    let task = vcpu.tasks.first().map(|task| ("tasks", &task.span));
    let handler = vcpu.handlers.first().map(|handler| ("handlers", &handler.span));
    let Some((what, span)) = task.or(handler) else { return };
    let places = me.places();
    if places.len() <= 1 {
        return;
    }
    let spans = &vms[id.0].spans;
    let why = if me.elsewhere().is_empty() { &spans.consolidate } else { &spans.migration_policy };
    let pcpus: Vec<String> = places.iter().map(|pcpu| pcpu.to_string()).collect();
    let message = format!(
        "no bound is known for {what} of a vCPU that may be on pCPUs {}",
        pcpus.join(" and ")
    );
    let hint =
        format!("leave that out, or declare no {what}: the budget alone limits it on each of them");
    problems
        .add(Code::Timing, span.clone(), message)
        .see(why.clone(), "this lets it migrate")
        .hint(hint);
}

/// Refuses a budget where a policy would have its vCPU stand still: no bound counts that.
fn keeps_its_core(
    drafts: &[DraftVm],
    vms: &[Vm],
    (me, placed): (&Where, &[Where]),
    problems: &mut Problems,
) {
    let (id, this) = me;
    let mut refuse = |message: String, policy_of: usize, see: &str, hint: String| {
        let span = drafts[id.0].vcpus[id.1].priority_span();
        let policy = vms[policy_of].spans.migration_policy.clone();
        problems.add(Code::Timing, span, message).see(policy, see).hint(hint);
    };
    let displaced = |(other, vcpu): &&Where| {
        other.0 == id.0
            && other != id
            && placed.iter().any(|(_, by)| topology::may_displace(by, vcpu))
    };
    if this.stops_siblings()
        && let Some((sibling, _)) = placed.iter().find(displaced)
    {
        let sibling = format!("{}.{}", vms[sibling.0].name, sibling.1);
        refuse(
            format!("it has a budget, and stands still whenever `{sibling}` is displaced"),
            id.0,
            "by this policy",
            "no bound counts that: give the VM another policy, or no budgets".into(),
        );
    }
    let makes_wait = |(_, other): &&Where| topology::may_displace(this, other) && other.delays();
    if let Some(((other, _), _)) = placed.iter().find(makes_wait) {
        let limit = match vms[*other].delay_limit_ns {
            NO_DELAY_LIMIT => "for ever".to_owned(),
            ns => text(ns),
        };
        let title = vms[*other].title();
        refuse(
            format!("it has a budget, and may wait {limit} for what {title} does in its kernel"),
            *other,
            "by this policy",
            format!("no bound counts that: give {title} another policy, or this one no budget"),
        );
    }
}

/// Adds, for each vCPU with a budget that may be on several pCPUs, one to each of them: it is
/// admitted wherever it may be, and counts there for those below it as if it always were. What it
/// leaves at the end of one period on another pCPU may be followed at once by the budget of the
/// next, whatever its server is: as with a deferrable one.
/// Returns which vCPU of the model that is.
pub(super) fn admit_everywhere(timing: &mut System, vms: &[Vm], targets: &[usize]) -> Admitted {
    let mut admitted = Admitted::new();
    let placed = topology::ids(vms).zip(topology::all_placed(vms, targets));
    let served = placed.filter(|((vm, index), _)| vms[*vm].vcpus[*index].server.is_some());
    for (index, (id, me)) in served.enumerate() {
        let places = me.places();
        admitted.insert((id, me.base), index);
        timing.vcpus[index].pcpu = me.base as u32;
        if places.len() <= 1 {
            continue;
        }
        let service = Service { kind: ServerKind::Deferrable, ..timing.service(index) };
        timing.set_service(index, service);
        for pcpu in places - CoreSet::of(me.base) {
            admitted.insert((id, pcpu), timing.vcpus.len());
            let at_base = timing.vcpus[index].clone();
            let id = format!("{} on pCPU {pcpu}", at_base.id);
            timing.set_service(timing.vcpus.len(), service);
            timing.vcpus.push(analysis::model::Vcpu { id, pcpu: pcpu as u32, ..at_base });
        }
    }
    // No two of the model have one priority; these are in the order of the vCPUs that they are.
    let mut order: Vec<usize> = (0..timing.vcpus.len()).collect();
    order.sort_by_key(|&index| timing.vcpus[index].priority);
    for (priority, &index) in (0..).zip(&order) {
        timing.vcpus[index].priority = priority;
    }
    admitted
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
    (paces, watched): (&Paces, bool),
    timing: &System,
    problems: &mut Problems,
) {
    let overheads = overheads(paces, vms, watched, DEFAULT_MARGIN_PERMILLE);
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
