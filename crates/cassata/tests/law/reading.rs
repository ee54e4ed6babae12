//! What can be read in the sources without a compiler: imports and their circles, structs
//! and their fields, functions and assertions. rustfmt has laid the sources out, and comments
//! are left out first.

use std::collections::{BTreeMap, BTreeSet};

/// By room or file: what it imports, each with a file that does.
pub type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// Returns the code without comments and without the tests at its end.
pub fn code(text: &str) -> String {
    let shipped = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = shipped.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the name at the beginning of a text; empty if there is none.
pub fn identifier(text: &str) -> &str {
    let ends = |c: char| !c.is_alphanumeric() && c != '_';
    &text[..text.find(ends).unwrap_or(text.len())]
}

/// Returns every path behind `start`, such as `crate::`, as its names; a group in braces is
/// taken apart.
pub fn paths<'a>(code: &'a str, start: &str) -> Vec<Vec<&'a str>> {
    let goes_on = |c: char| c.is_alphanumeric() || "_:".contains(c);
    let mut found = Vec::new();
    for (at, _) in code.match_indices(start) {
        if !code[..at].ends_with(goes_on) {
            follow(&code[at + start.len()..], &[], &mut found);
        }
    }
    found
}

/// Follows one path, whose beginning is known, through all groups to its ends.
fn follow<'a>(text: &'a str, before: &[&'a str], found: &mut Vec<Vec<&'a str>>) {
    let text = text.trim_start();
    if let Some(group) = text.strip_prefix('{') {
        return items(group).iter().for_each(|item| follow(item, before, found));
    }
    let name = identifier(text);
    let path = [before, &[name]].concat();
    match text[name.len()..].strip_prefix("::") {
        Some(rest) => follow(rest, &path, found),
        None => found.push(path),
    }
}

/// Returns what stands between commas, up to the bracket that closes around it.
fn items(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut before, mut found) = (0, 0, ' ', Vec::new());
    for (at, c) in text.char_indices() {
        let closes = "})]".contains(c) || c == '>' && !"-=".contains(before);
        if depth == 0 && (c == ',' || closes) {
            found.push(text[begin..at].trim());
            begin = at + 1;
        }
        match closes {
            true if depth == 0 => break,
            true => depth -= 1,
            false => depth += i32::from("{([<".contains(c)),
        }
        before = c;
    }
    found.retain(|item| !item.is_empty());
    found
}

/// A struct and what it shows.
#[derive(Debug, PartialEq, Eq)]
pub struct Struct<'a> {
    pub name: &'a str,
    pub fields: usize,
    /// How many of them are public, to whatever.
    pub public: usize,
    /// It is copied: a value that is answered with.
    pub is_value: bool,
}

/// Returns all structs. What a macro names is no struct; its use is.
pub fn structs(code: &str) -> Vec<Struct<'_>> {
    let mut found = Vec::new();
    let mut parts = code.split("struct ").peekable();
    let mut before = parts.next().unwrap_or_default();
    for part in parts {
        let name = identifier(part);
        let body = &part[part.find(['{', '(', ';']).unwrap_or(part.len())..];
        let fields = if body.starts_with(['{', '(']) { items(&body[1..]) } else { Vec::new() };
        let attributes = before.rsplit("\n\n").next().unwrap_or_default();
        let is_value = attributes.contains("derive(") && attributes.contains("Copy");
        if !name.is_empty() {
            let public = fields.iter().filter(|field| is_public(field)).count();
            found.push(Struct { name, fields: fields.len(), public, is_value });
        }
        before = part;
    }
    found
}

/// Tells whether a field is public, whatever attributes it has.
fn is_public(field: &str) -> bool {
    let mut lines = field.lines().map(str::trim_start).skip_while(|line| line.starts_with('#'));
    lines.next().is_some_and(|line| identifier(line) == "pub")
}

/// Counts functions, those without a body too.
pub fn functions(code: &str) -> usize {
    let named = |rest: &&str| !identifier(rest).is_empty();
    let words =
        code.match_indices("fn ").filter(|(at, _)| !code[..*at].ends_with(char::is_alphanumeric));
    words.map(|(at, word)| &code[at + word.len()..]).filter(named).count()
}

/// Counts assertions: those that every build checks, that debug builds check, and that the
/// compiler checks.
pub fn assertions(code: &str) -> usize {
    ["assert!(", "assert_eq!(", "assert_ne!("].iter().map(|word| code.matches(word).count()).sum()
}

/// Returns all names that can be reached over at least one arrow.
pub fn reachable<'a>(arrows: &'a Arrows, from: &str) -> BTreeSet<&'a str> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(name) = next.pop() {
        for to in arrows.get(name).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(to.as_str()) {
                next.push(to);
            }
        }
    }
    seen
}

/// Returns the largest circle; empty if there is none.
pub fn largest_circle(arrows: &Arrows) -> BTreeSet<&str> {
    let circle = |name: &'_ String| -> BTreeSet<&str> {
        let back = |to: &&str| reachable(arrows, to).contains(name.as_str());
        reachable(arrows, name).into_iter().filter(back).collect()
    };
    arrows.keys().map(circle).max_by_key(BTreeSet::len).unwrap_or_default()
}

#[test]
fn paths_are_followed_through_groups() {
    let code =
        "use crate::{\n    a::{b, c::D},\n    d,\n};\nuse crate::e::f;\nlet g = crate::h::i();";
    let found = paths(code, "crate::");
    let found: Vec<_> = found.iter().map(|path| path.join(" ")).collect();
    assert_eq!(found, ["a b", "a c D", "d", "e f", "h i"]);
    assert_eq!(paths("use the_crate::a;\nx::crate::b;", "crate::"), Vec::<Vec<&str>>::new());
    assert_eq!(self::code("a // crate::b\n#[cfg(test)]\nmod tests {\nuse crate::c;"), "a ");
}

#[test]
fn fields_are_counted_whatever_their_types() {
    let code = "#[derive(Clone, Copy)]\npub struct A {\n    pub a: [u8; 2],\n    #[b]\n    pub(super) \
                c: Map<u8, fn(u8, u8) -> u8>,\n    d: (u8, u8),\n}\n\nstruct B(pub(crate) u8);\n\n\
                struct C;\n\nimpl C {\n    pub fn c() {}\n}\nstruct $name {\n    pub e: u8\n}\n";
    let found = [("A", 3, 2, true), ("B", 1, 1, false), ("C", 0, 0, false)];
    let found =
        found.map(|(name, fields, public, is_value)| Struct { name, fields, public, is_value });
    assert_eq!(structs(code), found);
}

#[test]
fn functions_and_assertions_are_counted() {
    let code = "fn a() {\n    debug_assert!(x);\n    assert_eq!(y, z);\n}\nconst _: () = assert!(N > \
                1);\ntype B = fn(u8);\nfn c(d: impl Fn (u8));";
    assert_eq!((functions(code), assertions(code)), (2, 3));
}

#[test]
fn a_circle_is_found_however_long() {
    let arrows = |all: &[(&str, &str)]| {
        let mut arrows = Arrows::new();
        for (from, to) in all {
            arrows.entry((*from).into()).or_default().insert((*to).into(), String::new());
        }
        arrows
    };
    let circle = arrows(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("d", "b"), ("e", "a")]);
    assert_eq!(Vec::from_iter(largest_circle(&circle)), ["b", "c", "d"]);
    assert!(largest_circle(&arrows(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
}
