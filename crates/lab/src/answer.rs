//! What an experiment answers, written down once: `result.json`, CSV and SVG files, the page
//! and what the terminal shows all follow from it.

use crate::dataset::Dataset;
use crate::documents;
use crate::report::{self, Plot, Report, figure};
use crate::results::{AGREES, Check, Directory, Outcome};
use crate::table::Table;
use maud::Markup;
use miette::{Result, miette};
use std::path::{Path, PathBuf};

/// An answer in the making, or made.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Parameters, figures and checks.
    pub outcome: Outcome,
    page: Report,
    /// What the terminal shows above the checks.
    text: String,
    /// What the terminal shows below the checks.
    remarks: String,
    /// For CSV files.
    data: Vec<Dataset>,
    /// Other files: name and content.
    files: Vec<(String, String)>,
    /// What documents quote: the name of a block and its content.
    documents: Vec<(&'static str, String)>,
}

impl Answer {
    /// Begins the answer of experiment `name`, whose page is called `title` and begins with
    /// the sentences `lead`.
    pub fn new(name: &str, title: &str, lead: &str) -> Self {
        let (mut outcome, page) = (Outcome::new(name), Report::new(title, lead));
        outcome.parameter("cassata", env!("CARGO_PKG_VERSION"));
        let (text, remarks) = (String::new(), String::new());
        let (data, files, documents) = (Vec::new(), Vec::new(), Vec::new());
        Self { outcome, page, text, remarks, data, files, documents }
    }

    /// Adds a number that stands large at the top of the page.
    pub fn tile(&mut self, value: impl Into<String>, name: &str) {
        self.page.tile(value, name);
    }

    /// Adds the checks, and says at the top of the page how many goals are reached, how many statements of
    /// papers agree, and how many of all points are measured.
    pub fn judged(&mut self, checks: impl IntoIterator<Item = Check>, measured: usize, all: usize) {
        checks.into_iter().for_each(|check| self.outcome.check(check));
        let (stated, demanded): (Vec<_>, Vec<_>) =
            self.outcome.checks().iter().partition(|check| check.is_statement());
        let held = demanded.iter().filter(|check| check.holds()).count();
        let reached = format!("{held} of {}", demanded.len());
        let agree = stated.iter().filter(|check| check.verdict() == AGREES).count();
        let agree = (!stated.is_empty()).then(|| format!("{agree} of {}", stated.len()));
        self.tile(reached, "goals reached");
        if let Some(agree) = agree {
            self.tile(agree, "statements agree");
        }
        self.tile(format!("{measured} of {all}"), "points measured");
    }

    /// Adds a section to the page.
    pub fn section(&mut self, heading: &str, content: Markup) {
        self.page.section(heading, content);
    }

    /// Adds a plot as file `NAME.svg` and returns it for a section of the page.
    pub fn plot(&mut self, name: &str, plot: &Plot, caption: &str) -> Markup {
        self.drawing(name, &plot.draw(), caption)
    }

    /// Adds any drawing as file `NAME.svg` and returns it for a section of the page.
    pub fn drawing(&mut self, name: &str, drawing: &Markup, caption: &str) -> Markup {
        self.files.extend(report::file(drawing).map(|file| (format!("{name}.svg"), file)));
        figure(drawing, caption)
    }

    /// Adds another file.
    pub fn file(&mut self, name: &str, content: String) {
        self.files.push((name.into(), content));
    }

    /// Adds a dataset in all its forms: a figure and a CSV file of its name, a table on the
    /// page and on the terminal.
    pub fn data(&mut self, data: &Dataset) {
        self.data_as(data, &data.table());
    }

    /// Adds a dataset of which people read another table.
    pub fn data_as(&mut self, data: &Dataset, table: &Table) {
        self.outcome.figure(data.name(), data.json());
        self.csv(data);
        if !data.is_empty() {
            self.table(table);
        }
    }

    /// Adds a dataset whose figures the outcome has already.
    pub fn show(&mut self, data: &Dataset) {
        self.csv(data);
        if !data.is_empty() {
            self.table(&data.table());
        }
    }

    /// Adds a table that has no data of its own.
    pub fn table(&mut self, table: &Table) {
        self.page.table(table);
        self.say(&table.to_string());
    }

    /// Adds a dataset that only programs want, as a CSV file.
    pub fn csv(&mut self, data: &Dataset) {
        self.data.push(data.clone());
    }

    /// Adds a paragraph to what the terminal shows.
    pub fn say(&mut self, text: &str) {
        self.text += text;
        self.text += "\n";
    }

    /// Adds a paragraph that the terminal shows below the checks.
    pub fn remark(&mut self, text: &str) {
        self.remarks += &format!("\n{text}\n");
    }

    /// Adds what a document quotes, in Markdown, for the block of this name.
    pub fn document(&mut self, block: &'static str, content: String) {
        self.documents.push((block, content));
    }

    /// Writes what documents quote into those of the project at `root`; returns which.
    ///
    /// # Errors
    /// When no document quotes it, or not what was measured, or one cannot be written; when a premise
    /// of the figures does not hold.
    pub fn write_documents(&self, root: &Path) -> Result<Vec<PathBuf>> {
        if self.documents.is_empty() {
            return Err(miette!(
                help = "a document's block is written when all of its points are measured, and none of \
                        `--quick` are; what was measured is kept",
                "no document quotes these figures of {}",
                self.outcome.name
            ));
        }
        if let Some(check) = self.outcome.checks().iter().find(|check| check.spoils()) {
            let (name, found, goal) = (&check.name, check.value_text(), check.goal);
            return Err(miette!(
                help = "the checks below the figures say more; mend that and measure again",
                "documents stay as they are: {name}: {found}, and must be {goal}"
            ));
        }
        let all = self.documents.iter().map(|(block, content)| (*block, content.as_str()));
        documents::write(root, all)
    }

    /// Returns the page.
    pub fn page(&self) -> String {
        self.page.render(&self.outcome)
    }

    /// Returns what the terminal shows.
    pub fn summary(&self) -> String {
        format!("{}{}{}", self.text, self.outcome.table(), self.remarks)
    }

    /// Returns what the terminal shows but for the checks.
    pub fn findings(&self) -> &str {
        &self.text
    }

    /// Writes all files to `directory` and returns where `result.json` and `report.html` are.
    /// CSV and SVG files that an earlier run left there and this one does not have go.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn write(&self, directory: &Directory) -> Result<[PathBuf; 2]> {
        let mut files = self.files.iter().map(|(n, c)| (n.clone(), c.clone().into_bytes()));
        let mut all: Vec<(String, Vec<u8>)> = files.by_ref().collect();
        for data in self.data.iter().filter(|data| !data.is_empty()) {
            all.push((format!("{}.csv", data.name()), data.csv()?));
        }
        for extension in ["csv", "svg"] {
            directory.clear_of(extension, |name| all.iter().any(|(kept, _)| kept == name))?;
        }
        for (name, content) in &all {
            directory.write(name, content)?;
        }
        let json = directory.write_outcome(&self.outcome)?;
        Ok([json, directory.write("report.html", self.page().as_bytes())?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Unit;
    use crate::results::Check;
    use std::collections::BTreeSet;

    #[test]
    fn one_dataset_makes_every_form() {
        let data = Dataset::of("runs", "Runs of hackbench", [("none", 0.5), ("on-demand", 0.25)])
            .name("policy", |row| row.0)
            .column("mean", Unit::Seconds, |row| row.1)
            .done();
        let mut answer = Answer::new("lhp", "Title", "Lead.");
        let plot = answer.plot("runs", &Plot::bars(&data, "policy", "mean_s"), "caption");
        answer.section("How fast?", plot);
        answer.data(&data);
        answer.csv(&Dataset::of("nothing", "", [0_u64; 0]).done());
        answer.outcome.check(Check::done("measured", true));
        let results = tempfile::tempdir().unwrap();
        let directory = Directory::create(results.path(), "lhp").unwrap();
        directory.write("old.svg", b"x").unwrap();
        let [json, html] = answer.write(&directory).unwrap();
        let files = std::fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name());
        let files: BTreeSet<_> = files.map(|name| name.into_string().unwrap()).collect();
        let expected = ["report.html", "result.json", "runs.csv", "runs.svg"];
        assert_eq!(files, expected.map(String::from).into());
        let json: serde_json::Value =
            serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        assert_eq!(json["figures"]["runs"][1]["mean_s"], 0.25);
        let page = std::fs::read_to_string(html).unwrap();
        assert!(page.contains("<svg") && page.contains("Runs of hackbench"));
        assert!(
            answer.summary().contains("on-demand  250 ms") && answer.summary().contains("holds")
        );
    }
}
