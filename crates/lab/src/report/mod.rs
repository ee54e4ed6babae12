//! A report: one HTML file that needs nothing else.
//!
//! Figures are inline SVG whose colours come from the page's style sheet, so
//! that they follow the reader's light or dark setting. That is why they are
//! written with the page's own templates (maud) and not by a plotting crate,
//! which bakes colours into the picture.
//!
//! | module | story |
//! | --- | --- |
//! | `plot` | one grammar of plots of datasets |
//! | `stacks` | bars of several parts |
//! | [`timeline`] | schedules |
//! | `furniture` | what both have: a legend, hover texts, colours by number |
//! | `theme` | how both look, on a page and in a file of its own |
//! | `axis` | from values to places |

mod axis;
mod furniture;
mod plot;
mod stacks;
mod theme;
pub mod timeline;

pub use plot::Plot;
pub use stacks::stacks;
pub use theme::file;

use crate::results::{KNOWN_TO_FAIL, Outcome};
use crate::table::Table;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value};

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
    pub fn render(&self, outcome: &Outcome) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · Cassata" }
                    style { (PreEscaped(theme::PAGE_STYLE)) (PreEscaped(theme::DRAWING_STYLE)) }
                }
                body {
                    main {
                        header { p.house { "Cassata" } h1 { (self.title) } p.lead { (self.lead) } }
                        (verdict(outcome))
                        @if !self.tiles.is_empty() { (tiles(&self.tiles)) }
                        @for section in &self.sections { (section) }
                        section { h2 { "Checks" } (table_markup(&outcome.table())) }
                        section { h2 { "Conditions" } (parameters(&outcome.parameters)) }
                    }
                }
            }
        };
        page.into_string()
    }
}

/// A drawing with a caption.
pub fn figure(drawing: &Markup, caption: &str) -> Markup {
    html! { figure { (drawing) figcaption { (caption) } } }
}

/// Content that is shown on demand.
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
                    @match (column, cell.as_str()) {
                        (0, _) => th scope="row" { (cell) },
                        (_, "holds" | "agrees") => td.good { (cell) },
                        (_, "FAILS" | KNOWN_TO_FAIL) => td.bad { (cell) },
                        _ => td { (cell) },
                    }
                } } }
            }
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
