//! What measurements depend on besides their cases: what was measured with other inputs is
//! not valid any more.

use crate::guests::Images;
use crate::results::Outcome;
use crate::suite::Bench;
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Versions, and checksums (CRC-32) of files, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Inputs(BTreeMap<String, String>);

impl Inputs {
    /// Begins with what all have in common: QEMU and the instrument of virtual time.
    pub fn of(bench: &Bench) -> Result<Self> {
        let qemu = ("qemu".to_owned(), bench.qemu.version.to_string());
        Self(BTreeMap::from([qemu])).files("instrument", &[bench.instrument.path()])
    }

    /// Begins with this program, where a figure depends on nothing else.
    pub fn program() -> Result<Self> {
        let path = std::env::current_exe().into_diagnostic();
        Self(BTreeMap::new()).files("program", &[&path.wrap_err("where is this program?")?])
    }

    /// Adds files.
    pub fn files(mut self, name: &str, files: &[&Path]) -> Result<Self> {
        let mut sum = crc32fast::Hasher::new();
        for file in files {
            let bytes = fs::read(file).into_diagnostic();
            sum.update(&bytes.wrap_err_with(|| format!("cannot read {}", file.display()))?);
        }
        self.0.insert(format!("{name}_crc32"), format!("{:08x}", sum.finalize()));
        Ok(self)
    }

    /// Adds Linux and its user space.
    pub fn linux(self, bench: &Bench) -> Result<Self> {
        let images = Images::of(&bench.root);
        self.files("linux", &[&images.kernel, &images.initramfs])
    }

    /// Adds the hypervisor, without parts and with all.
    pub fn hypervisor(mut self, bench: &Bench) -> Self {
        let mut sum = crc32fast::Hasher::new();
        for build in [bench.hypervisor.silent, bench.hypervisor.with_parts] {
            sum.update(build);
        }
        self.0.insert("hypervisor_crc32".into(), format!("{:08x}", sum.finalize()));
        self
    }

    /// Adds the build of the hypervisor that records what it does.
    pub fn tracing_hypervisor(mut self, bench: &Bench) -> Self {
        let sum = format!("{:08x}", crc32fast::hash(bench.hypervisor.tracing));
        self.0.insert("tracing_hypervisor_crc32".into(), sum);
        self
    }

    /// Notes them beside the figures.
    pub fn record(&self, outcome: &mut Outcome) {
        for (name, value) in &self.0 {
            outcome.parameter(name, value.clone());
        }
    }
}
