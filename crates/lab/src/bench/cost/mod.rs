//! What it costs to bring guests here: lines that are changed in their kernels, beside Figure 3 of
//! *Light-Weighted Virtualization Layer for Multicore Processor-Based Embedded Systems* (vlk).
//!
//! | module | story |
//! | --- | --- |
//! | [`upstream`] | guests beside what they are made from |
//! | [`changes`] | lines that a unified diff adds and removes |

mod changes;
mod upstream;

use super::campaign::room;
use super::{Conduct, Label};
use crate::answer::Answer;
use crate::dataset::{Dataset, Unit};
use crate::quantity::{bytes, count, real};
use crate::results::{Check, Goal};
use crate::source::{self, Linked};
use crate::suite::Bench;
use clap::ArgMatches;
use miette::{IntoDiagnostic, Result, WrapErr};
use std::path::Path;
use system::pack::image_size;
use upstream::Kernel;

/// Lines that the paper's port adds to Linux, and so the most that ours may.
const MOST_ADDED: u64 = 161;
/// What Figure 3 of the paper has: the kernel, and lines that are added and removed.
const PAPER: [(&str, u64, Option<u64>); 4] = [
    ("Linux/vlk (2.6.24.3)", MOST_ADDED, Some(8)),
    ("RTLinux 3.2 (2.6.9)", 2_798, Some(1_131)),
    ("RTAI 3.6.2 (2.6.19)", 5_920, Some(163)),
    ("OK Linux (2.6.24)", 28_149, None),
];
/// Modules that stock Linux can load, each with its directory. The paper leaves drivers out.
const MODULES: [(&str, &str); 4] = [
    ("cassata_yield", "guests/linux/yield"),
    ("cassata_capacity", "guests/linux/capacity"),
    ("cassata_trace", "guests/linux/trace"),
    ("vmpcp", "guests/linux/vmpcp/module"),
];

/// What is conducted from here.
pub(super) const EXPERIMENTS: &[&dyn Conduct] = &[&ChangedLines];

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct ChangedLines;

impl Conduct for ChangedLines {
    fn label(&self) -> Label {
        Label {
            name: "cost",
            about: "Figure 3 of vlk: lines that are changed in guests' kernels",
            details: "Compares each guest's kernel with what it is made from: Debian's Image with \
                      that in its package, and FreeRTOS's sources with those in the crate that \
                      carries them, by SHA-256; and counts the patch by which Linux can tell the \
                      hypervisor of its locks, in *.c, *.h, *.S and Makefiles as the paper does. \
                      Beside it stand the paper's figures, and the hypervisor's own lines and \
                      bytes.\n\n\
                      Exits with 1 if that patch adds more lines than the paper's port.",
            examples: "  cassata bench cost\n  cassata bench cost --report-only",
        }
    }

    fn conduct(&self, _: &ArgMatches, bench: &Bench) -> Result<Answer> {
        let scratch = room(bench, "upstream")?;
        let stock =
            [upstream::debian(&bench.root)?, upstream::freertos(&bench.root, &scratch.directory)?];
        std::fs::remove_dir_all(&scratch.directory).into_diagnostic()?;
        let image = image_size(bench.hypervisor.silent).into_diagnostic()?;
        let hypervisor = Hypervisor { image, source: source::measure(&bench.root)? };
        let modules = MODULES.map(|(name, directory)| (name, bench.root.join(directory)));
        let modules = modules.map(|(name, path)| Ok((name, lines_of(&path)?)));
        let modules = modules.into_iter().collect::<Result<_>>()?;
        Ok(Cost { stock, own: upstream::own(&bench.root)?, modules, hypervisor }.answer())
    }
}

/// Counts the lines of a module, without what only says how it is built.
fn lines_of(directory: &Path) -> Result<u64> {
    let read = std::fs::read_dir(directory).into_diagnostic();
    let files = read.wrap_err_with(|| format!("cannot read {}", directory.display()))?;
    let files = files.filter_map(|entry| Some(entry.ok()?.path()));
    let code = files.filter(|path| path.extension().is_some_and(|kind| kind == "c" || kind == "h"));
    code.map(|path| Ok(source::read(&path)?.lines().count() as u64)).sum()
}

/// The hypervisor's own size.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hypervisor {
    /// Bytes of its image that are loaded.
    image: u64,
    /// The crates that the image is made of.
    source: Vec<Linked>,
}

impl Hypervisor {
    fn lines(&self) -> u64 {
        self.source.iter().map(|linked| linked.lines).sum()
    }
}

/// Everything that was counted.
#[derive(Clone, Debug)]
struct Cost {
    /// Kernels in which nothing is to be changed.
    stock: [Kernel; 2],
    /// Linux with the port.
    own: Kernel,
    /// Modules, and lines of each.
    modules: Vec<(&'static str, u64)>,
    hypervisor: Hypervisor,
}

impl Cost {
    fn answer(&self) -> Answer {
        let lead = "Lines that are added to guests' kernels, and removed, for them to run here: \
                    none. Delayed preemption and spin-then-yield, with which the papers compare \
                    migration, need a kernel that says when it holds a lock. Its patch is counted \
                    as the paper counts: *.c, *.h, *.S and Makefiles, comments and empty lines \
                    included.";
        let mut answer = Answer::new("cost", "What guests cost to change", lead);
        answer.outcome.parameter("paper", "Mitake et al.: vlk, Figure 3");
        let [added, removed] = self.own.lines();
        let stock = self.stock.iter().map(|kernel| kernel.lines()[0]).sum();
        answer.tile(count(stock), "lines added to stock Linux and FreeRTOS");
        answer.tile(count(added), "lines added for delayed preemption and spin-then-yield");
        answer.tile(count(self.hypervisor.lines()), "lines at EL2");
        answer.tile(bytes(self.hypervisor.image), "of image at EL2");
        for data in [self.kernels(), papers(), self.files(), self.modules(), self.linked()] {
            answer.data(&data);
        }
        answer.outcome.figure("el2_lines", self.hypervisor.lines());
        answer.outcome.figure("el2_bytes", self.hypervisor.image);
        for kernel in &self.stock {
            let changed = real(kernel.lines().iter().sum());
            let name = format!("lines changed in {}", kernel.name);
            answer.outcome.check(Check::new(&name, changed, "lines", Goal::Exactly(0.0)));
        }
        let most = Goal::AtMost(real(MOST_ADDED));
        answer.outcome.check(Check::new("the port adds", real(added), "lines", most));
        let removes = Check::new("the port removes", real(removed), "lines", Goal::AtMost(8.0));
        answer.outcome.check(removes.as_statement());
        let [kernels, papers] = [self.kernels(), papers()].map(|data| data.table().markdown());
        answer.document("bench cost", format!("{kernels}\nFigure 3 of vlk:\n\n{papers}"));
        answer
    }

    fn kernels(&self) -> Dataset {
        let all = self.stock.iter().chain([&self.own]);
        Dataset::of("kernels", "Lines changed in guests' kernels", all)
            .name("kernel", |kernel| kernel.name)
            .name("from", |kernel| kernel.upstream.as_str())
            .column("added", Unit::None, |kernel| kernel.lines()[0])
            .column("removed", Unit::None, |kernel| kernel.lines()[1])
            .column("files", Unit::None, |kernel| kernel.changed.len())
            .name("sha256", |kernel| kernel.sha256.clone())
            .for_programs()
            .done()
    }

    fn files(&self) -> Dataset {
        Dataset::of("files", "The port of Linux, file by file", &self.own.changed)
            .name("file", |changed| changed.file.as_str())
            .column("added", Unit::None, |changed| changed.added)
            .column("removed", Unit::None, |changed| changed.removed)
            .done()
    }

    fn modules(&self) -> Dataset {
        Dataset::of("modules", "Modules that stock Linux may load", &self.modules)
            .name("module", |(name, _)| *name)
            .column("lines", Unit::None, |(_, lines)| *lines)
            .done()
    }

    fn linked(&self) -> Dataset {
        Dataset::of("el2", "Lines at EL2", &self.hypervisor.source)
            .name("crate", |linked| linked.path.as_str())
            .column("lines", Unit::None, |linked| linked.lines)
            .done()
    }
}

fn papers() -> Dataset {
    Dataset::of("papers", "Figure 3 of vlk", PAPER)
        .name("kernel", |(name, ..)| *name)
        .column("added", Unit::None, |(_, added, _)| *added)
        .column("removed", Unit::None, |(.., removed)| *removed)
        .done()
}

#[cfg(test)]
mod tests {
    use super::changes::Changed;
    use super::*;

    fn cost(stock: u64, added: u64, removed: u64) -> Cost {
        let kernel = |name, added, removed| {
            let changed = vec![Changed { file: "a.c".into(), added, removed }];
            Kernel { name, upstream: "x".into(), sha256: None, changed }
        };
        Cost {
            stock: [kernel("one", 0, 0), kernel("two", 0, stock)],
            own: kernel("own", added, removed),
            modules: vec![("m", 7)],
            hypervisor: Hypervisor {
                image: 4096,
                source: vec![Linked { path: "crates/el2".into(), lines: 10, code: 7 }],
            },
        }
    }

    #[test]
    fn a_port_that_is_larger_than_the_papers_fails() {
        for (cost, code) in [
            (cost(0, MOST_ADDED, 8), 0),
            (cost(0, MOST_ADDED, 9), 0),
            (cost(0, MOST_ADDED + 1, 0), 1),
            (cost(1, 1, 0), 1),
        ] {
            assert_eq!(cost.answer().outcome.exit_code(false), code, "{cost:?}");
        }
    }

    #[test]
    fn all_that_is_counted_is_told() {
        let figures = cost(0, 12, 3).answer().outcome.figures;
        assert_eq!(
            (&figures["kernels"][2]["added"], &figures["kernels"][2]["removed"]),
            (&12.into(), &3.into())
        );
        assert_eq!((&figures["el2_lines"], &figures["el2_bytes"]), (&10.into(), &4096.into()));
        assert_eq!(figures["modules"][0]["lines"], 7);
        assert!(figures["papers"][3]["removed"].is_null());
    }
}
