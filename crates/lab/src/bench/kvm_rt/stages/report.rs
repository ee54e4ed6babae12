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
        of: |all| all.percentile(999).map(f64::from),
    },
    Figure { name: "longest", title: "Longest of each stage", of: |all| all.max().map(f64::from) },
];
pub const MEAN: Figure = FIGURES[0];
pub const LONGEST: Figure = FIGURES[2];

impl Row {
    pub fn name(&self) -> String {
        format!("{}, {}", self.route.words(), self.load.words())
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
    };
    let add = |sum: &mut Distribution, one: &Distribution| {
        one.iter().for_each(|(value, count)| sum.record_many(value, count));
    };
    for kind in seen.kinds.iter().filter(|kind| belongs(row.route, kind)) {
        row.stages.iter_mut().zip(&kind.stages).for_each(|(sum, one)| add(sum, one));
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
    /// Returns what it adds to each stage, ns.
    pub fn stages(&self, figure: Figure) -> Vec<f64> {
        let [with, without] = [&self.with, &self.without].map(|row| row.figures(figure));
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
        for figure in [MEAN, LONGEST] {
            let bars: Vec<_> = rows.iter().map(|row| (row.name(), row.figures(figure))).collect();
            let (file, title) = (format!("stages-{}", figure.name), figure.title);
            let caption = "The longest of different stages are of different interrupts.";
            let caption = if figure.name == MEAN.name { "" } else { caption };
            let drawn = answer.drawing(&file, &stacks(&parts, &bars, "ns"), caption);
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
        figures.into_iter().chain([self.places(), self.additions()]).collect()
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
            let stages = added.stages(MEAN).into_iter().zip(added.stages(LONGEST));
            let named = STAGES.iter().map(|(name, _)| *name).zip(stages);
            named.map(move |(stage, (mean, longest))| (added.with.route, stage, mean, longest))
        });
        let rows: Vec<_> = rows.filter(|row| row.2.abs() >= 0.5 || row.3.abs() >= 0.5).collect();
        Dataset::of("added", "What hackbench adds", rows)
            .name("way", |row| row.0.words())
            .name("stage", |row| row.1)
            .column("mean", Unit::Nanoseconds, |row| row.2)
            .digits(0)
            .column("longest", Unit::Nanoseconds, |row| row.3)
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

/// Returns a number of interrupts to calculate with.
pub fn interrupts(seen: &Seen) -> f64 {
    real(seen.kinds.iter().map(|kind| kind.response.count()).sum())
}
