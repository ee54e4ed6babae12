//! What the book quotes: how many of the paper's statements agree, and the points that they name.

use super::case::Seen;
use super::curves::{Curves, Point};
use super::figure::FIGURES;
use crate::dataset::{Dataset, Unit};
use crate::quantity::{count, number};
use analysis::tasksets::Scheme;

/// Points of figures of which the paper or the book says something.
const POINTS: [(u32, f64); 10] = [
    (7, 3.0),
    (7, 4.0),
    (7, 12.0),
    (8, 1.0),
    (8, 32.0),
    (9, 40.0),
    (10, 17.0),
    (10, 19.0),
    (10, 20.0),
    (10, 21.0),
];

/// Returns the tables, in Markdown; nothing without all of the paper's figures.
pub fn quoted(figures: &[Seen]) -> Option<String> {
    let all = FIGURES.map(|figure| figures.iter().find(|seen| seen.case.figure == figure.number));
    let all: Vec<&Seen> = all.into_iter().collect::<Option<_>>()?;
    let first = all.first()?.case;
    Some(format!(
        "{} tasksets at each point, seed {}. The paper's statements that agree:\n\n{}\n\
         Schedulable tasksets at the points that statements name:\n\n{}",
        count(first.tasksets),
        first.seed,
        statements(&all).table().markdown(),
        points(&all).table().markdown()
    ))
}

fn statements(all: &[&Seen]) -> Dataset {
    let agree = |seen: &Seen, curves: &Curves| {
        let claims = seen.case.figure().claims(curves);
        let agreeing = claims.iter().filter(|claim| claim.holds()).count();
        format!("{agreeing} of {}", claims.len())
    };
    Dataset::of("statements", "", all)
        .name("figure", |seen| seen.case.figure)
        .name("our choices", |seen| agree(seen, &seen.curves))
        .name("as the paper seems to have done", |seen| agree(seen, &seen.paper))
        .done()
}

fn points(all: &[&Seen]) -> Dataset {
    let rows = POINTS.into_iter().flat_map(|(figure, value)| {
        let seen = all.iter().find(move |seen| seen.case.figure == figure);
        seen.into_iter().flat_map(move |seen| {
            let what = format!("{figure}: {} {}", seen.case.figure().varies, number(value));
            [("ours", &seen.curves), ("as the paper", &seen.paper)]
                .map(|(choices, curves)| (what.clone(), choices, curves.at(value)))
        })
    });
    let mut table = Dataset::of("points", "", rows)
        .name("figure", |(what, ..)| what.clone())
        .name("choices", |(_, choices, _)| *choices);
    for scheme in Scheme::ALL {
        let percent = move |point: &Option<&Point>| point.map(|point| point.percent(scheme));
        table = table.column(scheme.name(), Unit::Percent, |(.., point)| percent(point)).digits(0);
    }
    table
        .column("lead", Unit::None, |(.., point)| point.map(Point::lead))
        .head("lead of DSwO, points")
        .digits(1)
        .done()
}

#[cfg(test)]
mod tests {
    use super::super::case::Case;
    use super::*;

    fn seen(figure: u32) -> Seen {
        let values = FIGURES.iter().find(|one| one.number == figure).unwrap().values;
        let point = |schedulable| move |&value: &f64| Point { value, tasksets: 100, schedulable };
        let curves =
            |schedulable| Curves { points: values.iter().map(point(schedulable)).collect() };
        let case = Case { figure, tasksets: 1_000, seed: 7 };
        let (curves, paper) = (curves([100, 90, 80, 70]), curves([10, 75, 4, 5]));
        Seen { case, real_s: 1.0, curves, paper, others: vec![] }
    }

    #[test]
    fn every_point_is_quoted_with_both_choices() {
        let all: Vec<_> = FIGURES.iter().map(|figure| seen(figure.number)).collect();
        let text = quoted(&all).unwrap();
        assert!(text.starts_with("1,000 tasksets at each point, seed 7."), "{text}");
        let line = "| 9: vCPU period (ms) 40 | as the paper | 10 % | 75 % | 4 % | 5 % | 65.0 |\n";
        assert!(text.contains(line), "{text}");
        assert!(!text.contains("| - |"), "each point is one of its figure: {text}");
        assert_eq!(quoted(&all[1..]), None, "without figure 6");
    }
}
