//! The systems that a seed draws for a machine: admitted by their bounds, until no more fit.

use abi::{MAX_PCPUS, MAX_VMS};
use analysis::bounds::{Bounds, Verdict, analyze_with};
use analysis::model::System;
use analysis::overheads::{DEFAULT_MARGIN_PERMILLE, Overheads, Paces, VIRTUAL_INSTRUCTION_PS};
use analysis::random::{Chance, draw, lengthen};
use std::collections::BTreeSet;

/// A unit of the drawn times: what EL2 and the probe take is short beside it, ns.
const UNIT: u64 = 50_000;
/// Offsets of servers are multiples of it: whole ticks of the board's counter, ns.
const OFFSETS: u64 = 2_000;
/// So many systems that do not fit any more, one after the other, end a machine.
const PATIENCE: usize = 5;

/// A machine.
#[derive(Clone, Debug)]
pub struct Machine {
    pub systems: Vec<Drawn>,
}

/// A system, and how it is spread over VMs.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub system: System,
    /// The vCPUs from this one on are in a second VM, if there are any.
    pub split: usize,
    /// The least that a job executes, percent of what is declared.
    pub least_percent: u64,
}

impl Machine {
    /// Draws the machine of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut chance = Chance::seeded(seed);
        let mut machine = Self { systems: Vec::new() };
        let mut refused = 0;
        while refused < PATIENCE {
            let drawn = Drawn::draw(&mut chance);
            if machine.has_room_for(&drawn) {
                machine.systems.push(drawn);
                refused = 0;
            } else {
                refused += 1;
            }
        }
        machine
    }

    fn has_room_for(&self, one: &Drawn) -> bool {
        let all = || self.systems.iter().chain([one]);
        let pcpus: usize = all().map(|drawn| drawn.pcpus().len()).sum();
        let vms: usize = all().map(Drawn::vms).sum();
        // Each has two global resources at most, and there are mutexes for more.
        pcpus <= MAX_PCPUS && vms <= MAX_VMS
    }
}

impl Drawn {
    /// Draws until a system is admitted. Two tasks at least, and no vCPU without one: there would
    /// be nothing to see. In half of the systems tasks on several pCPUs share a resource, and in
    /// half of those all tasks arrive at once: else tasks seldom meet at a mutex.
    fn draw(chance: &mut Chance) -> Self {
        let shares = chance.one_in(2);
        let meets = shares && chance.one_in(2);
        loop {
            let mut system = draw(chance);
            let vcpus = system.vcpus.len();
            let busy: BTreeSet<_> = system.tasks.iter().map(|task| task.vcpu).collect();
            if system.tasks.len() < 2 || busy.len() < vcpus || (shares && !shares_pcpus(&system)) {
                continue;
            }
            if meets {
                let longest = system.tasks.iter().map(|task| task.period_ns).max().unwrap_or(1);
                system.tasks.iter_mut().for_each(|task| task.period_ns = longest);
            }
            lengthen(&mut system, UNIT);
            if system.check().is_err() || !is_admitted(&system) {
                continue;
            }
            for vcpu in &mut system.vcpus {
                vcpu.offset_ns = OFFSETS * chance.between(0, (vcpu.period_ns - 1) / OFFSETS);
            }
            for task in system.tasks.iter_mut().filter(|_| !meets) {
                task.offset_ns = chance.between(0, task.period_ns - 1);
            }
            let last = vcpus as u64;
            let parted = last > 1 && chance.one_in(2);
            let split = if parted { chance.between(1, last - 1) } else { last };
            let least_percent = if chance.one_in(2) { 100 } else { chance.between(1, 99) };
            return Self { system, split: split as usize, least_percent };
        }
    }

    /// The pCPUs that it uses, as it numbers them.
    pub fn pcpus(&self) -> BTreeSet<u32> {
        self.system.vcpus.iter().map(|vcpu| vcpu.pcpu).collect()
    }

    /// How many VMs it needs.
    pub fn vms(&self) -> usize {
        1 + usize::from(self.split < self.system.vcpus.len())
    }
}

/// Returns true if tasks on several pCPUs use a global resource.
pub fn shares_pcpus(system: &System) -> bool {
    (0..system.resources.len()).any(|resource| {
        let users = system.tasks.iter().filter(|task| task.uses(resource));
        users.map(|task| system.vcpus[task.vcpu].pcpu).collect::<BTreeSet<_>>().len() > 1
    })
}

/// Returns true if every deadline holds, with what EL2 takes on the board.
fn is_admitted(system: &System) -> bool {
    let overheads =
        Overheads::measured(&Paces::all(VIRTUAL_INSTRUCTION_PS), DEFAULT_MARGIN_PERMILLE);
    let verdict = analyze_with(system, Bounds::Corrected, overheads);
    verdict.is_ok_and(|verdict: Verdict| verdict.schedulable())
}
