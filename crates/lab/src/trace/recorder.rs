//! The rings of all pCPUs, and what guests report meanwhile, into a file.

use super::events;
use super::file::{self, Block};
use super::latest::Latest;
use super::ring::Ring;
use super::subject::Subject;
use crate::bundle::Bundle;
use crate::machine::Memory;
use crate::observe::{RingFollower, Snapshot};
use miette::{Result, miette};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;

/// Where there is something to record, and what that is.
#[derive(Clone, Debug)]
pub struct Sources {
    subject: Subject,
    /// Addresses of the headers of the rings, by pCPU.
    rings: Vec<u64>,
    size: u64,
    /// Report areas, by VM.
    reports: Vec<Report>,
}

/// The report area of a VM.
#[derive(Clone, Debug)]
struct Report {
    vm: usize,
    pa: u64,
    size: u64,
    /// The VM's vCPUs, as indices into the system's.
    vcpus: Range<usize>,
}

/// Writes a trace while its machine runs.
#[derive(Debug)]
pub struct Recorder {
    subject: Subject,
    rings: Vec<Ring>,
    reports: Vec<Followed>,
    latest: Latest,
    file: BufWriter<File>,
    has_begun: bool,
}

/// What a report area has, as far as it was read.
#[derive(Debug)]
struct Followed {
    of: Report,
    samples: RingFollower,
    /// How many samples may still be kept.
    room: usize,
    events: events::Follower,
}

impl Sources {
    /// Returns what `bundle` says; none if it asks for no trace.
    #[must_use]
    pub fn of(bundle: &Bundle) -> Option<Self> {
        let tables = &bundle.tables;
        let size = u64::from(tables.header.trace_size);
        let reports = tables.vms().iter().enumerate().filter(|(_, vm)| vm.report_size > 0);
        (size > 0).then(|| Self {
            subject: Subject::of(tables, &bundle.mutexes),
            rings: (0..tables.board.pcpu_count as usize).map(|p| tables.trace_header(p)).collect(),
            size,
            reports: reports.map(|(vm, table)| Report::of(vm, table)).collect(),
        })
    }
}

impl Report {
    fn of(vm: usize, table: &abi::system::Vm) -> Self {
        let first = usize::from(table.vcpu_first);
        let vcpus = first..first + usize::from(table.vcpu_count);
        Self { vm, pa: table.report_pa, size: table.report_size, vcpus }
    }

    fn follow(&self) -> Followed {
        Followed {
            of: self.clone(),
            samples: RingFollower::new(self.pa, self.size),
            room: MOST_SAMPLES_IN_ALL,
            events: events::Follower::new(self.pa, self.size, self.vcpus.len()),
        }
    }
}

impl Recorder {
    /// Begins a trace in `directory`.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(sources: &Sources, directory: &Path) -> Result<Self> {
        let path = directory.join(file::FILE);
        let file = File::create(&path)
            .map_err(|error| miette!("cannot write {}: {error}", path.display()))?;
        let ring = |&header: &u64| Ring::new(header, sources.size);
        Ok(Self {
            subject: sources.subject.clone(),
            rings: sources.rings.iter().map(ring).collect(),
            reports: sources.reports.iter().map(Report::follow).collect(),
            latest: Latest::of(sources.rings.len()),
            file: BufWriter::new(file),
            has_begun: false,
        })
    }

    /// Writes down what is new; `seen`: what the status area says, which is there before any
    /// record is.
    ///
    /// # Errors
    /// When memory cannot be read, or the file not written.
    pub fn poll(&mut self, memory: &Memory, seen: Option<&Snapshot>) -> Result<()> {
        let Some(seen) = seen else { return Ok(()) };
        if !self.has_begun {
            (self.subject.counter_hz, self.subject.boot) = (seen.counter_hz, seen.boot);
            file::begin(&mut self.file, &self.subject).map_err(unwritten)?;
            self.has_begun = true;
        }
        for (pcpu, ring) in self.rings.iter_mut().enumerate() {
            let news = ring.poll(memory)?;
            self.latest.take(pcpu, &news.records);
            let block = Block::records(pcpu, news.lost, &news.records);
            block.write(&mut self.file).map_err(unwritten)?;
        }
        for report in &mut self.reports {
            report.poll(memory, &mut self.file, &mut self.latest)?;
        }
        Ok(())
    }

    /// Returns the latest turns of each pCPU.
    #[must_use]
    pub fn latest(&self) -> &Latest {
        &self.latest
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<()> {
        self.file.flush().map_err(unwritten)
    }
}

impl Followed {
    fn poll(&mut self, memory: &Memory, file: &mut impl Write, latest: &mut Latest) -> Result<()> {
        let (mut samples, lost) = (Vec::new(), self.samples.lost);
        self.samples.poll(memory, &mut samples)?;
        let left_out = samples.len().saturating_sub(MOST_SAMPLES.min(self.room));
        self.room -= samples.len() - left_out;
        let lost = (self.samples.lost - lost).saturating_add(left_out as u64);
        let block = Block::samples(self.of.vm, lost, &samples[left_out..]);
        block.write(file).map_err(unwritten)?;
        for news in self.events.poll(memory)? {
            let vcpu = self.of.vcpus.start + news.vcpu;
            latest.hear(vcpu, &news.events);
            Block::events(vcpu, news.lost, &news.events).write(file).map_err(unwritten)?;
        }
        Ok(())
    }
}

/// How many samples of a guest are kept of one look: a thousand times what a guest reports that
/// measures.
const MOST_SAMPLES: usize = 4_096;
/// How many are kept of a run, the first: no more than a guest that floods its report area may fill
/// disk and memory with. The rest counts as lost.
const MOST_SAMPLES_IN_ALL: usize = 1 << 20;

fn unwritten(error: io::Error) -> miette::Report {
    miette!(help = "is there room?", "cannot write the trace: {error}")
}
