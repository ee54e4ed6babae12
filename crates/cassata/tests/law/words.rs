//! The first rule of `docs/src/style.md` about words: cores, vCPUs and VMs are things, so
//! comments and names do not call them as one calls persons.

use super::sources;

/// How many words remain. It may only fall: a change that removes some lowers it.
const REMAINING: usize = 1;

/// The words, each in two halves, so that this file does not count itself.
const WORDS: [(&str, &str); 6] =
    [("w", "ho"), ("w", "hom"), ("whoe", "ver"), ("no", "body"), ("some", "body"), ("any", "body")];

/// Words of earlier versions (the last table of `docs/src/glossary.md`) that mean nothing else
/// here, in two halves, too.
const OLD: [(&str, &str); 6] = [
    ("shel", "ter"),
    ("ha", "ven"),
    ("ref", "uge"),
    ("to", "ur"),
    ("ha", "bit"),
    ("lead_", "ticks"),
];

#[test]
fn one_thing_has_one_name() {
    let old = OLD.map(|(first, second)| [first, second].concat());
    let is_part = |c: char| c.is_ascii_alphabetic() || c == '_';
    for (path, text) in ["crates", "guests"].map(|place| sources(place, &["rs", "c", "h"])).concat()
    {
        for name in text.split(|c| !is_part(c)) {
            let name = name.to_ascii_lowercase();
            let is_old = |word: &String| name == *word || name.split('_').any(|part| part == *word);
            assert!(!old.iter().any(is_old), "{path:?}: `{name}` has another name now");
        }
    }
}

fn count(text: &str) -> usize {
    let words = WORDS.map(|(first, second)| [first, second].concat());
    let found = text.split(|c: char| !c.is_ascii_alphabetic());
    found.filter(|word| words.contains(&word.to_ascii_lowercase())).count()
}

#[test]
fn things_are_not_called_persons() {
    let files = ["crates", "guests"].map(|place| sources(place, &["rs", "c", "h", "S"]));
    let counts = files.iter().flatten().map(|(path, text)| (count(text), path));
    let mut found: Vec<_> = counts.filter(|(count, _)| *count > 0).collect();
    found.sort_unstable();
    let all: usize = found.iter().map(|(count, _)| count).sum();
    assert!(all <= REMAINING, "{all} words, {REMAINING} may remain; most are in {found:#?}");
}

#[test]
fn words_are_counted_in_names_and_sentences() {
    let word = ["no", "body"].concat();
    assert_eq!(count(&format!("{word}_waits, {word}'s, and NO{}. whole", "BODY")), 3);
}
