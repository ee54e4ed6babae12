//! Figures that stand in documents: the command that measures them writes them, into marked
//! blocks, and each block names the code of which it tells.
//!
//! ```text
//! <!-- bench el2: begin, code 0f1e2d3c -->
//! figures
//! <!-- bench el2: end -->
//! ```

use crate::source::{self, read};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::fs;
use std::path::{Path, PathBuf};

/// A place in a document that a command fills.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// What stands in its marks.
    pub name: &'static str,
    /// The document, from the project's root.
    pub document: &'static str,
    /// The command that writes it.
    pub command: &'static str,
    /// Directories of code on which the figures depend, besides the crates in the
    /// hypervisor's image.
    besides: &'static [&'static str],
}

/// Every block there is.
pub const BLOCKS: [Block; 2] = [
    Block {
        name: "bench el2",
        document: "docs/src/measuring.md",
        command: "./cassata bench el2 --write-docs",
        besides: &[],
    },
    Block {
        name: "demo",
        document: "README.md",
        command: "./cassata demo --write-docs",
        besides: &["guests/freertos/src"],
    },
];

/// Writes `content` into the block called `name` of the project at `root`; returns the document.
///
/// # Errors
/// When the document has no such block, or a file cannot be read or written.
pub fn write(root: &Path, name: &str, content: &str) -> Result<PathBuf> {
    let block = BLOCKS.iter().find(|block| block.name == name);
    let block = block.ok_or_else(|| miette!("there is no block `{name}` in any document"))?;
    let path = root.join(block.document);
    let text = read(&path)?;
    let (begin, _, end) = block.parts(&text).ok_or_else(|| block.missing())?;
    let mark = format!("<!-- {name}: begin, code {} -->", block.digest(root)?);
    let content = content.trim_end();
    crate::results::write_file(&path, format!("{begin}{mark}\n{content}\n{end}").as_bytes())?;
    Ok(path)
}

/// Says of every block whose code has changed since a command wrote it which command that is.
/// A block that was put there by hand names no code, so nothing is known of its age.
///
/// # Errors
/// When a document has no such block, or a file cannot be read.
pub fn older_than_the_code(root: &Path) -> Result<Vec<String>> {
    let mut older = Vec::new();
    for block in &BLOCKS {
        let text = read(&root.join(block.document))?;
        let (_, mark, _) = block.parts(&text).ok_or_else(|| block.missing())?;
        if mark.contains(", code ") && !mark.contains(&format!("code {} ", block.digest(root)?)) {
            let Block { name, document, command, .. } = block;
            older.push(format!("{document}: `{name}` tells of older code; run `{command}`"));
        }
    }
    Ok(older)
}

impl Block {
    fn missing(&self) -> miette::Report {
        miette!("{} has no block `{}`", self.document, self.name)
    }

    /// Returns what stands before the block, its first line, and from its last line on.
    fn parts<'a>(&self, text: &'a str) -> Option<(&'a str, &'a str, &'a str)> {
        let begin = text.find(&format!("<!-- {}: begin", self.name))?;
        let end = begin + text[begin..].find(&format!("<!-- {}: end -->", self.name))?;
        let mark = text[begin..end].lines().next()?;
        Some((&text[..begin], mark, &text[end..]))
    }

    /// Returns a CRC-32 of all code: without comments, blank lines and tests, and wherever a
    /// file lies.
    fn digest(&self, root: &Path) -> Result<String> {
        let mut sums = Vec::new();
        let linked = source::linked(root)?.into_iter().map(|path| root.join(path).join("src"));
        for directory in linked.chain(self.besides.iter().map(|path| root.join(path))) {
            add_sums(&directory, &mut sums)?;
        }
        sums.sort_unstable();
        let bytes: Vec<u8> = sums.into_iter().flat_map(u32::to_le_bytes).collect();
        Ok(format!("{:08x}", crc32fast::hash(&bytes)))
    }
}

fn add_sums(directory: &Path, sums: &mut Vec<u32>) -> Result<()> {
    let entries = fs::read_dir(directory).into_diagnostic();
    for entry in entries.wrap_err_with(|| format!("cannot read {}", directory.display()))? {
        let path = entry.into_diagnostic()?.path();
        let extension = path.extension().unwrap_or_default();
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            add_sums(&path, sums)?;
        } else if ["rs", "c", "h", "S", "ld"].iter().any(|code| extension == *code) {
            sums.push(crc32fast::hash(code_of(&read(&path)?).as_bytes()));
        }
    }
    Ok(())
}

/// Returns the lines that are code, tests left out.
fn code_of(text: &str) -> String {
    let lines = source::shipped(text).into_iter().map(str::trim);
    let code = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let manifest = root.path().join("crates/el2/Cargo.toml");
        for directory in ["crates/el2/src", "guests/freertos/src"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        fs::write(root.path().join("Cargo.toml"), "[workspace]\n").unwrap();
        fs::write(manifest, "[package]\nname = \"el2\"\n").unwrap();
        for block in &BLOCKS {
            let path = root.path().join(block.document);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let name = block.name;
            let text =
                format!("Before.\n<!-- {name}: begin -->\nold\n<!-- {name}: end -->\nAfter.\n");
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_block_is_older_when_code_changes_and_not_when_words_do() {
        let project = project();
        let (root, source) = (project.path(), project.path().join("crates/el2/src/a.rs"));
        fs::write(&source, "// why\nfn a() {}\n").unwrap();
        assert_eq!(older_than_the_code(root).unwrap(), [""; 0], "put there by hand");
        for block in &BLOCKS {
            write(root, block.name, "new figures\n").unwrap();
        }
        let text = fs::read_to_string(root.join("README.md")).unwrap();
        assert!(text.starts_with("Before.\n<!-- demo: begin, code "), "{text}");
        assert!(text.ends_with(" -->\nnew figures\n<!-- demo: end -->\nAfter.\n"), "{text}");
        assert_eq!(older_than_the_code(root).unwrap(), [""; 0]);
        let words = "// because\n\n    fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\n";
        fs::write(&source, words).unwrap();
        fs::rename(&source, source.with_file_name("b.rs")).unwrap();
        assert_eq!(older_than_the_code(root).unwrap(), [""; 0]);
        fs::write(&source, "fn c() {}\n").unwrap();
        let older = older_than_the_code(root).unwrap();
        assert_eq!(older.len(), 2);
        assert!(older[1].contains("README.md") && older[1].contains("./cassata demo --write-docs"));
    }

    #[test]
    fn a_document_without_the_block_is_an_error() {
        let project = project();
        fs::write(project.path().join("README.md"), "nothing").unwrap();
        let error = write(project.path(), "demo", "x").unwrap_err().to_string();
        assert_eq!(error, "README.md has no block `demo`");
        assert!(write(project.path(), "no such", "x").is_err());
    }

    #[test]
    fn every_document_tells_of_the_code_that_there_is() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let older = older_than_the_code(&root).unwrap();
        assert!(older.is_empty(), "{}", older.join("\n"));
    }
}
