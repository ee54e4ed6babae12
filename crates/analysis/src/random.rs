//! Random systems of vCPUs, tasks and resources, for tests of what is computed for them.

use crate::model::{Section, Segment, ServerKind, Service, System, Task, Vcpu};
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// No vCPU's period is longer, ns.
pub const LONGEST_PERIOD: u64 = 60;

/// Random numbers, the same for a seed on every computer.
#[derive(Debug)]
pub struct Chance(ChaCha8Rng);

impl Chance {
    /// Returns what follows from a seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Returns a number from `least` to `most`; what division favours is of no matter here.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.next_u64() % (most - least + 1)
    }

    /// Returns true in one of so many cases.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.between(1, count) == 1
    }
}

/// Draws a system with up to three cores, four vCPUs and six tasks of up to three segments. Small
/// numbers, so that everything collides.
pub fn draw(chance: &mut Chance) -> System {
    let Service { kind: server, overrun } = service(chance);
    let alike = chance.one_in(2);
    let cores = chance.between(1, 3);
    let common = chance.one_in(2).then(|| chance.between(10, 50));
    let mut vcpus: Vec<_> =
        (0..chance.between(1, 4)).map(|index| vcpu(index, cores, common, chance)).collect();
    let globals = chance.between(1, 2) as usize;
    let count = vcpus.len();
    let mut tasks: Vec<_> =
        (0..chance.between(1, 6)).map(|index| task(index, count, globals, chance)).collect();
    shuffle(vcpus.iter_mut().map(|vcpu| &mut vcpu.priority).collect(), chance);
    shuffle(tasks.iter_mut().map(|task| &mut task.priority).collect(), chance);
    let resources = (0..2 + 2 * count).map(|index| format!("r{index}")).collect();
    let vcpus = vcpus.into_iter().collect();
    let mut system = System {
        server,
        overrun,
        vcpus,
        tasks,
        resources,
        traffic: Vec::new(),
        handlers: Vec::new(),
    };
    if !alike {
        (0..count).for_each(|vcpu| system.set_service(vcpu, service(chance)));
    }
    system
}

fn service(chance: &mut Chance) -> Service {
    let kind = if chance.one_in(2) { ServerKind::Deferrable } else { ServerKind::Periodic };
    Service { kind, overrun: chance.one_in(2) }
}

/// The vCPU that is described first is not always the lowest.
fn shuffle(mut priorities: Vec<&mut i64>, chance: &mut Chance) {
    for last in (1..priorities.len()).rev() {
        let other = chance.between(0, last as u64) as usize;
        let (low, high) = priorities.split_at_mut(last);
        if let Some(other) = low.get_mut(other) {
            std::mem::swap(*other, high[0]);
        }
    }
}

fn vcpu(index: u64, cores: u64, common: Option<u64>, chance: &mut Chance) -> Vcpu {
    let period = common.unwrap_or_else(|| chance.between(10, LONGEST_PERIOD));
    Vcpu {
        id: format!("v{index}"),
        pcpu: chance.between(0, cores - 1) as u32,
        budget_ns: chance.between(1, period),
        period_ns: period,
        priority: index as i64,
        offset_ns: 0,
    }
}

fn task(index: u64, vcpus: usize, globals: usize, chance: &mut Chance) -> Task {
    let vcpu = chance.between(0, vcpus as u64 - 1) as usize;
    let period = chance.between(40, 440);
    let jitter = if chance.one_in(4) { chance.between(0, period / 2) } else { 0 };
    let mut segment = || {
        let section = match chance.between(0, 4) {
            0 | 1 => Section::Normal,
            2 | 3 => Section::Global(chance.between(0, globals as u64 - 1) as usize),
            _ => Section::Local(2 + 2 * vcpu + chance.between(0, 1) as usize),
        };
        Segment { wcet_ns: chance.between(1, 6), section }
    };
    let segments = [segment(), segment(), segment()];
    let length = chance.between(1, 3) as usize;
    Task {
        id: format!("t{index}"),
        vcpu,
        period_ns: period,
        priority: index as i64,
        segments: segments[..length].to_vec(),
        offset_ns: 0,
        jitter_ns: jitter,
    }
}

/// Makes everything in a system take `scale` times as long.
pub fn lengthen(system: &mut System, scale: u64) {
    for vcpu in &mut system.vcpus {
        (vcpu.budget_ns, vcpu.period_ns) = (vcpu.budget_ns * scale, vcpu.period_ns * scale);
    }
    for task in &mut system.tasks {
        (task.period_ns, task.jitter_ns) = (task.period_ns * scale, task.jitter_ns * scale);
        task.segments.iter_mut().for_each(|segment| segment.wcet_ns *= scale);
    }
}
