//! Experiments of published papers, repeated with one command each.

pub mod case_study;
pub mod vmpcp;
