//! The structure of the house as figures: one script for every crate and for every commit.
//!
//! ```text
//! cargo test --release -p cassata --test law -- --ignored --nocapture figures
//! CASSATA_CHECKOUT=/path/to/another cargo test ...    # the same of another commit
//! ```

use super::reading::{Arrows, assertions, code, functions, largest_circle, paths, structs};
use super::{rooms::arrows_between_rooms, root};
use lab::source;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const COLUMNS: [&str; 10] = [
    "crate",
    "files",
    "lines",
    "functions",
    "assertions",
    "`bug!`",
    "both per function",
    "files in the largest circle",
    "folders in the largest circle",
    "largest structs: fields (public)",
];

/// How many structs of each crate are shown.
const STRUCTS: usize = 3;

#[test]
#[ignore = "it demands nothing: it prints figures"]
fn the_figures_of_the_house() {
    let root = std::env::var_os("CASSATA_CHECKOUT").map_or_else(root, PathBuf::from);
    println!("| {} |\n|{}", COLUMNS.join(" | "), " --- |".repeat(COLUMNS.len()));
    for krate in crates(&root) {
        let package = root.join("crates").join(&krate);
        let lines = source::lines_in(&package).unwrap();
        println!("| {krate} | {}", row(lines, &shipped(&package)));
    }
    let image = source::measure(&root).unwrap();
    let names: Vec<_> = image.iter().map(|one| one.path.trim_start_matches("crates/")).collect();
    let lines: u64 = image.iter().map(|one| one.lines).sum();
    println!("\nIn the hypervisor's image: {}: {lines} lines.", names.join(", "));
}

fn crates(root: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap());
    let packages = entries.filter(|entry| entry.path().join("Cargo.toml").is_file());
    packages.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Returns the files of a package that ship, each with its path below `src`.
fn shipped(package: &Path) -> Vec<(String, String)> {
    let below =
        |path: PathBuf| path.strip_prefix(package.join("src")).unwrap().display().to_string();
    let files = source::shipped_files(package).unwrap().into_iter();
    files.map(|(path, text)| (below(path), code(&text))).collect()
}

fn row(lines: u64, files: &[(String, String)]) -> String {
    let sum = |count: fn(&str) -> usize| files.iter().map(|(_, code)| count(code)).sum::<usize>();
    let (functions, assertions) = (sum(functions), sum(assertions));
    let bugs = sum(|code| code.matches("bug!(").count());
    let per_function = (assertions + bugs) as f64 / functions as f64;
    let rooms = arrows_between_rooms(files);
    let in_files = largest_circle(&arrows_between_files(files)).len();
    let in_rooms = largest_circle(&rooms).len();
    let mut structs: Vec<_> = files.iter().flat_map(|(_, code)| structs(code)).collect();
    structs.sort_by_key(|one| Reverse((one.fields, one.public)));
    let largest = structs.iter().take(STRUCTS);
    let largest = largest.map(|one| format!("`{}` {} ({})", one.name, one.fields, one.public));
    let largest = largest.collect::<Vec<_>>().join(", ");
    let (files, rooms) = (files.len(), rooms.len());
    format!(
        "{files} | {lines} | {functions} | {assertions} | {bugs} | {per_function:.2} | {in_files} \
         of {files} | {in_rooms} of {rooms} | {largest} |"
    )
}

/// Returns the names of the module that a file is, none for the crate's root.
fn module(path: &str) -> Vec<&str> {
    let mut names: Vec<_> = path.trim_end_matches(".rs").split('/').collect();
    if ["lib", "main", "mod"].contains(names.last().unwrap()) {
        names.pop();
    }
    names
}

/// Returns the arrows between files. A path leads to the file of the deepest module that it
/// names, whether it begins at the root, above, or with a child; the root itself is no file.
fn arrows_between_files(files: &[(String, String)]) -> Arrows {
    let modules: BTreeMap<_, _> = files.iter().map(|(path, _)| (module(path), path)).collect();
    let mut arrows = Arrows::new();
    for (path, code) in files.iter().filter(|(path, _)| !module(path).is_empty()) {
        let own = module(path);
        let from = arrows.entry(path.clone()).or_default();
        let mut lead = |mut at: Vec<_>, names: Vec<_>| {
            for name in names {
                if name == "super" {
                    at.pop();
                    continue;
                }
                at.push(name);
                if !modules.contains_key(&at) {
                    at.pop();
                    break;
                }
            }
            if at != own && !at.is_empty() {
                from.insert(modules[&at].clone(), path.clone());
            }
        };
        paths(code, "crate::").into_iter().for_each(|names| lead(Vec::new(), names));
        paths(code, "self::").into_iter().for_each(|names| lead(own.clone(), names));
        let above = &own[..own.len() - 1];
        paths(code, "super::").into_iter().for_each(|names| lead(above.to_vec(), names));
        let children =
            modules.keys().filter(|one| one.len() == own.len() + 1 && one.starts_with(&own));
        for child in children {
            let start = format!("{}::", child.last().unwrap());
            paths(code, &start).into_iter().for_each(|names| lead(child.clone(), names));
        }
    }
    arrows
}

#[test]
fn a_path_leads_to_the_deepest_file() {
    let file = |path: &str, code: &str| (path.to_owned(), code.to_owned());
    let arrows = arrows_between_files(&[
        file("lib.rs", "mod a;\nmod e;\nuse a::B;"),
        file("a/mod.rs", "mod b;\nmod c;\npub use b::B;\nuse crate::e::{F, G};"),
        file("a/b.rs", "use super::c::{self, C};\nuse super::super::e::F;"),
        file("a/c.rs", "use super::A;"),
        file("e.rs", "use crate::H;"),
    ]);
    let arrow = |from: &str| arrows[from].keys().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(arrow("a/mod.rs"), ["a/b.rs", "e.rs"]);
    assert_eq!(arrow("a/b.rs"), ["a/c.rs", "e.rs"]);
    assert_eq!(arrow("a/c.rs"), ["a/mod.rs"]);
    assert_eq!(arrow("e.rs"), [""; 0]);
    assert_eq!(Vec::from_iter(largest_circle(&arrows)), ["a/b.rs", "a/c.rs", "a/mod.rs"]);
}
