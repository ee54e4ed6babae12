//! A figure beside the paper's words.

use super::Experiment;
use super::curves::Curves;
use super::scheme::Scheme;
use super::setting::Setting;
use crate::answer::Answer;
use crate::dataset::{Dataset, Unit};
use crate::experiment::{agreeing, told};
use crate::quantity::{count, number};
use crate::report::Plot;
use crate::results::Outcome;
use maud::html;
use serde_json::{Value, json};

impl Experiment {
    /// Returns the name of the directory of its results.
    pub fn name(&self) -> String {
        format!("vmpcp-figure-{}", self.figure.number)
    }

    /// The answer. Its checks are the paper's statements.
    pub fn answer(&self) -> Answer {
        let (number, varies) = (self.figure.number, self.figure.varies);
        let lead = format!(
            "Schedulable tasksets over the {varies}. The paper says: {}. Below, each statement is a \
             check of what we computed; one that does not hold is a finding, not a fault.",
            self.figure.says
        );
        let mut answer = Answer::new(&self.name(), &format!("vMPCP, figure {number}"), &lead);
        self.record(&mut answer.outcome);
        let claims = self.figure.claims(&self.curves);
        let tasksets = count(self.draw.tasksets);
        answer.tile(format!("{} of {}", agreeing(&claims), claims.len()), "statements agree");
        answer.tile(tasksets.clone(), "tasksets at each point");
        let caption = format!("{tasksets} tasksets at each point, bounds as published.");
        let plot = Plot::lines(&self.long(), "point", "schedulable_percent").by("scheme");
        let plot = answer.plot("figure", &plot.up_to(100.0), &caption);
        answer.section("Our figure", plot);
        answer.data(&self.data());
        answer.say(&format!("The paper: {}.\n{}", self.figure.says, told(&claims)));
        answer.section("What we chose", html! { p { (CHOICES) } });
        answer.data(&self.sensitivity());
        claims.into_iter().for_each(|claim| answer.outcome.check(claim));
        answer
    }

    fn record(&self, outcome: &mut Outcome) {
        outcome.parameter("paper", "Kim, Wang, Rajkumar: vMPCP, RTSS 2014, corrected 2015");
        outcome.parameter("tasksets_per_point", self.draw.tasksets);
        outcome.parameter("seed", self.draw.seed);
        outcome.parameter("base", base());
        outcome.parameter("choices", CHOICES);
        outcome.figure("varies", self.figure.varies);
        let others =
            self.others.iter().map(|other| (other.name.to_owned(), percents(&other.curves)));
        outcome.figure("other_choices", Value::Object(others.collect()));
    }

    /// A row for each point, a column for each scheme.
    fn data(&self) -> Dataset {
        let title = format!("Figure {}: schedulable tasksets", self.figure.number);
        let points = Dataset::of("figure", &title, &self.curves.points);
        let mut all = points.name("value", |point| point.value).head(self.figure.varies);
        for scheme in Scheme::ALL {
            all = all.column(scheme.name(), Unit::Percent, |point| point.percent(scheme));
        }
        all.name("tasksets", |point| point.tasksets).for_programs().done()
    }

    /// A row for each point and scheme, for the plot.
    fn long(&self) -> Dataset {
        let each = |scheme| self.curves.points.iter().map(move |point| (scheme, point));
        Dataset::of("curves", "", Scheme::ALL.into_iter().flat_map(each))
            .name("scheme", |(scheme, _)| scheme.name())
            .name("point", |(_, point)| point.value)
            .head(self.figure.varies)
            .column("schedulable", Unit::Percent, |(scheme, point)| point.percent(*scheme))
            .head("schedulable tasksets")
            .done()
    }

    /// How much it matters what we chose.
    fn sensitivity(&self) -> Dataset {
        let ours = ("(ours)", self.draw.tasksets, &self.curves);
        let others = self.others.iter().map(|other| (other.name, other.tasksets, &other.curves));
        let title = "Other choices: greatest difference from ours (points), and where";
        let rows = Dataset::of("choices", title, std::iter::once(ours).chain(others));
        let mut all = rows.name("instead", |(name, ..)| *name);
        for scheme in Scheme::ALL {
            all = all.name(scheme.name(), |(.., curves)| {
                let difference = self.curves.difference(curves, scheme);
                let text = |(at, by)| format!("{by:+.1} at {}", number(at));
                difference.filter(|(_, by): &(f64, f64)| by.abs() > 0.0).map(text)
            });
        }
        let claims = |curves| self.figure.claims(curves);
        all.name("tasksets_per_point", |(_, tasksets, _)| *tasksets)
            .for_programs()
            .name("statements_that_agree", |(.., curves)| agreeing(&claims(curves)))
            .head("agree")
            .name("statements", |(.., curves)| claims(curves).len())
            .head("of")
            .done()
    }
}

/// What we chose where the paper is silent.
const CHOICES: &str = "Periods of tasks are uniform multiples of 10 µs from 100 to 500 ms. A \
vCPU's utilization is split so that every split is equally likely, and split again if a task is \
too short for its gcs's. WCET is utilization times period (the paper divides). All vCPUs have \
one period, so their order is drawn at random, over the whole system. For the first gcs of all \
tasks, tasks are dealt at random into groups, one mutex each; for the second anew. Budgets are \
those of Equation 5 for each scheme, equal for all vCPUs, in steps of 10 µs. Ranges and steps \
of what varies are ours but for those that the paper's text mentions.";

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
