//! Which folders of a crate may import which. A *room* is a folder of the sources, or a
//! file beside the folders; an import from one room to another is an arrow.

use super::sources;
use std::collections::{BTreeMap, BTreeSet};

/// By room: the rooms it imports, each with a file that does.
type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// The crates whose rooms must not import each other in circles.
const CRATES: [&str; 2] = ["el2", "lab"];

/// Returns the room of a file, by its path below `src`.
fn room(path: &str) -> &str {
    path.split('/').next().unwrap().trim_end_matches(".rs")
}

/// Returns the code without comments and without the tests at its end.
fn code(text: &str) -> String {
    let shipped = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = shipped.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the first names behind each `crate::`, those of a group in braces too.
fn imports(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for path in code.split("crate::").skip(1) {
        let Some(group) = path.strip_prefix('{') else {
            names.push(identifier(path));
            continue;
        };
        let (mut depth, mut begins) = (0, true);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if begins && !c.is_whitespace() => {
                    names.push(identifier(&group[at..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    names
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Returns the arrows between the rooms of a crate, tests and the crate's root aside.
fn arrows(krate: &str) -> Arrows {
    let source = format!("crates/{krate}/src/");
    let files: Vec<_> = sources(&source, &["rs"])
        .into_iter()
        .map(|(path, text)| (path.strip_prefix(&source).unwrap().to_owned(), text))
        .filter(|(path, _)| !path.contains("tests"))
        .collect();
    let rooms: BTreeSet<_> = files.iter().map(|(path, _)| room(path).to_owned()).collect();
    let mut arrows = Arrows::new();
    for (path, text) in files.iter().filter(|(path, _)| !["lib", "main"].contains(&room(path))) {
        let from = arrows.entry(room(path).to_owned()).or_default();
        for to in imports(&code(text)).into_iter().filter(|to| rooms.contains(to)) {
            if to != room(path) {
                from.insert(to, path.clone());
            }
        }
    }
    arrows
}

/// Returns all rooms that can be reached over at least one arrow.
fn reachable<'a>(arrows: &'a Arrows, from: &str) -> BTreeSet<&'a str> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(room) = next.pop() {
        for to in arrows.get(room).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(to.as_str()) {
                next.push(to);
            }
        }
    }
    seen
}

#[test]
fn folders_do_not_import_each_other_in_circles() {
    for krate in CRATES {
        let arrows = arrows(krate);
        assert!(arrows.len() > 5, "{krate} has rooms: {arrows:?}");
        let in_circle = |room: &&String| reachable(&arrows, room).contains(room.as_str());
        if let Some(room) = arrows.keys().find(in_circle) {
            let back = |to: &&str| reachable(&arrows, to).contains(room.as_str());
            let circle: Vec<_> = reachable(&arrows, room).into_iter().filter(back).collect();
            panic!("{krate}: {room} is in a circle: {circle:?}");
        }
    }
}

#[test]
fn the_architecture_imports_nothing_from_above() {
    let arrows = arrows("el2");
    assert!(arrows.contains_key("arch"), "{arrows:?}");
    assert!(arrows["arch"].is_empty(), "{:?}", arrows["arch"]);
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
            assert_eq!(open_structs(&code(&text)), Vec::<String>::new(), "{path}");
        }
    }
}

/// Returns the structs that have a public field, to whatever it is public, and are not
/// copied. What a macro names is no struct; its use is.
fn open_structs(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut items = code.split("struct ").peekable();
    let mut before = items.next().unwrap_or_default();
    for item in items {
        let end = item.find(['{', '(', ';']).unwrap_or(item.len());
        let body = &item[end..];
        let close = match body.chars().next() {
            Some('{') => body.find("\n}"),
            Some('(') => body.find(";\n"),
            _ => None,
        };
        let fields = &body[..close.unwrap_or(0)];
        let public = |line: &str| line.trim_start_matches([' ', '(']).starts_with("pub");
        let attributes = before.rsplit("\n\n").next().unwrap_or_default();
        let is_value = attributes.contains("derive(") && attributes.contains("Copy");
        let name = identifier(item);
        if !name.is_empty() && fields.lines().any(public) && !is_value {
            found.push(name);
        }
        before = item;
    }
    found
}

#[test]
fn public_fields_are_found_where_a_struct_is_not_a_value() {
    let open = "pub struct A {\n    a: u8,\n    pub b: u8,\n}\n\nstruct B(pub(super) u8);\n";
    assert_eq!(open_structs(open), ["A", "B"]);
    let closed = "#[derive(Clone, Copy)]\npub struct A {\n    pub a: u8,\n}\n\npub struct B {\n    \
                  b: u8,\n}\n\nimpl B {\n    pub fn b() {}\n}\n";
    assert_eq!(open_structs(closed), Vec::<String>::new());
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

#[test]
fn imports_are_found_in_groups_and_in_paths() {
    let code = "use crate::{\n    a::{b, c},\n    d,\n};\nuse crate::e::f;\nlet g = crate::h::i();";
    assert_eq!(imports(code), ["a", "d", "e", "h"]);
    assert_eq!(self::code("a // crate::b\n#[cfg(test)]\nmod tests {\nuse crate::c;"), "a ");
}
