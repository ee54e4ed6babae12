//! Finds what the command line carries inside itself, the hypervisor, the list of
//! its crates and the instrument of virtual time: so that building and running a system needs the
//! `cassata` command, QEMU, and nothing else.

use std::env;
use std::path::{Path, PathBuf};

/// A file to carry.
struct Product {
    /// In words.
    what: &'static str,
    /// Where the launcher puts it, from the project's root.
    path: &'static str,
    /// Names another file than that.
    variable: &'static str,
    /// The source finds it by this name.
    constant: &'static str,
}

const PRODUCTS: [Product; 9] = [
    Product {
        what: "the hypervisor",
        path: "build/el2.elf",
        variable: "CASSATA_EL2",
        constant: "CASSATA_EL2_ELF",
    },
    Product {
        what: "the hypervisor with parts",
        path: "build/el2-parts.elf",
        variable: "CASSATA_EL2_PARTS",
        constant: "CASSATA_EL2_PARTS_ELF",
    },
    Product {
        what: "the hypervisor that records what it does",
        path: "build/el2-trace.elf",
        variable: "CASSATA_EL2_TRACE",
        constant: "CASSATA_EL2_TRACE_ELF",
    },
    Product {
        what: "the hypervisor for a GICv2",
        path: "build/el2-gicv2.elf",
        variable: "CASSATA_EL2_GICV2",
        constant: "CASSATA_EL2_GICV2_ELF",
    },
    Product {
        what: "the list of the hypervisor's crates",
        path: "build/el2.crates",
        variable: "CASSATA_EL2_CRATES",
        constant: "CASSATA_EL2_CRATES_LIST",
    },
    Product {
        what: "the list of crates of the hypervisor with parts",
        path: "build/el2-parts.crates",
        variable: "CASSATA_EL2_PARTS_CRATES",
        constant: "CASSATA_EL2_PARTS_CRATES_LIST",
    },
    Product {
        what: "the list of crates of the hypervisor that records what it does",
        path: "build/el2-trace.crates",
        variable: "CASSATA_EL2_TRACE_CRATES",
        constant: "CASSATA_EL2_TRACE_CRATES_LIST",
    },
    Product {
        what: "the list of crates of the hypervisor for a GICv2",
        path: "build/el2-gicv2.crates",
        variable: "CASSATA_EL2_GICV2_CRATES",
        constant: "CASSATA_EL2_GICV2_CRATES_LIST",
    },
    Product {
        what: "the instrument of virtual time",
        path: "build/libcassata_vtime.so",
        variable: "CASSATA_VTIME",
        constant: "CASSATA_VTIME_SO",
    },
];

fn main() {
    PRODUCTS.iter().for_each(find);
}

fn find(product: &Product) {
    let Product { what, variable, constant, .. } = product;
    println!("cargo::rerun-if-env-changed={variable}");
    let file = env::var_os(variable).map_or_else(|| by_launcher(product.path), PathBuf::from);
    println!("cargo::rerun-if-changed={}", file.display());
    if env::var_os(variable).is_none() {
        // Should the tree be copied with its target directory, this names the copy's.
        println!("cargo::rerun-if-changed=../../{}", product.path);
    }
    if !file.is_file() {
        println!(
            "cargo::error={what} is not built: {} is missing; run `./cassata` in the project's \
             root, which builds it first, or name its file in {variable}",
            file.display()
        );
    }
    println!("cargo::rustc-env={constant}={}", file.display());
}

fn by_launcher(path: &str) -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let root = Path::new(&here).ancestors().nth(2).unwrap_or(Path::new("."));
    root.join(path)
}
