//! What a system must keep to before bounds mean anything.

use super::{Problem, Section, System, Task, Vcpu};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

impl System {
    /// Refuses what no bound can be given for.
    ///
    /// # Errors
    /// The first problem: a time of 0, a budget, execution time or jitter above
    /// its period, an index that points nowhere, a name or a priority given
    /// twice, a resource that is both global and local, a
    /// handler that leaves no time, traffic without a cause.
    pub fn check(&self) -> Result<(), Problem> {
        if self.vcpus.is_empty() {
            return Err(Problem::new("vcpus", "there is no vCPU", "describe at least one"));
        }
        let ids = self.vcpus.iter().map(|vcpu| vcpu.id.as_str());
        unique(ids, "vcpus", "id", |id| format!("vCPU `{id}` is described twice"))?;
        let ids = self.tasks.iter().map(|task| task.id.as_str());
        unique(ids, "tasks", "id", |id| format!("task `{id}` is described twice"))?;
        self.vcpus.iter().enumerate().try_for_each(|(index, vcpu)| check_vcpu(index, vcpu))?;
        unique(self.vcpus.iter().map(|vcpu| vcpu.priority), "vcpus", "priority", |priority| {
            format!("two vCPUs have priority {priority}, and queues of resources order all vCPUs")
        })?;
        self.tasks.iter().enumerate().try_for_each(|(index, task)| self.check_task(index, task))?;
        let priorities = self.tasks.iter().map(|task| (task.vcpu, task.priority));
        unique(priorities, "tasks", "priority", |(vcpu, priority)| {
            format!("two tasks of vCPU `{}` have priority {priority}", self.vcpus[*vcpu].id)
        })?;
        self.check_resources()?;
        self.check_handlers()?;
        self.check_traffic()
    }

    fn check_task(&self, index: usize, task: &Task) -> Result<(), Problem> {
        let place = |key: &str| format!("tasks[{index}]{key}");
        check_id(&place(".id"), &task.id)?;
        if task.vcpu >= self.vcpus.len() {
            let what = format!("there is no vCPU with index {}", task.vcpu);
            return Err(Problem::new(place(".vcpu"), what, "indices begin with 0"));
        }
        if task.period_ns == 0 {
            return Err(zero(&place(".period")));
        }
        if task.jitter_ns >= task.period_ns {
            let (jitter, period) = (task.jitter_ns, task.period_ns);
            let what = format!("a jitter of {jitter} ns is not less than the period, {period} ns");
            return Err(Problem::new(place(".jitter"), what, "releases must stay in their order"));
        }
        if task.segments.is_empty() {
            let what = "the task has nothing to execute";
            return Err(Problem::new(place(".segments"), what, "give it at least one segment"));
        }
        let mut total = 0_u64;
        for (number, segment) in task.segments.iter().enumerate() {
            let place = place(&format!(".segments[{number}].wcet"));
            if segment.wcet_ns == 0 {
                return Err(zero(&place));
            }
            total = total
                .checked_add(segment.wcet_ns)
                .filter(|&t| t <= task.period_ns)
                .ok_or_else(|| {
                    let period = task.period_ns;
                    let what = format!(
                        "with this segment of {} ns, task `{}` executes longer than its period of \
                         {period} ns",
                        segment.wcet_ns, task.id
                    );
                    Problem::new(place, what, "a task that overtakes itself has no bound")
                })?;
        }
        Ok(())
    }

    /// A resource is global everywhere, or local to one vCPU.
    fn check_resources(&self) -> Result<(), Problem> {
        let mut used: HashMap<&str, (bool, String)> = HashMap::new();
        for (index, task) in self.tasks.iter().enumerate() {
            for (number, segment) in task.segments.iter().enumerate() {
                let (resource, global) = match segment.section {
                    Section::Normal => continue,
                    Section::Global(resource) => (resource, true),
                    Section::Local(resource) => (resource, false),
                };
                let place = format!("tasks[{index}].segments[{number}]");
                let Some(name) = self.resources.get(resource) else {
                    let what = format!("there is no resource with index {resource}");
                    return Err(Problem::new(place, what, "indices begin with 0"));
                };
                check_id(&place, name)?;
                let (was_global, first) =
                    used.entry(name).or_insert_with(|| (global, format!("task `{}`", task.id)));
                if *was_global != global {
                    let kind = |global| if global { "global (gcs)" } else { "local (lcs)" };
                    let what = format!(
                        "resource `{name}` is {} here, {} in {first}",
                        kind(global),
                        kind(*was_global)
                    );
                    let mend = "use gcs for it everywhere if tasks of several vCPUs share it";
                    return Err(Problem::new(place, what, mend));
                }
            }
        }
        self.check_locality()
    }

    fn check_locality(&self) -> Result<(), Problem> {
        let mut users: HashMap<usize, usize> = HashMap::new();
        for (index, task) in self.tasks.iter().enumerate() {
            for (number, segment) in task.segments.iter().enumerate() {
                let Section::Local(resource) = segment.section else { continue };
                if *users.entry(resource).or_insert(task.vcpu) != task.vcpu {
                    let place = format!("tasks[{index}].segments[{number}].lcs");
                    let name = &self.resources[resource];
                    let what = format!("local resource `{name}` is used on two vCPUs");
                    return Err(Problem::new(place, what, "make it a gcs"));
                }
            }
        }
        Ok(())
    }
}

fn check_vcpu(index: usize, vcpu: &Vcpu) -> Result<(), Problem> {
    let place = |key: &str| format!("vcpus[{index}].{key}");
    check_id(&place("id"), &vcpu.id)?;
    if vcpu.budget_ns == 0 {
        return Err(zero(&place("budget")));
    }
    if vcpu.period_ns == 0 {
        return Err(zero(&place("period")));
    }
    if vcpu.budget_ns > vcpu.period_ns {
        let (budget, period) = (vcpu.budget_ns, vcpu.period_ns);
        let what = format!("a budget of {budget} ns is above the period, {period} ns");
        return Err(Problem::new(place("budget"), what, "a vCPU cannot run longer than time goes"));
    }
    Ok(())
}

pub(super) fn check_id(place: &str, id: &str) -> Result<(), Problem> {
    let what = if id.is_empty() {
        "a name is empty"
    } else if id.chars().any(char::is_control) {
        "a name has line breaks or other control characters"
    } else {
        return Ok(());
    };
    Err(Problem::new(place, what, "name it, so that answers can"))
}

pub(super) fn zero(place: &str) -> Problem {
    let key = place.rsplit('.').next().unwrap_or(place);
    Problem::new(place, format!("`{key}` is 0 ns"), "give at least 1 ns")
}

pub(super) fn unique<K: Hash + Eq + Clone>(
    keys: impl Iterator<Item = K>,
    list: &str,
    key: &str,
    what: impl Fn(&K) -> String,
) -> Result<(), Problem> {
    let mut seen = HashMap::new();
    for (index, value) in keys.enumerate() {
        match seen.entry(value.clone()) {
            Entry::Vacant(free) => {
                free.insert(index);
            }
            Entry::Occupied(first) => {
                let mend = format!("change one; the first is {list}[{}]", first.get());
                return Err(Problem::new(format!("{list}[{index}].{key}"), what(&value), mend));
            }
        }
    }
    Ok(())
}
