//! What is seen of lock holder preemption itself: how long the Linux vCPU
//! that shares its core waited, how much the others spun, and whether Linux's
//! kernel ran on the RTOS's core at all.

use super::Lhp;
use super::description::SPINNING;
use super::point::Experiment;
use super::policy::Policy;
use super::run::{Measurement, Spun, Vcpu};
use crate::dataset::{Dataset, Unit};
use crate::quantity::real;
use crate::results::{Check, Goal};

/// What heads a column of instructions that only waited, and of which they are a part.
pub(super) const WAITED: &str = "only waited, of Linux's instructions since its boot";

impl Measurement {
    fn linux(&self) -> impl Iterator<Item = &Vcpu> {
        self.vcpus.iter().filter(|vcpu| vcpu.name.starts_with("linux."))
    }

    /// Returns the seconds that Linux's vCPUs could have run while another one did.
    fn stolen_s(&self) -> f64 {
        self.linux().map(|vcpu| vcpu.stolen_s).sum()
    }

    /// Returns how often they were preempted in kernel mode, and for how long in all,
    /// seconds.
    pub(super) fn kernel_preempted(&self) -> (u64, f64) {
        let count = self.linux().map(|vcpu| vcpu.kernel_preemptions).sum();
        (count, self.linux().map(|vcpu| vcpu.kernel_preempted_s).sum())
    }

    /// Returns the percentage of Linux's instructions that only waited for a lock or a function, from its
    /// boot on.
    pub(super) fn spun_percent(&self) -> f64 {
        100.0 * self.spinning.values().map(Spun::share).sum::<f64>()
    }

    /// Returns the arrivals of Linux's vCPUs on other cores.
    fn migrations(&self) -> u64 {
        self.linux().map(|vcpu| vcpu.migrations).sum()
    }
}

impl Lhp {
    /// What was seen of it under each policy.
    pub(super) fn spinning_data(&self) -> Dataset {
        let title = "Lock holder preemption, the RTOS burning 80 % of core 0";
        let mut all = Dataset::of("spinning", title, self.of(Experiment::Spinning))
            .name("policy", |m| m.point.stage.name())
            .head("")
            .column("stolen", Unit::Seconds, |m| m.stolen_s())
            .name("migrations", |m| m.migrations())
            .name("kernel_preemptions", |m| m.kernel_preempted().0)
            .head("preempted in the kernel")
            .column("kernel_preempted", Unit::Seconds, |m| m.kernel_preempted().1)
            .head("for");
        for (what, _) in SPINNING {
            let spun = |m: &&Measurement| m.spinning.get(what).copied();
            all = all
                .column(&format!("waiting_for_{what}"), Unit::Instructions, |m| {
                    spun(m).map(|spun| spun.waiting)
                })
                .head(&format!("spinning: {what}"))
                .column(&format!("counted_for_{what}"), Unit::Instructions, |m| {
                    spun(m).map(|spun| spun.of_linux)
                })
                .for_programs()
                .column(&format!("share_for_{what}"), Unit::Share, |m| {
                    spun(m).map(|spun| spun.share())
                })
                .head("of Linux's instructions");
        }
        all.column("spun", Unit::Percent, |m| m.spun_percent())
            .head(WAITED)
            .digits(2)
            .column("runs", Unit::Seconds, |m| m.runs.0.clone())
            .for_programs()
            .done()
    }

    /// A policy that keeps Linux's kernel away from the RTOS's core does so from
    /// the kernel's first instruction on.
    pub(super) fn kernel_checks(&self) -> Vec<Check> {
        let planned = self.planned.iter().filter(|point| point.experiment == Experiment::Kernel);
        let away = planned.filter_map(|point| point.stage.policy().filter(|p| p.keeps_kernel_away));
        let check = |policy: Policy| {
            let found =
                self.of(Experiment::Kernel).find(|m| m.point.stage.policy() == Some(policy));
            let executed = found.and_then(|m| m.kernel.first()).map(|&executed| real(executed));
            let name = format!("{}: Linux's kernel on the RTOS's core", policy.name);
            Check::new(&name, executed, "instructions", Goal::Exactly(0.0))
        };
        away.map(check).collect()
    }

    /// Where Linux's kernel ran.
    pub(super) fn kernel_data(&self) -> Dataset {
        let counted = self.of(Experiment::Kernel).filter(|m| !m.kernel.is_empty());
        let title = "Instructions of Linux's kernel, from its boot on";
        Dataset::of("kernel", title, counted)
            .name("policy", |m| m.point.stage.name())
            .head("")
            .column("core_0", Unit::Instructions, |m| m.kernel[0])
            .head("core 0, the RTOS's")
            .column("others", Unit::Instructions, |m| m.kernel[1..].iter().sum::<u64>())
            .head("all others")
            .column("by_core", Unit::Instructions, |m| {
                m.kernel.iter().map(|executed| real(*executed)).collect::<Vec<_>>()
            })
            .for_programs()
            .done()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lhp, measured};
    use super::*;

    #[test]
    fn a_policy_that_was_measured_has_a_row() {
        let mut none = measured("spinning-none", &[1.0]);
        let spun = Spun { waiting: 12_345, of_linux: 100_000 };
        none.spinning.insert("spinlock".into(), spun);
        let data = lhp(vec![none]).spinning_data();
        assert_eq!(data.json()[0]["waiting_for_spinlock_instructions"], 12_345);
        let table = data.table();
        assert_eq!((table.rows.len(), table.rows[0].last().unwrap().as_str()), (1, "12.35 %"));
    }

    #[test]
    fn one_instruction_of_the_kernel_on_the_core_of_the_rtos_is_too_many() {
        let checks = |kernel: &[u64]| {
            let mut trap_based = measured("kernel-trap-based", &[1.0]);
            trap_based.kernel = kernel.into();
            let mut none = measured("kernel-none", &[1.0]);
            none.kernel = vec![7, 7];
            let all = lhp(vec![none, trap_based]);
            assert_eq!(all.kernel_data().json()[0]["others_instructions"], 7);
            all.kernel_checks().iter().map(Check::holds).collect::<Vec<_>>()
        };
        assert_eq!(checks(&[0, 500]), [true]);
        assert_eq!(checks(&[1, 500]), [false]);
        assert_eq!(checks(&[]), [false], "not counted");
    }
}
