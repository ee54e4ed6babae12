//! What guests run: tasks and their segments, and handlers of interrupts.

use super::parse::{list, priority};
use super::reader::Reader;
use super::values::{Nanoseconds, Wanted};
use super::{At, DraftHandler, DraftSegment, DraftTask};
use crate::problem::Problems;
use toml::de::DeValue;

const SEGMENTS: Wanted = Wanted("an array of segments", "in brackets: `[{ wcet = \"2ms\" }]`");

/// The time without its type.
pub(super) fn time(at: Option<At<Nanoseconds>>) -> Option<At<u64>> {
    at.map(|at| At::new(at.span(), at.get_ref().0))
}

pub(super) fn task(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<DraftTask> {
    let mut reader = Reader::open(value, "a task", problems)?;
    let r = &mut reader;
    let task = DraftTask {
        span: value.span(),
        name: r.required("name", "\"control\"", problems),
        period: time(r.required("period", "\"10ms\"", problems)),
        priority: priority(r.required("priority", "1", problems)),
        jitter: time(r.optional("jitter", problems)),
        offset: time(r.optional("offset", problems)),
        segments: if r.require("segments", "[{ wcet = \"2ms\" }]", problems) {
            list(r.get("segments"), &SEGMENTS, problems, segment)
        } else {
            Vec::new()
        },
    };
    reader.finish(problems);
    Some(task)
}

fn segment(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<DraftSegment> {
    let mut reader = Reader::open(value, "a segment", problems)?;
    let segment = DraftSegment {
        span: value.span(),
        wcet: time(reader.required("wcet", "\"2ms\"", problems)),
        gcs: reader.optional("gcs", problems),
        lcs: reader.optional("lcs", problems),
    };
    reader.finish(problems);
    Some(segment)
}

pub(super) fn handler(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<DraftHandler> {
    let mut reader = Reader::open(value, "a handler", problems)?;
    let handler = DraftHandler {
        span: value.span(),
        name: reader.required("name", "\"tick\"", problems),
        period: time(reader.required("period", "\"1ms\"", problems)),
        wcet: time(reader.required("wcet", "\"5us\"", problems)),
    };
    reader.finish(problems);
    Some(handler)
}
