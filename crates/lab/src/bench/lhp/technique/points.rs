//! Which points of the papers' techniques there are, and how each is run.

use super::super::description::Setting;
use super::super::plan::{CORES, DEDICATED, LOOPS, PERIOD_US, SHORT_PERIOD_US};
use super::super::point::{Experiment, Linux, Point, Rtos, Stage};
use super::super::policy::{NONE, Policy};
use super::{
    COLUMNS_EVERYWHERE, Column, FEW_INFORMED_LOADS, FEW_LOADS, FIXED, INFORMED_LOADS, Kernel, LAZY,
    LOADS, ON_DEMAND, PAGE, ROWS, TRAP, Technique, When,
};
use crate::bench::Extent;
use crate::guests::LinuxProgress;
use sched::policy::{MigrationPolicy, Request};

/// Loops of one wait after which the port yields, beside its default, those of them for which there is
/// room, and how often the module looks.
const LOOPS_SWEPT: [u32; 4] = [1, 64, 16_384, 65_536];
const FEW_LOOPS_SWEPT: [u32; 2] = [1, 16_384];
const LOOKS_SWEPT: [u32; 3] = [64, 1_024, 16_384];
/// Activations of the RTOS where its latency is measured, and where that is done coarsely.
const ACTIVATIONS: u32 = 5_000;
const FEW_ACTIVATIONS: u32 = 500;
/// Runs of hackbench, the first of which is not counted, where something is stated, and elsewhere. With two
/// that count, a mean is known to its double only.
const RUNS: u32 = 13;
const FEW_RUNS: u32 = 3;

/// Returns whether a policy delays preemption by calls or by a page, as Linux is told.
fn preemption(policy: &str) -> Option<&'static str> {
    match MigrationPolicy::named(policy)?.policy().request() {
        Request::Call => Some("call"),
        Request::Page => Some("page"),
        Request::None | Request::Peek | Request::Mask => None,
    }
}

impl Technique {
    /// Returns how a point's name says it.
    pub fn name(self) -> String {
        let when = self.when.map(|when| format!("-{}", when.name())).unwrap_or_default();
        format!("{}-{}{when}", self.kernel.name(), self.column.name())
    }

    /// Returns what the description says of it, under `policy`.
    pub fn setting(self, policy: &str) -> Setting {
        let mut setting = Setting::default();
        if self.column.is_papers() {
            setting.hypervisor += "sibling_grace = \"0us\"\ndirected_yield = false\n";
        }
        if let Some(how) = preemption(policy) {
            setting.vm += "delay_limit = \"none\"\n";
            setting.words += &format!(" cassata.preemption={how}");
        }
        if self.column.yields() {
            setting.vm += "yield = true\n";
            let always = self.when == Some(When::Always);
            setting.words +=
                if always { " cassata.yield=always" } else { " cassata.yield=overcommitted" };
            if let Some(When::Loops(count) | When::Looks(count)) = self.when {
                setting.words += &format!(" cassata.threshold={count}");
            }
        }
        if let Some(how) = self.column.informed_by() {
            setting.vm += "yield = true\n";
            setting.words += &format!(" cassata.capacity={how}");
        }
        setting
    }

    /// Returns what is wrong with what Linux says that it used.
    pub fn objection(self, policy: &str, linux: &LinuxProgress) -> Option<String> {
        if self.column.informed_by().is_some()
            && linux.capacity_changes.is_none_or(|times| times == 0)
        {
            return Some("Linux told its scheduler nothing of its CPUs".into());
        }
        let said = linux.locks.as_ref();
        let yields = self.column.yields();
        let preemption = preemption(policy);
        if !yields && preemption.is_none() {
            return None;
        }
        let fits = said.is_some_and(|locks| {
            (locks.yields != "none") == yields
                && preemption.is_none_or(|how| locks.preemption.as_deref() == Some(how))
        });
        (!fits).then(|| format!("Linux does not do what it was told: {said:?}"))
    }
}

/// Returns the points. Those of the whole plan have no room for more than one load with the port.
pub fn points(extent: Extent) -> Vec<Point> {
    let mut points = Vec::new();
    let paper = extent == Extent::Paper;
    let technique = |kernel, column| Some(Technique { kernel, column, when: None });
    let quick = extent == Extent::Quick;
    // The ideal line of the port, and beside the papers' figures also two cores, and stock Linux.
    let kernels = if paper { &Kernel::ALL[..] } else { &[Kernel::Own] };
    for kernel in kernels.iter().filter(|_| !quick) {
        let alone = |cores| Point {
            technique: technique(*kernel, Column::Cassata),
            ..Point::new(Experiment::Technique, &hackbench(FEW_RUNS), Stage::Alone { cores }, None)
        };
        let least = if paper { 2 } else { CORES - 1 };
        points.extend(DEDICATED.into_iter().filter(|cores| *cores >= least).map(alone));
    }
    for (kernel, column, policy) in compared(!paper) {
        // What the papers' Figures 8 and 9 are about, and no more.
        if quick && ([TRAP, NONE].contains(&policy.name) || !column.is_papers()) {
            continue;
        }
        let its = Technique { kernel, column, when: None };
        for &load in if paper { &LOADS[..] } else { &FEW_LOADS[..] } {
            let point = its.point(policy, load);
            let is_stated =
                kernel == Kernel::Own && (column == Column::Paper || policy.name == FIXED);
            let linux = if is_stated && !quick { hackbench(RUNS) } else { point.linux };
            points.push(Point { linux, ..point });
        }
        if kernel == Kernel::Own && !quick {
            let activations = if paper { ACTIVATIONS } else { FEW_ACTIVATIONS };
            let rtos = Rtos::new(0, SHORT_PERIOD_US, activations);
            points.push(its.beside(
                policy,
                &Linux::BusyHackbench,
                Rtos { jitter_percent: 10, ..rtos },
            ));
        }
    }
    if !quick {
        points.extend(with_the_module(paper));
    }
    points
}

/// Returns the points of stock Linux with a module by which it yields, or its scheduler is informed; and
/// those by which thresholds are compared, and yielding always. `all`: there is room for all of them.
fn with_the_module(all: bool) -> Vec<Point> {
    let named = |name: &str| Policy::named(name).expect("a policy of the table");
    let stock = |column| Technique { kernel: Kernel::Stock, column, when: None };
    let mut points = Vec::new();
    for &load in if all { &INFORMED_LOADS[..] } else { &FEW_INFORMED_LOADS[..] } {
        let thoroughly = all || FEW_LOADS.contains(&load);
        for column in [Column::Informed, Column::InformedStolen] {
            points.push(stock(column).point(named(ON_DEMAND), load));
        }
        if thoroughly {
            points.push(stock(Column::InformedStolen).point(named(NONE), load));
            let others = [Column::CassataYield, Column::Wfe];
            points.extend(others.map(|column| stock(column).point(named(ON_DEMAND), load)));
        }
    }
    if !all {
        let papers = [Column::Paper, Column::PaperYield];
        points.extend(papers.map(|column| stock(column).point(named(FIXED), FEW_LOADS[0])));
    }
    let always = [Kernel::Own, Kernel::Stock].map(|kernel| (kernel, When::Always));
    let loops = if all { &LOOPS_SWEPT[..] } else { &FEW_LOOPS_SWEPT[..] };
    let loops = loops.iter().map(|&count| (Kernel::Own, When::Loops(count)));
    let looks = LOOKS_SWEPT.map(|count| (Kernel::Stock, When::Looks(count)));
    let looks = looks.into_iter().filter(|_| all);
    for (kernel, when) in always.into_iter().chain(loops).chain(looks) {
        let its = Technique { kernel, column: Column::PaperYield, when: Some(when) };
        points.push(its.point(named(FIXED), FEW_LOADS[0]));
    }
    points
}

/// What Linux does where its time is taken.
const fn hackbench(runs: u32) -> Linux {
    Linux::Hackbench { loops: LOOPS, runs }
}

impl Technique {
    /// Returns a point with so much load.
    fn point(self, policy: Policy, load: u32) -> Point {
        self.beside(policy, &hackbench(FEW_RUNS), Rtos::new(load, PERIOD_US, 0))
    }

    fn beside(self, policy: Policy, linux: &Linux, rtos: Rtos) -> Point {
        let advance_us = self.column.is_papers().then_some(0);
        let stage = Stage::shared(policy);
        let point =
            Point::new(Experiment::Technique, linux, stage, Some(Rtos { advance_us, ..rtos }));
        Point { technique: Some(self), ..point }
    }
}

/// Returns all policies in all columns that they have; coarsely, with the port only, and only the control
/// `none`, the techniques of PECCS, and on-demand and trap-based migration of ours.
fn compared(coarsely: bool) -> Vec<(Kernel, Column, Policy)> {
    let mut all = Vec::new();
    for kernel in Kernel::ALL {
        for row in ROWS
            .iter()
            .filter(|row| !coarsely || ![Some(PAGE), Some(LAZY), None].contains(&row.policies[0]))
        {
            // Of the rest, stock Linux has what [`with_the_module`] says.
            for (column, name) in Column::ALL.into_iter().zip(row.policies).take(COLUMNS_EVERYWHERE)
            {
                let wanted = !coarsely || kernel == Kernel::Own;
                let policy = name.filter(|name| wanted && kernel.has(name)).and_then(Policy::named);
                all.extend(policy.map(|policy| (kernel, column, policy)));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::{CALL, PEEK};
    use super::*;
    use crate::guests::Locks;

    #[test]
    fn linux_must_do_what_it_was_told() {
        let technique = |column| Technique { kernel: Kernel::Own, column, when: None };
        let said = |preemption: &str, yields: &str| {
            let locks = Locks {
                preemption: Some(preemption.into()),
                yields: yields.into(),
                ..Locks::default()
            };
            LinuxProgress { locks: Some(locks), ..LinuxProgress::default() }
        };
        let paper = technique(Column::Paper);
        let nothing = LinuxProgress::default();
        assert_eq!(paper.objection(FIXED, &nothing), None);
        assert_eq!(paper.objection(PEEK, &nothing), None, "it need not know");
        assert_eq!(paper.objection(CALL, &said("call", "none")), None);
        assert!(paper.objection(CALL, &said("none", "none")).is_some());
        assert!(paper.objection(PAGE, &nothing).is_some());
        let yields = technique(Column::PaperYield);
        assert_eq!(yields.objection(FIXED, &said("none", "overcommitted")), None);
        assert!(yields.objection(FIXED, &said("none", "none")).is_some());
        let informed = technique(Column::Informed);
        let told =
            |capacity_changes| LinuxProgress { capacity_changes, ..LinuxProgress::default() };
        assert_eq!(informed.objection(ON_DEMAND, &told(Some(1))), None);
        assert!(informed.objection(ON_DEMAND, &told(Some(0))).is_some());
        assert!(informed.objection(ON_DEMAND, &nothing).is_some());
    }
}
