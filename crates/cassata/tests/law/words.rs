//! The first rule of `docs/src/style.md` about words: cores, vCPUs and VMs are things, so
//! comments and names do not call them as one calls persons.

use super::sources;

/// How many words remain. It may only fall: a change that removes some lowers it.
const REMAINING: usize = 1;

/// The words, each in two halves, so that this file does not count itself.
const WORDS: [(&str, &str); 8] = [
    ("w", "ho"),
    ("w", "hom"),
    ("whoe", "ver"),
    ("no", "body"),
    ("some", "body"),
    ("any", "body"),
    ("every", "body"),
    ("every", "one"),
];
/// The book may speak of persons by these.
const OF_PERSONS: [(&str, &str); 3] = [("w", "ho"), ("w", "hom"), ("whoe", "ver")];

/// Words of earlier versions (the last table of `docs/src/glossary.md`) that mean nothing else
/// here, in two halves, too.
const OLD: [(&str, &str); 10] = [
    ("shel", "ter"),
    ("ha", "ven"),
    ("ref", "uge"),
    ("to", "ur"),
    ("ha", "bit"),
    ("lead_", "ticks"),
    ("trans", "its"),
    ("ga", "ng"),
    ("hur", "ry"),
    ("hur", "ries"),
];

#[test]
fn one_thing_has_one_name() {
    let old = OLD.map(|(first, second)| [first, second].concat());
    let is_part = |c: char| c.is_ascii_alphabetic() || c == '_';
    let code = ["crates", "guests"].map(|place| sources(place, &["rs", "c", "h"])).concat();
    let book = sources("docs/src", &["md"]).into_iter();
    let book = book.filter(|(path, _)| !path.ends_with("glossary.md"));
    for (path, text) in code.into_iter().chain(book) {
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

/// Documentation may speak of people, but not so of anything else. `style.md` quotes the words.
#[test]
fn the_book_calls_nothing_a_person() {
    let persons = OF_PERSONS.map(|(first, second)| [first, second].concat());
    let things = WORDS.map(|(first, second)| [first, second].concat());
    let things: Vec<_> = things.iter().filter(|word| !persons.contains(word)).collect();
    let book = ["docs/src", "systems", "guests", "setup"].map(|place| sources(place, &ENDINGS));
    let texts = book.iter().flatten().filter(|(path, _)| !path.ends_with("style.md"));
    for (path, text) in texts {
        let words = text.split(|c: char| !c.is_ascii_alphabetic()).map(str::to_ascii_lowercase);
        let found: Vec<_> = words.filter(|word| things.contains(&word)).collect();
        assert!(found.is_empty(), "{path}: {found:?}");
    }
}

/// Of what people read that is no code.
const ENDINGS: [&str; 3] = ["md", "toml", "sh"];

/// How the rule `name-the-subject` says that no doc comment begins.
const NO_SUBJECT: [&str; 6] = ["Its ", "Of ", "Those ", "One that ", "The same ", "Whether "];
/// How many begin so. It may only fall.
const WITHOUT_SUBJECT: usize = 85;

fn begins_without_subject(text: &str) -> usize {
    let mut comment = false;
    let mut found = 0;
    for line in text.lines().map(str::trim_start) {
        let words = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
        let is_first = words.is_some() && !comment;
        comment = words.is_some();
        let begins = |words: &str| NO_SUBJECT.iter().any(|begin| words.starts_with(begin));
        found += usize::from(is_first && words.is_some_and(begins));
    }
    found
}

#[test]
fn comments_name_their_subject() {
    let files = sources("crates", &["rs"]);
    let counts = files.iter().map(|(path, text)| (begins_without_subject(text), path));
    let mut found: Vec<_> = counts.filter(|(count, _)| *count > 0).collect();
    found.sort_unstable();
    let all: usize = found.iter().map(|(count, _)| count).sum();
    let most = &found[found.len().saturating_sub(10)..];
    assert!(all <= WITHOUT_SUBJECT, "{all}, {WITHOUT_SUBJECT} may remain; most are in {most:#?}");
}

#[test]
fn only_the_first_line_of_a_comment_has_the_subject() {
    let text = "/// Its name.\n/// Of the core.\nname: u8,\n/// The vCPU.\n/// Whether it runs.\n";
    assert_eq!(begins_without_subject(text), 1);
}
