//! How many lines run at EL2: the source of the hypervisor and of every crate
//! of the house that is linked into its image, comments included, tests not.
//!
//! A line that is moved from one of these crates to another runs at EL2 all the
//! same, so no crate is left out. The crates are found by their manifests and
//! their files by the `mod` declarations: what a new crate or file brings is
//! counted without a change here.

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The hypervisor's crate, from the project's root.
pub(crate) const HYPERVISOR: &str = "crates/el2";

/// A crate that is linked into the hypervisor's image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    /// The crate's directory, from the project's root.
    pub path: String,
    /// Lines of source, comments included, tests not.
    pub lines: u64,
    /// Lines among these that are code.
    pub code: u64,
}

/// Measures the crates below the project's `root`.
///
/// # Errors
/// Like [`shipped_files`].
pub fn measure(root: &Path) -> Result<Vec<Linked>> {
    let one = |path: String| {
        let files = shipped_files(&root.join(&path))?;
        let count = |lines: &dyn Fn(&str) -> u64| files.iter().map(|(_, text)| lines(text)).sum();
        Ok(Linked { lines: count(&lines_of), code: count(&code_lines), path })
    };
    linked(root)?.into_iter().map(one).collect()
}

/// Counts all lines.
pub(crate) fn lines_of(text: &str) -> u64 {
    text.lines().count() as u64
}

/// Counts the lines that are neither blank nor nothing but a comment, as `cloc` does.
pub(crate) fn code_lines(text: &str) -> u64 {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    text.lines().filter(is_code).count() as u64
}

/// Finds the crates of the house that are linked into the hypervisor's image.
pub(crate) fn linked(root: &Path) -> Result<BTreeSet<String>> {
    linked_with(root, &[HYPERVISOR])
}

/// Finds `packages` and the crates of the house that they depend on, at whatever distance.
pub(crate) fn linked_with(root: &Path, packages: &[&str]) -> Result<BTreeSet<String>> {
    let workspace = manifest(root)?;
    let known = get(&workspace, &["workspace", "dependencies"]);
    let mut next: Vec<_> = packages.iter().map(|&path| path.to_owned()).collect();
    let mut found = BTreeSet::new();
    while let Some(path) = next.pop() {
        let manifest = manifest(&root.join(&path))?;
        found.insert(path);
        let ours = dependencies(&manifest).filter_map(|name| get(known?, &[name, "path"]));
        let ours = ours.filter_map(Value::as_str).filter(|path| !found.contains(*path));
        next.extend(ours.map(str::to_owned));
    }
    Ok(found)
}

/// Returns what the workspace says of a profile of Cargo's, without its comments.
pub(crate) fn profile(root: &Path, name: &str) -> Result<String> {
    let workspace = manifest(root)?;
    let found = get(&workspace, &["profile", name]);
    found.map(Value::to_string).ok_or_else(|| miette!("Cargo.toml has no profile `{name}`"))
}

/// Names what a package is linked with, on every target.
fn dependencies(manifest: &Value) -> impl Iterator<Item = &str> {
    let targets = get(manifest, &["target"]).and_then(Value::as_table);
    let tables = targets.into_iter().flat_map(Table::values).chain([manifest]);
    let tables = tables.filter_map(|table| get(table, &["dependencies"])?.as_table());
    tables.flat_map(Table::keys).map(String::as_str)
}

fn get<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().try_fold(value, |value, key| value.get(key))
}

fn manifest(directory: &Path) -> Result<Value> {
    let path = directory.join("Cargo.toml");
    let table: Table = read(&path)?.parse().into_diagnostic().wrap_err("a manifest of Cargo's")?;
    Ok(table.into())
}

pub(crate) fn read(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path);
    text.map_err(|error| miette!("cannot read {}: {error}", path.display()))
}

/// Counts the lines of a package, comments included, tests not.
///
/// # Errors
/// Like [`shipped_files`].
pub fn lines_in(package: &Path) -> Result<u64> {
    Ok(shipped_files(package)?.into_iter().map(|(_, text)| lines_of(&text)).sum())
}

/// Finds the files of a package, from its library and its program on, and returns each with
/// its text, tests left out.
///
/// # Errors
/// When a file cannot be read, or a declared module has none.
pub fn shipped_files(package: &Path) -> Result<Vec<(PathBuf, String)>> {
    let roots = ["src/lib.rs", "src/main.rs"].map(|root| package.join(root));
    let mut files: Vec<_> = roots.into_iter().filter(|root| root.is_file()).collect();
    let mut found = Vec::new();
    while let Some(file) = files.pop() {
        let text = read(&file)?;
        let shipped = shipped(&text);
        for module in shipped.iter().filter_map(|line| declared(line)) {
            files.push(file_of(module, &file)?);
        }
        let text = shipped.into_iter().flat_map(|line| [line, "\n"]).collect();
        found.push((file, text));
    }
    Ok(found)
}

/// Leaves out what is compiled for tests only.
pub(crate) fn shipped(text: &str) -> Vec<&str> {
    let (mut kept, mut lines) = (Vec::new(), text.lines());
    while let Some(line) = lines.next() {
        if line.trim_start() == "#[cfg(test)]" {
            lines.find(|other| ends_item(other, indent(line)));
        } else {
            kept.push(line);
        }
    }
    kept
}

/// Names the modules in files of their own that are compiled for tests only.
fn test_modules(text: &str) -> Vec<&str> {
    let pairs = text.lines().zip(text.lines().skip(1));
    let gated = pairs.filter(|(gate, _)| gate.trim() == "#[cfg(test)]");
    gated.filter_map(|(_, line)| declared(line)).collect()
}

/// Finds the files of modules, or their directories, that `files` declare for tests only.
///
/// # Errors
/// When a file cannot be read, or a declared module has none.
pub(crate) fn for_tests_only(files: &[PathBuf]) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for file in files {
        for module in test_modules(&read(file)?) {
            let file = file_of(module, file)?;
            let is_mod = file.file_stem().is_some_and(|stem| stem == "mod");
            let directory = if is_mod { file.with_file_name("") } else { file.with_extension("") };
            found.extend([directory.components().collect(), file]);
        }
    }
    Ok(found)
}

/// Tells whether an item that is indented so far ends with this line. rustfmt
/// indents what is inside an item further than its first and last line.
fn ends_item(line: &str, indentation: usize) -> bool {
    let code = line.trim_start();
    let ends = code.ends_with([';', '}', ',']) && !code.starts_with(['#', '/']);
    ends && indent(line) == indentation
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Names the module that a line declares to be in another file.
fn declared(line: &str) -> Option<&str> {
    let (before, name) = line.trim().strip_suffix(';')?.rsplit_once("mod ")?;
    (before.is_empty() || before.starts_with("pub")).then_some(name)
}

/// Finds the file of a module that `file` declares.
fn file_of(module: &str, file: &Path) -> Result<PathBuf> {
    let at_root = ["lib", "main", "mod"].iter().any(|stem| file.file_stem().unwrap() == *stem);
    let directory = if at_root { file.with_file_name("") } else { file.with_extension("") };
    let places = [format!("{module}.rs"), format!("{module}/mod.rs")];
    let found = places.iter().map(|place| directory.join(place)).find(|path| path.is_file());
    found.ok_or_else(|| miette!("{} declares `{module}`: where is it?", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count_wherever_they_stand() {
        for (text, lines) in [
            ("a\n\n// b\nc\n", 4),
            ("a\n#[cfg(test)]\nmod tests;\nb\nc\n", 3),
            ("a\n#[cfg(test)]\nuse b::{\n    c,\n};\nd\n", 2),
            ("a\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nc\n", 2),
            ("a {\n    #[cfg(test)]\n    /// For tests.\n    #[b]\n    c: u8,\n    d: u8,\n}\n", 3),
            ("#[cfg(not(test))]\nuse b;\n", 2),
        ] {
            assert_eq!(shipped(text).len(), lines, "{text}");
        }
    }

    #[test]
    fn blank_lines_and_comments_are_no_code() {
        for (text, lines) in [
            ("a\n\n// b\nc // d\n", 2),
            ("/// a\n//! b\n    // c\n  \n", 0),
            ("#[a]\nfn b() {\n}\n", 3),
        ] {
            assert_eq!(code_lines(text), lines, "{text}");
        }
    }

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const WORKSPACE: &str = "\
        [workspace.dependencies]\n\
        near = { path = \"near\" }\n\
        far = { path = \"far\" }\n\
        other = { path = \"other\" }\n\
        toml = \"1.2\"\n";

    #[test]
    fn every_crate_in_the_image_counts_and_no_other() {
        let root = project(&[
            ("Cargo.toml", WORKSPACE),
            ("crates/el2/Cargo.toml", "dependencies.near = {}\ndependencies.toml = {}"),
            (
                "crates/el2/src/main.rs",
                "pub(crate) mod a;\n#[cfg(test)]\nmod tests;\n\nfn main() {}",
            ),
            ("crates/el2/src/a.rs", "mod b;\n"),
            ("crates/el2/src/a/b.rs", "pub mod c;\n"),
            ("crates/el2/src/a/b/c/mod.rs", "mod d;\n"),
            ("crates/el2/src/a/b/c/d.rs", "1\n2\n"),
            ("crates/el2/src/tests.rs", "no module that ships declares this\n"),
            (
                "near/Cargo.toml",
                "target.aarch64.dependencies.far = {}\ndev-dependencies.other = {}",
            ),
            ("near/src/lib.rs", "1\n"),
            ("far/Cargo.toml", ""),
            ("far/src/lib.rs", "1\n2\n3\n"),
        ]);
        let found = measure(root.path()).unwrap();
        let found: Vec<_> = found.iter().map(|one| (one.path.as_str(), one.lines)).collect();
        assert_eq!(found, [("crates/el2", 3 + 1 + 1 + 1 + 2), ("far", 3), ("near", 1)]);
    }

    #[test]
    fn modules_of_tests_are_found_with_what_they_contain() {
        let root = project(&[
            ("src/lib.rs", "mod a;\n#[cfg(test)]\nmod tests;\n"),
            ("src/tests.rs", ""),
            ("src/a.rs", "mod c;\n#[cfg(test)]\nmod b;\n"),
            ("src/a/b/mod.rs", "mod d;\n"),
        ]);
        let files = ["src/lib.rs", "src/a.rs"].map(|path| root.path().join(path));
        let found = for_tests_only(&files).unwrap();
        let expected = ["src/tests", "src/tests.rs", "src/a/b", "src/a/b/mod.rs"];
        assert_eq!(found, expected.map(|path| root.path().join(path)).into());
    }

    #[test]
    fn a_module_without_a_file_is_no_small_one() {
        let root = project(&[("src/lib.rs", "mod lost;\n")]);
        let reason = lines_in(root.path()).unwrap_err().to_string();
        assert!(reason.contains("declares `lost`"), "{reason}");
    }
}
