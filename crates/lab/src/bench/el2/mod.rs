//! What the hypervisor costs: instructions for each visit to EL2, lines, bytes.
//!
//! | module | story |
//! | --- | --- |
//! | [`case`] | one boot of a system |
//! | [`events`], [`visits`] | how long a visit to EL2 is, by what it is about |
//! | [`migration`] | what it costs that a vCPU moves to another core and back |
//! | [`grant`] | how soon a mutex is had on another core |
//! | [`records`] | what it costs that EL2 records what it does |
//! | [`lines`] | what each event may cost, and what it last did |
//! | [`longest`] | what a kind of visit takes at most, computed from the image |
//! | [`size`] | bytes and lines |
//! | [`features`] | bytes and lines of each feature |
//! | [`parts`] | those of each part that not every image has |
//! | [`smoke`] | the events alone, in short, as a test |

mod case;
mod events;
mod features;
mod grant;
mod lines;
mod longest;
mod migration;
mod parts;
mod records;
mod size;
mod smoke;
pub(crate) mod visits;

use super::campaign::Findings;
use super::experiment::{Experiment, Extent};
use super::inputs::Inputs;
use super::{Conduct, Label, Tell};
use crate::answer::Answer;
use crate::dataset::{Dataset, Unit};
use crate::figures::histogram_data;
use crate::guests::Images;
use crate::machine::VirtualTime;
use crate::observe::Distribution;
use crate::paths::Paths;
use crate::quantity::{bytes, count, real};
use crate::report::Plot;
use crate::results::{Check, Goal, Outcome};
use crate::suite::{Bench, Scenario};
use case::{Case, Seen, on_or_off};
use events::{Build, EVENTS, KINDS, Kind};
use grant::Grant;
use miette::Result;
use migration::Migration;
pub use migration::{MOST_DEPARTURE, MOST_TRIP_US};
use records::Recorded;
use size::Size;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most bytes of the image for a system that needs no optional part, guests not included.
const MOST_BYTES: u64 = 128 << 10;
/// Most lines of source that run at EL2, in all crates, tests not included: with those and what hostile
/// guests made necessary.
const MOST_LINES: u64 = 9_500;
/// Most of these that are neither blank nor a comment, with every optional part. Bao, which has no scheduler,
/// has 13,500.
const MOST_CODE_LINES: u64 = 12_000;
/// Microseconds of a tick in virtual time.
const US: f64 = 1e6 / VirtualTime::COUNTER_HZ as f64;

/// What is conducted from here.
pub(super) const EXPERIMENTS: &[&dyn Conduct] = &[&Cost];

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Cost;

impl Experiment for Cost {
    const LABEL: Label = Label {
        name: "el2",
        about: "What the hypervisor costs",
        details: "Counts the instructions at EL2 for each kind of visit, by provoking every one \
                  some ten thousand times, and the hypervisor's bytes and lines; and measures \
                  what interrupt priority separation is worth.",
        examples: "  cassata bench el2\n  cassata bench el2 --point switch",
    };
    type Options = ();
    type Case = Case;
    type Seen = Seen;

    fn inputs(&self, bench: &Bench) -> Result<Inputs> {
        let images = Images::of(&bench.root);
        let events = KINDS.iter().map(|kind| format!("bench/{}", kind.system));
        let others = ["bench/migrate".into(), "demo".into()];
        let systems = events.chain(others);
        let systems: Vec<PathBuf> =
            systems.map(|name| bench.root.join(format!("systems/{name}.toml"))).collect();
        let systems: Vec<&Path> = systems.iter().map(PathBuf::as_path).collect();
        let inputs = Inputs::of(bench)?.linux(bench)?.hypervisor(bench);
        let inputs = inputs.tracing_hypervisor(bench);
        inputs.files("guests", &[&images.rtos, &images.probe])?.files("systems", &systems)
    }

    /// The extent is the same for all: it takes tens of seconds.
    fn cases(&self, _: Extent, (): &()) -> Vec<Case> {
        let demos = [true, false].map(|separation| Case::Demo { separation });
        let events = Build::ALL.map(|build| events::cases(EVENTS, build));
        let timed = migration::cases().into_iter().chain([grant::case(grant::TIMED)]);
        events.into_iter().flatten().chain(timed).chain(demos).collect()
    }

    fn run(&self, case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        case::run(case, bench, tell)
    }

    fn answer(&self, found: Findings<Seen>, bench: &Bench) -> Result<Answer> {
        let size = Size::measure(&bench.hypervisor, &bench.root)?;
        let paths = Paths::of(bench.hypervisor.with_parts, None).report()?;
        let mut answer = El2::of(&found.measurements, size, longest::stays(&paths)).answer();
        let stretches = longest::stretches(&found.measurements, &paths);
        stretches.iter().for_each(|stretch| answer.outcome.check(stretch.check()));
        Ok(answer)
    }

    fn scenarios(&self) -> Vec<Scenario> {
        vec![smoke::scenario()]
    }
}

/// Returns what `case` brought, if it brought something.
fn of<'a>(seen: &'a [Seen], case: &Case) -> Option<&'a Seen> {
    seen.iter().find(|seen| seen.case == *case)
}

/// Everything that was measured.
#[derive(Debug)]
struct El2 {
    kinds: Vec<(Kind, Distribution)>,
    records: Vec<Recorded>,
    size: Size,
    /// Instructions of the longest stays by figure.
    longest: BTreeMap<String, u64>,
    migration: Migration,
    grant: Grant,
    /// Separation of priorities, what of the RTOS's latency, its values.
    latencies: Vec<(bool, &'static str, Distribution)>,
}

impl El2 {
    fn of(found: &[Seen], size: Size, longest: BTreeMap<String, u64>) -> Self {
        let mut latencies = Vec::new();
        for separation in [true, false] {
            let Some(seen) = of(found, &Case::Demo { separation }) else { continue };
            latencies.push((separation, "interrupt response time", seen.response.clone()));
            latencies.push((separation, "dispatch latency", seen.dispatch.clone()));
        }
        let visits = |kind: &Kind| events::visits(kind, found, EVENTS, Build::Plain);
        let kinds = KINDS.iter().map(|kind| (*kind, visits(kind))).collect();
        let records = Recorded::all(found, EVENTS);
        let (migration, grant) = (Migration::of(found), Grant::of(found, grant::TIMED));
        Self { kinds, records, size, longest, migration, grant, latencies }
    }

    fn answer(&self) -> Answer {
        let lead = "How many instructions the hypervisor executes each time it is entered, how \
                    large it is, and what interrupt priority separation is worth. Time is \
                    virtual: an instruction is a nanosecond.";
        let mut answer = Answer::new("el2", "What the hypervisor costs", lead);
        answer.outcome.parameter("events", EVENTS);
        let visits = self.visits();
        for (kind, counted) in &self.kinds {
            let median =
                kind.typical(counted, EVENTS).map_or_else(|| "-".into(), |n| n.to_string());
            answer.tile(median, kind.name);
        }
        answer.tile(bytes(self.size.image.next_multiple_of(1 << 10)), "image without guests");
        let caption = format!(
            "Median of {0} visits; the line is the goal. Each event was provoked {0} and {1} \
             times; counted are the visits that the second run has more than the first. A vCPU \
             that its timer wakes takes an interrupt and a switch in one visit.",
            count(EVENTS),
            count(2 * EVENTS)
        );
        let plot = Plot::bars(&visits, "kind", "median_instructions").goal("goal_instructions");
        let plot = answer.plot("visits", &plot, &caption);
        answer.section("How long are visits to EL2?", plot);
        answer.data(&visits);
        answer.section("What does a migration cost?", maud::html! { p { (Migration::caption()) } });
        answer.data(&self.migration.data());
        answer.data(&self.migration.cells_data());
        answer.section("How soon is a mutex granted?", maud::html! { p { (Grant::caption()) } });
        answer.data(&self.grant.data());
        answer.data(&Recorded::data(&self.records));
        let caption = "Interrupt response time of FreeRTOS while Linux, which shares its core, \
                       boots and runs hackbench. Separation keeps Linux's interrupts pending \
                       while FreeRTOS runs.";
        let responses = self.latencies.iter().filter(|(_, what, _)| what.starts_with("interrupt"));
        let responses = responses.map(|(on, _, values)| (separation(*on), values));
        let responses = histogram_data("separation-histogram", responses, VirtualTime::COUNTER_HZ);
        let plot = Plot::histogram(&responses, "latency_ns", "activations").by("of");
        let plot = answer.plot("separation", &plot, caption);
        answer.section("What is priority separation worth?", plot);
        answer.data(&self.separation());
        answer.data(&self.source());
        answer.data(&self.features());
        answer.data(&self.parts());
        self.judge(&mut answer.outcome);
        answer.document("bench el2", self.quoted(&visits));
        answer
    }

    /// What the book quotes.
    fn quoted(&self, visits: &Dataset) -> String {
        let (migration, size) = (self.migration.data().table().markdown(), &self.size);
        let cells = self.migration.cells_data().table().markdown();
        let grant = self.grant.data().table().markdown();
        format!(
            "Instructions of a visit to EL2:\n\n{}\nA migration, medians:\n\n{migration}\n\
             By direction and end, beside PECCS (Figure 10):\n\n{cells}\n\
             A mutex is granted to a vCPU that sleeps on another core:\n\n{grant}\n\
             {}\n\n\
             The hypervisor's image has {} bytes (goal: fewer than {}) for a system that needs no \
             optional part, and {} with all that a system may need on a board with a GICv3. With \
             every optional part it is made of {} lines, comments included, tests not (goal: fewer \
             than {}); {} of these are code (goal: fewer than {}). With all parts, by what they are \
             for:\n\n{}\nWhat each optional part adds, by the modules that it has:\n\n{}",
            visits.table().markdown(),
            Recorded::quoted(&self.records),
            count(size.image),
            count(MOST_BYTES),
            count(size.parts.image),
            count(size.lines()),
            count(MOST_LINES),
            count(size.code_lines()),
            count(MOST_CODE_LINES),
            self.features().table().markdown(),
            self.parts().table().markdown()
        )
    }

    fn judge(&self, outcome: &mut Outcome) {
        for (kind, visits) in &self.kinds {
            let name = format!("{}, {}", kind.name, kind.typical_name());
            let goal = Goal::AtMost(f64::from(kind.line.goal));
            let typical = kind.typical(visits, EVENTS).map(f64::from);
            outcome.check(Check::new(&name, typical, "instructions", goal));
            outcome.check(kind.check_count(visits, EVENTS, Build::Plain));
            if let Some(figure) = kind.figure {
                // Without a bound no visit is short enough.
                let most = self.longest.get(figure).map_or(0.0, |&most| real(most));
                let name = format!("{}, longest: its computed bound", kind.name);
                let longest = visits.max().map(f64::from);
                outcome.check(Check::new(&name, longest, "instructions", Goal::AtMost(most)));
            }
        }
        self.migration.judge(outcome);
        self.grant.judge(outcome, grant::TIMED);
        Recorded::judge(&self.records, outcome);
        let (image, lines) = (self.size.image, self.size.lines());
        outcome.figure("image_bytes", image);
        outcome.figure("source_lines", lines);
        outcome.figure("code_lines", self.size.code_lines());
        let most = |most: u64| Goal::AtMost(real(most - 1));
        let (name, unit) = ("image without guests", "bytes");
        outcome.check(Check::new(name, real(image), unit, most(MOST_BYTES)));
        let name = "source of all crates in the image, without tests";
        outcome.check(Check::new(name, real(lines), "lines", most(MOST_LINES)));
        let name = "code of all crates in the image, without comments and blank lines";
        let code = real(self.size.code_lines());
        outcome.check(Check::new(name, code, "lines", most(MOST_CODE_LINES)));
    }

    fn visits(&self) -> Dataset {
        let instructions = Unit::Instructions;
        Dataset::of("visits", "Instructions at EL2", &self.kinds)
            .name("event", |(kind, _)| kind.key)
            .for_programs()
            .name("kind", |(kind, _)| kind.name)
            .head("")
            .name("visits", |(_, visits)| visits.count())
            .column("min", instructions, |(_, visits)| visits.min())
            .column("mode", instructions, |(_, visits)| visits.mode())
            .column("mean", instructions, |(_, visits)| visits.mean())
            .for_programs()
            .column("median", instructions, |(kind, visits)| kind.typical(visits, EVENTS))
            .column("before", instructions, |(kind, _)| kind.line.before)
            .head("before budgets")
            .column("p99.9", instructions, |(_, visits)| visits.told_percentile(999))
            .column("max", instructions, |(_, visits)| visits.max())
            .column("goal", instructions, |(kind, _)| kind.line.goal)
            .head("at most")
            .done()
    }

    fn source(&self) -> Dataset {
        let title = "Source of the hypervisor, without tests";
        Dataset::of("source_lines_by_crate", title, &self.size.source)
            .name("crate", |linked| linked.path.clone())
            .head("")
            .name("lines", |linked| linked.lines)
            .name("code_lines", |linked| linked.code)
            .head("of code")
            .done()
    }

    fn features(&self) -> Dataset {
        let title = "Source and code of the hypervisor, by what they are for";
        Dataset::of("features", title, &self.size.features)
            .name("feature", |feature| feature.name)
            .head("")
            .name("lines", |feature| feature.lines)
            .name("code_lines", |feature| feature.code_lines)
            .head("of code")
            .name("code_bytes", |feature| feature.code)
            .head("bytes of code")
            .done()
    }

    fn parts(&self) -> Dataset {
        let title = "Optional parts of the hypervisor, and what each adds";
        Dataset::of("parts", title, &self.size.parts.all)
            .name("feature", |part| part.feature)
            .head("")
            .name("about", |part| part.about)
            .head("for")
            .name("lines", |part| part.lines)
            .name("code_lines", |part| part.code_lines)
            .head("of code")
            .name("code_bytes", |part| part.code)
            .head("bytes of code")
            .done()
    }

    fn separation(&self) -> Dataset {
        let title = "Interrupt priority separation, latencies of the RTOS";
        Dataset::of("separation", title, &self.latencies)
            .name("separation", |(on, ..)| on_or_off(*on))
            .for_programs()
            .name("latency", |(_, what, _)| *what)
            .for_programs()
            .name("of", |(on, what, _)| format!("{}: {what}", separation(*on)))
            .head("")
            .for_people()
            .summary(Unit::Microseconds, |_| US, |(.., values)| Some(values))
            .done()
    }
}

fn separation(on: bool) -> &'static str {
    if on { "priority separation on" } else { "priority separation off" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::store::Case as _;
    use crate::source::Linked;

    fn size(image: u64, lines: [u64; 2]) -> Size {
        let linked = |lines| Linked { path: format!("crates/{lines}"), lines, code: lines };
        let source = lines.map(linked).into();
        Size { image, source, features: Vec::new(), parts: parts::Parts::default() }
    }

    /// The kinds whose longest visit is compared with a bound.
    fn bounds() -> impl Iterator<Item = &'static str> {
        KINDS.iter().filter_map(|kind| kind.figure)
    }

    fn el2(median: u32, image: u64) -> El2 {
        let seen = |count| {
            let mut visits = Distribution::default();
            visits.record_many(median, count);
            visits
        };
        let latencies = [(true, "interrupt response time"), (false, "interrupt response time")];
        let latencies = latencies.map(|(on, what)| (on, what, seen(EVENTS)));
        El2 {
            longest: bounds().map(|figure| (figure.into(), 1_000)).collect(),
            kinds: KINDS.iter().map(|&kind| (kind, seen(kind.counted(EVENTS)[0]))).collect(),
            records: Recorded::example(12),
            size: size(image, [4_999, 3_000]),
            migration: Migration::example(200, 3_000),
            grant: Grant::example(150),
            latencies: latencies.into(),
        }
    }

    fn failing(el2: &El2) -> usize {
        el2.answer().outcome.checks().iter().filter(|check| !check.holds()).count()
    }

    #[test]
    fn goals_are_goals() {
        assert_eq!(failing(&el2(100, MOST_BYTES - 1)), 0);
        assert_eq!(failing(&el2(101, MOST_BYTES)), 2);
        assert_eq!(failing(&el2(191, 1)), 3);
        assert_eq!(failing(&el2(601, 1)), 6);
        assert_eq!(failing(&el2(791, 1)), 7);
    }

    #[test]
    fn lines_count_whichever_crate_they_stand_in() {
        let more = El2 { size: size(1, [4_999, 4_501]), ..el2(100, 1) };
        assert_eq!(failing(&more), 1);
        let by_crate = more.source().json();
        assert_eq!(
            (&by_crate[1]["crate"], &by_crate[1]["lines"]),
            (&"crates/4501".into(), &4_501.into())
        );
    }

    #[test]
    fn visits_that_are_not_the_event_are_noticed() {
        let mut el2 = el2(100, 1);
        el2.kinds[0].1.record_many(90, EVENTS / 10);
        assert_eq!(failing(&el2), 1);
    }

    #[test]
    fn a_visit_above_its_bound_is_noticed_and_so_is_a_bound_that_is_missing() {
        let mut el2 = el2(100, 1);
        for (figure, failed) in bounds().zip(1..) {
            el2.longest.insert(figure.into(), 99);
            assert_eq!(failing(&el2), failed);
        }
        el2.longest.clear();
        assert_eq!(failing(&el2), bounds().count());
    }

    #[test]
    fn what_no_boot_brought_meets_no_goal() {
        let nothing = El2::of(&[], size(1, [1, 1]), BTreeMap::new());
        assert_eq!(failing(&nothing), 2 * KINDS.len() + bounds().count() + 11);
    }

    #[test]
    fn no_two_boots_share_a_name() {
        let cases = Cost.cases(Extent::Full, &());
        let names: std::collections::BTreeSet<_> = cases.iter().map(Case::name).collect();
        assert_eq!((names.len(), cases.len()), (79, 79));
        assert!(names.contains("switch-20000") && names.contains("migrate-at-once-500"));
    }

    #[test]
    fn people_see_every_kind_and_both_settings() {
        let answer = el2(100, 1).answer();
        let (page, summary) = (answer.page(), answer.summary());
        for text in ["null hypercall", "no switch", "goes to sleep", "beyond the wake", "off: "] {
            assert!(page.contains(text) && summary.contains(text), "{text}");
        }
        assert_eq!(page.matches("<svg").count(), 2);
    }
}
