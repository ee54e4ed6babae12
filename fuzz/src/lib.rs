//! Feeds any bytes to what reads bytes that others wrote.
//!
//! A *target* is a function that takes bytes and panics where what it tests answers wrong, or
//! panics itself. Tests feed each target its corpus, the files in `fuzz/corpus/NAME`; `fuzz/run`
//! builds the targets with counters in the code and lets libFuzzer look for bytes that reach more.
//! An input that has shown a bug stays in the corpus.
//!
//! | target | what reads the bytes | whose bytes they are |
//! | --- | --- | --- |
//! | `gic` | the virtual interrupt controller, beside the ideal one | a guest |
//! | `doorbells` | the same with slow doorbells, beside an account of each interrupt | a guest |
//! | `console` | the demultiplexer, and what understands lines | guests |
//! | `observe` | what follows report areas, and what is computed of them | guests |
//! | `record` | what records them in a trace, and what reads that | guests |
//! | `tables` | EL2's check of the tables, beside a second one | the packer |
//! | `reach` | EL2's check of page tables, beside a walk | the packer |
//! | `unpack` | the reader of packed systems | a file |
//! | `trace` | the reader of traces, and what draws and exports them | a file |
//! | `description` | the reader of descriptions, and the packer of what it accepts | a user |
//! | `image` | the readers of Images and ELF files of guests | a user |
//! | `hypervisor` | the reader of the hypervisor's ELF file, which moves it | our build |

#![forbid(unsafe_code)]

mod bytes;
mod console;
mod files;
mod gic;
mod observe;
mod packed;
mod reach;
mod tables;
mod trace;

// The tests of the virtual interrupt controller say `crate` of what they test.
use vgic::{CTLR_GROUP0, CTLR_GROUP1, Effects, Gic, frames, interface};

/// Something that reads bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name, which is that of its corpus.
    pub name: &'static str,
    /// The longest input that is worth trying, bytes.
    pub longest: usize,
    /// Reads the bytes; panics if something is wrong.
    pub feed: fn(&[u8]),
}

/// All there are.
pub const TARGETS: &[Target] = &[
    Target { name: "gic", longest: 2_048, feed: gic::at_once },
    Target { name: "doorbells", longest: 2_048, feed: gic::with_slow_doorbells },
    Target { name: "console", longest: 1_024, feed: console::hear },
    Target { name: "observe", longest: 2_048, feed: observe::follow },
    Target { name: "record", longest: 2_048, feed: observe::record },
    Target { name: "tables", longest: 256, feed: tables::validate },
    Target { name: "reach", longest: 256, feed: reach::walk },
    Target { name: "unpack", longest: 65_536, feed: packed::unpack },
    Target { name: "trace", longest: 4_096, feed: trace::read },
    Target { name: "description", longest: 2_048, feed: files::description },
    Target { name: "image", longest: 1_024, feed: files::image },
    Target { name: "hypervisor", longest: 1_024, feed: files::hypervisor },
];

impl Target {
    /// Finds the target of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Most bytes of a corpus: it is a part of the source.
    const LARGEST: u64 = 64 * 1024;

    fn corpora() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
    }

    fn files(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).unwrap_or_else(|error| {
            panic!("{}: {error}", directory.display());
        });
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    /// Feeds a target its corpus. The name of the input stands before a panic.
    fn replay(name: &str) {
        let target = Target::named(name).unwrap();
        let files = files(&corpora().join(name));
        assert!(!files.is_empty(), "{name} has no corpus");
        let (mut total, mut longest) = (0, 0);
        for file in files {
            println!("{}", file.display());
            let bytes = fs::read(&file).unwrap();
            (total, longest) = (total + bytes.len() as u64, longest.max(bytes.len()));
            (target.feed)(&bytes);
        }
        assert!(total <= LARGEST, "the corpus of {name} has {total} bytes");
        assert!(longest <= target.longest, "the fuzzer tries no {longest} bytes for {name}");
        (target.feed)(&[]);
    }

    macro_rules! corpora {
        ($($name:ident),* $(,)?) => {
            $(
                #[test]
                fn $name() {
                    replay(stringify!($name));
                }
            )*

            #[test]
            fn each_target_has_a_test_and_a_corpus() {
                let tested = BTreeSet::from([$(stringify!($name)),*]);
                let targets: BTreeSet<_> = TARGETS.iter().map(|target| target.name).collect();
                assert_eq!(tested, targets);
                let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
                let there: BTreeSet<_> = files(&corpora()).into_iter().map(name).collect();
                assert!(there.iter().map(String::as_str).eq(targets), "{there:?}");
            }
        };
    }

    corpora!(
        console,
        description,
        doorbells,
        gic,
        hypervisor,
        image,
        observe,
        reach,
        record,
        tables,
        trace,
        unpack,
    );
}
