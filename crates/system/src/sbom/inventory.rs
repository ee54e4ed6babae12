//! What the hypervisor was built from, as the launcher wrote it down (`setup/inventory.sh`): a
//! line for each fact, with tabs between its columns.
//!
//! ```text
//! rustc       1.96.0 (ac68faa20 2026-05-25)
//! linker      GNU ld (GNU Binutils for Debian) 2.40
//! linked      2zerocopy v0.8.63      zerocopy      BSD-2-Clause OR Apache-2.0 OR MIT     derive
//! used        3zerocopy-derive v0.8.63 (proc-macro)      zerocopy_derive      BSD-2-Clause ...
//! ```
//!
//! `linked` and `used` are trees as `cargo tree` prints them, a digit being the depth: the first
//! has what is linked into the image, the second also what runs while that is compiled.

use std::collections::{BTreeMap, BTreeSet};

/// A crate's name and version: no two crates of an image have both in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) name: String,
    pub(super) version: String,
}

/// A crate of which the hypervisor was built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Crate {
    /// The name that debug information and symbols have.
    pub(super) library: String,
    /// An SPDX expression.
    pub(super) license: String,
    /// Features that were on, in alphabetical order.
    pub(super) features: String,
    /// It is in the image; otherwise it only ran on the host, as a procedural macro does.
    pub(super) is_linked: bool,
    /// What it depends on.
    pub(super) needs: BTreeSet<Id>,
}

/// What the hypervisor was built from, and with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inventory {
    /// Version of the compiler and its `core`, with the commit.
    pub(super) rustc: String,
    /// The linker with its version.
    pub(super) linker: String,
    /// The hypervisor's own crate.
    pub(super) root: Option<Id>,
    pub(super) crates: BTreeMap<Id, Crate>,
}

impl Inventory {
    /// Reads what the launcher wrote; answers the line that cannot be understood.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut inventory = Self::default();
        // From the root to the crate of the last line.
        let mut path: Vec<Id> = Vec::new();
        for line in text.lines() {
            inventory.take(line, &mut path).ok_or_else(|| format!("line `{line}`"))?;
        }
        let is_whole = !inventory.rustc.is_empty() && !inventory.linker.is_empty();
        inventory.root.is_some().then_some(()).filter(|()| is_whole).ok_or("a missing line")?;
        Ok(inventory)
    }

    /// Returns the compiler's version as a number.
    pub(super) fn release(&self) -> &str {
        self.rustc.split(' ').next().unwrap_or_default()
    }

    fn take(&mut self, line: &str, path: &mut Vec<Id>) -> Option<()> {
        let (kind, rest) = line.split_once('\t')?;
        match kind {
            "rustc" => self.rustc = rest.into(),
            "linker" => self.linker = rest.into(),
            "linked" | "used" => self.add(rest, kind == "linked", path)?,
            _ => return None,
        }
        Some(())
    }

    fn add(&mut self, node: &str, is_linked: bool, path: &mut Vec<Id>) -> Option<()> {
        let columns: Vec<&str> = node.split('\t').collect();
        let &[package, library, license, features] = columns.as_slice() else { return None };
        let name = package.trim_start_matches(|c: char| c.is_ascii_digit());
        let depth: usize = package[..package.len() - name.len()].parse().ok()?;
        let (name, version) = name.split_once(" v")?;
        let version = version.split(' ').next()?;
        let id = Id { name: name.into(), version: version.into() };
        if depth > path.len() {
            return None;
        }
        path.truncate(depth);
        match path.last() {
            Some(parent) => drop(self.crates.get_mut(parent)?.needs.insert(id.clone())),
            None => self.root = Some(id.clone()),
        }
        let part = self.crates.entry(id.clone()).or_default();
        part.is_linked |= is_linked;
        part.library = library.into();
        // Manifests may have a slash for OR; SPDX has not.
        part.license = license.replace('/', " OR ");
        // What is used while building is built with features of its own.
        if is_linked || !part.is_linked {
            part.features = features.into();
        }
        path.push(id);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "rustc\t1.96.0 (ac68faa20 2026-05-25)\n\
        linker\tGNU ld 2.40\n\
        linked\t0el2 v0.1.0\tel2\tApache-2.0\ttrace\n\
        linked\t1abi v0.1.0\tabi\tApache-2.0\t\n\
        linked\t2zero v0.8.6\tzero\tMIT/Apache-2.0\tderive\n\
        linked\t1zero v0.8.6\tzero\tMIT/Apache-2.0\tderive\n\
        used\t0el2 v0.1.0\tel2\tApache-2.0\ttrace\n\
        used\t1zero v0.8.6\tzero\tMIT/Apache-2.0\tderive\n\
        used\t2zero-derive v0.8.6 (proc-macro)\tzero_derive\tMIT\t\n";

    fn id(name: &str, version: &str) -> Id {
        Id { name: name.into(), version: version.into() }
    }

    #[test]
    fn both_trees_are_one_graph() {
        let inventory = Inventory::parse(TEXT).unwrap();
        assert_eq!(inventory.rustc, "1.96.0 (ac68faa20 2026-05-25)");
        assert_eq!(inventory.release(), "1.96.0");
        assert_eq!(inventory.linker, "GNU ld 2.40");
        assert_eq!(inventory.root, Some(id("el2", "0.1.0")));
        let needs = |of: &Id| inventory.crates[of].needs.iter().cloned().collect::<Vec<_>>();
        let (zero, derive) = (id("zero", "0.8.6"), id("zero-derive", "0.8.6"));
        assert_eq!(needs(&id("el2", "0.1.0")), [id("abi", "0.1.0"), zero.clone()]);
        assert_eq!(needs(&id("abi", "0.1.0")), std::slice::from_ref(&zero));
        assert_eq!(needs(&zero), std::slice::from_ref(&derive));
        assert_eq!(inventory.crates[&zero].license, "MIT OR Apache-2.0");
        assert_eq!(inventory.crates[&zero].features, "derive");
        let is_linked = |of: &Id| inventory.crates[of].is_linked;
        assert!(is_linked(&zero) && !is_linked(&derive));
        assert_eq!(inventory.crates[&derive].library, "zero_derive");
    }

    #[test]
    fn what_is_no_inventory_is_refused() {
        for (damage, with, named) in [
            ("1abi v0.1.0", "2abi v0.1.0", "2abi"),
            ("1abi v0.1.0", "1abi", "1abi"),
            ("1abi v0.1.0", "abi v0.1.0", "abi"),
            ("\ttrace", "", "0el2"),
            ("linker\t", "glue\t", "glue"),
            ("linker\tGNU ld 2.40\n", "", "missing"),
        ] {
            let error = Inventory::parse(&TEXT.replace(damage, with)).expect_err(damage);
            assert!(error.contains(named), "{error}");
        }
        assert!(Inventory::parse("").is_err());
    }
}
