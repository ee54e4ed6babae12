//! What was found, for people and programs.

use super::super::verdicts;
use super::All;
use super::case::{Load, Route, cases};
use super::fold::{COUNT, Found, STAGES};
use super::run::{Kind, Seen};
use crate::answer::Answer;
use crate::bench::Extent;
use crate::dataset::{Dataset, Unit};
use crate::observe::Distribution;
use crate::quantity::real;
use crate::report::stacks;
use maud::html;

/// The interrupts of a way, with a load.
#[derive(Clone, Debug)]
pub struct Row {
    pub route: Route,
    pub load: Load,
    pub stages: Vec<Distribution>,
    pub response: Distribution,
    /// What each stage took of the interrupt with the longest response, ns.
    pub of_longest: Vec<u32>,
}

/// A figure of a distribution, with the name and the title of the table that has it of each stage.
#[derive(Clone, Copy)]
pub struct Figure {
    pub name: &'static str,
    title: &'static str,
    pub of: fn(&Distribution) -> Option<f64>,
}

/// The figures, each of which has a table.
pub const FIGURES: [Figure; 3] = [
    Figure { name: "mean", title: "Mean of each stage", of: Distribution::mean },
    Figure {
        name: "p99.9",
        title: "99.9th percentile of each stage",
        of: |all| all.told_percentile(999).map(f64::from),
    },
    Figure { name: "longest", title: "Longest of each stage", of: |all| all.max().map(f64::from) },
];
pub const MEAN: Figure = FIGURES[0];
pub const LONGEST: Figure = FIGURES[2];
/// Name and title of the table of the interrupts with the longest responses.
const OF_LONGEST: (&str, &str) =
    ("stages-of-longest", "Stages of the interrupt with the longest response");

impl Row {
    pub fn name(&self) -> String {
        format!("{}, {}", self.route.words(), self.load.words())
    }

    /// Returns what each stage took of the interrupt with the longest response, ns.
    pub fn stages_of_longest(&self) -> Vec<f64> {
        self.of_longest.iter().map(|&ns| f64::from(ns)).collect()
    }

    /// Returns the figure of each stage, ns; 0 where there is none.
    pub fn figures(&self, figure: Figure) -> Vec<f64> {
        self.stages.iter().map(|stage| (figure.of)(stage).unwrap_or(0.0)).collect()
    }
}

/// Returns true if interrupts of this kind are what the case is about.
fn belongs(route: Route, kind: &Kind) -> bool {
    match route {
        Route::NoSwitch => kind.found == Found::Guest(1),
        Route::Idle => kind.found == Found::Idle,
        Route::User => kind.found == Found::Guest(0),
        Route::Kernel => kind.found == Found::Guest(1) && kind.switched,
        Route::El2 => kind.found == Found::Busy && kind.switched,
        Route::Departure => kind.departed,
        _ => true,
    }
}

/// Returns what a run found of a way.
fn row(seen: &Seen, route: Route) -> Row {
    let mut row = Row {
        route,
        load: seen.case.load,
        stages: vec![Distribution::default(); COUNT],
        response: Distribution::default(),
        of_longest: Vec::new(),
    };
    let add = |sum: &mut Distribution, one: &Distribution| {
        one.iter().for_each(|(value, count)| sum.record_many(value, count));
    };
    for kind in seen.kinds.iter().filter(|kind| belongs(row.route, kind)) {
        row.stages.iter_mut().zip(&kind.stages).for_each(|(sum, one)| add(sum, one));
        if kind.response.max() > row.response.max() {
            row.of_longest.clone_from(&kind.of_longest);
        }
        add(&mut row.response, &kind.response);
    }
    row
}

/// What a load adds to a way.
pub struct Added {
    pub without: Row,
    pub with: Row,
}

impl Added {
    /// Returns what it adds to a figure of each stage, ns: those of different stages may be of different
    /// interrupts.
    pub fn stages(&self, figure: Figure) -> Vec<f64> {
        self.beyond(|row| row.figures(figure))
    }

    /// Returns by how much each stage of the interrupt with the longest response is longer than of that without
    /// the load, ns: what it adds to the longest response.
    pub fn to_longest(&self) -> Vec<f64> {
        self.beyond(Row::stages_of_longest)
    }

    fn beyond(&self, of: impl Fn(&Row) -> Vec<f64>) -> Vec<f64> {
        let (with, without) = (of(&self.with), of(&self.without));
        with.iter().zip(without).map(|(with, without)| with - without).collect()
    }
}

impl All {
    pub fn rows(&self) -> Vec<Row> {
        let routes = |seen: &Seen| match seen.case.route {
            Route::Kernel => vec![Route::Kernel, Route::El2],
            route => vec![route],
        };
        let of = |seen| routes(seen).into_iter().map(move |route| row(seen, route));
        let mut rows: Vec<_> = self.measurements.iter().flat_map(of).collect();
        rows.retain(|row| row.response.count() > 0);
        rows
    }

    /// Returns the ways that were measured with a load and without.
    pub fn added(&self) -> Vec<Added> {
        let rows = self.rows();
        let with = rows.iter().filter(|row| row.load.is_load());
        let pair = |with: &Row| {
            let is_it = |row: &&Row| row.route == with.route && !row.load.is_load();
            let without = rows.iter().find(is_it)?.clone();
            Some(Added { without, with: with.clone() })
        };
        with.filter_map(pair).collect()
    }

    /// Adds what was found, and for the documents if it is all that there is.
    pub fn add_to(&self, answer: &mut Answer) {
        if self.measurements.is_empty() {
            return;
        }
        let rows = self.rows();
        let parts = STAGES.map(|(name, _)| name);
        let means: Vec<_> = rows.iter().map(|row| (row.name(), row.figures(MEAN))).collect();
        let longest = rows.iter().map(|row| (row.name(), row.stages_of_longest())).collect();
        for (file, title, bars) in
            [("stages-mean", MEAN.title, means), (OF_LONGEST.0, OF_LONGEST.1, longest)]
        {
            let drawn = answer.drawing(file, &stacks(&parts, &bars, "ns"), "");
            answer.section(title, drawn);
        }
        let tables = self.tables();
        tables.iter().for_each(|data| answer.data(data));
        answer.section(
            "The paper's stages",
            html! { ul { @for (name, paper) in STAGES { li { (name) ": " (paper) } } } },
        );
        // A part is not quoted, nor what is measured coarsely.
        if self.covers(&cases(Extent::Full)) {
            let tables: Vec<_> = tables.iter().map(|data| data.table().titled_markdown()).collect();
            answer.document("bench kvm-rt", tables.join("\n") + &verdicts(self.checks()));
        }
    }

    fn tables(&self) -> Vec<Dataset> {
        let rows = self.rows();
        let figures = FIGURES.map(|figure| table(&rows, figure));
        let rest = [table_of_longest(&rows), self.places(), self.additions()];
        figures.into_iter().chain(rest).collect()
    }

    /// Where interrupts found the core, case by case.
    fn places(&self) -> Dataset {
        let count = |of: fn(&Kind) -> bool| {
            move |seen: &&Seen| {
                let kinds = seen.kinds.iter().filter(|kind| of(kind));
                kinds.map(|kind| kind.response.count()).sum::<u64>()
            }
        };
        Dataset::of("places", "Where the interrupts found the core", &self.measurements)
            .name("way", |seen| seen.case.route.words())
            .name("load", |seen| seen.case.load.words())
            .name("at_EL0", count(|kind| kind.found == Found::Guest(0)))
            .name("at_EL1", count(|kind| kind.found == Found::Guest(1)))
            .name("asleep", count(|kind| kind.found == Found::Idle))
            .name("at_EL2", count(|kind| kind.found == Found::Busy))
            .name("switched", count(|kind| kind.switched))
            .name("departed", count(|kind| kind.departed))
            .done()
    }

    /// What a load adds to each stage.
    fn additions(&self) -> Dataset {
        let added = self.added();
        let rows = added.iter().flat_map(|added| {
            let route = added.with.route;
            let [mean, longest] = [MEAN, LONGEST].map(|figure| added.stages(figure));
            let to_longest = added.to_longest();
            let each = STAGES.iter().enumerate();
            each.map(move |(at, (name, _))| (route, *name, [mean[at], longest[at], to_longest[at]]))
        });
        let rows: Vec<_> = rows.filter(|row| row.2.iter().any(|ns| ns.abs() >= 0.5)).collect();
        Dataset::of("added", "What hackbench adds", rows)
            .name("way", |row| row.0.words())
            .name("stage", |row| row.1)
            .column("mean", Unit::Nanoseconds, |row| row.2[0])
            .digits(0)
            .column("longest", Unit::Nanoseconds, |row| row.2[1])
            .head("longest of the stage")
            .digits(0)
            .column("to_longest", Unit::Nanoseconds, |row| row.2[2])
            .head("in the longest response")
            .digits(0)
            .done()
    }
}

/// Returns a table of one figure of each stage.
fn table(rows: &[Row], figure: Figure) -> Dataset {
    let name = format!("stages-{}", figure.name);
    let mut data = Dataset::of(&name, figure.title, rows)
        .name("way", |row: &&Row| row.route.words())
        .name("load", |row| row.load.words())
        .name("interrupts", |row| row.response.count());
    for (stage, (name, _)) in STAGES.iter().enumerate() {
        data =
            data.column(name, Unit::Nanoseconds, |row| (figure.of)(&row.stages[stage])).digits(0);
    }
    data.column("response", Unit::Nanoseconds, |row| (figure.of)(&row.response)).digits(0).done()
}

/// Returns a table of what the interrupts with the longest responses took in each stage.
fn table_of_longest(rows: &[Row]) -> Dataset {
    let mut data = Dataset::of(OF_LONGEST.0, OF_LONGEST.1, rows)
        .name("way", |row: &&Row| row.route.words())
        .name("load", |row| row.load.words());
    for (stage, (name, _)) in STAGES.iter().enumerate() {
        data =
            data.column(name, Unit::Nanoseconds, |row| f64::from(row.of_longest[stage])).digits(0);
    }
    data.column("response", Unit::Nanoseconds, |row| row.response.max().map(f64::from))
        .digits(0)
        .done()
}

/// Returns a number of interrupts to calculate with.
pub fn interrupts(seen: &Seen) -> f64 {
    real(seen.kinds.iter().map(|kind| kind.response.count()).sum())
}
