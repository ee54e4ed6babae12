//! The case study as a page, as tables and as JSON.

use super::claims::ms;
use super::ties::{self, SEEDS};
use super::{CaseStudy, Run};
use crate::answer::Answer;
use crate::dataset::{Dataset, Unit};
use crate::report::timeline::Schedule;
use maud::{Markup, html};
use serde_json::json;
use sim::case_study::Scheme;

/// What stands below each drawing.
pub(super) const CAPTION: &str = "Core by core: what has it; what is left of each vCPU's budget, red \
                                  where it is overrun; its tasks.";
/// The drawings show so much, ns.
pub const SHOWN: u64 = 27_000_000;

/// Why ours and theirs differ.
const DIFFERENCES: &[&str] = &[
    "Theirs ran on KVM, where a lock costs some 3 µs, a switch and a timer more; ours costs \
     nothing. So theirs differs by some hundredths of a millisecond where nothing else changes: \
     \"at t = 10\" is here when τ2 has done the last tenth of its critical section.",
    "\"On average\" is read as the mean over the tasks of each one's change, which comes near both \
     of the paper's figures. The change of the mean response time stands beside it.",
    "Under vMPCP+DSwO the schedule has ties. At 7 ms τ1 gives the resource back while τ3 and τ6 ask \
     for it, and at 10 ms τ7 is about to ask when τ8's vCPU gets its budget again. Here the \
     resource goes to τ3, whose core comes first, and τ7 does not get to ask before τ8 is done. \
     With execution times up to 1 % shorter, by chance, one of several schedules comes out; which, \
     microseconds decide. In the most frequent τ7 responds later than under MPCP, as the paper \
     says, since τ8's vCPU runs back to back, before and after its replenishment; in the ideal \
     schedule τ7 is no later. The paper's remark and its 29.1 % do not fit one and the same \
     schedule of ours under one meaning of \"average\": with τ7 later, the mean over the tasks is \
     nearer to zero, and the change of the mean fits.",
    "MPCP is run on the same deferrable servers, without overrun; the paper does not say which \
     servers its baseline had.",
];

impl CaseStudy {
    /// The answer. Its checks are the paper's statements.
    pub fn answer(&self) -> Answer {
        let lead = "Two virtual machines with four vCPUs each, (3, 10) ms, on four cores; eight \
                    tasks share one resource. The paper measured on KVM; this is the hypervisor's \
                    own scheduler in the simulator. Each statement of the paper is a check; one \
                    that does not hold is a finding, not a fault.";
        let mut answer = Answer::new("case-study", "vMPCP, the case study", lead);
        let outcome = &mut answer.outcome;
        outcome.parameter("paper", "Kim, Wang, Rajkumar: vMPCP, RTSS 2014, Section V-B");
        outcome.parameter("seeds_for_ties", SEEDS);
        outcome.figure("mean_change_no_overrun_range", json!(self.ties.no_overrun));
        outcome.figure("mean_change_with_overrun_range", json!(self.ties.with_overrun));
        let claims = self.claims();
        let agreeing = claims.iter().filter(|claim| claim.holds()).count();
        answer.tile(format!("{agreeing} of {}", claims.len()), "statements agree");
        for scheme in [Scheme::DeferrableNoOverrun, Scheme::DeferrableWithOverrun] {
            let mean = Unit::Change.text(&(100.0 * self.changes(scheme).0).into(), None);
            answer.tile(mean, &format!("{} against MPCP", scheme.name()));
        }
        answer.data(&self.responses());
        for run in &self.runs {
            let drawing = answer.drawing(&run.file(), &run.draw(), CAPTION);
            answer.section(run.name(), drawing);
        }
        answer.data(&self.ways());
        answer.section(
            "Where it differs, and why",
            html! { ul { @for text in DIFFERENCES { li { (text) } } } },
        );
        claims.into_iter().for_each(|claim| answer.outcome.check(claim.as_statement()));
        answer
    }

    /// Response times under each scheme, and what the paper says of their change.
    fn responses(&self) -> Dataset {
        let paper = [("the paper: DSnO", -7.5), ("the paper: DSwO", -29.1)];
        let ours = self.runs.iter().map(|run| {
            let (mean, of_the_mean) = self.changes(run.scheme);
            (run.name(), 100.0 * mean, Some(100.0 * of_the_mean), Some(run))
        });
        let paper = paper.into_iter().map(|(name, mean)| (name, mean, None, None));
        let title = "Response times, and their change against MPCP";
        let rows = Dataset::of("responses", title, ours.chain(paper));
        let all =
            rows.name("scheme", |row| row.0)
                .head("")
                .column("mean_change", Unit::Change, |row| row.1);
        let mut all =
            all.column("change_of_the_mean", Unit::Change, |row| row.2).head("of the mean");
        for task in 0..8 {
            let response = |row: &(_, _, _, Option<&Run>)| row.3.map(|run| ms(run.responses[task]));
            all = all.column(&format!("τ{}", task + 1), Unit::Milliseconds, response);
        }
        all.done()
    }

    /// How ties are decided in the simulator.
    pub(super) fn ways(&self) -> Dataset {
        let title = "vMPCP+DSwO with execution times up to 1 % shorter: how ties are decided";
        let mut all = Dataset::of("ties_with_overrun", title, &self.ties.outcomes)
            .name("seeds", |way| way.seeds)
            .head("of 400 seeds")
            .column("mean_change", Unit::Change, |way| 100.0 * way.mean_change)
            .column("change_of_the_mean", Unit::Change, |way| 100.0 * way.change_of_the_mean)
            .head("of the mean");
        for task in 0..8 {
            let response = |way: &&ties::Outcome| way.responses_ms[task];
            all = all.column(&format!("τ{}", task + 1), Unit::Milliseconds, response).digits(0);
        }
        all.done()
    }
}

impl Run {
    /// Returns the timeline, as the paper's Figure 11 shows it.
    pub fn draw(&self) -> Markup {
        let schedule = Schedule {
            title: self.name(),
            system: &self.system,
            pcpus: &[1, 2, 3, 4],
            resources: &["R".to_owned()],
            timeline: &self.timeline,
            lanes: &[],
            end: SHOWN,
        };
        schedule.draw()
    }

    /// Name of the file of its timeline, without its ending.
    pub fn file(&self) -> String {
        self.name().to_lowercase().replace('+', "-")
    }
}
