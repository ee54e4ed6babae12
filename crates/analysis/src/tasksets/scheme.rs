//! The four schemes, and what each makes of a taskset.

use super::setting::{Budgets, GRAIN_NS};
use crate::bounds::{Bounds, Computed, Workload};
use crate::model::{Ns, ServerKind, System};

/// A server, with overrun or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Periodic server with overrun.
    PSwO,
    /// Deferrable server with overrun.
    DSwO,
    /// Periodic server, no overrun.
    PSnO,
    /// Deferrable server, no overrun.
    DSnO,
}

impl Scheme {
    /// In the paper's order.
    pub const ALL: [Self; 4] = [Self::PSwO, Self::DSwO, Self::PSnO, Self::DSnO];

    /// As the paper calls it.
    pub fn name(self) -> &'static str {
        ["PSwO", "DSwO", "PSnO", "DSnO"][self as usize]
    }

    fn server(self) -> (ServerKind, bool) {
        let kind = match self {
            Self::PSwO | Self::PSnO => ServerKind::Periodic,
            Self::DSwO | Self::DSnO => ServerKind::Deferrable,
        };
        (kind, matches!(self, Self::PSwO | Self::DSwO))
    }
}

/// Which schemes make a taskset schedulable, in the order of [`Scheme::ALL`].
///
/// # Errors
/// When a time overflows, which times of milliseconds do not.
pub fn schedulable(system: &System, budgets: Budgets) -> Computed<[bool; 4]> {
    let mut workload = Workload::new(system, Bounds::Published)?;
    let mut responses = vec![None; workload.tasks()];
    let period = system.vcpus.first().map_or(0, |vcpu| vcpu.period_ns);
    let mut verdicts = [false; 4];
    for (scheme, verdict) in Scheme::ALL.into_iter().zip(&mut verdicts) {
        let (server, overrun) = scheme.server();
        workload.set_server(
            match budgets {
                Budgets::EachServer => server,
                Budgets::Deferrable => ServerKind::Deferrable,
            },
            overrun,
        );
        let fits = largest_budget(&mut workload, period)?.is_some();
        workload.set_server(server, overrun);
        *verdict = fits && workload.tasks_schedulable(&mut responses)?;
    }
    Ok(verdicts)
}

/// Gives all vCPUs the largest budget, a multiple of 10 µs, with which all pass
/// Equation 5, and answers it. The paper walks down from the period; we halve.
///
/// That finds the same, since with one budget C and one period T for all, less
/// budget never harms. Let a response time be C + X: of each higher vCPU,
/// ceil((C + X + J) / T) periods count. With J = T - C that is ceil((X + T) / T),
/// without C, and with J = 0 it grows with C; what is multiplied by it grows with
/// C, and so does blocking. So X grows with C either way.
fn largest_budget(workload: &mut Workload, period: Ns) -> Computed<Option<Ns>> {
    let (mut fits, mut too_much) = (0, period / GRAIN_NS + 1);
    while too_much - fits > 1 {
        let middle = fits + (too_much - fits) / 2;
        set_all(workload, middle * GRAIN_NS);
        if workload.vcpus_schedulable()? { fits = middle } else { too_much = middle }
    }
    if fits == 0 {
        return Ok(None);
    }
    set_all(workload, fits * GRAIN_NS);
    Ok(Some(fits * GRAIN_NS))
}

fn set_all(workload: &mut Workload, budget: Ns) {
    for vcpu in 0..workload.vcpus() {
        workload.set_budget(vcpu, budget);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Choices, Setting};
    use super::super::{draw, random};
    use super::*;

    /// The paper's way: down from the period, 10 µs at a time.
    fn walked_down(workload: &mut Workload, period: Ns) -> Option<Ns> {
        let budgets = (1..=period / GRAIN_NS).rev().map(|grains| grains * GRAIN_NS);
        budgets.into_iter().find(|&budget| {
            set_all(workload, budget);
            workload.vcpus_schedulable().unwrap()
        })
    }

    #[test]
    fn halving_finds_what_walking_finds() {
        let long = Setting { gcs_ns: 150_000, lockers_per_mutex: 8, ..Setting::BASE };
        let crowded = Setting { pcpus: 2, vcpus_per_pcpu: 4, lockers_per_mutex: 1, ..long };
        let mut none = 0;
        for (figure, setting) in [Setting::BASE, long, crowded].into_iter().enumerate() {
            for index in 0..20 {
                let mut random = random(7, figure as u32, 0, index);
                let system = draw(&setting, Choices::BASE, &mut random);
                let mut workload = Workload::new(&system, Bounds::Published).unwrap();
                for (server, overrun) in Scheme::ALL.map(Scheme::server) {
                    workload.set_server(server, overrun);
                    let found = largest_budget(&mut workload, setting.vcpu_period_ns).unwrap();
                    assert_eq!(found, walked_down(&mut workload, setting.vcpu_period_ns));
                    none += usize::from(found.is_none());
                }
            }
        }
        assert!(none < 3 * 20 * 4, "some have a budget");
    }

    /// One core, two vCPUs, one gcs of 10 µs for each of three tasks: a deferrable
    /// server can run twice in a period of the other.
    #[test]
    fn budgets_are_those_of_equation_5() {
        let setting = Setting { pcpus: 1, ..Setting::BASE };
        let system = draw(&setting, Choices::BASE, &mut random(1, 0, 0, 0));
        let mut workload = Workload::new(&system, Bounds::Published).unwrap();
        let mut budget = |(server, overrun)| {
            workload.set_server(server, overrun);
            largest_budget(&mut workload, setting.vcpu_period_ns).unwrap()
        };
        // 2 (C + 30) <= 5000; 3 (C + 30) <= 5000; 2 C <= 5000; 3 C <= 5000.
        let expected = [2_470_000, 1_630_000, 2_500_000, 1_660_000].map(Some);
        assert_eq!(Scheme::ALL.map(|scheme| budget(scheme.server())), expected);
    }
}
