//! What the device tree says of tasks: node `tasks`, see `docs/src/guests.md`.

use crate::suite::{Check, text};
use crate::{ensure, platform};
use arrayvec::ArrayVec;
use dtoolkit::{Node, Property};

/// Most tasks of a VM.
pub const MAX_TASKS: usize = 32;
/// Most segments of a task.
pub const MAX_SEGMENTS: usize = 8;

/// A task. Times are in nanoseconds.
pub struct Task {
    pub name: &'static str,
    pub vcpu: usize,
    pub priority: u32,
    pub period: u64,
    pub offset: u64,
    pub jitter: u64,
    pub segments: ArrayVec<Segment, MAX_SEGMENTS>,
}

/// A stretch of execution.
#[derive(Clone, Copy)]
pub struct Segment {
    pub wcet: u64,
    pub holds: Holds,
}

/// What a task holds meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    Nothing,
    Global(&'static str),
    Local(&'static str),
}

/// Returns all tasks of the VM.
pub fn tasks() -> Check<ArrayVec<Task, MAX_TASKS>> {
    let mut tasks = ArrayVec::new();
    let Some(node) = platform::get().tree.find_node("/tasks") else { return Ok(tasks) };
    for child in node.children() {
        let what = |why: &str| text(format_args!("device tree, {}: {why}", child.name()));
        let value = |name: &str| -> Check<&'static [u8]> {
            let value = child.property(name).and_then(|property| property.value_as().ok());
            value.ok_or_else(|| what(name))
        };
        let number = |name: &str| value(name).map(integer);
        let name = value("label").map(strings)?.next().ok_or_else(|| what("label"))?;
        let mut segments = ArrayVec::new();
        let wcets = value("wcet-ns")?.chunks_exact(8).map(integer);
        for (wcet, holds) in wcets.zip(value("holds").map(strings)?) {
            let holds = match holds.split_once(' ') {
                Some(("gcs", resource)) => Holds::Global(resource),
                Some(("lcs", resource)) => Holds::Local(resource),
                _ => Holds::Nothing,
            };
            segments.try_push(Segment { wcet, holds }).map_err(|_| what("too many segments"))?;
        }
        ensure!(!segments.is_empty(), "task {name} has no segments");
        let task = Task {
            name,
            vcpu: number("vcpu")? as usize,
            priority: number("priority")? as u32,
            period: number("period-ns")?,
            offset: number("offset-ns")?,
            jitter: number("jitter-ns")?,
            segments,
        };
        tasks.try_push(task).map_err(|_| what("too many tasks"))?;
    }
    Ok(tasks)
}

fn integer(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

fn strings(bytes: &'static [u8]) -> impl Iterator<Item = &'static str> {
    bytes.split(|&byte| byte == 0).filter_map(|text| core::str::from_utf8(text).ok())
}
