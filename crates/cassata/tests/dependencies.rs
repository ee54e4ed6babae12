//! What the project is built from, held to `deny.toml`: licences, bans, sources.
//!
//! cargo-deny checks the same, and advisories. It is some three hundred crates that
//! take longer to compile than all of this project, so it is not required; its
//! judgement of licences, the crate `spdx`, is what this test uses.

use serde_json::Value;
use spdx::{Expression, ParseMode};
use std::path::{Path, PathBuf};
use std::process::Command;
use toml::Table;

/// A package, as cargo tells of it.
#[derive(Clone, Debug)]
struct Package {
    name: String,
    version: String,
    license: String,
    /// Where it is from; nothing for a package of the workspace.
    source: Option<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().into()
}

fn policy() -> Table {
    std::fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap()
}

/// All that is built for `target`, what tests need included, and what only features bring.
fn packages(target: &str) -> Vec<Package> {
    let cargo = std::env::var_os("CASSATA_CARGO").unwrap_or_else(|| env!("CARGO").into());
    let output = Command::new(cargo)
        .args(["metadata", "--locked", "--all-features", "--format-version", "1"])
        .args(["--filter-platform", target])
        .arg("--manifest-path")
        .arg(root().join("Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().iter().map(package).collect()
}

fn package(metadata: &Value) -> Package {
    let text = |key: &str| metadata[key].as_str().map(str::to_owned);
    Package {
        name: text("name").unwrap(),
        version: text("version").unwrap(),
        license: text("license").unwrap_or_default(),
        source: text("source"),
    }
}

/// The list that stands in `table` under `key`.
fn list<'a>(table: &'a Table, key: &str) -> &'a [toml::Value] {
    table.get(key).and_then(toml::Value::as_array).map_or(&[], Vec::as_slice)
}

fn section<'a>(policy: &'a Table, name: &str) -> &'a Table {
    policy[name].as_table().unwrap()
}

/// Tells whether `spec`, `NAME` or `NAME@VERSION`, means the package. A version may
/// leave out its last numbers.
fn is_meant(spec: &str, package: &Package) -> bool {
    let (name, version) = spec.split_once('@').unwrap_or((spec, ""));
    let rest = package.version.strip_prefix(version);
    name == package.name && rest.is_some_and(|rest| version.is_empty() || rest.starts_with('.'))
}

/// The entries of `table.key` whose `crate` means the package.
fn entries<'a>(
    table: &'a Table,
    key: &str,
    package: &Package,
) -> impl Iterator<Item = &'a toml::Value> {
    list(table, key).iter().filter(|entry| is_meant(entry["crate"].as_str().unwrap(), package))
}

fn license_objection(policy: &Table, package: &Package) -> Option<String> {
    let licenses = section(policy, "licenses");
    let exceptions =
        entries(licenses, "exceptions", package).flat_map(|one| one["allow"].as_array().unwrap());
    let allowed: Vec<_> = list(licenses, "allow").iter().chain(exceptions).collect();
    let is_allowed = |license: &str| allowed.iter().any(|one| one.as_str() == Some(license));
    let Package { name, license, .. } = package;
    let expression = match Expression::parse_mode(license, ParseMode::LAX) {
        Ok(expression) => expression,
        Err(error) => return Some(format!("{name}: `{license}` is no licence: {error}")),
    };
    let fits = expression.evaluate(|requirement| is_allowed(&requirement.to_string()));
    (!fits).then(|| format!("{name}: licence {license}"))
}

fn ban_objection(policy: &Table, package: &Package, all: &[Package]) -> Option<String> {
    let bans = section(policy, "bans");
    if let Some(ban) = entries(bans, "deny", package).next() {
        return Some(format!("{}: banned: {}", package.name, ban["reason"].as_str().unwrap()));
    }
    let is_skipped = |package| entries(bans, "skip", package).next().is_some();
    let other = all.iter().find(|other| {
        other.name == package.name && other.version != package.version && !is_skipped(other)
    })?;
    let Package { name, version, .. } = package;
    (!is_skipped(package)).then(|| format!("{name}: both {version} and {}", other.version))
}

fn source_objection(policy: &Table, package: &Package) -> Option<String> {
    let source = package.source.as_deref()?;
    let registry = source.strip_prefix("registry+");
    let known = list(section(policy, "sources"), "allow-registry");
    let fits = registry.is_some_and(|url| known.iter().any(|one| one.as_str() == Some(url)));
    (!fits).then(|| format!("{}: from {source}", package.name))
}

fn objections(policy: &Table, all: &[Package]) -> Vec<String> {
    let of = |package| {
        let license = license_objection(policy, package);
        license
            .into_iter()
            .chain(ban_objection(policy, package, all))
            .chain(source_objection(policy, package))
    };
    all.iter().flat_map(of).collect()
}

fn targets(policy: &Table) -> impl Iterator<Item = &str> {
    list(section(policy, "graph"), "targets").iter().map(|target| target.as_str().unwrap())
}

#[test]
fn everything_is_allowed() {
    let policy = policy();
    for target in targets(&policy) {
        assert_eq!(objections(&policy, &packages(target)), [""; 0], "{target}");
    }
}

/// An exception that nothing needs any more would let something else in.
#[test]
fn every_exception_is_needed() {
    let policy = policy();
    let all: Vec<_> = targets(&policy).flat_map(packages).collect();
    for (name, key) in [("licenses", "exceptions"), ("bans", "skip")] {
        for entry in list(section(&policy, name), key) {
            let spec = entry["crate"].as_str().unwrap();
            assert!(all.iter().any(|package| is_meant(spec, package)), "{spec} is not used");
        }
    }
}

#[test]
fn what_is_not_allowed_is_found() {
    let policy: Table = "\
        licenses = { allow = [\"MIT\"], exceptions = [{ crate = \"x\", allow = [\"ISC\"] }] }\n\
        bans = { deny = [{ crate = \"bad\", reason = \"no\" }], skip = [{ crate = \"two@1\" }] }\n\
        sources = { allow-registry = [\"https://a\"] }\n"
        .parse()
        .unwrap();
    let package = |name: &str, version: &str, license: &str, source: Option<&str>| Package {
        name: name.into(),
        version: version.into(),
        license: license.into(),
        source: source.map(str::to_owned),
    };
    let (here, there) = (Some("registry+https://a"), Some("git+https://a"));
    for (packages, found) in [
        (vec![package("a", "1.0.0", "MIT", None)], ""),
        (vec![package("a", "1.0.0", "GPL-3.0-only OR MIT", here)], ""),
        (
            vec![package("a", "1.0.0", "GPL-3.0-only AND MIT", here)],
            "a: licence GPL-3.0-only AND MIT",
        ),
        (vec![package("a", "1.0.0", "", here)], "a: `` is no licence: "),
        (vec![package("x", "1.0.0", "ISC", here)], ""),
        (vec![package("y", "1.0.0", "ISC", here)], "y: licence ISC"),
        (vec![package("bad", "1.0.0", "MIT", here)], "bad: banned: no"),
        (vec![package("a", "1.0.0", "MIT", there)], "a: from git+https://a"),
        (
            vec![package("a", "1.0.0", "MIT", here), package("a", "2.0.0", "MIT", here)],
            "a: both 1.0.0 and 2.0.0",
        ),
        (vec![package("two", "1.3.0", "MIT", here), package("two", "2.0.0", "MIT", here)], ""),
    ] {
        let objections = objections(&policy, &packages).join("\n");
        assert!(objections.starts_with(found), "{objections}, not {found}");
        assert_eq!(objections.is_empty(), found.is_empty(), "{objections}");
    }
}
