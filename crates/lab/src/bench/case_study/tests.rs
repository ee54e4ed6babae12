//! The findings as they stand; the schedule itself is tested in the simulator.

use super::*;

#[test]
fn changes_are_as_told() {
    assert!((mean_change(&[50, 300], &[100, 200]) - 0.0).abs() < 1e-12);
    assert!((change_of_the_mean(&[50, 300], &[100, 200]) - 1.0 / 6.0).abs() < 1e-12);
}

#[test]
fn what_agrees_and_what_differs() {
    let study = CaseStudy::simulate().unwrap();
    let differs: Vec<_> =
        study.claims().into_iter().filter(|claim| !claim.holds()).map(|claim| claim.name).collect();
    assert_eq!(differs, ["vMPCP+DSwO, τ7 responds later than under MPCP by"]);
    let percent = |scheme| {
        let (mean, of_the_mean) = study.changes(scheme);
        [mean, of_the_mean].map(|change| format!("{:.1}", 100.0 * change))
    };
    assert_eq!(percent(Scheme::Mpcp), ["0.0", "0.0"]);
    assert_eq!(percent(Scheme::DeferrableNoOverrun), ["-7.9", "-12.4"]);
    assert_eq!(percent(Scheme::DeferrableWithOverrun), ["-28.0", "-34.6"]);
}

#[test]
fn ties_are_decided_in_four_ways() {
    let study = CaseStudy::simulate().unwrap();
    let ways: Vec<_> = study.ties.outcomes.iter().map(|way| way.responses_ms.clone()).collect();
    assert_eq!(ways.len(), 4);
    // τ7 in each: later than under MPCP in two of them.
    let mut seventh: Vec<_> = ways.iter().map(|way| way[6]).collect();
    seventh.sort_unstable();
    assert_eq!(seventh, [10, 10, 14, 15]);
    assert_eq!(study.ties.outcomes.iter().map(|way| way.seeds).sum::<u64>(), ties::SEEDS);
}

#[test]
fn the_page_has_three_timelines_and_every_statement() {
    let study = CaseStudy::simulate().unwrap();
    let answer = study.answer();
    let page = answer.page();
    assert_eq!(page.matches("<svg").count(), 3);
    for claim in study.claims() {
        assert!(page.contains(&claim.name), "{}", claim.name);
    }
    assert!(answer.summary().contains("differs"));
    assert_eq!(answer.outcome.exit_code(false), 0, "a finding, not a fault");
    assert_eq!(study.run(Scheme::Mpcp).file(), "mpcp");
    assert_eq!(study.run(Scheme::DeferrableNoOverrun).file(), "vmpcp-dsno");
}
