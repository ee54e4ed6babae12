//! What a measurement depends on besides its case.

use super::case::Images;
use crate::bench::common::Common;
use crate::bench::store::checksum;
use crate::suite::Bench;
use miette::Result;
use serde::{Deserialize, Serialize};

/// Checksums (CRC-32) of files, and what is common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// What others depend on too.
    #[serde(flatten)]
    pub common: Common,
    /// The bare-metal guest.
    pub metronome: String,
}

impl Basis {
    /// The present one.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn of(bench: &Bench) -> Result<Self> {
        let images = Images::of(&bench.root);
        Ok(Self { common: Common::of(bench)?, metronome: checksum(&[&images.metronome])? })
    }
}
