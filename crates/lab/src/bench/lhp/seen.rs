//! What is seen of lock holder preemption itself: how long the Linux vCPU
//! that shares its core waited, how much the others spun, and whether Linux's
//! kernel ran on the RTOS's core at all.

use super::Lhp;
use super::description::SPINNING;
use super::migration::as_f64;
use super::point::Experiment;
use super::policy::Policy;
use super::run::{Measurement, Spun, Vcpu};
use crate::quantity::{count, percent};
use crate::report::{Row, rows};
use crate::results::{Check, Goal};
use crate::table::Table;
use maud::Markup;
use serde_json::{Map, Value, json};
use std::fmt::Write;

impl Measurement {
    fn linux(&self) -> impl Iterator<Item = &Vcpu> {
        self.vcpus.iter().filter(|vcpu| vcpu.name.starts_with("linux."))
    }

    /// Seconds that Linux's vCPUs could have run while another one did.
    fn stolen_s(&self) -> f64 {
        self.linux().map(|vcpu| vcpu.stolen_s).sum()
    }

    /// How often they were preempted in kernel mode, and for how long in all,
    /// seconds.
    fn kernel_preempted(&self) -> (u64, f64) {
        let count = self.linux().map(|vcpu| vcpu.kernel_preemptions).sum();
        (count, self.linux().map(|vcpu| vcpu.kernel_preempted_s).sum())
    }

    /// Arrivals of Linux's vCPUs on other cores.
    fn migrations(&self) -> u64 {
        self.linux().map(|vcpu| vcpu.migrations).sum()
    }
}

impl Lhp {
    /// A line for each policy.
    pub(super) fn seen_table(&self) -> Table {
        let waits = SPINNING.map(|(what, _)| format!("spinning: {what}"));
        let waits = waits.iter().map(String::as_str);
        let head = ["", "stolen", "migrations", "preempted in the kernel", "for"];
        let head = head.into_iter().chain(waits);
        let mut table = Table::new("Lock holder preemption, the RTOS burning 80 % of core 0", head);
        for m in self.of(Experiment::Spinning) {
            let spun = SPINNING.map(|(what, _)| spun(m, what).unwrap_or_else(|| "-".into()));
            let (preemptions, preempted_s) = m.kernel_preempted();
            let first = [
                m.point.stage.name(),
                format!("{:.1} ms", 1e3 * m.stolen_s()),
                count(m.migrations()),
                count(preemptions),
                format!("{:.1} ms", 1e3 * preempted_s),
            ];
            table.row(first.into_iter().chain(spun));
        }
        table
    }

    /// One line for each policy.
    pub(super) fn seen_csv(&self) -> String {
        let mut text = String::from(
            "policy,stolen_s,migrations,kernel_preemptions,kernel_preempted_s,waits_for,waiting,all\n",
        );
        for m in self.of(Experiment::Spinning) {
            let (name, stolen_s, migrations) = (m.point.stage.name(), m.stolen_s(), m.migrations());
            let (preemptions, preempted_s) = m.kernel_preempted();
            for (what, Spun { waiting, all }) in &m.spinning {
                let _ = writeln!(
                    text,
                    "{name},{stolen_s},{migrations},{preemptions},{preempted_s},{what},{waiting},{all}"
                );
            }
        }
        text
    }

    /// How long vCPUs lay preempted in the kernel, and how much was spun: for each a
    /// title, a name for a file, and bars by policy.
    pub(super) fn seen_figures(&self) -> [(&'static str, &'static str, Markup); 2] {
        let bars = |figure: &dyn Fn(&Measurement) -> (f64, String), across| {
            let row = |m: &Measurement| {
                let (value, text) = figure(m);
                Row { name: m.point.stage.name(), value, text }
            };
            rows(&self.of(Experiment::Spinning).map(row).collect::<Vec<_>>(), across)
        };
        let preempted = |m: &Measurement| {
            let (preemptions, preempted_s) = m.kernel_preempted();
            let ms = 1e3 * preempted_s;
            (ms, format!("{ms:.1} ms, {} times", count(preemptions)))
        };
        let spun = |m: &Measurement| {
            let percent = 100.0 * m.spinning.values().map(Spun::share).sum::<f64>();
            (percent, format!("{percent:.2} %"))
        };
        [
            (
                "Linux's vCPUs lay preempted in their kernel.",
                "preempted-in-kernel.svg",
                bars(&preempted, "ms, all vCPUs together"),
            ),
            (
                "Instructions that only waited for a lock or for a function on another core.",
                "spinning.svg",
                bars(&spun, "% of all instructions"),
            ),
        ]
    }

    /// One line for each core.
    pub(super) fn kernel_csv(&self) -> String {
        let mut text = String::from("policy,core,instructions\n");
        for m in self.of(Experiment::Kernel) {
            for (core, executed) in m.kernel.iter().enumerate() {
                let _ = writeln!(text, "{},{core},{executed}", m.point.stage.name());
            }
        }
        text
    }

    /// A policy that keeps Linux's kernel away from the RTOS's core does so from
    /// the kernel's first instruction on.
    pub(super) fn kernel_checks(&self) -> Vec<Check> {
        let planned = self.planned.iter().filter(|point| point.experiment == Experiment::Kernel);
        let away = planned.filter_map(|point| point.stage.policy().filter(|p| p.keeps_kernel_away));
        let check = |policy: Policy| {
            let found =
                self.of(Experiment::Kernel).find(|m| m.point.stage.policy() == Some(policy));
            let executed = found.and_then(|m| m.kernel.first()).map(|&executed| as_f64(executed));
            let name = format!("{}: Linux's kernel on the RTOS's core", policy.name);
            Check::new(&name, executed, "instructions", Goal::Exactly(0.0))
        };
        away.map(check).collect()
    }

    /// Where Linux's kernel ran.
    pub(super) fn kernel_table(&self) -> Table {
        let head = ["", "core 0, the RTOS's", "all others"];
        let mut table = Table::new("Instructions of Linux's kernel, from its boot on", head);
        for m in self.of(Experiment::Kernel) {
            let Some((first, others)) = m.kernel.split_first() else { continue };
            table.row([m.point.stage.name(), count(*first), count(others.iter().sum())]);
        }
        table
    }

    /// For programs: by policy, then by core.
    pub(super) fn kernel_json(&self) -> Value {
        let one = |m: &Measurement| (m.point.stage.name(), json!(m.kernel));
        Value::Object(self.of(Experiment::Kernel).map(one).collect::<Map<_, _>>())
    }

    /// For programs.
    pub(super) fn seen_json(&self) -> Value {
        let one = |m: &Measurement| {
            let value = json!({
                "stolen_s": m.stolen_s(), "migrations": m.migrations(),
                "kernel_preemptions": m.kernel_preempted().0,
                "kernel_preempted_s": m.kernel_preempted().1, "spinning": m.spinning,
                "runs_s": m.runs.0,
            });
            (m.point.stage.name(), value)
        };
        Value::Object(self.of(Experiment::Spinning).map(one).collect::<Map<_, _>>())
    }
}

/// Instructions and their share of all.
fn spun(m: &Measurement, what: &str) -> Option<String> {
    let spun = m.spinning.get(what)?;
    Some(format!("{} ({})", count(spun.waiting), percent(spun.share())))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lhp, measured};
    use super::*;

    #[test]
    fn a_policy_that_was_measured_has_a_line() {
        let mut none = measured("spinning-none", &[1.0]);
        let spun = Spun { waiting: 12_345, all: 100_000 };
        none.spinning.insert("spinlock".into(), spun);
        let all = lhp(vec![none]);
        assert_eq!(all.seen_table().rows.len(), 1);
        assert!(all.seen_csv().ends_with(",spinlock,12345,100000\n"), "{}", all.seen_csv());
        let [_, (_, _, spinning)] = all.seen_figures();
        assert!(spinning.into_string().contains("12.35 %"));
        assert_eq!(all.seen_json()["none"]["spinning"]["spinlock"]["waiting"], 12_345);
    }

    #[test]
    fn one_instruction_of_the_kernel_on_the_core_of_the_rtos_is_too_many() {
        let checks = |kernel: &[u64]| {
            let mut trap_based = measured("kernel-trap-based", &[1.0]);
            trap_based.kernel = kernel.into();
            let mut none = measured("kernel-none", &[1.0]);
            none.kernel = vec![7, 7];
            let all = lhp(vec![none, trap_based]);
            assert_eq!(all.kernel_json()["none"][0], 7);
            assert!(all.kernel_csv().contains("none,1,7\n"));
            all.kernel_checks().iter().map(Check::holds).collect::<Vec<_>>()
        };
        assert_eq!(checks(&[0, 500]), [true]);
        assert_eq!(checks(&[1, 500]), [false]);
        assert_eq!(checks(&[]), [false], "not counted");
    }
}
