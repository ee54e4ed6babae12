//! For people: the summary, and the page that shows each figure beside what
//! the papers say.

use super::Lhp;
use super::latency::{DRAWN, Drawing, Latency};
use super::point::Experiment;
use crate::figures;
use crate::report::{Report, figure, folded};
use crate::results::Outcome;
use crate::table::Table;
use maud::{Markup, html};

/// What the papers say of hackbench beside the RTOS.
const THROUGHPUT: &str = "PECCS (Figure 1), vlk (Figure 8) and the thesis (Figures 2.1, 5.1): \
without a policy hackbench is slower than on three dedicated cores once the RTOS burns half of \
its core, and slower than on two from 80 % on. PECCS (Figures 8, 9) and the thesis: on-demand \
migration comes near the ideal line once Linux's vCPUs yield when they spin, and is better than \
three dedicated cores nearly everywhere; trap-based migration is hardly better than none.";
/// What the thesis says of interrupts under trap-based migration.
const RULE: &str = "The thesis (chapter 6) suspects that trap-based migration was spoilt by \
interrupts for a preempted vCPU, whose senders wait for the RTOS then, and proposes that such a \
vCPU leaves at once (Section 8.1). It does not measure that.";
/// What they say of latencies.
const LATENCY: &str = "PECCS (Figures 5 to 7): mean dispatch latency 24.09 µs with delayed \
preemption, 2.30 µs trap-based, 4.71 µs on demand; latencies with migration are almost those \
without. vlk (Figures 5, 6), thesis (Figures 3.5, 3.6): without separation of interrupt \
priorities latencies of over 100 µs occur, with it none above 40 µs.";
/// What they say of a migration.
const MIGRATION: &str = "PECCS (Figure 10): a departure takes 24.9 µs on one core and 28.0 µs on \
the other, a return 38.1 µs and 12.0 µs. vlk: a round trip takes about 50 µs.";
/// What they say of overhead.
const OVERHEAD: &str = "vlk (Figure 2): building a Linux kernel takes 1.4 % longer beside TOPPERS \
that ticks each millisecond, the cycles of TOPPERS included.";
/// What they say of spinning.
const SEEN: &str = "PECCS (Section 2): while the RTOS has the core of a lock holder, the other \
cores wait in vain. The thesis (Section 6): so do those that wait for a function which an \
interrupt makes the preempted vCPU call. No paper counts either.";

impl Lhp {
    /// Both latencies under these policies.
    fn both_latencies(&self, policies: &[&'static str]) -> Markup {
        let of = |latency| drawings(&self.latency_figures(latency, policies));
        html! { @for latency in Latency::ALL { (of(latency)) } }
    }

    fn tables(&self) -> Vec<Table> {
        let throughput = self.throughput();
        let all = [
            throughput.dedicated(),
            throughput.table(),
            self.latency_table(),
            self.migration_table(),
            self.overhead_table(),
            self.seen_table(),
            self.kernel_table(),
        ];
        all.into_iter().filter(|table| !table.rows.is_empty()).collect()
    }

    /// The summary for a terminal.
    #[must_use]
    pub fn summary(&self, outcome: &Outcome) -> String {
        let tables = self.tables().into_iter().map(|table| format!("{table}\n"));
        let rule = self.throughput().rule_finding().map_or_else(String::new, |rule| rule + "\n\n");
        format!("{}{rule}{}", tables.collect::<String>(), figures::checks(outcome))
    }

    /// The page.
    #[must_use]
    pub fn report(&self, outcome: &Outcome) -> Report {
        let lead = "Linux with four vCPUs and FreeRTOS with one, which shares core 0 with Linux's \
                    first: what becomes of Linux when the RTOS takes a core from it, and of the \
                    RTOS when Linux must get out of its way. Guests are unmodified; time is \
                    virtual, an instruction is a nanosecond.";
        let mut report = Report::new("No lock holder left behind", lead);
        let (held, all) =
            (outcome.checks().iter().filter(|check| check.holds()).count(), outcome.checks().len());
        report.tile(format!("{held} of {all}"), "goals reached");
        let measured = self.measurements.len();
        report.tile(format!("{measured} of {}", self.all), "points measured");
        let throughput = self.throughput();
        let has = |experiment| self.of(experiment).next().is_some();
        let caption = "Mean time of a run of hackbench -g 1; less is better. Dashed: Linux alone \
                       on so many cores.";
        if has(Experiment::Throughput) {
            report.section(
                "How fast is Linux beside the RTOS?",
                html! {
                    (figure(&throughput.chart().draw(), caption))
                    (beside(THROUGHPUT, &throughput.finding()))
                },
            );
        }
        if let Some(rule) = throughput.rule_finding() {
            report.section("Does the interrupt rule help?", beside(RULE, &rule));
        }
        if has(Experiment::Latency) {
            report.section(
                "How late is the RTOS?",
                html! {
                    (drawings(&self.latency_figures(Latency::Dispatch, &DRAWN)))
                    (beside(LATENCY, &self.latency_finding()))
                    (folded(
                        "Interrupt response times",
                        &drawings(&self.latency_figures(Latency::Response, &DRAWN))
                    ))
                    @for policies in self.other_policies() {
                        (folded(&policies.join(", "), &self.both_latencies(&policies)))
                    }
                },
            );
        }
        if has(Experiment::Migration) {
            let caption = "At EL2, beyond what happens without migration.";
            report.section(
                "What does a migration cost?",
                html! {
                    (figure(&self.migration_figure(), caption))
                    (beside(MIGRATION, &self.migration_finding()))
                },
            );
        }
        if has(Experiment::Overhead) {
            let caption = "The same work on each of four vCPUs, until the last has done it.";
            report.section(
                "What does Linux lose?",
                html! {
                    (figure(&self.overhead_figure(), caption))
                    (beside(OVERHEAD, &self.overhead_finding()))
                },
            );
        }
        if has(Experiment::Spinning) {
            let ours = "Ours: above and in the table below, the RTOS burning 80 % of core 0; what \
                        is spun is counted in further runs of the same point.";
            report.section(
                "How much is waited in vain?",
                html! {
                    @for (caption, _, drawing) in &self.seen_figures() { (figure(drawing, caption)) }
                    (beside(SEEN, ours))
                },
            );
        }
        self.tables().iter().for_each(|table| report.table(table));
        report
    }
}

fn drawings(drawings: &[Drawing]) -> Markup {
    html! { @for one in drawings { (figure(&one.drawing, &one.title)) } }
}

fn beside(paper: &str, ours: &str) -> Markup {
    html! { p { (paper) } p { (ours) } }
}
