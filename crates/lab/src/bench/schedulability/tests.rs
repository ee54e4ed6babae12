use super::curves::{Curves, Draw, Point};
use super::figure::{FIGURES, Figure};
use super::*;
use crate::bench::store::Case as _;
use crate::interrupt::Interrupt;
use analysis::tasksets::Choices;

fn few(figure: Figure, seed: u64) -> Curves {
    let draw = Draw { tasksets: 40, seed, choices: Choices::BASE };
    Curves::compute(figure, draw, |_| true).unwrap().unwrap()
}

#[test]
fn the_same_seed_gives_the_same_figure_on_any_number_of_cores() {
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let first = alone.install(|| few(FIGURES[3], 3));
    let others = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    assert_eq!(others.install(|| few(FIGURES[3], 3)), first);
    assert_ne!(few(FIGURES[3], 4), first);
}

#[test]
fn a_refused_request_gets_nothing() {
    let draw = Draw { tasksets: 10, seed: 1, choices: Choices::BASE };
    assert_eq!(Curves::compute(FIGURES[4], draw, |_| false), Ok(None));
}

#[test]
fn settings_are_table_i_but_for_what_varies() {
    assert_eq!(FIGURES.map(|figure| figure.number), [6, 7, 8, 9, 10]);
    for figure in FIGURES {
        let tasks = figure.values.iter().map(|&value| (figure.setting)(value));
        for setting in tasks {
            assert_eq!((setting.tasks(), setting.vcpus()), (48, 16));
            assert_eq!(48 % setting.lockers_per_mutex, 0);
        }
    }
    let base = analysis::tasksets::Setting::BASE;
    assert_eq!((FIGURES[0].setting)(10.0), base);
    assert_eq!((FIGURES[1].setting)(2.0), base);
    assert_eq!((FIGURES[2].setting)(1.0), base);
    assert_eq!((FIGURES[3].setting)(5.0), base);
    assert_eq!((FIGURES[4].setting)(15.0), base);
}

/// Curves that do what the paper says of figures 9 and 10.
fn drawn(values: &[f64], percent: impl Fn(f64) -> [u64; 4]) -> Curves {
    let point = |&value| Point { value, tasksets: 100, schedulable: percent(value) };
    Curves { points: values.iter().map(point).collect() }
}

#[test]
fn statements_agree_with_what_they_describe_and_with_nothing_else() {
    let agree = |figure: Figure, curves: &Curves| {
        let claims = figure.claims(curves);
        claims.iter().filter(|claim| claim.holds()).count() as f64 / claims.len() as f64
    };
    // PSwO, DSwO, PSnO, DSnO.
    let nine = drawn(FIGURES[3].values, |ms| if ms < 20.0 { [100; 4] } else { [0, 82, 2, 2] });
    assert_eq!(agree(FIGURES[3], &nine), 1.0);
    let ten = drawn(FIGURES[4].values, |percent| match percent {
        ..=17.0 => [99, 100, 100, 100],
        ..=19.0 => [30, 70, 60, 60],
        _ => [0, 20, 40, 40],
    });
    assert_eq!(agree(FIGURES[4], &ten), 1.0);
    let flat = drawn(FIGURES[4].values, |_| [100; 4]);
    assert!(agree(FIGURES[4], &flat) < 0.5);
    let flat = drawn(FIGURES[3].values, |_| [100; 4]);
    assert!(agree(FIGURES[3], &flat) < 1.0);
}

#[test]
fn the_page_shows_the_figure_and_every_statement() {
    let options = Options { figures: vec![8, 10], tasksets: 40, seed: 1 };
    let cases = Schedulability.cases(Extent::Full, &options);
    let names: Vec<_> = cases.iter().map(|case| case.name()).collect();
    assert_eq!(names, ["figure-8", "figure-10"]);
    let run = |case: &Case| case.run(&Interrupt::never(), &mut |_| {}).unwrap();
    let answer = report::answer(cases.iter().rev().map(run).collect());
    assert_eq!(answer.outcome.parameters["tasksets_per_point"], 40);
    let (page, summary) = (answer.page(), answer.summary());
    for claim in answer.outcome.checks() {
        assert!(page.contains(&claim.name) && summary.contains(&claim.name));
    }
    let differs = answer.outcome.checks().iter().any(|claim| !claim.holds());
    assert!(differs && summary.contains("differs"), "PSwO is not the worst of ours");
    assert_eq!(answer.outcome.exit_code(false), 0, "a finding, not a fault");
    let points = answer.outcome.figures["figure-8"].as_array().unwrap();
    assert_eq!(points.len(), FIGURES[2].values.len());
    assert!(points[0]["DSwO_percent"].is_f64() && points[0]["tasksets"].is_u64());
    let others = &answer.outcome.figures["figure-8-other-choices"];
    assert_eq!(others.as_object().unwrap().len(), Choices::OTHERS.len());
}

#[test]
fn quick_draws_a_tenth() {
    let options = Options { figures: Vec::new(), tasksets: 15, seed: 1 };
    let cases = Schedulability.cases(Extent::Quick, &options);
    assert!(cases.len() == 5 && cases.iter().all(|case| case.tasksets == 2));
}

/// At an analysis's own words: DSwO does not mind 32 gcs's per task.
#[test]
fn forty_tasksets_show_what_matters_most() {
    let curves = few(FIGURES[2], 1);
    let last = curves.points.last().unwrap();
    assert!(last.lead() > 90.0, "{last:?}");
}
