//! From a description to a world in which nothing has happened yet.

use super::{Core, NEVER, QUANTUM, Vcpu};
use crate::guest::Guest;
use crate::system::{Need, Protocol, Refusal, System};
use crate::task::Active;
use sched::server::Account;
use sched::{Duration, Instant, Params, Priority, Scheduler, VcpuId};
use std::cmp::Reverse;

impl Core {
    pub(super) fn new() -> Self {
        let scheduler = Scheduler::new();
        let (next, until, duty) = (0, NEVER, NEVER);
        Self { scheduler, since: 0, vcpu: None, task: None, next, until, owed: 0, duty }
    }

    pub(super) fn receive(
        &mut self,
        system: &System,
        vcpu: usize,
        priority: usize,
    ) -> Result<(), Refusal> {
        let spec = &system.vcpus[vcpu];
        let refused =
            |refusal: sched::Refusal| Refusal { of: spec.name.clone(), why: refusal.to_string() };
        // MPCP knows no overrun.
        let overruns = system.protocol == Protocol::Vmpcp;
        let server = spec.server.map(|server| sched::server::Server {
            overrun: if overruns { server.overrun } else { Duration(0) },
            ..server
        });
        let open = |server| Account::open(server, Instant(spec.offset));
        let account = server.map(open).transpose().map_err(refused)?;
        let params = Params { priority: Priority(priority as u16), quantum: QUANTUM };
        let id = VcpuId(vcpu as u8);
        self.scheduler.arrive(id, params, false).map_err(refused)?;
        if let Some(account) = account {
            self.scheduler.set_server(id, &account, Instant(0));
        }
        Ok(())
    }
}

/// How many global and local resources there are.
pub(super) fn resources(system: &System) -> (usize, usize) {
    let needs = || system.tasks.iter().flat_map(|task| &task.segments).map(|s| s.need);
    let global = |need| if let Need::Global(resource) = need { Some(resource + 1) } else { None };
    let local = |need| if let Need::Local(resource) = need { Some(resource + 1) } else { None };
    (needs().filter_map(global).max().unwrap_or(0), needs().filter_map(local).max().unwrap_or(0))
}

pub(super) fn guest(system: &System, vcpu: usize, locals: usize) -> Guest {
    let mut mine: Vec<_> =
        (0..system.tasks.len()).filter(|&task| system.tasks[task].vcpu == vcpu).collect();
    mine.sort_by_key(|&task| Reverse(system.tasks[task].rank()));
    let uses = |task: usize, resource| {
        system.tasks[task].segments.iter().any(|s| s.need == Need::Local(resource))
    };
    let handlers = mine.iter().filter(|&&task| system.tasks[task].handler).count();
    Guest::new(mine, handlers, locals, uses)
}

pub(super) fn tasks(system: &System, vcpus: &[Vcpu]) -> Vec<Active> {
    let priorities = system.task_priorities();
    let place = |list: &[u64], wanted| list.iter().position(|&p| p == wanted).unwrap_or(0) as u8;
    let active = |(index, task): (usize, &crate::system::Task)| {
        let mates = &vcpus[task.vcpu].guest.tasks;
        let rank = mates.iter().position(|&mate| mate == index).unwrap_or(0) as u8;
        let claim = match system.protocol {
            // It claims nothing.
            _ if task.handler => u8::MAX,
            Protocol::Vmpcp => rank,
            Protocol::Mpcp => place(&priorities, task.priority),
        };
        Active::new(task, rank, claim)
    };
    system.tasks.iter().enumerate().map(active).collect()
}

pub(crate) fn low_bits(count: usize) -> u64 {
    if count == 64 { u64::MAX } else { (1 << count) - 1 }
}
