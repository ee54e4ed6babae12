//! A hypervisor with a key starts an image that this key has signed, and no other, whatever was done
//! to it. The guest only switches itself off: what matters is whether it comes so far.

use super::LIMIT;
use super::damaged::{objections, only_place, tables_of};
use crate::bundle::Bundle;
use crate::results::{Check, Outcome};
use crate::session::{End, Run};
use crate::suite::{Bench, Scenario};
use abi::status::vm_state;
use abi::system::{Invalid, Part, SIGNATURE_SIZE, System, UNSIGNED, WRONG_SIGNATURE, part};
use miette::{IntoDiagnostic, Result, miette};
use std::fs;
use system::SigningKey;
use system::pack::seal;
use zerocopy::IntoBytes;

/// A board for which there is a build that checks signatures.
#[derive(Clone, Copy, Debug)]
struct Variant {
    /// The scenario's name.
    name: &'static str,
    about: &'static str,
    board: &'static str,
    /// The build, from the project's root.
    product: &'static str,
}

const GICV3: Variant = Variant {
    name: "signed",
    about: "a hypervisor with a key starts what is signed, and nothing else",
    board: "qemu-virt",
    product: "build/el2-signed.elf",
};
const GICV2: Variant = Variant {
    name: "gicv2-signed",
    about: "so does one for a board with a GICv2",
    board: "qemu-virt-gicv2",
    product: "build/el2-signed-gicv2.elf",
};
/// The key that RFC 8410, section 10.3, shows: it is no secret.
const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
    -----END PRIVATE KEY-----\n";
/// A key that differs from it.
const OTHER: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhD\n\
    -----END PRIVATE KEY-----\n";
/// The system: all that an image can have.
const DESCRIPTION: &str = r#"
board = { kind = "qemu-virt", pcpus = 1, memory = "256M" }

[[vm]]
name = "guest"
kernel = "Image"
initramfs = "initramfs"
memory = { size = "16M" }
vcpus = [{ pcpu = 0, priority = 1 }]
"#;
/// Bytes of the kernel.
const KERNEL_SIZE: usize = 4096;

/// The signed image, of which others are made.
struct Original {
    file: Vec<u8>,
    /// Where the tables begin in it.
    offset: usize,
    tables: Box<System>,
}

/// An image that must be refused.
struct Forged {
    /// What was done to it.
    how: String,
    file: Vec<u8>,
    /// What EL2 must say.
    complaint: String,
}

/// Returns the scenarios.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    [GICV3, GICV2].into_iter().map(scenario)
}

fn scenario(variant: Variant) -> Scenario {
    Scenario::new(variant.name, variant.about, move |bench: &Bench| {
        let bundle = pack(bench, variant)?;
        let mut outcome = Outcome::new(variant.name);
        let run = bench.session(&bundle, LIMIT)?.run(|_| false)?;
        run.without_faults()?;
        let started = has_run(&run);
        outcome.check(Check::done("the image that is signed starts", started));
        if !started {
            let said = run.said.hypervisor.lines.join("\n");
            return bench.judge(&run, outcome, &[format!("the guest has not run: {said}")]);
        }
        for forged in Original::read(&bundle)?.forged()? {
            fs::write(&bundle.image, &forged.file).into_diagnostic()?;
            let run = bench.session(&bundle, LIMIT)?.run(|_| false)?;
            run.without_faults()?;
            let objections = objections(&run, &forged.how, &forged.complaint);
            outcome.check(Check::done(&format!("{}: refused", forged.how), objections.is_empty()));
            if !objections.is_empty() {
                return bench.judge(&run, outcome, &objections);
            }
        }
        bench.keep(&outcome)?;
        fs::remove_file(&bundle.image).into_diagnostic()
    })
}

/// Packs and signs the system, whose files are made for it.
fn pack(bench: &Bench, variant: Variant) -> Result<Bundle> {
    let put = |name: &str, bytes: &[u8]| fs::write(bench.directory.join(name), bytes);
    put("Image", &kernel()).into_diagnostic()?;
    put("initramfs", b"070701").into_diagnostic()?;
    let text = DESCRIPTION.replace(GICV3.board, variant.board);
    let system = system::load_text(&bench.directory.join("signed.toml"), &text)?;
    Bundle::pack_signed(&system, read(bench, variant)?, &own_key()?, &bench.image())
}

/// Returns the build that checks signatures, for a board with a GICv3.
pub(super) fn hypervisor(bench: &Bench) -> Result<&'static [u8]> {
    read(bench, GICV3)
}

fn read(bench: &Bench, Variant { product, .. }: Variant) -> Result<&'static [u8]> {
    let read = fs::read(bench.root.join(product)).map_err(|error| {
        miette!(help = "`./cassata test` builds it first", "cannot read {product}: {error}")
    });
    Ok(read?.leak())
}

/// Returns the key by which images of tests are signed.
pub(super) fn own_key() -> Result<SigningKey> {
    key(KEY)
}

fn key(pem: &str) -> Result<SigningKey> {
    SigningKey::from_pem(pem).ok_or_else(|| miette!("the test's key is none"))
}

/// Returns what EL2 says of a part that is not what was packed: what fills a VM's memory keeps that VM
/// alone from starting.
fn complaint(tables: &System, part: &Part) -> String {
    if part.fills_memory() {
        format!("cannot go on: {}", part.damage())
    } else {
        tables.damaged(part).to_string()
    }
}

/// Returns a kernel by its header (Documentation/arch/arm64/booting.rst), whose guest switches
/// itself off.
fn kernel() -> Vec<u8> {
    // Over the header, to the call: PSCI SYSTEM_OFF by HVC.
    const OVER_THE_HEADER: u32 = 0x1400_0010; // b .+64
    const CALL: [u32; 3] = [
        0x5280_0100, // mov w0, #8
        0x72b0_8000, // movk w0, #0x8400, lsl #16
        0xd400_0002, // hvc #0
    ];
    let mut image = vec![0; KERNEL_SIZE];
    image[..4].copy_from_slice(&OVER_THE_HEADER.to_le_bytes());
    image[16..24].copy_from_slice(&(KERNEL_SIZE as u64).to_le_bytes());
    image[24..32].copy_from_slice(&0b1010_u64.to_le_bytes());
    image[56..60].copy_from_slice(&0x644d_5241_u32.to_le_bytes());
    for (word, place) in CALL.iter().zip(image[64..].chunks_exact_mut(4)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    image
}

/// Returns true if the hypervisor came up, and the guest has switched itself off, which ends the
/// system.
fn has_run(run: &Run) -> bool {
    let off = run.observer.latest().is_some_and(|now| now.vms[0].state == vm_state::OFF);
    off && run.end == End::PoweredOff
}

impl Original {
    fn read(bundle: &Bundle) -> Result<Self> {
        let file = fs::read(&bundle.image).into_diagnostic()?;
        let offset = tables_of(&file, &bundle.tables)?;
        Ok(Self { file, offset, tables: bundle.tables.clone() })
    }

    /// Returns the image with other tables.
    fn with_tables(&self, tables: &System) -> Vec<u8> {
        let mut file = self.file.clone();
        file[self.offset..][..size_of::<System>()].copy_from_slice(tables.as_bytes());
        file
    }

    /// Returns the image with another signature.
    fn with_signature(&self, signature: [u8; SIGNATURE_SIZE]) -> Vec<u8> {
        let mut tables = self.tables.clone();
        tables.signature = signature;
        self.with_tables(&tables)
    }

    /// Returns the image with a bit of this part flipped.
    fn with_a_flipped_bit(&self, part: &Part) -> Result<Vec<u8>> {
        let at = match part.kind {
            // Where nothing is executed, and nothing is said of the refusal.
            part::HYPERVISOR => only_place(&self.file, Invalid::Spi.message().as_bytes()),
            _ => Some(self.offset + (part.pa - self.tables.header.bundle_pa) as usize),
        };
        let mut file = self.file.clone();
        file[at.ok_or_else(|| miette!("a message is not there once"))?] ^= 1;
        Ok(file)
    }

    fn forged(&self) -> Result<Vec<Forged>> {
        let mut flipped = self.tables.signature;
        flipped[SIGNATURE_SIZE / 2] ^= 1;
        let signatures = [
            ("no signature", [0; SIGNATURE_SIZE], UNSIGNED),
            ("a signature by another key", key(OTHER)?.sign(&self.tables), WRONG_SIGNATURE),
            ("a flipped bit in the signature", flipped, WRONG_SIGNATURE),
        ];
        let mut all: Vec<_> = signatures
            .into_iter()
            .map(|(how, signature, complaint)| Forged {
                how: how.into(),
                file: self.with_signature(signature),
                complaint: complaint.into(),
            })
            .collect();
        for kind in 0..part::KINDS {
            let part = self.tables.parts().iter().find(|part| part.kind == kind);
            let part = part.ok_or_else(|| miette!("the image has no part of kind {kind}"))?;
            let file = self.with_a_flipped_bit(part)?;
            all.extend(self.resealed(&file, part));
            let how = format!("a flipped bit in {}", part.what());
            all.push(Forged { how, file, complaint: complaint(&self.tables, part) });
        }
        Ok(all)
    }

    /// Returns the image of `file`, in which a part is another one, with digests that fit: all that
    /// can be done without the key. None for the hypervisor's own part, which would check itself.
    fn resealed(&self, file: &[u8], part: &Part) -> Option<Forged> {
        if part.kind == part::HYPERVISOR {
            return None;
        }
        let mut tables = self.tables.clone();
        seal(&mut tables, &file[self.offset + size_of::<System>()..]);
        let mut file = file.to_vec();
        file[self.offset..][..size_of::<System>()].copy_from_slice(tables.as_bytes());
        let how = format!("a flipped bit in {}, and digests that fit", part.what());
        Some(Forged { how, file, complaint: WRONG_SIGNATURE.into() })
    }
}
