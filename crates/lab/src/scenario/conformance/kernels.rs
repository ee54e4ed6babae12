//! Debian's other kernels boot and work beside FreeRTOS, with which they share a core.

use super::super::stock;
use crate::demo::{self, Demo, LINUX, RTOS};
use crate::guests::{Images, LinuxWork};
use crate::session::Run;
use crate::source::read;
use crate::suite::{Bench, Scenario};
use miette::Result;
use std::time::Duration;

/// How its scenarios' names begin.
const NAME: &str = "conformance-kernel";
/// Virtual time within which Linux boots and has done its work: it needs two to three seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// What the example of PREEMPT_RT runs, 1,000 wake-ups on each of two CPUs, and what replaces it.
const CYCLICTEST: &str = "cassata.run=cyclictest";
const HACKBENCH: &str = "cassata.run=demo cassata.repeat=1";
const WAKE_UPS: u64 = 2_000;

/// One of Debian's kernels.
#[derive(Clone, Copy)]
struct Kernel {
    /// As `guests/others/build` calls it.
    name: &'static str,
    /// An example that it runs in, below the project's root.
    system: &'static str,
    /// The example measures wake-ups.
    is_measured: bool,
}

const KERNELS: [Kernel; 2] = [
    Kernel { name: "rt", system: "systems/preempt-rt.toml", is_measured: true },
    Kernel { name: "backports", system: "systems/backports.toml", is_measured: false },
];

/// All of them. Each fetches a kernel of 60 to 90 MB, so they are among those that take long.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    KERNELS.into_iter().map(|kernel| {
        let name = kernel.name;
        let about = format!("Debian's kernel `{name}` works beside an RTOS on a shared core");
        let run = move |bench: &Bench| {
            work(bench, kernel)?;
            if kernel.is_measured { measure(bench, kernel) } else { Ok(()) }
        };
        Scenario::new(format!("{NAME}.{name}"), about, run)
    })
}

/// Runs hackbench.
fn work(bench: &Bench, kernel: Kernel) -> Result<()> {
    let edits = kernel.is_measured.then(|| (CYCLICTEST.into(), HACKBENCH.into()));
    let bundle = bench.pack(&bench.described(kernel.system, edits.as_slice())?)?;
    let demo = demo::run(bench.session(&bundle, LIMIT)?, LinuxWork::Runs(1))?;
    let mut objections = stock::late(&demo.run.observer);
    if !demo.linux().did(demo.work) {
        let failed = &demo.linux().failed;
        objections.push(format!("hackbench did not finish ({failed:?})"));
    }
    let packages = read(&Images::of(&bench.root).packages_of(kernel.name))?;
    objections.extend(not_of(&packages, demo.linux().kernel.as_deref()));
    let runs = &demo.linux().hackbench_s;
    bench.tell(&format!("{}: hackbench {runs:?} s", said(&demo)))?;
    bench.judge(&demo.run, demo.answer().outcome, &objections)
}

/// Runs cyclictest, as the example has it. What it measures is Linux's, which has the shared core when FreeRTOS
/// has not, so nothing is demanded of it.
fn measure(bench: &Bench, kernel: Kernel) -> Result<()> {
    let bundle = bench.pack(&bench.described(kernel.system, &[])?)?;
    let demo = demo::run(bench.session(&bundle, LIMIT)?, LinuxWork::All)?;
    let wake_ups = &demo.linux().wake_ups_us;
    let mut objections = stock::late(&demo.run.observer);
    if wake_ups.count() < WAKE_UPS {
        objections.push(format!("{} wake-ups were measured", wake_ups.count()));
    }
    let [min, p99, max] =
        [wake_ups.min(), wake_ups.percentile(990), wake_ups.max()].map(Option::unwrap_or_default);
    let (count, mean) = (wake_ups.count(), wake_ups.mean().unwrap_or_default());
    let figures = format!("min {min}, mean {mean:.1}, p99 {p99}, max {max} µs");
    bench.tell(&format!("{}: cyclictest, {count} wake-ups: {figures}", said(&demo)))?;
    let mut outcome = demo.answer().outcome;
    outcome.forget_unknown();
    outcome.figure("cyclictest", figures);
    bench.judge(&demo.run, outcome, &objections)
}

/// Returns the kernel's version, and what FreeRTOS beside it did.
fn said(demo: &Demo) -> String {
    let kernel = demo.linux().kernel.as_deref().unwrap_or("no kernel");
    format!("{kernel}, beside FreeRTOS with {}", activations(&demo.run))
}

fn activations(run: &Run) -> String {
    let reports = run.observer.layout.vm(RTOS).and_then(|vm| run.observer.reports(vm));
    let header = reports.and_then(|reports| reports.header);
    header.map_or_else(
        || "no activation".into(),
        |header| format!("{} activations, {} missed", header.written, header.missed),
    )
}

/// Returns that no package of `packages` has the kernel that Linux says it is.
fn not_of(packages: &str, kernel: Option<&str>) -> Option<String> {
    let Some(kernel) = kernel else { return Some(format!("{LINUX} did not say its version")) };
    let package = format!("linux-image-{kernel} ");
    let is_there = packages.lines().any(|line| line.starts_with(&package));
    (!is_there).then(|| format!("Linux says it is {kernel}, which no package has:\n{packages}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_that_runs_is_one_that_was_fetched() {
        let packages = "linux-image-6.1.0-56-rt-arm64 6.1.192-2\n";
        assert_eq!(not_of(packages, Some("6.1.0-56-rt-arm64")), None);
        assert!(not_of(packages, Some("6.1.0-56-rt")).is_some());
        assert!(not_of(packages, None).is_some());
    }

    #[test]
    fn an_example_that_measures_has_what_is_replaced() {
        for kernel in KERNELS {
            let text = read(&crate::testing::root().join(kernel.system)).unwrap();
            assert_eq!(text.contains(CYCLICTEST), kernel.is_measured, "{}", kernel.system);
        }
    }
}
