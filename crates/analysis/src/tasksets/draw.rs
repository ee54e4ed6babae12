//! Random tasksets, as section V-A of the paper describes them, and as we chose
//! where it does not.

use super::setting::{Choices, GRAIN_NS, Lockers, Order, Setting, Split};
use crate::model::{Ns, Section, Segment, ServerKind, System, Task, Vcpu};
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// The random numbers of taskset `index` at `point` of `figure`.
pub fn random(seed: u64, figure: u32, point: usize, index: u64) -> ChaCha8Rng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..12].copy_from_slice(&figure.to_le_bytes());
    bytes[16..24].copy_from_slice(&(point as u64).to_le_bytes());
    bytes[24..].copy_from_slice(&index.to_le_bytes());
    ChaCha8Rng::from_seed(bytes)
}

/// Draws a taskset. Budgets are those of whole periods: they are searched later.
/// Names are empty.
pub fn draw(setting: &Setting, choices: Choices, random: &mut ChaCha8Rng) -> System {
    let priorities = vcpu_priorities(setting, choices.order, random);
    let vcpus = (0..setting.vcpus()).map(|index| Vcpu {
        id: String::new(),
        pcpu: u32::try_from(index / setting.vcpus_per_pcpu).unwrap_or(u32::MAX),
        budget_ns: setting.vcpu_period_ns,
        period_ns: setting.vcpu_period_ns,
        priority: priorities[index],
        offset_ns: 0,
    });
    let vcpus = vcpus.collect();
    let mut tasks = Vec::with_capacity(setting.tasks());
    for vcpu in 0..setting.vcpus() {
        draw_tasks(setting, choices.split, vcpu, random, &mut tasks);
    }
    let mutexes = share(setting, choices.lockers, &mut tasks, random);
    System {
        server: ServerKind::Periodic,
        overrun: false,
        vcpus,
        tasks,
        resources: vec![String::new(); mutexes],
        traffic: Vec::new(),
        handlers: Vec::new(),
    }
}

fn vcpu_priorities(setting: &Setting, order: Order, random: &mut ChaCha8Rng) -> Vec<i64> {
    let (count, layer) = (setting.vcpus(), setting.vcpus_per_pcpu);
    match order {
        Order::Random => {
            let mut priorities: Vec<_> = (0..count as i64).collect();
            shuffle(&mut priorities, random);
            priorities
        }
        Order::Layers => {
            let rank = |index: usize| (index % layer) * setting.pcpus + index / layer;
            (0..count).map(|index| rank(index) as i64).collect()
        }
        Order::Tied => (0..count).map(|index| (index % layer) as i64).collect(),
    }
}

/// Tasks of one vCPU. Each has room for its gcs's and at least the grain before,
/// between and after them: other splits are drawn again.
fn draw_tasks(
    setting: &Setting,
    split: Split,
    vcpu: usize,
    random: &mut ChaCha8Rng,
    tasks: &mut Vec<Task>,
) {
    let first = tasks.len();
    let gcs = setting.gcs_per_task as u64;
    let least = gcs * setting.gcs_ns + (gcs + 1) * GRAIN_NS;
    loop {
        tasks.truncate(first);
        let pieces = pieces(setting.tasks_per_vcpu, split, random);
        for piece in pieces {
            let grains = (setting.max_period_ns - setting.min_period_ns) / GRAIN_NS + 1;
            let period_ns = setting.min_period_ns + below(grains, random) * GRAIN_NS;
            let wcet_ns = (piece * setting.utilization * period_ns as f64).round() as Ns;
            tasks.push(Task {
                id: String::new(),
                vcpu,
                period_ns,
                priority: 0,
                segments: vec![Segment { wcet_ns, section: Section::Normal }],
                offset_ns: 0,
                jitter_ns: 0,
            });
        }
        if tasks[first..].iter().all(|task| task.segments[0].wcet_ns >= least) {
            break;
        }
    }
    rate_monotonic(&mut tasks[first..]);
}

/// Shorter periods, higher priorities; among equals the later one.
fn rate_monotonic(tasks: &mut [Task]) {
    for index in 0..tasks.len() {
        let key = |other: usize| (std::cmp::Reverse(tasks[other].period_ns), other);
        let below = (0..tasks.len()).filter(|&other| key(other) < key(index)).count();
        tasks[index].priority = below as i64;
    }
}

/// Shares of 1, as many as there are tasks.
fn pieces(count: usize, split: Split, random: &mut ChaCha8Rng) -> Vec<f64> {
    match split {
        Split::Uniform => {
            let mut cuts: Vec<f64> = (1..count).map(|_| unit(random)).collect();
            cuts.sort_unstable_by(f64::total_cmp);
            cuts.push(1.0);
            let mut before = 0.0;
            cuts.iter().map(|&cut| cut - std::mem::replace(&mut before, cut)).collect()
        }
        Split::Weights => {
            let weights: Vec<f64> = (0..count).map(|_| unit(random)).collect();
            let total: f64 = weights.iter().sum();
            weights.iter().map(|weight| weight / total).collect()
        }
    }
}

/// Gives every task its gcs's, normal execution evenly around them. For the
/// first gcs of all tasks, the tasks are dealt into groups, one mutex each; for
/// the second anew, and so on. Answers the number of mutexes.
fn share(
    setting: &Setting,
    lockers: Lockers,
    tasks: &mut [Task],
    random: &mut ChaCha8Rng,
) -> usize {
    let gcs = setting.gcs_per_task;
    for task in tasks.iter_mut() {
        let normal = task.segments[0].wcet_ns - gcs as u64 * setting.gcs_ns;
        let (each, rest) = (normal / (gcs as u64 + 1), normal % (gcs as u64 + 1));
        task.segments[0].wcet_ns = each + rest;
        task.segments.reserve_exact(2 * gcs);
        for _ in 0..gcs {
            task.segments.push(Segment { wcet_ns: setting.gcs_ns, section: Section::Global(0) });
            task.segments.push(Segment { wcet_ns: each, section: Section::Normal });
        }
    }
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    let groups = tasks.len() / setting.lockers_per_mutex;
    for number in 0..gcs {
        // Every choice takes the same random numbers: the tasksets differ in the groups only.
        shuffle(&mut order, random);
        match lockers {
            Lockers::Anywhere => {}
            // Neighbours in the order are of different vCPUs: deal vCPU by vCPU,
            // one task of each in turn.
            Lockers::Apart => order.sort_by_key(|&task| task % setting.tasks_per_vcpu),
            Lockers::Consecutive => order.sort_unstable(),
        }
        for (place, &task) in order.iter().enumerate() {
            let mutex = number * groups + place / setting.lockers_per_mutex;
            tasks[task].segments[2 * number + 1].section = Section::Global(mutex);
        }
    }
    gcs * groups
}

/// From 0 to 1, 1 excluded.
fn unit(random: &mut ChaCha8Rng) -> f64 {
    let bits = (random.next_u64() >> 11) as f64;
    bits / (1_u64 << 53) as f64
}

/// From 0 to `count`, excluded; the bias is less than 2^-40 for counts of ours.
fn below(count: u64, random: &mut ChaCha8Rng) -> u64 {
    let product = u128::from(random.next_u64()) * u128::from(count);
    (product >> 64) as u64
}

/// Fisher and Yates.
fn shuffle<T>(items: &mut [T], random: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        let other = below(last as u64 + 1, random) as usize;
        items.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(setting: &Setting, choices: Choices) -> System {
        draw(setting, choices, &mut random(1, 6, 0, 3))
    }

    #[test]
    fn a_taskset_is_what_the_setting_says() {
        let setting = Setting { gcs_per_task: 2, lockers_per_mutex: 4, ..Setting::BASE };
        for choices in Choices::OTHERS.map(|(_, choices)| choices) {
            let system = drawn(&setting, choices);
            assert_eq!((system.vcpus.len(), system.tasks.len()), (16, 48));
            assert_eq!(system.resources.len(), 2 * 48 / 4);
            let mut lockers = vec![0; system.resources.len()];
            for task in &system.tasks {
                for segment in &task.segments {
                    if let Section::Global(mutex) = segment.section {
                        assert_eq!(segment.wcet_ns, 10_000);
                        lockers[mutex] += 1;
                    }
                }
                assert!((100_000_000..=500_000_000).contains(&task.period_ns));
            }
            assert!(lockers.iter().all(|&lockers| lockers == 4), "{lockers:?}");
            for vcpu in 0..16 {
                let load = |task: &Task| {
                    let wcet: Ns = task.segments.iter().map(|segment| segment.wcet_ns).sum();
                    wcet as f64 / task.period_ns as f64
                };
                let tasks = system.tasks.iter().filter(|task| task.vcpu == vcpu);
                let total: f64 = tasks.map(load).sum();
                assert!((total - 0.15).abs() < 1e-6, "{total}");
            }
        }
    }

    #[test]
    fn priorities_are_rate_monotonic() {
        let system = drawn(&Setting::BASE, Choices::BASE);
        for (a, b) in system.tasks.iter().zip(&system.tasks[1..]).filter(|(a, b)| a.vcpu == b.vcpu)
        {
            assert_ne!(a.priority, b.priority);
            assert!(
                a.period_ns == b.period_ns
                    || (a.period_ns < b.period_ns) == (a.priority > b.priority)
            );
        }
    }

    #[test]
    fn lockers_apart_are_on_different_vcpus() {
        let setting = Setting { lockers_per_mutex: 8, ..Setting::BASE };
        let apart = |lockers| {
            let system = drawn(&setting, Choices { lockers, ..Choices::BASE });
            let mut seen = std::collections::HashSet::new();
            let used = system.tasks.iter().map(|task| (task.vcpu, task.segments[1].section));
            used.into_iter().all(|pair| seen.insert(format!("{pair:?}")))
        };
        assert!(apart(Lockers::Apart) && !apart(Lockers::Anywhere));
    }

    #[test]
    fn consecutive_lockers_are_neighbours_and_nothing_else_differs() {
        let setting = Setting { lockers_per_mutex: 4, gcs_per_task: 2, ..Setting::BASE };
        let system = |lockers| drawn(&setting, Choices { lockers, ..Choices::BASE });
        let (near, anywhere) = (system(Lockers::Consecutive), system(Lockers::Anywhere));
        for (index, task) in near.tasks.iter().enumerate() {
            assert_eq!(task.segments[1].section, Section::Global(index / 4));
            assert_eq!(task.segments[3].section, Section::Global(48 / 4 + index / 4));
            assert_eq!(task.period_ns, anywhere.tasks[index].period_ns);
        }
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let system =
            |seed, index| draw(&Setting::BASE, Choices::BASE, &mut random(seed, 6, 0, index));
        assert_eq!(system(1, 0), system(1, 0));
        assert_ne!(system(1, 0), system(1, 1));
        assert_ne!(system(1, 0), system(2, 0));
    }
}
