//! Each figure beside the paper's words.

use super::case::Seen;
use super::curves::Curves;
use super::quoted::quoted;
use crate::answer::Answer;
use crate::dataset::{Dataset, Unit};
use crate::quantity::{count, number};
use crate::report::Plot;
use analysis::tasksets::{Choices, Scheme, Setting};
use maud::html;
use serde_json::{Value, json};

/// What we chose where the paper is silent.
const CHOICES: &str = "Periods of tasks are uniform multiples of 10 µs from 100 to 500 ms. A \
vCPU's utilization is split so that every split is equally likely, and split again if a task is \
too short for its gcs's. WCET is utilization times period (the paper divides). All vCPUs have \
one period, so their order is drawn at random, over the whole system. For the first gcs of all \
tasks, tasks are dealt at random into groups, one mutex each; for the second anew. Budgets are \
those of Equation 5 for each scheme, equal for all vCPUs, in steps of 10 µs. Ranges and steps \
of what varies are ours but for those that the paper's text mentions.";

/// What its statements fit best.
const PAPER: &str = "as the paper seems to have done";
const PAPER_CHOICES: &str = "Periodic servers have the budgets of deferrable ones, and a mutex is \
locked by tasks that follow one another in the order of the vCPUs. The paper says neither.";

/// The answer. Its checks are the paper's statements.
pub fn answer(mut figures: Vec<Seen>) -> Answer {
    let lead = "Schedulable tasksets over what varies in each of the paper's figures. Each \
                statement of the paper is a check of what we computed; one that does not hold is \
                a finding, not a fault.";
    let mut answer = Answer::new("schedulability", "vMPCP, figures 6 to 10", lead);
    let outcome = &mut answer.outcome;
    outcome.parameter("paper", "Kim, Wang, Rajkumar: vMPCP, RTSS 2014, corrected 2015");
    outcome.parameter("base", base());
    outcome.parameter("choices", CHOICES);
    figures.sort_by_key(|seen| seen.case.figure);
    figures.iter().for_each(|seen| seen.add_to(&mut answer));
    answer.section("What we chose", html! { p { (CHOICES) } });
    let tally = |curves: fn(&Seen) -> &Curves| {
        let all = figures.iter().flat_map(|seen| seen.case.figure().claims(curves(seen)));
        let holds: Vec<bool> = all.map(|claim| claim.holds()).collect();
        format!("{} of {}", holds.iter().filter(|&&holds| holds).count(), holds.len())
    };
    answer.tile(tally(|seen| &seen.curves), "statements agree");
    answer.tile(tally(|seen| &seen.paper), &format!("{PAPER}: statements agree"));
    if let Some(seen) = figures.first() {
        answer.tile(count(seen.case.tasksets), "tasksets at each point");
        answer.outcome.parameter("tasksets_per_point", seen.case.tasksets);
        answer.outcome.parameter("seed", seen.case.seed);
    }
    if let Some(quoted) = quoted(&figures) {
        answer.document("bench schedulability", quoted);
    }
    answer
}

impl Seen {
    fn add_to(&self, answer: &mut Answer) {
        let figure = self.case.figure();
        let (name, number) = (format!("figure-{}", figure.number), figure.number);
        let tasksets = count(self.case.tasksets);
        let caption = format!("{tasksets} tasksets at each point, bounds as published.");
        let mut plot = |name: &str, curves, caption: &str| {
            let long = self.long(curves);
            let plot = Plot::lines(&long, "point", "schedulable_percent").by("scheme");
            answer.plot(name, &plot.up_to(100.0), caption)
        };
        let ours = plot(&name, &self.curves, &caption);
        let theirs = format!("The same, {PAPER}. {PAPER_CHOICES}");
        let theirs = plot(&format!("{name}-paper"), &self.paper, &theirs);
        let heading = format!("Figure {number}: schedulable tasksets over the {}", figure.varies);
        let paper = format!("The paper: {}.", figure.says);
        answer.section(&heading, html! { (ours) p { (paper) } (theirs) });
        answer.data(&self.data(&name, "", &self.curves));
        answer.data(&self.data(&format!("{name}-paper"), PAPER, &self.paper));
        answer.say(&format!("{paper}\n"));
        answer.data(&self.sensitivity());
        let outcome = &mut answer.outcome;
        outcome.figure(&format!("{name}-varies"), figure.varies);
        let others = self.others().map(|(name, curves)| (name.to_owned(), percents(curves)));
        outcome.figure(&format!("{name}-other-choices"), Value::Object(others.collect()));
        for (choices, curves) in
            [(String::new(), &self.curves), (format!(", {PAPER}"), &self.paper)]
        {
            for mut claim in figure.claims(curves) {
                claim.name = format!("figure {number}{choices}: {}", claim.name);
                outcome.check(claim.as_statement());
            }
        }
    }

    /// Returns other choices, in words, and what would have come out.
    fn others(&self) -> impl Iterator<Item = (&'static str, &Curves)> {
        Choices::OTHERS.into_iter().map(|(name, _)| name).zip(&self.others)
    }

    /// A row for each point, a column for each scheme.
    fn data(&self, name: &str, choices: &str, curves: &Curves) -> Dataset {
        let figure = self.case.figure();
        let comma = if choices.is_empty() { "" } else { ", " };
        let title = format!("Figure {}: schedulable tasksets{comma}{choices}", figure.number);
        let points = Dataset::of(name, &title, &curves.points);
        let mut all = points.name("value", |point| point.value).head(figure.varies);
        for scheme in Scheme::ALL {
            all = all.column(scheme.name(), Unit::Percent, |point| point.percent(scheme));
        }
        all.name("tasksets", |point| point.tasksets).for_programs().done()
    }

    /// A row for each point and scheme, for the plot.
    fn long(&self, curves: &Curves) -> Dataset {
        let each = |scheme| curves.points.iter().map(move |point| (scheme, point));
        Dataset::of("curves", "", Scheme::ALL.into_iter().flat_map(each))
            .name("scheme", |(scheme, _)| scheme.name())
            .name("point", |(_, point)| point.value)
            .head(self.case.figure().varies)
            .column("schedulable", Unit::Percent, |(scheme, point)| point.percent(*scheme))
            .head("schedulable tasksets")
            .done()
    }

    /// How much it matters what we chose.
    fn sensitivity(&self) -> Dataset {
        let figure = self.case.figure();
        let fewer = self.case.fewer();
        let ours = ("(ours)", self.case.tasksets, &self.curves);
        let paper = (PAPER, self.case.tasksets, &self.paper);
        let others = self.others().map(|(name, curves)| (name, fewer, curves));
        let name = format!("figure-{}-choices", figure.number);
        let title = format!(
            "Figure {}, other choices: greatest difference from ours (points), and where",
            figure.number
        );
        let rows = Dataset::of(&name, &title, [ours, paper].into_iter().chain(others));
        let mut all = rows.name("instead", |(name, ..)| *name);
        for scheme in Scheme::ALL {
            all = all.name(scheme.name(), |(.., curves)| {
                let difference = self.curves.difference(curves, scheme);
                let text = |(at, by)| format!("{by:+.1} at {}", number(at));
                difference.filter(|(_, by): &(f64, f64)| by.abs() > 0.0).map(text)
            });
        }
        let agreeing = |curves| figure.claims(curves).iter().filter(|c| c.holds()).count();
        all.name("tasksets_per_point", |(_, tasksets, _)| *tasksets)
            .for_programs()
            .name("statements_that_agree", |(.., curves)| agreeing(curves))
            .head("agree")
            .name("statements", |(.., curves)| figure.claims(curves).len())
            .head("of")
            .done()
    }
}

fn percents(curves: &Curves) -> Value {
    let curve = |scheme: Scheme| {
        let points = curves.points.iter().map(|point| point.percent(scheme));
        (scheme.name().to_owned(), points.collect())
    };
    Value::Object(Scheme::ALL.map(curve).into_iter().collect())
}

fn base() -> Value {
    let Setting { pcpus, vcpus_per_pcpu, tasks_per_vcpu, vcpu_period_ns, .. } = Setting::BASE;
    let Setting { min_period_ns, max_period_ns, utilization, .. } = Setting::BASE;
    let Setting { gcs_per_task, lockers_per_mutex, gcs_ns, .. } = Setting::BASE;
    json!({
        "pcpus": pcpus, "vcpus_per_pcpu": vcpus_per_pcpu, "tasks_per_vcpu": tasks_per_vcpu,
        "vcpu_period_ns": vcpu_period_ns, "min_period_ns": min_period_ns,
        "max_period_ns": max_period_ns, "utilization": utilization,
        "gcs_per_task": gcs_per_task, "lockers_per_mutex": lockers_per_mutex, "gcs_ns": gcs_ns,
    })
}
