//! Experiments of published papers, repeated with one command each.

pub mod case_study;
pub mod vmpcp;

use crate::results::Check;

/// How many of a paper's statements ours agrees with.
fn agreeing(claims: &[Check]) -> usize {
    claims.iter().filter(|claim| claim.holds()).count()
}

/// A paper's statements for the terminal, a line each.
fn told(claims: &[Check]) -> String {
    let line = |claim: &Check| {
        format!(
            "  {}  {}: {} (agrees if {})\n",
            if claim.holds() { "agrees " } else { "differs" },
            claim.name,
            claim.value_text(),
            claim.goal
        )
    };
    claims.iter().map(line).collect()
}
