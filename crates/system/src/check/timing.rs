//! Budgets, tasks and handlers: can bounds be computed for them? The
//! bounds themselves are computed from [`crate::Checked::timing`].

use super::servers::{self, Candidate, candidates};
use crate::board::Board;
use crate::code::Code;
use crate::draft::{At, Draft, DraftServer, DraftTask, flag};
use crate::model::Protocol;
use crate::problem::{Problems, Span};
use abi::system::{MAX_CLAIMANTS, MAX_MUTEXES};
use analysis::model::{Handler, Problem, Section, Segment, Service, System, Task, Vcpu, Vcpus};
use std::cmp::Reverse;
use std::collections::HashMap;

/// The model of what has budgets and tasks; `None` when nothing has, or when
/// something about it is wrong and has been told.
pub(super) fn check(
    draft: &Draft,
    board: Option<&Board>,
    problems: &mut Problems,
) -> Option<System> {
    let all = candidates(draft);
    servers::check(&all, board, problems);
    let served: Vec<_> = all.iter().filter(|one| one.vcpu.server.is_some()).collect();
    if served.is_empty() || problems.any_error() {
        return None;
    }
    let (system, spans) = model(&served, problems)?;
    if let Err(problem) = system.check() {
        tell(&problem, &spans, problems);
        return None;
    }
    mutexes(&system, &spans, problems);
    baseline(draft, &served, problems);
    Some(system)
}

/// Returns how tasks share global resources.
pub(super) fn protocol(draft: &Draft) -> Protocol {
    draft.protocol.as_ref().map_or(Protocol::Vmpcp, |at| *at.get_ref())
}

/// MPCP promises nothing, and lets no server overrun.
fn baseline(draft: &Draft, served: &[&Candidate<'_>], problems: &mut Problems) {
    let Some(at) = draft.protocol.as_ref().filter(|at| *at.get_ref() == Protocol::Mpcp) else {
        return;
    };
    problems
        .add(Code::NoBounds, at.span(), "no bounds are known for MPCP: no deadline is computed")
        .hint("it is there to be compared with; leave `protocol` out for vMPCP");
    let servers = served.iter().filter_map(|one| one.vcpu.server.as_ref());
    for overrun in servers.filter_map(|server| server.overrun.as_ref()).filter(|at| *at.get_ref()) {
        problems
            .add(Code::Timing, overrun.span(), "under MPCP no server overruns")
            .hint("leave `overrun` out, or `protocol`");
    }
}

/// EL2's tables have room for so many mutexes, and so many tasks of each.
fn mutexes(system: &System, spans: &Spans, problems: &mut Problems) {
    let mut count = 0;
    for (resource, name) in system.resources.iter().enumerate() {
        let mut claimants =
            (0..system.tasks.len()).filter(|&task| system.tasks[task].uses(resource));
        let Some(first) = claimants.next() else { continue };
        count += 1;
        if count == MAX_MUTEXES + 1 {
            let message = format!("there are more than {MAX_MUTEXES} global resources");
            let hint = "make resources local that tasks of one vCPU use (`lcs`)";
            problems.add(Code::TooMany, spans.tasks[first].clone(), message).hint(hint);
        }
        if let Some(beyond) = claimants.nth(MAX_CLAIMANTS - 1) {
            let message = format!("more than {MAX_CLAIMANTS} tasks use `{name}`");
            let hint = "let tasks of one vCPU share what they do with it";
            problems.add(Code::TooMany, spans.tasks[beyond].clone(), message).hint(hint);
        }
    }
}

/// Where vCPUs, tasks and handlers of the model stand in the text.
struct Spans {
    vcpus: Vec<Span>,
    tasks: Vec<Span>,
    handlers: Vec<Span>,
}

fn model(served: &[&Candidate<'_>], problems: &mut Problems) -> Option<(System, Spans)> {
    let mut spans = Spans { vcpus: Vec::new(), tasks: Vec::new(), handlers: Vec::new() };
    // Queues of global resources order all vCPUs: among equals of different
    // pCPUs, the one described first goes first.
    let mut order: Vec<usize> = (0..served.len()).collect();
    order.sort_by_key(|&index| (served[index].priority, Reverse(index)));
    let rank = |index: usize| order.iter().position(|&other| other == index);
    let common = service(served.first()?.vcpu.server.as_ref()?)?;
    let mut system = System {
        server: common.kind,
        overrun: common.overrun,
        vcpus: Vcpus::default(),
        tasks: Vec::new(),
        resources: Vec::new(),
        traffic: Vec::new(),
        handlers: Vec::new(),
    };
    let mut resources = HashMap::new();
    for (index, one) in served.iter().enumerate() {
        let name = one.vm.name.as_ref()?.get_ref();
        let server = one.vcpu.server.as_ref()?;
        spans.vcpus.push(one.vcpu.span.clone());
        system.vcpus.push(Vcpu {
            id: format!("{name}.{}", one.index),
            pcpu: u32::try_from(one.pcpu).ok()?,
            budget_ns: *server.budget.as_ref()?.get_ref(),
            period_ns: *server.period.as_ref()?.get_ref(),
            priority: i64::try_from(rank(index)?).ok()?,
            offset_ns: server.offset.as_ref().map_or(0, |at| *at.get_ref()),
        });
        system.set_service(index, service(server)?);
        for draft in &one.vcpu.tasks {
            spans.tasks.push(draft.span.clone());
            let task = task(draft, name, index, &mut resources, &mut system.resources, problems)?;
            system.tasks.push(task);
        }
        for draft in &one.vcpu.handlers {
            spans.handlers.push(draft.span.clone());
            system.handlers.push(Handler {
                id: format!("{name}.{}/{}", one.index, draft.name.as_ref()?.get_ref()),
                vcpu: index,
                period_ns: *draft.period.as_ref()?.get_ref(),
                wcet_ns: *draft.wcet.as_ref()?.get_ref(),
            });
        }
    }
    Some((system, spans))
}

fn service(server: &DraftServer) -> Option<Service> {
    Some(Service { kind: *server.kind.as_ref()?.get_ref(), overrun: flag(&server.overrun, false) })
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
    let mut index = |local_to: Option<usize>, name: &'a At<String>| {
        *resources.entry((local_to, name.get_ref())).or_insert_with(|| {
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

/// Says what the model refuses, at the vCPU, task or handler it is about.
fn tell(problem: &Problem, spans: &Spans, problems: &mut Problems) {
    let at = |list: &str, spans: &[Span]| {
        let rest = problem.place.strip_prefix(list)?.strip_prefix('[')?;
        spans.get(rest.split(']').next()?.parse::<usize>().ok()?).cloned()
    };
    let lists = [("tasks", &spans.tasks), ("handlers", &spans.handlers), ("vcpus", &spans.vcpus)];
    let span = lists.into_iter().find_map(|(list, spans)| at(list, spans));
    problems
        .add(Code::Timing, span.unwrap_or(0..0), problem.what.clone())
        .hint(problem.mend.clone());
}
