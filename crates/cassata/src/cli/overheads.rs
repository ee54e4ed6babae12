//! Arguments of commands that compute bounds for a system that EL2 runs.

use analysis::overheads::PER_MILLE;
use clap::{Args, ValueEnum};

/// What EL2 takes.
#[derive(Args, Clone, Copy, Debug)]
pub struct OverheadArgs {
    /// Take EL2's own work as nothing, as the paper does
    #[arg(long, conflicts_with_all = ["overheads", "margin"])]
    pub no_overheads: bool,
    /// Where what EL2 takes is from
    #[arg(long, value_enum, value_name = "SOURCE", default_value = "measured")]
    pub overheads: OverheadSource,
    /// Multiply what EL2 was measured to take by this [default: 1.2]
    #[arg(long, value_name = "FACTOR", value_parser = margin)]
    pub margin: Option<u64>,
}

/// Where what EL2 takes is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OverheadSource {
    /// The longest that `cassata bench el2` has seen, times a margin
    Measured,
    /// The longest paths of the hypervisor's image, as `cassata bound` computes them
    Computed,
}

/// A factor of 1 or more, in thousandths.
pub fn margin(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no factor such as 1, 1.2 or 2");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 3 || !digits(whole) || !digits(part) {
        return Err(wrong());
    }
    match format!("{whole}{part:0<3}").parse() {
        Ok(permille @ PER_MILLE..=1_000_000) => Ok(permille),
        Ok(_) => Err("must be from 1 to 1000".into()),
        Err(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_factors_of_one_and_more() {
        let factors = ["1", "1.2", "1.25", "2.", "1000"];
        assert_eq!(
            factors.map(|text| margin(text).unwrap()),
            [1_000, 1_200, 1_250, 2_000, 1_000_000]
        );
        for wrong in ["", ".5", "0.9", "-1", "1.2345", "1e3", "1001"] {
            assert!(margin(wrong).is_err(), "{wrong}");
        }
    }
}
