//! A report: one HTML file that needs nothing else.
//!
//! Figures are inline SVG whose colours come from the page's style sheet, so
//! that they follow the reader's light or dark setting. That is why they are
//! written with the page's own templates (maud) and not by a plotting crate,
//! which bakes colours into the picture.

mod alone;
mod axis;
mod bars;
mod dots;
mod histogram;
mod lines;
mod rows;
mod shares;
pub mod timeline;

pub use alone::alone;
pub use bars::{Bar, bars};
pub use dots::{Group, dots};
pub use histogram::{Series, histogram};
pub use lines::Chart;
pub use rows::{Row, rows};
pub use shares::shares;

use crate::results::{Check, Outcome};
use crate::table::Table;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value};

const STYLE: &str = include_str!("style.css");

/// A page in the making.
#[derive(Clone, Debug)]
pub struct Report {
    title: String,
    lead: String,
    tiles: Vec<(String, String)>,
    sections: Vec<Markup>,
}

impl Report {
    /// A page called `title` that begins with a sentence or two.
    #[must_use]
    pub fn new(title: &str, lead: &str) -> Self {
        let (tiles, sections) = (Vec::new(), Vec::new());
        Self { title: title.into(), lead: lead.into(), tiles, sections }
    }

    /// Adds a figure that stands large at the top.
    pub fn tile(&mut self, value: impl Into<String>, name: &str) {
        self.tiles.push((value.into(), name.into()));
    }

    /// Adds a section.
    pub fn section(&mut self, heading: &str, content: Markup) {
        self.sections.push(html! { section { h2 { (heading) } (content) } });
    }

    /// Adds a table as a section.
    pub fn table(&mut self, table: &Table) {
        self.section(&table.title, table_markup(table));
    }

    /// The page, with the checks and parameters of `outcome`.
    #[must_use]
    pub fn render(&self, outcome: &Outcome) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · Cassata" }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    main {
                        header { p.house { "Cassata" } h1 { (self.title) } p.lead { (self.lead) } }
                        (verdict(outcome))
                        @if !self.tiles.is_empty() { (tiles(&self.tiles)) }
                        @for section in &self.sections { (section) }
                        section { h2 { "Checks" } (checks(outcome.checks())) }
                        section { h2 { "Conditions" } (parameters(&outcome.parameters)) }
                    }
                }
            }
        };
        page.into_string()
    }
}

/// A drawing with a caption.
#[must_use]
pub fn figure(drawing: &Markup, caption: &str) -> Markup {
    html! { figure { (drawing) figcaption { (caption) } } }
}

/// Content that is there for who asks for it.
#[must_use]
pub fn folded(heading: &str, content: &Markup) -> Markup {
    html! { details { summary { (heading) } (content) } }
}

fn verdict(outcome: &Outcome) -> Markup {
    let short = outcome.checks().iter().filter(|check| !check.holds()).count();
    html! {
        @if outcome.checks().is_empty() {}
        @else if short == 0 { p.verdict.good { "✓ every check holds" } }
        @else { p.verdict.bad { "✗ " (short) " of " (outcome.checks().len()) " checks do not hold" } }
    }
}

fn tiles(tiles: &[(String, String)]) -> Markup {
    html! {
        div.tiles { @for (value, name) in tiles { div { strong { (value) } span { (name) } } } }
    }
}

fn table_markup(table: &Table) -> Markup {
    html! {
        div.wide { table {
            @if table.head.iter().any(|head| !head.is_empty()) {
                thead { tr { @for head in &table.head { th scope="col" { (head) } } } }
            }
            tbody {
                @for row in &table.rows { tr { @for (column, cell) in row.iter().enumerate() {
                    @if column == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                } } }
            }
        } }
    }
}

fn checks(checks: &[Check]) -> Markup {
    html! {
        div.wide { table {
            thead { tr { th scope="col" { "Check" } th scope="col" { "Value" }
                th scope="col" { "Goal" } th scope="col" { "Holds" } } }
            tbody { @for check in checks { tr {
                th scope="row" { (check.name) }
                td { (check.value_text()) }
                td { (check.goal) }
                @if check.holds() { td.good { "✓" } } @else { td.bad { "✗" } }
            } } }
        } }
    }
}

fn parameters(parameters: &Map<String, Value>) -> Markup {
    html! {
        dl { @for (name, value) in parameters {
            dt { (name.replace('_', " ")) }
            dd { @match value {
                Value::String(text) if text.contains('\n') => pre { (text) },
                Value::String(text) => (text),
                other => (other.to_string()),
            } }
        } }
    }
}

#[cfg(test)]
mod tests;
