//! Experiments of published papers, repeated with one command each.

pub mod vmpcp;
