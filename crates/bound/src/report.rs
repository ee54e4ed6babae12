//! One figure for each entry and kind, and what is missing.

use crate::facts::{self, Entry, Facts, Kind};
use crate::image::Image;
use crate::lines::Lines;
use crate::panics::{self, Panics};
use crate::program::{Function, Missing, Problem, Program, Reader};
use crate::sizes::Sizes;
use crate::stack::{self, Stack};
use crate::summary::{self, Path, Summaries, Summary};
use crate::{Error, trail};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Where the vectors for a lower exception level in AArch64 are in the table (DDI 0487, D1.3.1).
const VECTORS: [(Entry, u64, &str); 2] =
    [(Entry::Synchronous, 0x400, "synchronous"), (Entry::Interrupt, 0x480, "interrupt")];

/// Where the vectors for a lower exception level in AArch64 are that lead back to a guest. The others
/// end in a message.
const FROM_GUESTS: [u64; 3] = [0x400, 0x480, 0x580];

/// Where cores begin.
const BOOT: [&str; 2] = ["_start", "secondary_start"];

/// A length in instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Instructions {
    /// How many; at least as many if something is missing on the path.
    pub instructions: u64,
    /// Nothing is missing on the path.
    pub bounded: bool,
}

/// How much of a path is in one function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The function.
    pub function: String,
    /// How often it is called.
    pub calls: u64,
    /// Instructions of its own on the path.
    pub instructions: u64,
    /// Lines of source with most of them, each with how many.
    pub lines: Vec<(String, u64)>,
}

/// What one entry takes, or one kind of it.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Such as `interrupt` or `interrupt: virtual timer`.
    pub name: String,
    /// From the exception to the return to the guest.
    pub stay: Option<Instructions>,
    /// From the exception to the first look, or to the return if there is none.
    pub before_look: Option<Instructions>,
    /// From one look to the next.
    pub between_looks: Option<Instructions>,
    /// From the last look to the return.
    pub after_look: Option<Instructions>,
    /// The longest of the last three: so long EL2 does not see an interrupt.
    pub deaf: Option<Instructions>,
    /// What makes it, in the order in which the functions are first entered.
    pub path: Vec<Share>,
}

/// What was counted, and what was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Instructions in the image.
    pub instructions: u64,
    /// Functions in the image.
    pub functions: usize,
    /// Functions that guests' exceptions reach.
    pub reached: usize,
    /// Basic blocks in these.
    pub blocks: usize,
    /// Loops in these.
    pub loops: usize,
    /// Notes in the image.
    pub notes: usize,
    /// The figures: of each entry, then of its kinds.
    pub figures: Vec<Figure>,
    /// What is missing.
    pub missing: Vec<Gap>,
    /// How deep the stack of a core gets.
    pub stack: Stack,
    /// Where the code may panic.
    pub panics: Panics,
}

/// Something that is missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Gap {
    /// The line of the source.
    pub place: String,
    /// What, and in which function.
    pub what: String,
}

/// Analyses the ELF file of the hypervisor, in systems of these sizes.
///
/// # Errors
/// When it is no such file, or `facts` speaks of what is not in it.
pub fn analyse(file: &[u8], facts: &Facts, sizes: &Sizes) -> Result<Report, Error> {
    let mut image = Image::parse(file)?;
    let vectors = image.label("exception_vectors");
    let vectors = vectors.ok_or_else(|| Error::Image("no exception vectors".into()))?;
    for offset in FROM_GUESTS {
        image.declare(vectors + offset, "an exception from a guest");
    }
    for (_, offset, name) in VECTORS {
        image.declare(vectors + offset, name);
    }
    let lines = Lines::parse(file)?;
    let any = Sizes::default();
    let entries = VECTORS.map(|(_, offset, _)| vectors + offset);
    let program = Reader { image: &image, lines: &lines, facts, sizes }.read(&entries);
    // For the stack, every way into EL2 from which something leads to a guest; in any system, as
    // link.ld knows none.
    let mut ways: Vec<u64> = FROM_GUESTS.map(|offset| vectors + offset).into();
    for name in BOOT {
        let label = image.label(name);
        ways.push(label.ok_or_else(|| Error::Image(format!("it has no label {name}")))?);
    }
    let whole = Reader { image: &image, lines: &lines, facts, sizes: &any }.read(&ways);
    // In a small system there may be nothing of which a fact speaks.
    if sizes.have_all() {
        check_use([&program, &whole], facts)?;
    }
    let summaries = summary::all(&program, facts.passes());
    let analysis = Analysis { image: &image, lines: &lines, facts, program: &program, summaries };
    let mut report = analysis.report(vectors);
    report.stack = stack::deepest(&image, &whole, facts, &ways);
    report.panics = panics::count(&image);
    Ok(report)
}

/// Refuses facts of which the image has no trace.
fn check_use(programs: [&Program; 2], facts: &Facts) -> Result<(), Error> {
    let unused = |all: usize, of: usize| {
        (0..all).find(|at| programs.iter().all(|program| !program.used[of].contains(at)))
    };
    if let Some(at) = unused(facts.loops.len(), 0) {
        let fact = &facts.loops[at];
        return Err(Error::Facts(format!("there is no such loop in {}", fact.function)));
    }
    if let Some(at) = unused(facts.calls.len(), 1) {
        let from = &facts.calls[at].from;
        return Err(Error::Facts(format!("{from} calls nothing through a pointer")));
    }
    Ok(())
}

struct Analysis<'a> {
    image: &'a Image<'a>,
    lines: &'a Lines<'a>,
    facts: &'a Facts,
    program: &'a Program,
    summaries: Summaries,
}

impl Analysis<'_> {
    fn report(&self, vectors: u64) -> Report {
        let functions = self.program.functions.values();
        let mut report = Report {
            instructions: self.image.instructions(),
            functions: self.image.functions().count(),
            reached: functions.clone().count(),
            blocks: functions.clone().map(|function| function.graph.blocks.len()).sum(),
            loops: functions.map(|function| function.loops.all.len()).sum(),
            notes: self.image.notes().len(),
            figures: Vec::new(),
            missing: self.missing(),
            stack: Stack::default(),
            panics: Panics::default(),
        };
        for (entry, offset, name) in VECTORS {
            let at = vectors + offset;
            report.figures.push(self.figure(
                name.into(),
                self.summaries.for_any_caller(at).unwrap_or(&Summary::default()),
            ));
            for kind in self.facts.kinds.iter().filter(|kind| kind.entry == entry) {
                let name = format!("{name}: {}", kind.name);
                report.figures.push(self.figure(name, &self.of_kind(at, kind)));
            }
        }
        report
    }

    /// Says what is missing, each with its place.
    fn missing(&self) -> Vec<Gap> {
        let gap =
            |problem: &Problem| Gap { place: problem.place.clone(), what: problem.to_string() };
        let mut missing: Vec<Gap> = self.program.problems.iter().map(gap).collect();
        for (&at, function) in &self.program.functions {
            for (number, found) in function.loops.all.iter().enumerate() {
                // One that looks each time keeps no interrupt waiting, however often it goes round.
                if function.bounds[number].is_none() && !function.looks_each_time(number) {
                    let header = function.graph.blocks[found.header].start;
                    let problem = Problem {
                        what: Missing::LoopBound,
                        function: self.image.name(at).into(),
                        place: self.lines.place(header),
                    };
                    missing.push(gap(&problem));
                }
            }
        }
        missing
    }

    /// Summarizes an entry for one kind: in the functions that tell kinds apart, blocks that
    /// serve other kinds only are left out.
    fn of_kind(&self, at: u64, kind: &Kind) -> Summary {
        let function = &self.program.functions[&at];
        let serves = |kind: &Kind, names: &BTreeSet<String>| {
            kind.through.iter().any(|through| names.iter().any(|name| facts::fits(through, name)))
        };
        let taken = |block: usize| {
            let names = self.names(function, block);
            let mut others = self.facts.kinds.iter().filter(|other| other.entry == kind.entry);
            serves(kind, &names) || !others.any(|other| serves(other, &names))
        };
        let taken: Vec<bool> = (0..function.graph.blocks.len()).map(taken).collect();
        summary::function(at, function, &|block| taken[block], &|callee, block| {
            let name = self.image.name(callee);
            if kind.without.iter().any(|without| facts::fits(without, name)) {
                Summary::default()
            } else if self.facts.dispatchers.iter().any(|dispatcher| facts::fits(dispatcher, name))
            {
                self.of_kind(callee, kind)
            } else {
                self.summaries.of(callee, function, block).cloned().unwrap_or_default()
            }
        })
    }

    /// Names the functions that a block calls, and those that were inlined at its first
    /// instruction.
    fn names(&self, function: &Function, block: usize) -> BTreeSet<String> {
        let start = function.graph.blocks[block].start;
        let frames = self.lines.frames(start);
        // The last is the function itself.
        let inlined = frames.iter().rev().skip(1).map(|frame| frame.function.clone());
        let called = function.calls[block].iter().map(|&callee| self.image.name(callee).to_owned());
        inlined.chain(called).collect()
    }

    fn figure(&self, name: String, summary: &Summary) -> Figure {
        let count = |path: Option<&Path>| {
            path.map(|path| Instructions { instructions: path.cost, bounded: !path.open })
        };
        let longer = |a: &Option<Path>, b: &Option<Path>| {
            count(a.iter().chain(b).max_by_key(|path| (path.open, path.cost)))
        };
        Figure {
            name,
            stay: count(summary.whole.as_ref()),
            before_look: longer(&summary.through, &summary.to_look),
            between_looks: count(summary.between.as_ref()),
            after_look: count(summary.from_look.as_ref()),
            deaf: count(summary.deaf()),
            path: summary.deaf().map_or_else(Vec::new, |path| self.shares(path)),
        }
    }

    fn shares(&self, path: &Path) -> Vec<Share> {
        let mut order = Vec::new();
        let mut found: BTreeMap<u64, (u64, u64, BTreeMap<u64, u64>)> = BTreeMap::new();
        trail::walk(&path.trail, &mut |step, times| {
            let (calls, instructions, blocks) = found.entry(step.function).or_insert_with(|| {
                order.push(step.function);
                Default::default()
            });
            *calls += if step.block == step.function { times } else { 0 };
            *instructions += step.length * times;
            *blocks.entry(step.block).or_default() += step.length * times;
        });
        let share = |at: &u64| {
            let (calls, instructions, blocks) = &found[at];
            let mut lines: BTreeMap<String, u64> = BTreeMap::new();
            for (&block, &count) in blocks {
                *lines.entry(self.lines.place(block)).or_default() += count;
            }
            let mut lines: Vec<_> = lines.into_iter().collect();
            lines.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            lines.truncate(3);
            let function = self.image.name(*at).to_owned();
            Share { function, calls: *calls, instructions: *instructions, lines }
        };
        order.iter().map(share).collect()
    }
}
