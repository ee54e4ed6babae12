//! What `cassata build --sign` needs: a key, and the build of the hypervisor that checks signatures.

use crate::{LOCK, place};
use miette::{Result, miette};
use std::fs;
use std::path::{Path, PathBuf};
use system::sbom::Origin;
use system::{Checked, Packed, SigningKey, is_same_file};

/// The build, below the project's root, and the list of its crates. They are not carried inside the
/// command line: most images are not signed.
const PRODUCTS: [&str; 2] = ["build/el2-signed.elf", "build/el2-signed.crates"];
/// The build for a board with a GICv2, likewise.
const PRODUCTS_FOR_GICV2: [&str; 2] =
    ["build/el2-signed-gicv2.elf", "build/el2-signed-gicv2.crates"];

/// What signs, and what is signed with.
#[derive(Debug)]
pub struct Signing {
    key: SigningKey,
    /// Where the key is.
    file: PathBuf,
    hypervisor: &'static [u8],
    /// The crates of that.
    crates: String,
}

impl Signing {
    /// Reads the key, and the build for this system.
    pub fn prepare(key: &Path, checked: &Checked) -> Result<Self> {
        let board = checked.machine.board;
        if checked.trace != 0 {
            return Err(miette!(
                help = "leave out `trace`, or `--sign`",
                "no build of the hypervisor both records a trace and checks a signature"
            ));
        }
        let file = key.into();
        let key = SigningKey::read(key)?;
        let root = place::root()?;
        let products = if board.gic.is_v2() { PRODUCTS_FOR_GICV2 } else { PRODUCTS };
        let [hypervisor, crates] = products.map(|product| {
            fs::read(root.join(product)).map_err(|error| {
                miette!(
                    help = "`./cassata build --sign` builds it first",
                    "cannot read {product}, of the hypervisor that checks signatures: {error}"
                )
            })
        });
        let hypervisor = hypervisor?.leak();
        let crates = String::from_utf8_lossy(&crates?).into_owned();
        Ok(Self { key, file, hypervisor, crates })
    }

    /// Refuses to write a file over the key.
    /// `option` is the one behind which the file is named.
    pub fn spare_key(&self, file: &Path, option: &str) -> Result<()> {
        if is_same_file(file, &self.file) {
            return Err(miette!(
                help = format!("name another file behind `{option}`"),
                "{} is the private key",
                file.display()
            ));
        }
        Ok(())
    }

    /// Packs what was checked, and signs it.
    pub fn pack(&self, checked: &Checked) -> Result<Packed> {
        Ok(system::pack_signed(checked, self.hypervisor, &self.key)?)
    }

    /// Tells where the build of the hypervisor comes from.
    pub fn origin(&self) -> Origin<'_> {
        Origin { elf: self.hypervisor, inventory: &self.crates, lock: LOCK }
    }
}
