//! No vCPU has more of all cores together than its server allows.
//!
//! Time passes in leaps, and a core that is in EL2 may pause there: what a vCPU had of a core that
//! did not notice the end of its budget in time is known, and allowed for.

use crate::arch::fake::machine::{self, Pause};
use crate::arch::fake::registers::CNTHP_CVAL;
use crate::arch::memory;
use crate::shared::EPOCH;
use crate::vcpu::budget;
use abi::status::{PcpuStatus, Status};
use abi::system::System;
use abi::{MAX_PCPUS, MAX_VCPUS};
use core::sync::atomic::Ordering;
use sched::{Instant, Member, VcpuId};

/// What was seen of a core at the latest look.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// It is in EL2, and not waiting there.
    busy: bool,
    /// The vCPU that has it.
    current: Option<usize>,
    /// When its timer fires.
    deadline: u64,
    /// How long it has been in EL2 without a wait.
    stay: u64,
}

/// What each vCPU had that no timer could have kept from it.
pub struct Supply {
    late: [u64; MAX_VCPUS],
    /// What each has had, by the latest look.
    run: [u64; MAX_VCPUS],
    cores: [Seen; MAX_PCPUS],
    now: u64,
}

/// Returns the vCPU that has a core, if the core has begun.
fn current(pcpu: &PcpuStatus) -> Option<usize> {
    let id = usize::try_from(pcpu.current).ok().filter(|&id| id < MAX_VCPUS);
    id.filter(|_| pcpu.online == 1)
}

impl Supply {
    /// Before anything has happened.
    pub const fn new() -> Self {
        let seen = Seen { busy: true, current: None, deadline: 0, stay: 0 };
        Self { late: [0; MAX_VCPUS], run: [0; MAX_VCPUS], cores: [seen; MAX_PCPUS], now: 0 }
    }

    /// Looks at the machine, before or after time has leapt, or the core `executed` has gone on.
    /// `state` returns in what a core pauses.
    pub fn look(
        &mut self,
        system: &System,
        executed: Option<usize>,
        state: impl Fn(usize) -> Option<Pause>,
    ) {
        // SAFETY: no core executes, so nothing else accesses the area.
        let status = unsafe { &*memory::at::<Status>(system.board.status_pa) };
        let now = machine::with(|machine| machine.now);
        for (core, seen) in self.cores.iter_mut().enumerate() {
            let before = *seen;
            *seen = Seen {
                busy: !matches!(state(core), Some(Pause::Guest | Pause::Wait)),
                current: current(&status.pcpus[core]),
                deadline: machine::with(|machine| machine.register(core, CNTHP_CVAL)),
                stay: 0,
            };
            let went_on = executed == Some(core);
            let since = if before.busy || went_on { self.now } else { before.deadline };
            let late = now - since.clamp(self.now, now);
            let stay = before.stay + late;
            seen.stay = if seen.busy { stay } else { 0 };
            let [before, after] = [before.current, seen.current];
            before.into_iter().for_each(|id| self.late[id] += late);
            // It has the core since an instant of this stay at EL2, which may be its first.
            after.filter(|_| went_on && before != after).into_iter().for_each(|id| {
                self.late[id] += stay;
            });
            // One may have had the core, for a job, and have it no more.
            for id in (0..MAX_VCPUS).filter(|&id| went_on && before != Some(id)) {
                if status.vcpus[id].run > self.run[id] {
                    self.late[id] += stay;
                }
            }
        }
        self.run = status.vcpus.each_ref().map(|vcpu| vcpu.run);
        self.now = now;
        self.check(system, status);
    }

    /// Stops if a vCPU has had more than the budgets of all periods that have begun.
    fn check(&self, system: &System, status: &Status) {
        let epoch = Instant(EPOCH.load(Ordering::Relaxed));
        if epoch.0 == 0 {
            // The boot core has not begun, and nothing runs.
            return;
        }
        for id in 0..system.header.vcpu_count as usize {
            let Some(account) = budget(system, VcpuId::numbered(id), epoch) else { continue };
            let server = account.server();
            let has = status.pcpus.iter().filter(|&pcpu| current(pcpu) == Some(id));
            let turn: u64 = has.map(|pcpu| self.now.saturating_sub(pcpu.since)).sum();
            let had = status.vcpus[id].run + turn;
            let first = account.replenished_at();
            let begun = self.now.checked_sub(first.0).map_or(0, |t| t / server.period.0 + 1);
            let most = begun * (server.budget.0 + server.overrun.0) + self.late[id];
            assert!(
                had <= most,
                "vCPU {id} had {had} ticks in {begun} periods of {} ticks: at most {most}, of which \
                 {} because its core was busy",
                server.budget.0,
                self.late[id]
            );
        }
    }
}
