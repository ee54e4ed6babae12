//! `trace.bin`: a magic word, the [`Subject`] as JSON with its length before it, then blocks.

use super::subject::Subject;
use abi::report::Sample;
use abi::report::events::Event;
use abi::trace::Record;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::io::{self, Write};
use std::path::Path;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Name of the file in a directory of results.
pub const FILE: &str = "trace.bin";
/// The first bytes, with a version.
const MAGIC: [u8; 8] = *b"CASTRF\x01\n";

/// What a block is of: records of a pCPU, samples of a VM, or events of a vCPU.
const RECORDS: u32 = 0;
const SAMPLES: u32 = 1;
const EVENTS: u32 = 2;

/// Stands before `count` records, samples or events.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
struct Head {
    tag: u32,
    index: u32,
    count: u64,
    lost: u64,
}

const _: () = assert!(size_of::<Record>() == 16 && size_of::<Sample>() == 16);
const _: () = assert!(size_of::<Event>() == 64);

/// A block that is to be written.
pub(super) struct Block<'a> {
    tag: u32,
    index: usize,
    count: usize,
    /// How many were lost before these.
    lost: u64,
    content: &'a [u8],
}

/// A trace that was read.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// What was traced.
    pub subject: Subject,
    /// The records of each pCPU, by time.
    pub records: Vec<Vec<Record>>,
    /// How many records of each pCPU were overwritten before they were read.
    pub lost: Vec<u64>,
    /// What guests reported.
    pub samples: Vec<Samples>,
    /// What guests recorded of themselves, by vCPU; of those that recorded anything.
    pub events: Vec<Events>,
}

/// What one guest reported.
#[derive(Clone, Debug)]
pub struct Samples {
    /// Index of its VM.
    pub vm: usize,
    /// Activations of its measured task.
    pub samples: Vec<Sample>,
}

/// What a guest recorded on one vCPU.
#[derive(Clone, Debug, Default)]
pub struct Events {
    /// Index of the vCPU in the system.
    pub vcpu: usize,
    /// The events, as they were written.
    pub events: Vec<Event>,
    /// Before which of them others were lost, in order.
    pub gaps: Vec<usize>,
    /// How many were lost.
    pub lost: u64,
}

/// Begins a file.
pub(super) fn begin(file: &mut impl Write, subject: &Subject) -> io::Result<()> {
    let subject = serde_json::to_vec(subject)?;
    file.write_all(&MAGIC)?;
    file.write_all(&(subject.len() as u64).to_le_bytes())?;
    file.write_all(&subject)
}

impl<'a> Block<'a> {
    pub fn records(pcpu: usize, lost: u64, records: &'a [Record]) -> Self {
        let content = records.as_bytes();
        Self { tag: RECORDS, index: pcpu, count: records.len(), lost, content }
    }

    pub fn samples(vm: usize, lost: u64, samples: &'a [Sample]) -> Self {
        let content = samples.as_bytes();
        Self { tag: SAMPLES, index: vm, count: samples.len(), lost, content }
    }

    pub fn events(vcpu: usize, lost: u64, events: &'a [Event]) -> Self {
        Self { tag: EVENTS, index: vcpu, count: events.len(), lost, content: events.as_bytes() }
    }

    /// Writes it, if there is something in it.
    pub fn write(&self, file: &mut impl Write) -> io::Result<()> {
        if self.count == 0 && self.lost == 0 {
            return Ok(());
        }
        let (index, count) = (self.index as u32, self.count as u64);
        file.write_all(Head { tag: self.tag, index, count, lost: self.lost }.as_bytes())?;
        file.write_all(self.content)
    }
}

impl Trace {
    /// Reads the trace that a run has left in `directory`.
    ///
    /// # Errors
    /// When there is none, or it is not whole.
    pub fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(FILE);
        if !path.is_file() {
            return Err(miette!(
                help = "a run leaves one if its description has `trace = \"1M\"` under \
                        `[hypervisor]`",
                "there is no trace in {}: no {FILE}",
                directory.display()
            ));
        }
        let bytes = std::fs::read(&path).into_diagnostic();
        let bytes = bytes.wrap_err_with(|| format!("cannot read {}", path.display()))?;
        Self::parse(&bytes).ok_or_else(|| {
            miette!(
                help = "was the run ended from outside, or made by another version of cassata?",
                "{} is no whole trace",
                path.display()
            )
        })
    }

    /// Reads the contents of a file; none if that is not whole.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (length, rest) = u64::read_from_prefix(rest).ok()?;
        let length = usize::try_from(length).ok().filter(|&length| length <= rest.len())?;
        let (subject, mut rest) = rest.split_at(length);
        let subject: Subject = serde_json::from_slice(subject).ok()?;
        if subject.pcpus > abi::MAX_PCPUS {
            return None;
        }
        let mut records: Vec<Vec<Record>> = vec![Vec::new(); subject.pcpus];
        let mut lost = vec![0; subject.pcpus];
        let mut samples: Vec<Samples> = Vec::new();
        let mut events: Vec<Events> = Vec::new();
        while !rest.is_empty() {
            let (head, behind) = Head::read_from_prefix(rest).ok()?;
            let index = usize::try_from(head.index).ok()?;
            let each = if head.tag == EVENTS { size_of::<Event>() } else { size_of::<Record>() };
            let size = usize::try_from(head.count).ok()?.checked_mul(each)?;
            let content = behind.get(..size)?;
            rest = &behind[size..];
            match head.tag {
                RECORDS => {
                    let lost = lost.get_mut(index)?;
                    *lost = u64::saturating_add(*lost, head.lost);
                    extend(records.get_mut(index)?, content);
                }
                SAMPLES => {
                    let known = samples.iter().position(|of| of.vm == index);
                    let known = known.unwrap_or_else(|| {
                        samples.push(Samples { vm: index, samples: Vec::new() });
                        samples.len() - 1
                    });
                    extend(&mut samples[known].samples, content);
                }
                EVENTS if index < subject.vcpus.len() => {
                    let known = events.iter().position(|of| of.vcpu == index);
                    let known = known.unwrap_or_else(|| {
                        events.push(Events { vcpu: index, ..Events::default() });
                        events.len() - 1
                    });
                    events[known].take(head.lost, content);
                }
                _ => return None,
            }
        }
        // Stable: what happened at one instant stays in the order in which it was recorded.
        records.iter_mut().for_each(|records| records.sort_by_key(|record| record.time));
        Some(Self { subject, records, lost, samples, events })
    }
}

impl Events {
    fn take(&mut self, lost: u64, content: &[u8]) {
        if lost > 0 {
            self.gaps.push(self.events.len());
        }
        self.lost = self.lost.saturating_add(lost);
        extend(&mut self.events, content);
    }
}

fn extend<T: FromBytes + IntoBytes + FromZeros + Clone>(to: &mut Vec<T>, content: &[u8]) {
    let begin = to.len();
    to.resize(begin + content.len() / size_of::<T>(), T::new_zeroed());
    to[begin..].as_mut_bytes().copy_from_slice(content);
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::trace::Kind;

    fn subject() -> Subject {
        let vcpus = vec![crate::trace::subject::tests::vcpu(0, 0)];
        Subject { pcpus: 2, counter_hz: 1_000, vcpus, ..Subject::default() }
    }

    fn written() -> Vec<u8> {
        let mut bytes = Vec::new();
        begin(&mut bytes, &subject()).unwrap();
        let record = |time| Record::new(time, Kind::Wake, 1, 2);
        let late = [record(9), record(5)];
        let sample = Sample { raised: 3, response: 4, dispatch: 5 };
        Block::records(1, 7, &late).write(&mut bytes).unwrap();
        Block::samples(3, 0, &[sample]).write(&mut bytes).unwrap();
        Block::records(0, 0, &[]).write(&mut bytes).unwrap();
        Block::records(1, 0, &[record(6)]).write(&mut bytes).unwrap();
        let event = |time| Event { time, ..Event::new_zeroed() };
        Block::events(0, 0, &[event(1), event(2)]).write(&mut bytes).unwrap();
        Block::events(0, 9, &[event(7)]).write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_was_written_is_read_by_time() {
        let trace = Trace::parse(&written()).unwrap();
        assert_eq!((trace.subject, trace.lost), (subject(), vec![0, 7]));
        let times: Vec<_> = trace.records[1].iter().map(|record| record.time).collect();
        assert_eq!((trace.records[0].len(), times), (0, vec![5, 6, 9]));
        assert_eq!((trace.samples[0].vm, trace.samples[0].samples[0].dispatch), (3, 5));
        let Events { vcpu, events, gaps, lost } = &trace.events[0];
        let times: Vec<_> = events.iter().map(|event| event.time).collect();
        assert_eq!((*vcpu, times, gaps.as_slice(), *lost), (0, vec![1, 2, 7], &[2][..], 9));
    }

    #[test]
    fn events_of_a_vcpu_that_there_is_not_are_refused() {
        let mut bytes = written();
        Block::events(1, 0, &[Event::new_zeroed()]).write(&mut bytes).unwrap();
        assert!(Trace::parse(&bytes).is_none());
    }

    #[test]
    fn more_cores_than_there_can_be_are_refused_before_there_is_room_for_them() {
        let mut bytes = Vec::new();
        begin(&mut bytes, &Subject { pcpus: usize::MAX, ..subject() }).unwrap();
        assert!(Trace::parse(&bytes).is_none());
    }

    #[test]
    fn any_number_may_be_lost() {
        let mut bytes = written();
        Block::records(1, u64::MAX, &[]).write(&mut bytes).unwrap();
        let trace = Trace::parse(&bytes).unwrap();
        assert_eq!(trace.lost, [0, u64::MAX]);
        let guests = crate::trace::Guests::default();
        assert!(trace.loss(&guests).unwrap().starts_with(&u64::MAX.to_string()));
    }

    #[test]
    fn a_file_that_is_cut_off_or_of_another_kind_is_refused() {
        let bytes = written();
        for end in [0, 7, 12, 30, bytes.len() - 1] {
            assert!(Trace::parse(&bytes[..end]).is_none(), "{end}");
        }
        assert!(Trace::parse(&[b"x", &bytes[1..]].concat()).is_none());
    }

    #[test]
    fn a_run_without_a_trace_is_told_how_to_get_one() {
        let directory = tempfile::tempdir().unwrap();
        let error = Trace::read(directory.path()).unwrap_err();
        assert!(error.to_string().contains("there is no trace in"), "{error}");
    }
}
