//! How large what starts the guests is, and when both are up.

use super::case::{Case, Measure};
use super::system::System;
use super::{Found, Seen, bao};
use crate::dataset::{Dataset, Unit};
use crate::guests::Images;
use crate::suite::Bench;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use system::pack::image_size;

/// What a boot brought.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    /// Virtual time from power-on until Linux's first process had told of itself, and until the guest had,
    /// seconds.
    pub linux_s: f64,
    pub guest_s: f64,
    /// Bytes of the hypervisor that are loaded: of KVM the kernel that has it, of Bao what is not its guests'.
    pub hypervisor_bytes: u64,
    /// Bytes of the program that runs a guest, where there is one.
    pub program_bytes: Option<u64>,
}

impl Boot {
    /// Returns what a boot of `case` brought, in which the two were up so soon; `None` if it measures something
    /// else.
    ///
    /// # Errors
    /// When an image cannot be read, or a guest was never up.
    pub fn of(case: &Case, bench: &Bench, up: [Option<Duration>; 2]) -> Result<Option<Self>> {
        if case.measure != Measure::Boot {
            return Ok(None);
        }
        let [Some(linux), Some(guest)] = up else {
            return Err(miette!("a guest was never up"));
        };
        let images = Images::of(&bench.root);
        let (hypervisor_bytes, program_bytes) = match case.system {
            System::Board => (0, None),
            System::Cassata { .. } => {
                (image_size(bench.hypervisor.silent).into_diagnostic()?, None)
            }
            System::Xen(_) => (size(case.image.as_ref().unwrap_or(&images.xen))?, None),
            System::Bao => (bao::own_bytes(&bench.directory)?, None),
            System::Kvm(_) => {
                let kernel = case.image.as_ref().unwrap_or(&images.kernel);
                (size(kernel)?, Some(size(&images.vmm)?))
            }
        };
        let (linux_s, guest_s) = (linux.as_secs_f64(), guest.as_secs_f64());
        Ok(Some(Self { linux_s, guest_s, hypervisor_bytes, program_bytes }))
    }
}

fn size(path: &Path) -> Result<u64> {
    let about = std::fs::metadata(path).into_diagnostic();
    Ok(about.wrap_err_with(|| format!("cannot read {}", path.display()))?.len())
}

impl Found {
    /// How large and how soon each is.
    pub fn boots(&self) -> Dataset {
        let rows = self.measurements.iter().filter_map(|seen| Some((seen, seen.boot?)));
        let title = "What starts the guests: how much is loaded, and when both are up; one core, the bare-metal guest";
        Dataset::of("boot", title, rows)
            .name("system", |row: &(&Seen, Boot)| row.0.case.system.words())
            .head("")
            .name("hypervisor_bytes", |row| row.1.hypervisor_bytes)
            .head("bytes of the hypervisor")
            .name("program_bytes", |row| row.1.program_bytes)
            .head("bytes of its program")
            .column("linux_up", Unit::Seconds, |row| row.1.linux_s)
            .head("Linux is up")
            .shown_in(Unit::Milliseconds, 0)
            .column("guest_up", Unit::Seconds, |row| row.1.guest_s)
            .head("the guest is up")
            .shown_in(Unit::Milliseconds, 0)
            .done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::LittleEndian;
    use object::read::elf::{ElfFile64, ProgramHeader};

    /// No Image of another hypervisor has that either.
    #[test]
    fn what_is_zeroed_is_not_loaded() {
        let file = std::fs::read(crate::testing::root().join("build/el2.elf")).unwrap();
        let loaded = image_size(&file).unwrap();
        let elf: ElfFile64<LittleEndian> = ElfFile64::parse(&*file).unwrap();
        let segments = elf.elf_program_headers().iter();
        let all: u64 = segments.map(|segment| segment.p_memsz(LittleEndian)).sum();
        assert!(loaded > 50_000 && loaded < all, "{loaded} of {all}");
        assert!(image_size(b"no ELF file").is_err());
    }
}
