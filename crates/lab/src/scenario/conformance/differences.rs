//! What may differ between the bare board and a guest here: a table of the book, which says why.
//! A difference that is not in it fails a scenario, and so does one in it that is not found.

use crate::guests::{Verdict, Verdicts};
use crate::source::read;
use miette::{Result, miette};
use std::collections::BTreeSet;
use std::path::Path;

/// The chapter, from the project's root.
const CHAPTER: &str = "docs/src/conformance.md";
/// The table's first line.
const HEAD: &str = "| scenario | test | bare board | here | why |";

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The scenario; with `*` at its end, all whose names begin so.
    scenario: String,
    /// The test; with `*` at its end, some whose names begin so.
    test: String,
    bare: Verdict,
    here: Verdict,
}

/// Returns what the book of the project at `root` says.
///
/// # Errors
/// When it cannot be read or understood.
pub fn documented(root: &Path) -> Result<Vec<Difference>> {
    table(&read(&root.join(CHAPTER))?)
}

fn table(text: &str) -> Result<Vec<Difference>> {
    let rows = text.split_once(HEAD).ok_or_else(|| miette!("{CHAPTER} has no table `{HEAD}`"))?.1;
    // The first is the rest of the head's line, the second one of dashes.
    let rows = rows.lines().skip(2).take_while(|row| row.starts_with('|'));
    rows.map(|row| {
        difference(row).ok_or_else(|| miette!("{CHAPTER}: cannot understand the row `{row}`"))
    })
    .collect()
}

fn difference(row: &str) -> Option<Difference> {
    let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
    let &[scenario, test, bare, here, why] = cells.as_slice() else { return None };
    let [scenario, test] = [scenario, test].map(|cell| cell.trim_matches('`').to_owned());
    let (bare, here) = Verdict::of(bare).zip(Verdict::of(here))?;
    (!why.is_empty()).then_some(Difference { scenario, test, bare, here })
}

/// Returns true if `name` is the one that `pattern` means, or one of them.
fn is_meant(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    }
}

/// Returns what is different in `scenario` and not documented, or documented and not different.
/// Something must have passed on the bare board, or nothing is compared.
pub fn objections(
    scenario: &str,
    [bare, here]: [&Verdicts; 2],
    documented: &[Difference],
) -> Vec<String> {
    let may = documented.iter().filter(|may| is_meant(&may.scenario, scenario));
    let mut unseen: Vec<_> = may.clone().collect();
    let mut found = Vec::new();
    let names: BTreeSet<_> = bare.iter().chain(here.iter()).map(|(name, _)| name).collect();
    for name in names {
        let both @ [bare, here] = [bare.get(name), here.get(name)];
        let explains = |may: &&Difference| {
            is_meant(&may.test, name) && both == [Some(may.bare), Some(may.here)]
        };
        unseen.retain(|may| !explains(may));
        if bare != here && !may.clone().any(|may| explains(&may)) {
            let [bare, here] = both.map(|verdict| {
                verdict.map_or_else(|| "did not end".into(), |verdict| verdict.to_string())
            });
            found.push(format!("{name}: {bare} on the bare board, {here} here"));
        }
    }
    let gone = unseen.into_iter().map(|Difference { test, bare, here, .. }| {
        format!("{test}: {CHAPTER} has it {bare} there and {here} here")
    });
    let none = (bare.count(Verdict::Passed) == 0).then(|| "nothing was compared".to_owned());
    found.into_iter().chain(gone).chain(none).collect()
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Failed, Passed, Skipped};
    use super::*;

    #[test]
    fn the_book_has_a_table_of_scenarios_that_there_are() {
        let names: Vec<_> = super::super::scenarios().map(|scenario| scenario.name).collect();
        for row in documented(crate::testing::root()).unwrap() {
            assert!(names.iter().any(|name| is_meant(&row.scenario, name)), "{row:?}");
            assert_ne!(row.bare, row.here, "{row:?}");
        }
    }

    #[test]
    fn a_row_needs_all_its_cells() {
        let rows = |row: &str| table(&format!("x\n{HEAD}\n| --- |\n{row}\n\nmore | text\n"));
        let good = "| `b.*` | `a` | passed | skipped | it says so |";
        let difference =
            Difference { scenario: "b.*".into(), test: "a".into(), bare: Passed, here: Skipped };
        assert_eq!(rows(good).unwrap(), [difference]);
        for (from, to) in [("passed", "pass"), ("| it says so ", "| "), ("| `a` ", "")] {
            assert!(rows(&good.replace(from, to)).is_err(), "{to}");
        }
        assert!(table("no table").is_err());
    }

    #[test]
    fn what_differs_is_documented_and_the_other_way_round() {
        let bare = [("a", Passed), ("b", Passed), ("c", Failed)].into_iter().collect();
        let here = [("a", Passed), ("b", Skipped), ("c", Failed)].into_iter().collect();
        let row = |test: &str, scenario: &str| Difference {
            scenario: scenario.into(),
            test: test.into(),
            bare: Passed,
            here: Skipped,
        };
        let found = |all: &[Difference]| objections("x.1", [&bare, &here], all);
        assert_eq!(found(&[row("b", "x.*")]), [""; 0]);
        assert_eq!(found(&[]), ["b: passed on the bare board, skipped here"]);
        assert_eq!(found(&[row("*", "x.1")]), [""; 0]);
        assert_eq!(found(&[row("b", "x.2")]).len(), 1, "it is about another");
        assert_eq!(found(&[row("b", "x.1"), row("a", "x.1")]).len(), 1, "one is gone");
        let none = Verdicts::default();
        assert_eq!(objections("x", [&bare, &none], &[]).len(), 3);
        assert_eq!(objections("x", [&none, &none], &[]), ["nothing was compared"]);
    }
}
