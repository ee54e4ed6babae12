//! Which folders of a crate may import which. A *room* is a folder of the sources, or a
//! file beside the folders; an import from one room to another is an arrow.

use super::reading::{Arrows, Struct, code, largest_circle, paths, structs};
use super::sources;
use std::collections::BTreeSet;

/// The crates whose rooms must not import each other in circles.
const CRATES: [&str; 2] = ["el2", "lab"];

/// Returns the room of a file, by its path below `src`.
fn room(path: &str) -> &str {
    path.split('/').next().unwrap().trim_end_matches(".rs")
}

/// Returns the arrows between the rooms of a crate, tests aside.
fn arrows(krate: &str) -> Arrows {
    let source = format!("crates/{krate}/src/");
    let files = sources(&source, &["rs"]).into_iter();
    let files = files.map(|(path, text)| (path.strip_prefix(&source).unwrap().to_owned(), text));
    arrows_between_rooms(&files.filter(|(path, _)| !path.contains("tests")).collect::<Vec<_>>())
}

/// Returns the arrows between the rooms of these files, each with its path below `src`; the
/// crate's root is no room.
pub fn arrows_between_rooms(files: &[(String, String)]) -> Arrows {
    let rooms: BTreeSet<_> = files.iter().map(|(path, _)| room(path)).collect();
    let mut arrows = Arrows::new();
    for (path, text) in files.iter().filter(|(path, _)| !["lib", "main"].contains(&room(path))) {
        let from = arrows.entry(room(path).to_owned()).or_default();
        let code = code(text);
        let imported = paths(&code, "crate::").into_iter().map(|names| names[0]);
        for to in imported.filter(|to| rooms.contains(to) && *to != room(path)) {
            from.insert(to.to_owned(), path.clone());
        }
    }
    arrows
}

#[test]
fn folders_do_not_import_each_other_in_circles() {
    for krate in CRATES {
        let arrows = arrows(krate);
        assert!(arrows.len() > 5, "{krate} has rooms: {arrows:?}");
        let circle = largest_circle(&arrows);
        assert!(circle.is_empty(), "{krate} has a circle: {circle:?}");
    }
}

#[test]
fn the_architecture_imports_nothing_from_above() {
    let arrows = arrows("el2");
    assert!(arrows.contains_key("arch"), "{arrows:?}");
    assert!(arrows["arch"].is_empty(), "{:?}", arrows["arch"]);
}

/// What guests say is understood in one room of the laboratory: the others see types.
#[test]
fn one_room_sees_the_lines_of_consoles() {
    const ROOMS: [&str; 3] = ["console", "guests", "testing"];
    let (source, mut seen) = ("crates/lab/src/", BTreeSet::new());
    for (path, text) in sources(source, &["rs"]) {
        let imported = |start: &str, line: &[&str]| paths(&text, start).iter().any(|p| p == line);
        if imported("crate::", &["console", "Line"]) || imported("console::", &["Line"]) {
            seen.insert(room(path.strip_prefix(source).unwrap()).to_owned());
        }
    }
    assert!(seen.contains("guests"), "the lines have moved: {seen:?}");
    seen.retain(|room| !ROOMS.contains(&room.as_str()));
    assert!(seen.is_empty(), "{seen:?} see lines: reading them belongs in crates/lab/src/guests");
}

#[test]
fn one_folder_implements_the_core() {
    let files = sources("crates/el2/src", &["rs"]);
    let implementing = |text: &str| code(text).contains("impl Pcpu");
    let inside = |path: &str| path.starts_with("crates/el2/src/pcpu/");
    let found: Vec<_> = files.iter().filter(|(_, text)| implementing(text)).collect();
    assert!(found.iter().any(|(path, _)| inside(path)), "the core has moved");
    for (path, _) in found {
        assert!(inside(path), "{path} implements `Pcpu`: that belongs in pcpu/");
    }
}

/// A part answers to the core and knows neither it nor what several cores write.
#[test]
fn parts_import_nothing_of_the_core() {
    let arrows = arrows("el2");
    let imported = arrows.get("parts").expect("the parts have moved");
    assert!(imported.is_empty(), "{imported:?}");
}

/// What has an invariant: the parts, a vCPU, a core. Their fields are private; a field
/// may be public in a value that they answer with, which is copied.
#[test]
fn what_has_an_invariant_has_no_public_field() {
    for folder in ["parts", "vcpu", "pcpu"] {
        let files = sources(&format!("crates/el2/src/{folder}"), &["rs"]);
        assert!(files.len() > 3, "{folder} has moved");
        for (path, text) in files {
            assert_eq!(open_structs(&code(&text)), Vec::<&str>::new(), "{path}");
        }
    }
}

/// Returns the structs that have a public field, to whatever it is public, and are not
/// copied.
fn open_structs(code: &str) -> Vec<&str> {
    let open = |one: &Struct<'_>| one.public > 0 && !one.is_value;
    structs(code).into_iter().filter(open).map(|one| one.name).collect()
}

#[test]
fn public_fields_are_found_where_a_struct_is_not_a_value() {
    let open = "pub struct A {\n    a: u8,\n    pub b: u8,\n}\n\nstruct B(pub(super) u8);\n";
    assert_eq!(open_structs(open), ["A", "B"]);
    let closed = "#[derive(Clone, Copy)]\npub struct A {\n    pub a: u8,\n}\n\npub struct B {\n    \
                  b: u8,\n}\n\nimpl B {\n    pub fn b() {}\n}\n";
    assert_eq!(open_structs(closed), Vec::<&str>::new());
}

/// From above to below: a floor imports only floors below it. Below the core nothing knows
/// that there is one.
const FLOORS: &[&[&str]] = &[
    &["boot"],
    &["exits"],
    &["pcpu"],
    &["vcpu"],
    &["devices", "parts"],
    &["shared"],
    &["bug"],
    &["status", "tables"],
    &["arch"],
];

#[test]
fn a_floor_of_the_hypervisor_imports_only_those_below() {
    let arrows = arrows("el2");
    let floor = |room: &str| {
        let found = FLOORS.iter().position(|rooms| rooms.contains(&room));
        found.unwrap_or_else(|| panic!("{room} stands on no floor"))
    };
    for (from, to) in &arrows {
        for (to, path) in to {
            assert!(floor(from) < floor(to), "{path}: {from} imports {to}, which is not below it");
        }
    }
}
