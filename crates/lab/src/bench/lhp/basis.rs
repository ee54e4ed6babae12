//! What a measurement depends on besides its point.

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
    /// The hypervisor's ELF file.
    pub hypervisor: String,
    /// FreeRTOS.
    pub rtos: String,
}

impl Basis {
    /// The present one.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn of(bench: &Bench) -> Result<Self> {
        Ok(Self {
            common: Common::of(bench)?,
            hypervisor: format!("{:08x}", crc32fast::hash(bench.hypervisor)),
            rtos: checksum(&[&bench.root.join("build/guests/freertos.elf")])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_common_is_stored_beside_the_rest() {
        let [qemu, instrument, linux] = ["11.0", "1", "2"].map(String::from);
        let common = Common { qemu, instrument, linux };
        let basis = Basis { common, hypervisor: "3".into(), rtos: "4".into() };
        let stored = json!({
            "qemu": "11.0", "instrument": "1", "linux": "2", "hypervisor": "3", "rtos": "4",
        });
        assert_eq!(serde_json::to_value(&basis).unwrap(), stored);
        assert_eq!(serde_json::from_value::<Basis>(stored).unwrap(), basis);
    }
}
