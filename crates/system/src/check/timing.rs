//! Budgets and tasks: can EL2 serve them, and can bounds be computed for them? The
//! bounds themselves are computed from [`crate::Checked::timing`].

use super::time_in;
use crate::code::Code;
use crate::draft::{At, Draft, DraftTask, DraftVcpu, DraftVm, flag};
use crate::model::{Server, Vm};
use crate::problem::{Problems, Span};
use abi::system::{MAX_PERIOD_NS, MIN_BUDGET_NS};
use analysis::model::{Problem, Section, Segment, ServerKind, System, Task, Vcpu};
use std::cmp::Reverse;
use std::collections::HashMap;

/// A vCPU with a budget.
struct Served<'a> {
    vm: &'a DraftVm,
    index: usize,
    vcpu: &'a DraftVcpu,
    pcpu: u64,
    priority: u64,
}

/// The model of what has budgets and tasks; `None` when nothing has, or when
/// something about it is wrong and has been told.
pub(super) fn check(draft: &Draft, problems: &mut Problems) -> Option<System> {
    let all: Vec<_> = draft.vms.iter().flat_map(vcpus).collect();
    for vcpu in &all {
        complete(vcpu.vcpu, problems);
        ranges(vcpu.vcpu, problems);
    }
    let served: Vec<_> = all.iter().filter(|vcpu| vcpu.vcpu.budget.is_some()).collect();
    for vcpu in &served {
        rivals(vcpu, &all, problems);
        stays(vcpu, problems);
    }
    if served.is_empty() || problems.any_error() {
        return None;
    }
    let (system, spans) = model(draft, &served, problems)?;
    if let Err(problem) = system.check() {
        tell(&problem, &spans, problems);
        return None;
    }
    Some(system)
}

fn vcpus(vm: &DraftVm) -> impl Iterator<Item = Served<'_>> {
    vm.vcpus.iter().enumerate().filter_map(move |(index, vcpu)| {
        let (pcpu, priority) = (*vcpu.pcpu.as_ref()?.get_ref(), *vcpu.priority.as_ref()?.get_ref());
        Some(Served { vm, index, vcpu, pcpu, priority })
    })
}

/// A budget needs a period, a task needs both.
fn complete(vcpu: &DraftVcpu, problems: &mut Problems) {
    let wanted = !vcpu.tasks.is_empty();
    let mut missing = |key: &str, example: &str, why: &str| {
        problems
            .add(Code::MissingKey, vcpu.span.clone(), format!("a vCPU with {why} has no `{key}`"))
            .hint(format!("for example `{key} = {example}`"));
    };
    if vcpu.budget.is_none() && (wanted || vcpu.period.is_some()) {
        missing("budget", "\"3ms\"", if wanted { "tasks" } else { "a period" });
    }
    if vcpu.period.is_none() && (wanted || vcpu.budget.is_some()) {
        missing("period", "\"10ms\"", if wanted { "tasks" } else { "a budget" });
    }
}

/// A switch must stay small against a budget.
fn ranges(vcpu: &DraftVcpu, problems: &mut Problems) {
    for (what, time) in [("a budget", &vcpu.budget), ("a period", &vcpu.period)] {
        time_in(MIN_BUDGET_NS..=MAX_PERIOD_NS, time.as_ref(), what, Code::Timing, problems);
    }
}

/// Gives the vCPUs the servers that are described.
pub(super) fn assign(vms: &mut [Vm], draft: &Draft) {
    for (vm, draft_vm) in vms.iter_mut().zip(&draft.vms) {
        for (vcpu, described) in vm.vcpus.iter_mut().zip(&draft_vm.vcpus) {
            let (budget, period) = (described.budget.as_ref(), described.period.as_ref());
            vcpu.server = budget.zip(period).map(|(budget, period)| Server {
                kind: kind(draft),
                budget_ns: *budget.get_ref(),
                period_ns: *period.get_ref(),
                overrun_ns: 0,
                offset_ns: 0,
            });
        }
    }
}

fn kind(draft: &Draft) -> ServerKind {
    draft.server.as_ref().map_or(ServerKind::Deferrable, |at| *at.get_ref())
}

/// Checks that each vCPU of the same or a higher priority than one with a budget has a
/// budget too: nothing else bounds the time it takes.
fn rivals(me: &Served<'_>, all: &[Served<'_>], problems: &mut Problems) {
    let others = all.iter().filter(|other| other.pcpu == me.pcpu);
    for other in others.filter(|other| other.vcpu.span != me.vcpu.span) {
        let unbounded = other.vcpu.budget.is_none() && other.priority >= me.priority;
        let equal = other.vcpu.budget.is_some()
            && other.priority == me.priority
            && other.vcpu.span.start < me.vcpu.span.start;
        let (message, hint) = if unbounded {
            (
                "a vCPU without a budget can keep this one from running for ever",
                "give it a budget, or a lower priority",
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

/// Bounds are for vCPUs that stay on their pCPU.
fn stays(me: &Served<'_>, problems: &mut Problems) {
    let consolidate = me.vm.consolidate.as_ref().filter(|at| *at.get_ref()).map(At::span);
    let why = consolidate.or(me.vm.migration_policy.as_ref().map(At::span));
    if let (Some(why), Some(budget)) = (why, &me.vcpu.budget)
        && me.vm.migrates()
    {
        problems
            .add(Code::Timing, budget.span(), "a budget for a vCPU that moves between pCPUs")
            .see(why, "this lets it move")
            .hint("leave out one of the two: bounds are for vCPUs that stay");
    }
}

/// Where vCPUs and tasks of the model stand in the text.
struct Spans {
    vcpus: Vec<Span>,
    tasks: Vec<Span>,
}

fn model(
    draft: &Draft,
    served: &[&Served<'_>],
    problems: &mut Problems,
) -> Option<(System, Spans)> {
    let mut spans = Spans { vcpus: Vec::new(), tasks: Vec::new() };
    // Queues of global resources order all vCPUs: among equals of different
    // pCPUs, the one described first goes first.
    let mut order: Vec<usize> = (0..served.len()).collect();
    order.sort_by_key(|&index| (served[index].priority, Reverse(index)));
    let rank = |index: usize| order.iter().position(|&other| other == index);
    let mut system = System {
        server: kind(draft),
        overrun: flag(&draft.overrun, false),
        vcpus: Vec::new(),
        tasks: Vec::new(),
        resources: Vec::new(),
    };
    let mut resources = HashMap::new();
    for (index, one) in served.iter().enumerate() {
        let name = one.vm.name.as_ref()?.get_ref();
        spans.vcpus.push(one.vcpu.span.clone());
        system.vcpus.push(Vcpu {
            id: format!("{name}.{}", one.index),
            pcpu: u32::try_from(one.pcpu).ok()?,
            budget_ns: *one.vcpu.budget.as_ref()?.get_ref(),
            period_ns: *one.vcpu.period.as_ref()?.get_ref(),
            priority: i64::try_from(rank(index)?).ok()?,
            offset_ns: 0,
        });
        for draft in &one.vcpu.tasks {
            spans.tasks.push(draft.span.clone());
            let task = task(draft, name, index, &mut resources, &mut system.resources, problems)?;
            system.tasks.push(task);
        }
    }
    Some((system, spans))
}

/// A resource by its name; a local one by its vCPU too.
type Resources<'a> = HashMap<(Option<usize>, &'a str), usize>;

fn task<'a>(
    draft: &'a DraftTask,
    vm: &str,
    vcpu: usize,
    resources: &mut Resources<'a>,
    names: &mut Vec<String>,
    problems: &mut Problems,
) -> Option<Task> {
    let mut index = |home: Option<usize>, name: &'a At<String>| {
        *resources.entry((home, name.get_ref())).or_insert_with(|| {
            names.push(name.get_ref().clone());
            names.len() - 1
        })
    };
    let mut segments = Vec::new();
    for segment in &draft.segments {
        let section = match (&segment.gcs, &segment.lcs) {
            (None, None) => Section::Normal,
            (Some(name), None) => Section::Global(index(None, name)),
            (None, Some(name)) => Section::Local(index(Some(vcpu), name)),
            (Some(_), Some(_)) => {
                problems
                    .add(
                        Code::Timing,
                        segment.span.clone(),
                        "a critical section is nested in another",
                    )
                    .hint("give each a segment of its own");
                return None;
            }
        };
        segments.push(Segment { wcet_ns: *segment.wcet.as_ref()?.get_ref(), section });
    }
    Some(Task {
        id: format!("{vm}/{}", draft.name.as_ref()?.get_ref()),
        vcpu,
        period_ns: *draft.period.as_ref()?.get_ref(),
        priority: i64::try_from(*draft.priority.as_ref()?.get_ref()).ok()?,
        segments,
        offset_ns: draft.offset.as_ref().map_or(0, |at| *at.get_ref()),
        jitter_ns: draft.jitter.as_ref().map_or(0, |at| *at.get_ref()),
    })
}

/// Says what the model refuses, at the vCPU or task it is about.
fn tell(problem: &Problem, spans: &Spans, problems: &mut Problems) {
    let at = |list: &str, spans: &[Span]| {
        let rest = problem.place.strip_prefix(list)?.strip_prefix('[')?;
        spans.get(rest.split(']').next()?.parse::<usize>().ok()?).cloned()
    };
    let span = at("tasks", &spans.tasks).or_else(|| at("vcpus", &spans.vcpus));
    problems
        .add(Code::Timing, span.unwrap_or(0..0), problem.what.clone())
        .hint(problem.mend.clone());
}
