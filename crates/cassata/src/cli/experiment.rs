//! Arguments of `cassata experiment`.

use clap::{Args, Subcommand};

/// Repeat an experiment of a published paper
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata experiment vmpcp                 figures 6 to 10
  cassata experiment vmpcp --figure 9      one of them
  cassata experiment vmpcp --case-study    figure 11, by simulation")]
pub struct Experiment {
    /// Which.
    #[command(subcommand)]
    pub paper: Paper,
}

/// Papers whose experiments can be repeated.
#[derive(Debug, Subcommand)]
pub enum Paper {
    /// vMPCP: schedulability and the case study (Kim, Wang and Rajkumar, RTSS 2014)
    ///
    /// Draws random tasksets around the paper's Table I, computes with the
    /// published bounds which are schedulable under PSwO, DSwO, PSnO and DSnO,
    /// and shows beside each figure what the paper says of it and whether ours
    /// agrees. What the paper leaves open is listed, with how much it matters.
    ///
    /// With --case-study, simulates the paper's eight tasks under MPCP,
    /// vMPCP+DSnO and vMPCP+DSwO, draws their timelines and compares response
    /// times.
    ///
    /// Exits with 0 whether it agrees or not: that is a finding.
    #[command(after_help = "\
Examples:
  cassata experiment vmpcp --figure 9 --tasksets 1000
  cassata experiment vmpcp --case-study

Writes results/vmpcp-figure-N/result.json, report.html, figure.csv, choices.csv and figure.svg;
results/vmpcp-case-study/result.json, report.html and an SVG file for each scheme.")]
    Vmpcp(Vmpcp),
}

/// `cassata experiment vmpcp`.
#[derive(Args, Debug)]
pub struct Vmpcp {
    /// Only this figure: 6 to 10; may be repeated
    #[arg(long = "figure", value_name = "N", value_parser = clap::value_parser!(u32).range(6..=10))]
    pub figures: Vec<u32>,
    /// Not the figures, but Section V-B: eight tasks in the simulator
    #[arg(long, conflicts_with_all = ["figures", "tasksets", "seed"])]
    pub case_study: bool,
    /// Tasksets at each point
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub tasksets: u64,
    /// Of the random numbers: the same seed draws the same tasksets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}
