//! What the scheduler promises: first as stories, then against oracles that are slow and
//! obvious.
//!
//! | module | story |
//! | --- | --- |
//! | `priorities` | the vCPU of highest priority runs |
//! | `turns` | equals take turns, and one may be yielded to |
//! | `away` | vCPUs that other cores have for a while |
//! | `held_back` | vCPUs that may not run for a while |
//! | `boosts` | vCPUs that have a second, higher position |
//! | `budgets` | servers and ceilings, and an oracle that keeps accounts tick by tick |
//! | `moves` | a vCPU takes its account along from core to core |
//! | `model` | the oracle of everything together |
//! | `properties` | whatever happens, the scheduler decides as the model does |
//! | `exhaustive` | so it does in every small system, in every history up to a depth |

extern crate std;
use super::*;
use std::vec::Vec;

mod away;
mod boosts;
mod budgets;
mod exhaustive;
mod held_back;
mod model;
mod moves;
mod priorities;
mod properties;
mod turns;

const LINUX: VcpuId = VcpuId(0);
const OTHER: VcpuId = VcpuId(1);
const RTOS: VcpuId = VcpuId(2);

fn params(priority: u16, quantum: u64) -> Params {
    Params { priority: Priority(priority), quantum: Duration(quantum) }
}

fn core(vcpus: &[(VcpuId, u16, u64)]) -> Scheduler {
    let mut core = Scheduler::new();
    for &(id, priority, quantum) in vcpus {
        core.arrive(id, params(priority, quantum), true).unwrap();
    }
    core
}

fn run(core: &mut Scheduler, now: u64) -> Option<u8> {
    core.decide(Instant(now)).owner().map(|id| id.0)
}
