//! A figure beside the paper's words: as a page, a drawing, a table, JSON.

use super::Experiment;
use super::curves::Curves;
use super::scheme::Scheme;
use super::setting::Setting;
use crate::experiment::{agreeing, told};
use crate::quantity::{count, number};
use crate::report::{Chart, Report, figure as captioned};
use crate::results::{Check, Outcome};
use crate::table::Table;
use maud::html;
use serde_json::{Value, json};
use std::fmt::Write;

impl Experiment {
    /// Name of the directory of its results.
    #[must_use]
    pub fn name(&self) -> String {
        format!("vmpcp-figure-{}", self.figure.number())
    }

    /// Everything, for programs. The checks are the paper's statements.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let mut outcome = Outcome::new(&self.name());
        outcome.parameter("paper", "Kim, Wang, Rajkumar: vMPCP, RTSS 2014, corrected 2015");
        outcome.parameter("tasksets_per_point", self.draw.tasksets);
        outcome.parameter("seed", self.draw.seed);
        outcome.parameter("base", base());
        outcome.parameter("choices", CHOICES);
        let values: Vec<f64> = self.curves.points.iter().map(|point| point.value).collect();
        outcome.figure("varies", self.figure.varies());
        outcome.figure("values", values);
        outcome.figure("percent_schedulable", percents(&self.curves));
        let others = self.others.iter().map(|other| {
            let claims = self.figure.claims(&other.curves);
            json!({
                "choice": other.name,
                "tasksets_per_point": other.tasksets,
                "percent_schedulable": percents(&other.curves),
                "statements_that_agree": agreeing(&claims),
                "statements": claims.len(),
            })
        });
        outcome.figure("other_choices", Value::Array(others.collect()));
        self.figure.claims(&self.curves).into_iter().for_each(|claim| outcome.check(claim));
        outcome
    }

    /// The page.
    #[must_use]
    pub fn report(&self) -> Report {
        let (number, varies) = (self.figure.number(), self.figure.varies());
        let title = format!("vMPCP, figure {number}");
        let lead = format!(
            "Schedulable tasksets over the {varies}. The paper says: {}. Below, each statement is a \
             check of what we computed; one that does not hold is a finding, not a fault.",
            self.figure.says()
        );
        let mut report = Report::new(&title, &lead);
        let claims = self.figure.claims(&self.curves);
        let tasksets = count(self.draw.tasksets);
        report.tile(format!("{} of {}", agreeing(&claims), claims.len()), "statements agree");
        report.tile(tasksets.clone(), "tasksets at each point");
        let caption = format!("{tasksets} tasksets at each point, bounds as published.");
        report.section("Our figure", captioned(&self.chart().draw(), &caption));
        report.table(&self.table());
        report.section("What we chose", html! { p { (CHOICES) } });
        report.table(&self.sensitivity());
        report
    }

    /// What is said on the terminal.
    #[must_use]
    pub fn summary(&self) -> String {
        let claims = told(&self.figure.claims(&self.curves));
        let says = self.figure.says();
        format!("{}\nThe paper: {says}.\n{claims}\n{}", self.table(), self.sensitivity())
    }

    /// One line for each point.
    #[must_use]
    pub fn csv(&self) -> String {
        let names = Scheme::ALL.map(|scheme| format!("{} (%)", scheme.name())).join(",");
        let mut text = format!("{},{names},tasksets\n", self.figure.varies());
        for point in &self.curves.points {
            let percents = Scheme::ALL.map(|scheme| number(point.percent(scheme))).join(",");
            let _ = writeln!(text, "{},{percents},{}", number(point.value), point.tasksets);
        }
        text
    }

    /// The drawing.
    #[must_use]
    pub fn chart(&self) -> Chart<'static> {
        let curve = |scheme: Scheme| {
            let points = self.curves.points.iter();
            (scheme.name(), points.map(|point| point.percent(scheme)).collect())
        };
        Chart {
            across: self.figure.varies(),
            up: "schedulable tasksets",
            unit: "%",
            most: 100.0,
            values: self.curves.points.iter().map(|point| point.value).collect(),
            curves: Scheme::ALL.map(curve).into(),
            lines: Vec::new(),
        }
    }

    fn table(&self) -> Table {
        let title = format!("Figure {}: schedulable tasksets (%)", self.figure.number());
        let head = [self.figure.varies()].into_iter().chain(Scheme::ALL.map(Scheme::name));
        let mut table = Table::new(&title, head);
        for point in &self.curves.points {
            let percents = Scheme::ALL.map(|scheme| format!("{:.1}", point.percent(scheme)));
            table.row([number(point.value)].into_iter().chain(percents));
        }
        table
    }

    /// How much it matters what we chose.
    fn sensitivity(&self) -> Table {
        let title = "Other choices: greatest difference from ours (points), and where";
        let head = ["instead"].into_iter().chain(Scheme::ALL.map(Scheme::name)).chain(["agree"]);
        let mut table = Table::new(title, head);
        let claims = self.figure.claims(&self.curves);
        let agree = |claims: &[Check]| format!("{} of {}", agreeing(claims), claims.len());
        table.row(["(ours)", "", "", "", ""].map(String::from).into_iter().chain([agree(&claims)]));
        for other in &self.others {
            let differences = Scheme::ALL.map(|scheme| {
                let difference = self.curves.difference(&other.curves, scheme);
                difference
                    .map_or_else(String::new, |(at, by)| format!("{by:+.1} at {}", number(at)))
            });
            let row = [other.name.to_owned()].into_iter().chain(differences);
            table.row(row.chain([agree(&self.figure.claims(&other.curves))]));
        }
        table
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
