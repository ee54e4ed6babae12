//! All runs of the bench.

use super::case::{Case, Guest, Mode};
use crate::bench::Extent;

/// Other quanta than the default one, nanoseconds.
const QUANTA_NS: [u64; 5] = [500, 1_000, 5_000, 10_000, 20_000];

/// The runs, in this order.
pub fn cases(extent: Extent) -> Vec<Case> {
    match extent {
        Extent::Paper | Extent::Full => Sizes {
            cores: &[1, 2, 3, 4],
            boot_cores: &[1, 2, 4, 8],
            boots: 3,
            runs: 10,
            runs_besides: 4,
            machines: 10,
            interrupts: 62_500,
            loops: 1_000,
            cyclictests: 10,
            quanta_ns: &QUANTA_NS,
        },
        Extent::Quick => Sizes {
            cores: &[1, 2, 4],
            boot_cores: &[1, 4],
            boots: 1,
            runs: 4,
            runs_besides: 4,
            machines: 2,
            interrupts: 1_000,
            loops: 200,
            cyclictests: 2,
            quanta_ns: &[],
        },
    }
    .cases()
}

struct Sizes {
    cores: &'static [u32],
    boot_cores: &'static [u32],
    /// Of each kind: the quickest counts, for the host has other work too.
    boots: u32,
    /// Of hackbench on one machine, where there is a goal.
    runs: u32,
    /// And where there is none: other modes and quanta.
    runs_besides: u32,
    /// That are booted anew for one steady run of hackbench each, for each
    /// number of cores.
    machines: u32,
    /// Per core and each of the metronome's four phases.
    interrupts: u32,
    /// Per core.
    loops: u32,
    cyclictests: u32,
    quanta_ns: &'static [u64],
}

impl Sizes {
    fn cases(&self) -> Vec<Case> {
        let hackbench = Guest::Hackbench { runs: self.runs };
        let besides = Guest::Hackbench { runs: self.runs_besides };
        let mut cases = Vec::new();
        for repetition in 1..=self.boots {
            let boot = |cores| Case { repetition, ..Case::new(Guest::Boot, cores) };
            cases.push(Case { mode: Mode::Plain, ..boot(1) });
            cases.extend(self.boot_cores.iter().map(|&cores| boot(cores)));
        }
        cases.push(Case { mode: Mode::Plain, ..Case::new(hackbench, 1) });
        cases.extend(self.cores.iter().map(|&cores| Case::new(hackbench, cores)));
        cases.push(Case { busy_host: true, ..Case::new(hackbench, 4) });
        for &cores in self.cores {
            let boot = Case::new(Guest::ONE_STEADY_RUN, cores);
            cases.extend((1..=self.machines).map(|repetition| Case { repetition, ..boot }));
        }
        let interrupts = self.interrupts;
        cases.push(Case::new(Guest::Metronome { interrupts }, 4));
        let cyclictest = Case::new(Guest::Cyclictest { loops: self.loops }, 4);
        let repeated = (1..=self.cyclictests).map(|repetition| Case { repetition, ..cyclictest });
        cases.extend(repeated);
        let several = self.cores.iter().filter(|&&cores| cores > 1);
        let parallel = |&cores| Case { mode: Mode::Parallel, ..Case::new(besides, cores) };
        cases.extend(several.map(parallel));
        let at = |&quantum_ns| Case { quantum_ns, ..Case::new(besides, 4) };
        cases.extend(self.quanta_ns.iter().map(at));
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::store::Case as _;
    use std::collections::BTreeSet;

    #[test]
    fn the_full_matrix_takes_a_million_interrupts() {
        let taken = cases(Extent::Full).into_iter().find_map(|case| match case.guest {
            Guest::Metronome { interrupts } => Some(u64::from(interrupts * case.cores * 4)),
            _ => None,
        });
        assert_eq!(taken, Some(1_000_000));
    }

    #[test]
    fn the_full_matrix_has_ten_runs_in_either_reading() {
        let cases = cases(Extent::Full);
        for cores in 1..=4 {
            let within = Case::new(Guest::Hackbench { runs: 10 }, cores);
            let boot = Case::new(Guest::ONE_STEADY_RUN, cores);
            let of = |kind: Case| cases.iter().filter(|case| case.repeats(&kind)).count();
            assert_eq!((of(within), of(boot)), (1, 10), "{cores}");
        }
    }

    #[test]
    fn no_two_cases_share_a_name() {
        for extent in [Extent::Full, Extent::Quick] {
            let names: BTreeSet<_> = cases(extent).iter().map(Case::name).collect();
            assert_eq!(names.len(), cases(extent).len());
        }
    }
}
