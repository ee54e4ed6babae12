//! The bounds against the equations written down as the paper has them: on the
//! system itself, without sums made before, slow and obvious. Of everything but
//! the corrections, which have tests of their own.

mod support;

use analysis::bounds::{Bounds, analyze};
use analysis::model::{Section, ServerKind, System, Task};
use proptest::prelude::*;

struct Paper<'a>(&'a System);

impl Paper<'_> {
    /// The execution times E of the gcs's of a task.
    fn gcs<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = (usize, u64)> + 'a {
        task.segments.iter().filter_map(|segment| match segment.section {
            Section::Global(resource) => Some((resource, segment.wcet_ns)),
            _ => None,
        })
    }

    fn tasks(&self, vcpu: usize) -> impl Iterator<Item = &Task> {
        self.0.tasks.iter().filter(move |task| task.vcpu == vcpu)
    }

    fn longest(&self, task: &Task) -> u64 {
        self.gcs(task).map(|(_, wcet)| wcet).max().unwrap_or(0)
    }

    fn ght(&self, vcpu: usize) -> u64 {
        self.tasks(vcpu).map(|task| self.longest(task)).sum()
    }

    fn overrun(&self, vcpu: usize) -> u64 {
        if self.0.service(vcpu).overrun { self.ght(vcpu) } else { 0 }
    }

    fn peers(&self, vcpu: usize) -> impl Iterator<Item = usize> + '_ {
        let pcpu = self.0.vcpus[vcpu].pcpu;
        (0..self.0.vcpus.len()).filter(move |&v| self.0.vcpus[v].pcpu == pcpu && v != vcpu)
    }

    fn blocking(&self, vcpu: usize, t: u64) -> u64 {
        let lower = self.peers(vcpu).filter(|&l| l < vcpu);
        match self.0.service(vcpu).kind {
            ServerKind::Periodic => lower.map(|l| self.ght(l)).sum(),
            ServerKind::Deferrable => lower
                .flat_map(|l| self.tasks(l))
                .map(|task| {
                    let all: u64 = self.gcs(task).map(|(_, wcet)| wcet).sum();
                    (t.div_ceil(task.period_ns) + 1) * all
                })
                .sum(),
        }
    }

    fn vcpu(&self, i: usize) -> Option<u64> {
        let v = &self.0.vcpus;
        let jitter = |h: usize| match self.0.service(h).kind {
            ServerKind::Periodic => 0,
            ServerKind::Deferrable => v[h].period_ns - v[h].budget_ns,
        };
        // From the paper's start, one nanosecond after the other.
        (v[i].budget_ns + self.overrun(i)..=v[i].period_ns).find(|&w| {
            let higher: u64 = self
                .peers(i)
                .filter(|&h| h > i)
                .map(|h| {
                    (w + jitter(h)).div_ceil(v[h].period_ns) * (v[h].budget_ns + self.overrun(h))
                })
                .sum();
            v[i].budget_ns + self.overrun(i) + self.blocking(i, w) + higher <= w
        })
    }

    fn gcs_response(&self, task: &Task, wcet: u64) -> u64 {
        let vcpu = &self.0.vcpus[task.vcpu];
        let higher = self.tasks(task.vcpu).filter(|x| x.priority > task.priority);
        let load = wcet + higher.map(|x| self.longest(x)).sum::<u64>();
        let above = self.peers(task.vcpu).filter(|&z| z > task.vcpu);
        let preemption: u64 = above.map(|z| self.ght(z)).sum();
        let gap = vcpu.period_ns - vcpu.budget_ns;
        let service = self.0.service(task.vcpu);
        let gaps = match (service.kind, service.overrun) {
            (ServerKind::Periodic, true) => 1,
            (ServerKind::Deferrable, true) => 0,
            (_, false) => load.div_ceil(vcpu.budget_ns),
        };
        gaps * gap + load + preemption
    }

    fn wait(&self, task: &Task, resource: usize) -> Option<u64> {
        let users = || {
            let all = self.0.tasks.iter().flat_map(|t| self.gcs(t).map(move |g| (t, g)));
            all.filter(move |(_, (r, _))| *r == resource)
        };
        let lower = users().filter(|(t, _)| t.vcpu < task.vcpu);
        let lower = lower.map(|(t, (_, wcet))| self.gcs_response(t, wcet)).max().unwrap_or(0);
        (lower..=task.period_ns).find(|&b| {
            let higher = users().filter(|(t, _)| t.vcpu > task.vcpu);
            let higher: u64 = higher
                .map(|(t, (_, wcet))| (b.div_ceil(t.period_ns) + 1) * self.gcs_response(t, wcet))
                .sum();
            lower + higher <= b
        })
    }

    fn task(&self, task: &Task) -> Option<u64> {
        let vcpu = &self.0.vcpus[task.vcpu];
        let gap = vcpu.period_ns - vcpu.budget_ns;
        let lower = || self.tasks(task.vcpu).filter(|l| l.priority < task.priority);
        let ceiling = |resource: usize| {
            let users = self.tasks(task.vcpu).filter(|t| {
                t.segments.iter().any(|segment| segment.section == Section::Local(resource))
            });
            users.map(|t| t.priority).max().unwrap()
        };
        let lcs = lower().flat_map(|l| &l.segments).filter_map(|segment| match segment.section {
            Section::Local(resource) if ceiling(resource) > task.priority => Some(segment.wcet_ns),
            _ => None,
        });
        let gcs: u64 = lower().map(|l| self.longest(l)).sum();
        let chances = self.gcs(task).count() as u64 + 1;
        let local = (lcs.max().unwrap_or(0) + gcs) * chances;
        let waits = self.gcs(task).map(|(resource, _)| self.wait(task, resource));
        let remote = waits.sum::<Option<u64>>()?;
        let wcet = |task: &Task| task.segments.iter().map(|s| s.wcet_ns).sum::<u64>();
        let higher = self.tasks(task.vcpu).filter(|h| h.priority > task.priority);
        let higher = higher
            .map(|h| Some((h.period_ns, wcet(h), h.jitter_ns, self.task(h)? - h.jitter_ns)))
            .collect::<Option<Vec<_>>>()?;
        let response = (1..=task.period_ns - task.jitter_ns).find(|&w| {
            let preempted: u64 =
                higher.iter().map(|&(t, c, j, r)| (w + gap + j + (r - c)).div_ceil(t) * c).sum();
            let gaps = (w + vcpu.budget_ns).div_ceil(vcpu.period_ns) * gap;
            wcet(task) + local + remote + preempted + gaps <= w
        });
        response.map(|w| w + task.jitter_ns)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_bounds_are_what_the_paper_says(system in support::systems()) {
        let verdict = analyze(&system, Bounds::Published).unwrap();
        let paper = Paper(&system);
        for (index, bound) in verdict.vcpus.iter().enumerate() {
            prop_assert_eq!(bound.response_ns, paper.vcpu(index), "vCPU {}", index);
        }
        for (index, bound) in verdict.tasks.iter().enumerate() {
            prop_assert_eq!(bound.response_ns, paper.task(&system.tasks[index]), "task {}", index);
        }
    }
}
