//! What is seen of lock holder preemption itself: how long the Linux vCPU
//! that shares its core waited, and how much the others spun.

use super::Lhp;
use super::description::SPINNING;
use super::point::Experiment;
use super::run::{Measurement, Vcpu};
use crate::quantity::{count, percent};
use crate::table::Table;
use serde_json::{Map, Value, json};

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
    #[allow(clippy::cast_precision_loss)] // a share
    let share = spun.waiting as f64 / spun.all.max(1) as f64;
    Some(format!("{} ({})", count(spun.waiting), percent(share)))
}

#[cfg(test)]
mod tests {
    use super::super::run::Spun;
    use super::super::tests::{lhp, measured};

    #[test]
    fn a_policy_that_was_measured_has_a_line() {
        let mut none = measured("spinning-none", &[1.0]);
        let spun = Spun { waiting: 12_345, all: 100_000 };
        none.spinning.insert("spinlock".into(), spun);
        let all = lhp(vec![none]);
        assert_eq!(all.seen_table().rows.len(), 1);
        assert_eq!(all.seen_json()["none"]["spinning"]["spinlock"]["waiting"], 12_345);
    }
}
