//! Shares by crate and file, and every line that was never executed.

use super::image::{Count, Mapped};
use super::lines::{self, Found, Share};
use crate::answer::Answer;
use crate::dataset::{Dataset, Unit};
use crate::executed::{Records, Sum};
use crate::quantity::{count, percent};
use crate::report::folded;
use crate::results::{Check, Goal};
use crate::source::read;
use crate::suite::{Asked, Tally};
use maud::html;
use miette::{Result, WrapErr};
use std::collections::BTreeMap;
use std::path::Path;

/// The directory of the results, and the name of the answer.
pub const NAME: &str = "coverage-el2";
/// Least percentage of the lines that the whole suite is to reach.
const GOAL: f64 = 95.0;

/// An image of the hypervisor.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    /// What people call it.
    pub name: &'a str,
    /// The ELF file.
    pub elf: &'a [u8],
    /// The lines count; of others only what they reach does.
    pub ships: bool,
}

/// Which tests recorded something.
#[derive(Clone, Copy, Debug)]
pub struct Extent<'a> {
    /// Which.
    pub asked: Asked<'a>,
    /// How they ended.
    pub tally: Tally,
    /// Ctrl-C came before they all had run.
    pub interrupted: bool,
}

/// An image, and what was executed of it.
#[derive(Clone, Debug)]
struct Seen {
    name: String,
    ships: bool,
    machines: u64,
    mapped: Mapped,
}

/// Says which lines of `images` were executed by what `records` has, by the tests that `extent`
/// tells. The goal is one for the whole suite: it is not judged after a part of it.
///
/// # Errors
/// When an image, a record or the source below the project's `root` cannot be read.
pub fn answer(
    images: &[Image<'_>],
    records: &Records,
    root: &Path,
    extent: Extent<'_>,
) -> Result<Answer> {
    let mut seen = Vec::new();
    for image in images {
        let sum = records.of(image.elf)?;
        let mapped = Mapped::of(image.elf, &sum).wrap_err_with(|| image.name.to_owned())?;
        let Sum { machines, .. } = sum;
        seen.push(Seen { name: image.name.into(), ships: image.ships, machines, mapped });
    }
    let of = |ships| seen.iter().filter(move |one| one.ships == ships).map(|one| &one.mapped);
    let (shipped, others): (Vec<_>, Vec<_>) = (of(true).collect(), of(false).collect());
    let found = lines::find(&shipped, &others);
    let texts = Texts::of(&found, root)?;
    let mut answer = make(&seen, &found, &texts);
    let Extent { asked, tally, interrupted } = extent;
    let Asked { filter, all } = asked;
    let tests = match filter {
        "" if all => "all",
        "" => "all but the longest",
        part => part,
    };
    answer.outcome.parameter("tests", tests);
    answer.outcome.parameter("tests_passed", tally.passed);
    answer.outcome.parameter("tests_failed", tally.failed);
    answer.outcome.parameter("interrupted", interrupted);
    if filter.is_empty() && all && !interrupted {
        let share = whole(&found).share() * 100.0;
        let name = "lines of EL2 that the machine tests execute";
        answer.outcome.check(Check::new(name, share, "%", Goal::AtLeast(GOAL)));
    } else {
        answer.say(&format!(
            "The goal of {GOAL} % is one for all tests (--all): it is not judged here.\n"
        ));
    }
    Ok(answer)
}

/// Adds up all lines.
fn whole(found: &[Found]) -> Share {
    lines::shares(found, |_| "all".into()).pop().unwrap_or_default()
}

fn make(seen: &[Seen], found: &[Found], texts: &Texts) -> Answer {
    let lead = "Which lines of source that run at EL2 the machine tests execute. Counted are lines \
                that have instructions in a build that ships, also where these were inlined \
                elsewhere. A line was reached when an instruction of it was executed, in any build.";
    let mut answer = Answer::new(NAME, "What the machine tests execute of EL2", lead);
    let all = whole(found);
    answer.tile(percent(all.share()), "of the lines");
    answer.tile(count(all.lines - all.reached), "lines never executed");
    answer.outcome.figure("lines", all.lines);
    answer.outcome.figure("reached", all.reached);
    answer.outcome.figure("share", all.share());
    let mut crates = lines::shares(found, lines::package);
    crates.push(Share { name: "all".into(), ..all });
    answer.data(&shares("crates", "Lines executed, by crate", &crates));
    let files = lines::shares(found, str::to_owned);
    answer.data(&shares("files", "Lines executed, by file", &files));
    answer.data(&images(seen));
    answer.data(&assembly(seen));
    let never: Vec<_> = found.iter().filter(|one| !one.reached).collect();
    let data = Dataset::of("lines", "Lines never executed", &never)
        .name("file", |one| one.file.clone())
        .name("line", |one| u64::from(one.line))
        .name("function", |one| one.function.clone())
        .name("source", |one| texts.line(one));
    answer.outcome.figure("never", never.len());
    answer.csv(&data.done());
    answer.section("Lines never executed", texts.markup(&never));
    answer
}

fn shares(name: &str, title: &str, rows: &[Share]) -> Dataset {
    Dataset::of(name, title, rows)
        .name("of", |row| row.name.clone())
        .head("")
        .name("lines", |row| row.lines)
        .name("executed", |row| row.reached)
        .name("never", |row| row.lines - row.reached)
        .column("share", Unit::Share, |row| row.share())
        .done()
}

fn images(seen: &[Seen]) -> Dataset {
    Dataset::of("images", "Builds of the hypervisor", seen)
        .name("build", |one| one.name.clone())
        .head("")
        .name("machines", |one| one.machines)
        .name("instructions", |one| one.mapped.all.instructions)
        .name("executed", |one| one.mapped.all.executed)
        .name("lines", |one| one.mapped.lines.len() as u64)
        .name("lines_executed", |one| one.mapped.reached().len() as u64)
        .done()
}

/// Assembly has no lines. What is in front of the boot code, between vectors, is padding.
fn assembly(seen: &[Seen]) -> Dataset {
    let rows: Vec<(&str, &str, Count)> = seen
        .iter()
        .flat_map(|one| {
            let labels = one.mapped.assembly.iter();
            labels.map(|(label, count)| (one.name.as_str(), label.as_str(), *count))
        })
        .collect();
    Dataset::of("assembly", "Instructions without a line: assembly, padding", rows)
        .name("label", |row| row.1.to_owned())
        .name("build", |row| row.0.to_owned())
        .name("instructions", |row| row.2.instructions)
        .name("executed", |row| row.2.executed)
        .done()
}

/// The source, by file.
struct Texts(BTreeMap<String, Vec<String>>);

impl Texts {
    fn of(found: &[Found], root: &Path) -> Result<Self> {
        let mut texts = BTreeMap::new();
        for one in found {
            if !texts.contains_key(&one.file) {
                let text = read(&root.join(&one.file))?;
                texts.insert(
                    one.file.clone(),
                    text.lines().map(|line| line.trim().into()).collect(),
                );
            }
        }
        Ok(Self(texts))
    }

    fn line(&self, one: &Found) -> String {
        let at = usize::try_from(one.line).unwrap_or(0).saturating_sub(1);
        self.0.get(&one.file).and_then(|text| text.get(at)).cloned().unwrap_or_default()
    }

    /// Lists lines, file by file.
    fn markup(&self, never: &[&Found]) -> maud::Markup {
        let mut files: BTreeMap<&str, Vec<&Found>> = BTreeMap::new();
        never.iter().for_each(|one| files.entry(&one.file).or_default().push(one));
        html! { @for (file, all) in files {
            (folded(&format!("{file}: {}", all.len()), &html! {
                pre { @for one in all { (one.line) "  " (self.line(one)) "\n" } }
            }))
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{hypervisor, root};
    use vtime::coverage::Executed;

    #[test]
    fn the_goal_is_judged_after_all_tests_only_and_every_line_is_listed() {
        let (elf, directory) = (hypervisor(), tempfile::tempdir().unwrap());
        let records = Records::begin(&directory.path().join("records")).unwrap();
        let images = [Image { name: "ships", elf: &elf, ships: true }];
        let tally = Tally { passed: 3, ..Tally::default() };
        let answer = |filter, interrupted| {
            let asked = Asked { filter, all: true };
            let extent = Extent { asked, tally, interrupted };
            super::answer(&images, &records, root(), extent).unwrap()
        };
        for part in [answer("gic", false), answer("", true)] {
            assert!(part.outcome.checks().is_empty() && part.findings().contains("not judged"));
        }
        let nothing = answer("", false);
        assert_eq!(nothing.outcome.checks()[0].value, Some(0.0));
        assert_eq!(nothing.outcome.exit_code(false), 1);
        assert_eq!(nothing.outcome.figures["never"], nothing.outcome.figures["lines"]);

        let coverage = records.next(&elf, crate::executed::code(&elf).unwrap());
        let mut executed = Executed::none(coverage.instructions());
        (0..coverage.instructions()).for_each(|index| executed.insert(index));
        executed.write(&coverage.file).unwrap();
        let all = answer("", false);
        assert_eq!(all.outcome.checks()[0].value, Some(100.0));
        assert_eq!(all.outcome.exit_code(false), 0);

        let results = crate::results::Directory::create(directory.path(), NAME).unwrap();
        nothing.write(&results).unwrap();
        let csv = std::fs::read_to_string(results.path().join("lines.csv")).unwrap();
        let listed = csv.lines().count() as u64 - 1;
        assert_eq!(nothing.outcome.figures["lines"], listed);
        assert!(csv.contains("crates/el2/src/pcpu/run_loop.rs,"), "{csv}");
        let page = std::fs::read_to_string(results.path().join("report.html")).unwrap();
        assert!(page.contains("crates/el2/src/exits/hypercall.rs: "));
    }
}
