//! What EL2 does on cores because vCPUs migrate, or stop together.
//!
//! A vCPU that loses its core may go to another one, and comes back later; siblings may have to
//! stop for it. Each time, cores interrupt one another: so jobs on one pCPU cause visits to EL2 on
//! others, where no task is released.

use super::{Ns, Problem, System};

/// Something that happens again and again, and makes EL2 visit cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// When it happens.
    pub cause: Cause,
    /// What EL2 does each time; no pCPU is named twice.
    pub visits: Vec<Visits>,
}

/// When something happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Each time that one of these vCPUs, all of one pCPU, begins to run there and displaces
    /// another one. It happens once until that one has its core back.
    Displacement {
        /// Indices of the vCPUs that displace it, at least one.
        by: Vec<usize>,
    },
    /// Again and again, never sooner than after so many nanoseconds, at least 1.
    Every(Ns),
}

/// What EL2 does on one pCPU each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visits {
    /// The pCPU.
    pub pcpu: u32,
    /// Visits for which another core has rung, each with a switch.
    pub doorbells: u64,
    /// Visits for which EL2's timer has fired, each with a switch.
    pub timers: u64,
    /// vCPUs that are handed over in a visit that is counted otherwise.
    pub departures: u64,
}

impl System {
    /// Checks that causes name vCPUs of one pCPU, and pCPUs once.
    pub(super) fn check_traffic(&self) -> Result<(), Problem> {
        self.traffic.iter().enumerate().try_for_each(|(index, traffic)| {
            let place = |key: &str| format!("traffic[{index}].{key}");
            let named = |pcpu| traffic.visits.iter().filter(|one| one.pcpu == pcpu).count();
            if let Some(twice) = traffic.visits.iter().find(|visits| named(visits.pcpu) > 1) {
                let what = format!("pCPU {} is named twice", twice.pcpu);
                return Err(Problem::new(place("visits"), what, "add up what EL2 does there"));
            }
            match &traffic.cause {
                Cause::Every(0) => {
                    let what = "it happens every 0 ns";
                    Err(Problem::new(place("every"), what, "give at least 1 ns"))
                }
                Cause::Every(_) => Ok(()),
                Cause::Displacement { by } => self.check_displacement(by, &place("by")),
            }
        })
    }

    fn check_displacement(&self, by: &[usize], place: &str) -> Result<(), Problem> {
        let Some(&first) = by.first() else {
            return Err(Problem::new(place, "no vCPU displaces any", "name at least one"));
        };
        if let Some(unknown) = by.iter().find(|vcpu| **vcpu >= self.vcpus.len()) {
            let what = format!("there is no vCPU with index {unknown}");
            return Err(Problem::new(place, what, "indices begin with 0"));
        }
        let pcpu = |vcpu: usize| self.vcpus[vcpu].pcpu;
        if let Some(&other) = by.iter().find(|vcpu| pcpu(**vcpu) != pcpu(first)) {
            let names = [first, other].map(|vcpu| &self.vcpus[vcpu].id);
            let what = format!("vCPUs `{}` and `{}` are on two pCPUs", names[0], names[1]);
            let mend = "a vCPU loses one core: make it two causes";
            return Err(Problem::new(place, what, mend));
        }
        Ok(())
    }
}
