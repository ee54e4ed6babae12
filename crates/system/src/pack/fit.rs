//! A Flattened Image Tree, as `mkimage` would make it: a device tree whose properties are the files
//! (U-Boot, doc/usage/fit/source_file_format.rst).
//!
//! It is written by the crate `vm-fdt`, as guests' device trees are, so that nothing has to be
//! installed, and no time or path gets into it. The system in it is the arm64 Image: from 2024 on U-Boot
//! looks for that header in every kernel of this architecture.

use super::flat::Flat;
use super::sha256;
use vm_fdt::{Error, FdtWriter};

/// Name of the image that is all of the system.
const SYSTEM: &str = "system";
/// Name of the image that is a device tree.
const TREE: &str = "devicetree";
/// Name of the configuration.
pub(super) const CONFIGURATION: &str = "cassata";

/// Makes the file for a board whose RAM begins at `ram_pa`.
pub(super) fn write(system: &Flat<'_>, ram_pa: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(system.image_region().size as usize);
    system.write_image(ram_pa, &mut bytes).expect("memory takes it");
    let start = system.image_region().start;
    tree(start, &bytes).expect("names and strings are ours, and all of it fits a device tree")
}

type Written = Result<(), Error>;

fn tree(start: u64, system: &[u8]) -> Result<Vec<u8>, Error> {
    let devicetree = no_devicetree()?;
    let mut fdt = FdtWriter::new()?;
    node(&mut fdt, "", |fdt| {
        fdt.property_string("description", "Cassata and its guests")?;
        // It is obligatory. The same description gives the same bytes.
        fdt.property_u32("timestamp", 0)?;
        fdt.property_u32("#address-cells", 1)?;
        node(fdt, "images", |fdt| {
            node(fdt, SYSTEM, |fdt| {
                fdt.property_string("description", "hypervisor, tables, guests")?;
                // What a Linux is entered with: caches clean, MMU and devices off.
                fdt.property_string("os", "linux")?;
                address(fdt, "load", start)?;
                address(fdt, "entry", start)?;
                file(fdt, "kernel", system)
            })?;
            node(fdt, TREE, |fdt| {
                fdt.property_string("description", "none: the hypervisor reads no device tree")?;
                file(fdt, "flat_dt", &devicetree)
            })
        })?;
        node(fdt, "configurations", |fdt| {
            fdt.property_string("default", CONFIGURATION)?;
            node(fdt, CONFIGURATION, |fdt| {
                fdt.property_string("description", "the system")?;
                fdt.property_string("kernel", SYSTEM)?;
                fdt.property_string("fdt", TREE)
            })
        })
    })?;
    fdt.finish()
}

/// Makes the device tree without which `bootm` starts no kernel. U-Boot adds to it what it would tell
/// one.
fn no_devicetree() -> Result<Vec<u8>, Error> {
    let mut fdt = FdtWriter::new()?;
    node(&mut fdt, "", |fdt| {
        fdt.property_u32("#address-cells", 2)?;
        fdt.property_u32("#size-cells", 2)?;
        fdt.property_string("compatible", "cassata,none")
    })?;
    fdt.finish()
}

/// Writes what all images have, the last of a node.
fn file(fdt: &mut FdtWriter, kind: &str, bytes: &[u8]) -> Written {
    fdt.property("data", bytes)?;
    fdt.property_string("type", kind)?;
    fdt.property_string("arch", "arm64")?;
    fdt.property_string("compression", "none")?;
    node(fdt, "hash-1", |fdt| {
        fdt.property_string("algo", "sha256")?;
        fdt.property("value", &sha256([bytes]))
    })
}

/// Writes an address in as few cells as it needs: old loaders know one.
fn address(fdt: &mut FdtWriter, name: &str, address: u64) -> Written {
    match u32::try_from(address) {
        Ok(address) => fdt.property_u32(name, address),
        Err(_) => fdt.property_u64(name, address),
    }
}

fn node(fdt: &mut FdtWriter, name: &str, fill: impl FnOnce(&mut FdtWriter) -> Written) -> Written {
    let node = fdt.begin_node(name)?;
    fill(fdt)?;
    fdt.end_node(node)
}
