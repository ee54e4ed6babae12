//! Quotes of code in the book are what stands in the code.
//!
//! A block below a line `<!-- quote: PATH -->` quotes that file. Lines that only say `...`, in a
//! comment or not, stand for what was left out; what is between two of them stands in the file as it is.

use super::{root, sources};
use std::fs;

const MARK: &str = "<!-- quote: ";

/// A block of a document that quotes a file.
struct Quote {
    file: String,
    pieces: Vec<String>,
}

/// Returns the quotes of a document. A mark without a block behind it is a quote without pieces.
fn quotes(text: &str) -> Vec<Quote> {
    let mut lines = text.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let Some(file) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        let begins = lines.next().is_some_and(|line| line.starts_with("```"));
        let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        let pieces = block.split(|line| is_gap(line)).map(|piece| piece.join("\n"));
        let pieces = pieces.map(|piece| piece.trim_matches('\n').to_owned());
        let pieces = pieces.filter(|piece| begins && !piece.is_empty()).collect();
        found.push(Quote { file: file.into(), pieces });
    }
    found
}

fn is_gap(line: &str) -> bool {
    ["...", "# ...", "/* ... */"].contains(&line.trim())
}

#[test]
fn quotes_of_the_book_stand_in_the_code() {
    let mut count = 0;
    for (document, text) in sources("docs/src", &["md"]) {
        for Quote { file, pieces } in quotes(&text) {
            let code = fs::read_to_string(root().join(&file)).unwrap();
            assert!(!pieces.is_empty(), "{document} quotes nothing of {file}");
            for piece in pieces {
                let stands = format!("\n{code}").contains(&format!("\n{piece}\n"));
                assert!(stands, "{document}: this is not in {file}:\n{piece}");
                count += 1;
            }
        }
    }
    assert!(count > 0, "there are no quotes");
}

#[test]
fn quotes_are_found_piece_by_piece() {
    let text = "<!-- quote: a.c -->\n```c\none\n  two\n\n    /* ... */\nthree\n```\n<!-- quote: b -->\nx\n";
    let found = quotes(text);
    assert_eq!(
        (&found[0].file[..], &found[0].pieces[..]),
        ("a.c", &["one\n  two".into(), "three".into()][..])
    );
    assert!(found[1].file == "b" && found[1].pieces.is_empty());
}
