//! The rings of all pCPUs, and what guests report meanwhile, into a file.

use super::file::{self, Block};
use super::ring::Ring;
use super::subject::Subject;
use crate::bundle::Bundle;
use crate::machine::Memory;
use crate::observe::{RingFollower, Snapshot};
use miette::{Result, miette};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Where there is something to record, and what that is.
#[derive(Clone, Debug)]
pub struct Sources {
    subject: Subject,
    /// Addresses of the headers of the rings, by pCPU.
    rings: Vec<u64>,
    size: u64,
    /// Report areas, by VM.
    reports: Vec<(usize, u64, u64)>,
}

/// Writes a trace while its machine runs.
#[derive(Debug)]
pub struct Recorder {
    subject: Subject,
    rings: Vec<Ring>,
    reports: Vec<(usize, RingFollower)>,
    file: BufWriter<File>,
    has_begun: bool,
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
            reports: reports.map(|(vm, table)| (vm, table.report_pa, table.report_size)).collect(),
        })
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
        let report = |&(vm, pa, size): &(usize, u64, u64)| (vm, RingFollower::new(pa, size));
        Ok(Self {
            subject: sources.subject.clone(),
            rings: sources.rings.iter().map(ring).collect(),
            reports: sources.reports.iter().map(report).collect(),
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
            let block = Block::records(pcpu, news.lost, &news.records);
            block.write(&mut self.file).map_err(unwritten)?;
        }
        for (vm, report) in &mut self.reports {
            let (mut samples, lost) = (Vec::new(), report.lost);
            report.poll(memory, &mut samples)?;
            let left_out = samples.len().saturating_sub(MOST_SAMPLES);
            let lost = (report.lost - lost).saturating_add(left_out as u64);
            let block = Block::samples(*vm, lost, &samples[left_out..]);
            block.write(&mut self.file).map_err(unwritten)?;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<()> {
        self.file.flush().map_err(unwritten)
    }
}

/// How many samples of a guest are kept of one look: a thousand times what a guest reports that
/// measures, and no more than a guest that floods its report area may fill the disk with.
const MOST_SAMPLES: usize = 4_096;

fn unwritten(error: io::Error) -> miette::Report {
    miette!(help = "is there room?", "cannot write the trace: {error}")
}
