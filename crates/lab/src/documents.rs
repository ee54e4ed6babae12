//! Figures that stand in documents: the command that measures them writes them, into marked
//! blocks, and each block names the code of which it tells.
//!
//! ```text
//! <!-- bench el2: begin, code 0f1e2d3c -->
//! figures
//! <!-- bench el2: end -->
//! ```
//!
//! A test demands that the code has not changed since. Where the command takes hours it does
//! not: the first line of such a block says for its readers of which code the figures are.

use crate::source::{self, read};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::collections::BTreeMap;
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
    /// Packages on whose code the figures depend, and on that of the crates of the house with
    /// which they are linked.
    packages: &'static [&'static str],
    /// Directories of other code on which they depend, such as guests.
    besides: &'static [&'static str],
    /// True if its command takes hours.
    takes_hours: bool,
}

/// What runs at EL2, and what decides when things happen in virtual time.
const MACHINE: &[&str] = &["crates/el2", INSTRUMENT];
const INSTRUMENT: &str = "crates/vtime-plugin";
/// The same, and what computes bounds and simulates.
const COMPUTED: &[&str] = &["crates/el2", INSTRUMENT, "crates/analysis", "crates/sim"];

/// Every block there is.
pub const BLOCKS: [Block; 19] = [
    Block {
        name: "bench el2",
        document: "docs/src/measuring.md",
        command: "./cassata bench el2 --write-docs",
        packages: MACHINE,
        besides: &["guests/probe/src"],
        takes_hours: false,
    },
    Block {
        name: "bench cost",
        document: "docs/src/guests.md",
        command: "./cassata bench cost --write-docs",
        packages: &[],
        besides: &["guests/linux-own"],
        takes_hours: false,
    },
    Block {
        name: "bench vtime",
        document: "docs/src/virtual-time.md",
        command: "./cassata bench vtime --write-docs",
        packages: &[INSTRUMENT],
        besides: &["guests/metronome/src"],
        takes_hours: false,
    },
    lock_holder_preemption("bench lhp"),
    lock_holder_preemption("bench lhp latency"),
    lock_holder_preemption("bench lhp cost"),
    Block {
        command: "./cassata bench lhp --paper --point overhead --write-docs",
        ..lock_holder_preemption("bench lhp builds")
    },
    Block {
        besides: &[
            "guests/freertos/src",
            "guests/include",
            "guests/linux-own",
            "guests/linux/capacity",
            "guests/linux/yield",
        ],
        ..lock_holder_preemption("bench lhp techniques")
    },
    Block {
        name: "bench vmpcp",
        document: "docs/src/sharing.md",
        command: "./cassata bench vmpcp --write-docs",
        packages: MACHINE,
        besides: &[
            "guests/freertos/src",
            "guests/linux/vmpcp",
            "guests/vmpcp/src",
            "guests/vmpcp/freertos",
        ],
        takes_hours: false,
    },
    Block {
        name: "bench schedulability",
        document: "docs/src/analysis.md",
        command: "./cassata bench schedulability --write-docs",
        packages: &["crates/analysis"],
        besides: &["crates/lab/src/bench/schedulability"],
        takes_hours: false,
    },
    Block {
        name: "bench case-study",
        document: "docs/src/simulation.md",
        command: "./cassata bench case-study --write-docs",
        packages: COMPUTED,
        besides: &["guests/probe/src"],
        takes_hours: true,
    },
    Block {
        name: "bench case-study, Linux",
        document: "docs/src/simulation.md",
        command: "./cassata bench case-study --write-docs",
        packages: COMPUTED,
        besides: &["guests/linux/vmpcp"],
        takes_hours: true,
    },
    Block {
        name: "bench promises",
        document: "docs/src/analysis.md",
        command: "./cassata bench promises --write-docs",
        packages: COMPUTED,
        besides: &["guests/probe/src"],
        takes_hours: true,
    },
    Block {
        name: "bench peers",
        document: "docs/src/peers.md",
        command: "./cassata bench peers --write-docs",
        packages: MACHINE,
        besides: &["guests/waker/src", "guests/peers"],
        takes_hours: true,
    },
    Block {
        name: "bench kvm-rt",
        document: "docs/src/kvm-rt.md",
        command: "./cassata bench kvm-rt --write-docs",
        packages: MACHINE,
        besides: &["guests/freertos/src"],
        takes_hours: true,
    },
    Block {
        name: "bench kvm-rt boosts",
        document: "docs/src/boosts.md",
        command: "./cassata bench kvm-rt --write-docs",
        packages: MACHINE,
        besides: &["guests/freertos/src", "guests/linux/boost", "guests/programs"],
        takes_hours: true,
    },
    Block {
        name: "bench kvm-rt dispatch",
        document: "docs/src/kvm-rt.md",
        command: "./cassata bench kvm-rt --write-docs",
        packages: MACHINE,
        besides: &["guests/programs"],
        takes_hours: true,
    },
    Block {
        name: "bench hostile",
        document: "docs/src/hostile.md",
        command: "./cassata bench hostile --write-docs",
        packages: MACHINE,
        besides: &["guests/probe/src", "guests/freertos/src"],
        takes_hours: true,
    },
    Block {
        name: "demo",
        document: "README.md",
        command: "./cassata demo --write-docs",
        packages: MACHINE,
        besides: &["guests/freertos/src", "guests/include"],
        takes_hours: false,
    },
];

/// A block of the figures of `bench lhp`.
const fn lock_holder_preemption(name: &'static str) -> Block {
    Block {
        name,
        document: "docs/src/lhp.md",
        command: "./cassata bench lhp --write-docs",
        packages: MACHINE,
        besides: &["guests/freertos/src"],
        takes_hours: true,
    }
}

/// Writes into blocks of the project at `root`, each given by its name and its content. A document with
/// several of them is read once and written once, after all have been found. Returns the documents.
///
/// # Errors
/// When a document has no such block, or a file cannot be read or written.
pub fn write<'a>(
    root: &Path,
    contents: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<PathBuf>> {
    let mut texts: BTreeMap<PathBuf, String> = BTreeMap::new();
    for (name, content) in contents {
        let block = named(name)?;
        let path = root.join(block.document);
        let text = texts.get(&path).cloned().map_or_else(|| read(&path), Ok)?;
        texts.insert(path, block.filled(&text, content, &block.digest(root)?)?);
    }
    for (path, text) in &texts {
        crate::results::write_file(path, text.as_bytes())?;
    }
    Ok(texts.into_keys().collect())
}

/// Returns what stands in the block called `name` of the project at `root`.
///
/// # Errors
/// When the document has no such block, or cannot be read.
#[cfg(test)]
pub fn content(root: &Path, name: &str) -> Result<String> {
    let block = named(name)?;
    Ok(block.parts(&read(&root.join(block.document))?)?.content.to_owned())
}

/// Says of every block whose code has changed since a command wrote it which command that is,
/// unless that takes hours and the block says of which code it tells. A block that was put
/// there by hand names no code, so nothing is known of its age.
///
/// # Errors
/// When a document has no such block, or a file cannot be read.
pub fn older_than_the_code(root: &Path) -> Result<Vec<String>> {
    let mut older = Vec::new();
    for block in &BLOCKS {
        let text = read(&root.join(block.document))?;
        let Parts { code, content, .. } = block.parts(&text)?;
        let Some(code) = code else { continue };
        let says = block.takes_hours && content.starts_with(&warning(code));
        if !says && code != block.digest(root)? {
            let Block { name, document, command, .. } = block;
            older.push(format!("{document}: `{name}` tells of older code; run `{command}`"));
        }
    }
    Ok(older)
}

fn named(name: &str) -> Result<&'static Block> {
    let block = BLOCKS.iter().find(|block| block.name == name);
    block.ok_or_else(|| miette!("there is no block `{name}` in any document"))
}

/// Returns what a block says first whose figures may be older than the code.
fn warning(code: &str) -> String {
    format!("(Measured with code `{code}`; today's may be another.)")
}

/// A document, taken apart at a block.
struct Parts<'a> {
    before: &'a str,
    /// Of which code the block tells, if a command wrote it.
    code: Option<&'a str>,
    content: &'a str,
    /// From the block's last line on.
    after: &'a str,
}

impl Block {
    /// Takes the document `text` apart.
    fn parts<'a>(&self, text: &'a str) -> Result<Parts<'a>> {
        let parts = || {
            let begin = text.find(&format!("<!-- {}: begin", self.name))?;
            let end = begin + text[begin..].find(&format!("<!-- {}: end -->", self.name))?;
            let (mark, content) = text[begin..end].split_once('\n')?;
            let code = mark.split_once(", code ").and_then(|(_, code)| code.split(' ').next());
            Some(Parts { before: &text[..begin], code, content, after: &text[end..] })
        };
        parts().ok_or_else(|| miette!("{} has no block `{}`", self.document, self.name))
    }

    /// Returns the document `text` with `content`, which tells of `code`, in the block.
    fn filled(&self, text: &str, content: &str, code: &str) -> Result<String> {
        let Parts { before, after, .. } = self.parts(text)?;
        let says = if self.takes_hours { format!("{}\n\n", warning(code)) } else { String::new() };
        let (mark, content) =
            (format!("<!-- {}: begin, code {code} -->", self.name), content.trim_end());
        Ok(format!("{before}{mark}\n{says}{content}\n{after}"))
    }

    /// Returns a CRC-32 of all code: without comments, blank lines and tests, and wherever a
    /// file lies. How the hypervisor is compiled and linked is part of its code.
    fn digest(&self, root: &Path) -> Result<String> {
        let mut sums = Vec::new();
        let linked = source::linked_with(root, self.packages)?;
        if linked.contains(source::HYPERVISOR) {
            let script = read(&root.join(source::HYPERVISOR).join("link.ld"))?;
            let levels = source::profile(root, "bare")?;
            sums.extend([script, levels].map(|text| crc32fast::hash(text.as_bytes())));
        }
        let linked = linked.into_iter().map(|path| root.join(path).join("src"));
        for directory in linked.chain(self.besides.iter().map(|path| root.join(path))) {
            add_sums(&directory, &mut sums)?;
        }
        sums.sort_unstable();
        let bytes: Vec<u8> = sums.into_iter().flat_map(u32::to_le_bytes).collect();
        Ok(format!("{:08x}", crc32fast::hash(&bytes)))
    }
}

fn add_sums(directory: &Path, sums: &mut Vec<u32>) -> Result<()> {
    let files = code_below(directory)?;
    let is_rust = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    let rust: Vec<_> = files.iter().filter(is_rust).cloned().collect();
    let tests = source::for_tests_only(&rust)?;
    // Of a guest, too, what it tests is no code that a figure is of.
    let is_tests = |part: &Path| part.file_stem().is_some_and(|stem| stem == "tests");
    let of_tests = |path: &Path| {
        let mut parts = path.ancestors().take_while(|part| *part != directory);
        parts.any(|part| is_tests(part) || tests.contains(part))
    };
    for path in files.iter().filter(|path| !of_tests(path)) {
        sums.push(crc32fast::hash(code_of(&read(path)?).as_bytes()));
    }
    Ok(())
}

/// Finds the files of code in a directory and those below it.
fn code_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut next) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = next.pop() {
        let entries = fs::read_dir(&directory).into_diagnostic();
        for entry in entries.wrap_err_with(|| format!("cannot read {}", directory.display()))? {
            let path = entry.into_diagnostic()?.path();
            let extension = path.extension().unwrap_or_default();
            if path.is_dir() {
                next.push(path);
            } else if ["rs", "c", "h", "S", "ld", "patch"].iter().any(|code| extension == *code) {
                files.push(path);
            }
        }
    }
    Ok(files)
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
    use std::collections::BTreeSet;

    fn project() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for directory in BLOCKS.iter().flat_map(|block| block.besides) {
            fs::create_dir_all(at(directory)).unwrap();
        }
        for package in BLOCKS.iter().flat_map(|block| block.packages) {
            fs::create_dir_all(at(package).join("src")).unwrap();
            fs::write(at(package).join("Cargo.toml"), "[package]\n").unwrap();
        }
        fs::write(at("Cargo.toml"), "[profile.bare]\nopt-level = 2\n").unwrap();
        fs::write(at("crates/el2/link.ld"), "SECTIONS {}\n").unwrap();
        for Block { name, document, .. } in &BLOCKS {
            let path = at(document);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let above = fs::read_to_string(&path).unwrap_or_default();
            let block =
                format!("Before.\n<!-- {name}: begin -->\nold\n<!-- {name}: end -->\nAfter.\n");
            fs::write(path, above + &block).unwrap();
        }
        root
    }

    #[test]
    fn a_block_is_older_when_code_changes_and_not_when_words_do() {
        let project = project();
        let (root, source) = (project.path(), project.path().join("crates/el2/src/a.rs"));
        fs::write(&source, "// why\nfn a() {}\n").unwrap();
        assert_eq!(older_than_the_code(root).unwrap(), [""; 0], "put there by hand");
        let all = BLOCKS.iter().map(|block| (block.name, "new figures\n"));
        let documents: BTreeSet<_> = BLOCKS.iter().map(|block| root.join(block.document)).collect();
        assert_eq!(write(root, all).unwrap(), documents.into_iter().collect::<Vec<_>>());
        let text = fs::read_to_string(root.join("README.md")).unwrap();
        assert!(text.starts_with("Before.\n<!-- demo: begin, code "), "{text}");
        assert!(text.ends_with(" -->\nnew figures\n<!-- demo: end -->\nAfter.\n"), "{text}");
        assert_eq!(older_than_the_code(root).unwrap(), [""; 0]);
        let words = "// because\n\n    fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\n";
        fs::write(&source, words).unwrap();
        fs::rename(&source, source.with_file_name("b.rs")).unwrap();
        assert_eq!(older_than_the_code(root).unwrap(), [""; 0]);
        let parent = source.with_file_name("b.rs");
        fs::write(&parent, format!("{words}#[cfg(test)]\nmod models;\n")).unwrap();
        fs::create_dir_all(source.with_file_name("b")).unwrap();
        fs::write(source.with_file_name("b/models.rs"), "fn model() {}\n").unwrap();
        assert_eq!(older_than_the_code(root).unwrap(), [""; 0]);
        fs::write(&source, "fn c() {}\n").unwrap();
        let older = older_than_the_code(root).unwrap();
        let named = |name: &str| older.iter().any(|what| what.contains(&format!("`{name}`")));
        assert!(named("bench el2") && named("demo"), "{older:?}");
        assert!(!named("bench lhp"), "it says itself of which code it is");
        assert!(!named("bench vtime"), "nothing of that runs at EL2");
        let command = "README.md: `demo` tells of older code; run `./cassata demo --write-docs`";
        assert!(older.iter().any(|what| what == command), "{older:?}");
        fs::remove_file(&source).unwrap();
        assert_eq!(older_than_the_code(root).unwrap(), [""; 0]);
        let workspace = root.join("Cargo.toml");
        fs::write(&workspace, "# Why.\n[profile.bare]\nopt-level = 2\n").unwrap();
        assert_eq!(older_than_the_code(root).unwrap(), [""; 0]);
        fs::write(&workspace, "[profile.bare]\nopt-level = 3\n").unwrap();
        assert_eq!(older_than_the_code(root).unwrap(), older);
        let book = root.join("docs/src/lhp.md");
        let text = fs::read_to_string(&book).unwrap();
        assert!(text.contains(" -->\n(Measured with code `"), "{text}");
        fs::write(&book, text.replacen("(Measured", "(measured", 1)).unwrap();
        assert_eq!(older_than_the_code(root).unwrap().len(), older.len() + 1);
    }

    #[test]
    fn blocks_of_one_document_are_written_together() {
        let project = project();
        let all = ["bench lhp", "bench lhp cost", "bench lhp techniques"].map(|name| (name, name));
        assert_eq!(write(project.path(), all).unwrap(), [project.path().join("docs/src/lhp.md")]);
        for (name, written) in all {
            let stands = content(project.path(), name).unwrap();
            assert!(stands.ends_with(&format!("\n\n{written}\n")), "{stands}");
        }
        assert_eq!(content(project.path(), "bench lhp latency").unwrap(), "old\n");
    }

    #[test]
    fn a_document_without_the_block_is_an_error() {
        let project = project();
        fs::write(project.path().join("README.md"), "nothing").unwrap();
        let book = || fs::read_to_string(project.path().join("docs/src/lhp.md")).unwrap();
        let before = book();
        let both = [("bench lhp", "x"), ("demo", "x")];
        let error = write(project.path(), both).unwrap_err().to_string();
        assert_eq!(error, "README.md has no block `demo`");
        assert_eq!(book(), before, "all blocks are written or none");
        assert!(write(project.path(), [("no such", "x")]).is_err());
    }

    #[test]
    fn every_document_tells_of_the_code_that_there_is() {
        let root = crate::testing::root();
        let older = older_than_the_code(root).unwrap();
        assert!(older.is_empty(), "{}", older.join("\n"));
    }
}
