//! The answer: every dataset, and each figure beside what the papers say.

use super::Lhp;
use super::latency::{DRAWN, LATENCIES};
use super::plan::LONG_LOOPS;
use super::point::Experiment;
use crate::answer::Answer;
use crate::report::{Plot, figure, folded};
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
/// What they say of no separation.
const SEPARATION: &str = "vlk (Section 4.1.1, Figures 5 and 6): Linux writes a file on a Compact Flash \
card. Without separation either guest's masking blocks all interrupts.";
/// What they do not say of interrupts that no clock foretells.
const UNFORESEEN: &str = "No paper has a timer advance, so all their latencies are of interrupts \
that the hypervisor does not foresee. Here a second core of the RTOS's raises them at random \
times: it interrupts the first core, lets a device interrupt it, or gives back a mutex.";
/// What they say of a migration.
const MIGRATION: &str = "PECCS (Figure 10): a departure takes 24.9 µs on one core and 28.0 µs on \
the other, a return 38.1 µs and 12.0 µs. vlk: a round trip takes about 50 µs.";
/// What they say of overhead.
const OVERHEAD: &str = "vlk (Figure 2): building a Linux kernel takes 1.4 % longer beside TOPPERS \
that ticks each millisecond, the cycles of TOPPERS included.";
/// What vlk says of a real-time process in Linux.
const REALTIME: &str = "vlk (Section 4.3): a real-time process of Linux's may have to answer sooner \
than the RTOS. One of Linux's vCPUs is marked then (rt-vCPU) and scheduled before the RTOS, which \
migrates, \"so the overall performance will not be harmed too much\". It is a plan there, and nothing \
is measured.";
/// What they say of spinning.
const SEEN: &str = "PECCS (Section 2): while the RTOS has the core of a lock holder, the other \
cores wait in vain. The thesis (Section 6): so do those that wait for a function which an \
interrupt makes the preempted vCPU call. No paper counts either.";

impl Lhp {
    pub(super) fn answer(&self) -> Answer {
        let lead = "Linux with four vCPUs and FreeRTOS with one, which shares core 0 with Linux's \
                    first: what becomes of Linux when the RTOS takes a core from it, and of the \
                    RTOS when Linux must get out of its way. Guests are unmodified; time is \
                    virtual, an instruction is a nanosecond.";
        let mut answer = Answer::new("lhp", "No lock holder left behind", lead);
        answer.judged(self.checks(), self.measurements.len(), self.all);
        self.illustrate(&mut answer);
        let throughput = self.throughput();
        answer.data(&throughput.dedicated());
        answer.data_as(&throughput.data(), &throughput.table());
        let long = self.throughput_of(LONG_LOOPS);
        if !long.loads.is_empty() {
            answer.data(&long.dedicated().renamed("dedicated-500ms"));
            answer.data_as(&long.data().renamed("throughput-500ms"), &long.table());
        }
        answer.data(&self.adaptive_data());
        if self.has(Experiment::ThroughputJitter) {
            answer.data(&self.jitter_data());
        }
        answer.data(&self.latency_data());
        answer.csv(&self.latency_histogram());
        answer.data(&self.migration_data());
        answer.data(&self.overhead_data());
        let builds = self.builds_data();
        if !builds.is_empty() {
            answer.data(&builds);
        }
        answer.data(&self.spinning_data());
        answer.data(&self.kernel_data());
        if self.has(Experiment::Realtime) {
            answer.data(&self.realtime_data());
        }
        if self.has(Experiment::Technique) {
            answer.data(&self.technique_data());
            answer.data(&self.moments_data());
        }
        for (block, content) in self.quoted() {
            answer.document(block, content);
        }
        throughput.rule_finding().iter().for_each(|rule| answer.say(&format!("{rule}\n")));
        answer
    }

    /// Adds a section for each experiment that was made: what is drawn, what the papers say,
    /// what we found.
    fn illustrate(&self, answer: &mut Answer) {
        let throughput = self.throughput();
        if self.has(Experiment::Throughput) {
            let caption = "Mean time of a run of hackbench -g 1, with the interval in which it \
                           lies with 95 %; less is better. Dashed: Linux alone on so many cores.";
            let plot = answer.plot("throughput", &throughput.plot(), caption);
            let long = self.throughput_of(LONG_LOOPS);
            let long = (!long.loads.is_empty()).then(|| {
                let caption = "The same with the papers' period of 500 ms, and longer runs.";
                answer.plot("throughput-500ms", &long.plot(), caption)
            });
            let beside = beside(THROUGHPUT, &throughput.finding());
            let content = html! { (plot) @if let Some(long) = &long { (long) } (beside) };
            answer.section("How fast is Linux beside the RTOS?", content);
        }
        if let Some(rule) = throughput.rule_finding() {
            answer.section("Does the interrupt rule help?", beside(RULE, &rule));
        }
        if self.has(Experiment::Latency) {
            let content = self.latency_section(answer);
            answer.section("How late is the RTOS?", content);
        }
        if self.has(Experiment::Migration) {
            let plot = Plot::bars(&self.migration_data(), "part", "mean_instructions");
            let caption = "At EL2, beyond what happens without migration.";
            let plot = answer.plot("migration", &plot, caption);
            let beside = beside(MIGRATION, &self.migration_finding());
            answer.section("What does a migration cost?", html! { (plot) (beside) });
        }
        if self.has(Experiment::Overhead) {
            let lost = self.overhead_data().known("lost_percent");
            let caption = "Longer than on the bare board: the same work on each of four vCPUs, \
                           until the last has done it.";
            let plot = answer.plot("overhead", &Plot::bars(&lost, "what", "lost_percent"), caption);
            let beside = beside(OVERHEAD, &self.overhead_finding());
            answer.section("What does Linux lose?", html! { (plot) (beside) });
        }
        if self.has(Experiment::Technique) {
            let plots: Vec<_> = self
                .technique_plots()
                .into_iter()
                .map(|(name, about, plot)| answer.plot(&format!("techniques-{name}"), &plot, about))
                .collect();
            answer.section("The papers' techniques", html! { @for plot in &plots { (plot) } });
        }
        if self.has(Experiment::Realtime) {
            let content = self.realtime_section(answer);
            answer.section("What if a process of Linux's is more urgent?", content);
        }
        if self.has(Experiment::Spinning) {
            let data = self.spinning_data();
            let preempted = Plot::bars(&data, "policy", "kernel_preempted_s");
            let caption = "Linux's vCPUs lay preempted in their kernel.";
            let preempted = answer.plot("preempted-in-kernel", &preempted, caption);
            let spun = Plot::bars(&data, "policy", "spun_percent");
            let caption = "Instructions that only waited for a lock or for a function on another \
                           core.";
            let spun = answer.plot("spinning", &spun, caption);
            let ours = "Ours: above and in the table below, the RTOS burning 80 % of core 0; what \
                        is spun is counted in further runs of the same point.";
            let content = html! { (preempted) (spun) (beside(SEEN, ours)) };
            answer.section("How much is waited in vain?", content);
        }
    }

    fn realtime_section(&self, answer: &mut Answer) -> Markup {
        let data = self.realtime_data();
        let linux = Plot::bars(&data, "setting", "process_max_ns");
        let caption = "Linux's real-time process: the longest time from its timer until it runs.";
        let linux = answer.plot("realtime-process", &linux, caption);
        let rtos = Plot::bars(&data, "setting", "rtos_max_ns");
        let caption = "The RTOS: its longest dispatch latency meanwhile.";
        let rtos = answer.plot("realtime-rtos", &rtos, caption);
        html! { (linux) (rtos) (beside(REALTIME, &self.realtime_finding())) }
    }

    fn latency_section(&self, answer: &mut Answer) -> Markup {
        let histogram = self.latency_histogram();
        let plots =
            |latency, policies: &[&'static str]| self.latency_plots(&histogram, latency, policies);
        let files = |latency| -> Vec<Markup> {
            let plots = plots(latency, &DRAWN).into_iter();
            plots.map(|(title, file, plot)| answer.plot(&file, &plot, &title)).collect()
        };
        let [responses, dispatches] = LATENCIES.map(files);
        let others = |policies: &[&'static str]| {
            let both = LATENCIES.into_iter().flat_map(|latency| plots(latency, policies));
            html! { @for (title, _, plot) in both { (figure(&plot.draw(), &title)) } }
        };
        let peccs = self.peccs_plot(&histogram).map(|plot| {
            let caption = "Dispatch latency of PECCS's policies under hackbench, without a timer \
                           advance, and of the RTOS on the bare board.";
            answer.plot("dispatch-peccs", &plot, caption)
        });
        let separation = self.separation_finding();
        let separated: Vec<Markup> = self
            .separation_plots(&histogram)
            .into_iter()
            .map(|(load, plot)| {
                let caption = format!("Dispatch latency under {load}, masked: without separation.");
                answer.plot(&format!("separation-{}", load.replace(' ', "-")), &plot, &caption)
            })
            .collect();
        html! {
            (beside(LATENCY, &self.latency_finding()))
            @if let Some(plot) = &peccs { (plot) }
            @if let Some(ours) = &separation {
                (beside(SEPARATION, ours))
                @for plot in &separated { (plot) }
            }
            (beside(UNFORESEEN, &self.unforeseen_finding()))
            @for plot in &dispatches { (plot) }
            (folded("Interrupt response times", &html! { @for plot in &responses { (plot) } }))
            @for policies in self.other_policies() {
                (folded(&policies.join(", "), &others(&policies)))
            }
        }
    }
}

fn beside(paper: &str, ours: &str) -> Markup {
    html! { p { (paper) } p { (ours) } }
}
