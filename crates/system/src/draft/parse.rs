//! From TOML to a [`Draft`].

use super::boost::boost;
use super::link::{LINKS, link};
use super::reader::Reader;
use super::server::server;
use super::shared::{SHARED_MEMORY, SHARES, share, shared_memory};
use super::tasks::{handler, task, time};
use super::values::{Priority, Read, Wanted, bytes, expect, limit};
use super::virtio::{VIRTIO, virtio};
use super::{At, Draft, DraftBoard, DraftDisk, DraftInterrupt, DraftMemory, DraftVcpu, DraftVm};
use crate::board::Trigger;
use crate::code::Code;
use crate::problem::{Problems, Span};
use sched::policy::MigrationPolicy;
use toml::de::{DeTable, DeValue};

const VMS: Wanted = Wanted("an array of VMs", "each under a line `[[vm]]`");
const VCPUS: Wanted = Wanted("an array of vCPUs", "in brackets: `[{ pcpu = 0, priority = 1 }]`");
const TASKS: Wanted = Wanted("an array of tasks", "each under a line `[[vm.vcpus.tasks]]`");
const HANDLERS: Wanted =
    Wanted("an array of handlers", "each under a line `[[vm.vcpus.handlers]]`");
const DEVICES: Wanted = Wanted("an array of device names", "in brackets: `[\"rtc\"]`");
const DISKS: Wanted = Wanted(
    "an array of disks",
    "in brackets: `[{ device = \"virtio-mmio-31\", file = \"root.img\" }]`",
);
const POLICIES: Wanted = Wanted("an array of policies", "in brackets: `[\"none\"]`");
const PCPUS: Wanted = Wanted("an array of pCPUs", "in brackets: `[1, 2]`");
const INTERRUPTS: Wanted = Wanted("an array of interrupts", "in brackets: `[40, 41]`");
const INTERRUPT: Wanted = Wanted("an interrupt", "a number, or `{ physical = 40, virtual = 41 }`");

/// Reads a description as far as it can be read, and notes what is wrong.
pub(crate) fn parse(text: &str, problems: &mut Problems) -> Draft {
    let (root, errors) = DeTable::parse_recoverable(text);
    let syntax_ok = errors.is_empty();
    let mut errors: Vec<_> = errors
        .iter()
        .map(|error| (visible(error.span().unwrap_or(0..0), text), error.message()))
        .collect();
    errors.sort_by_key(|(span, _)| span.start);
    let mut last_line = None;
    for (span, message) in errors {
        // The parser goes on, but the rest of the line rarely means anything.
        let line = text[..span.start].matches('\n').count();
        if last_line.replace(line) != Some(line) {
            let hint = "TOML: `key = value`, strings in quotes, tables under `[name]`";
            problems.add(Code::Syntax, span, message).hint(hint);
        }
    }
    // What could not be read would be reported again as missing or unknown.
    if syntax_ok { draft(root.get_ref(), first_line(text), problems) } else { Draft::default() }
}

/// A span that shows something: at least one character, or the last one.
fn visible(span: Span, text: &str) -> Span {
    if !span.is_empty() {
        return span;
    }
    match text[span.start..].chars().next() {
        Some(next) => span.start..span.start + next.len_utf8(),
        None => text.char_indices().next_back().map_or(0, |(i, _)| i)..text.len(),
    }
}

fn first_line(text: &str) -> Span {
    0..text.find('\n').unwrap_or(text.len())
}

fn draft(root: &DeTable<'_>, span: Span, problems: &mut Problems) -> Draft {
    let mut reader = Reader::new(root, span, "a system description");
    let mut draft = Draft::default();
    if reader.require("board", "{ kind = \"qemu-virt\", pcpus = 2, memory = \"1G\" }", problems)
        && let Some(board) = reader.get("board")
    {
        draft.board = self::board(board, problems).unwrap_or_default();
    }
    if let Some(value) = reader.get("hypervisor") {
        hypervisor(value, &mut draft, problems);
    }
    draft.shared_memory =
        list(reader.get("shared_memory"), &SHARED_MEMORY, problems, shared_memory);
    draft.links = list(reader.get("link"), &LINKS, problems, link);
    draft.virtio = list(reader.get("virtio"), &VIRTIO, problems, virtio);
    let vms = reader.get("vm");
    draft.vms = list(vms, &VMS, problems, vm);
    if vms.is_none()
        || vms.is_some_and(|vms| vms.get_ref().as_array().is_some_and(|a| a.is_empty()))
    {
        let span = vms.map_or(reader.span(), At::span);
        problems.add(Code::NoVm, span, "the system has no VM").hint("describe one under `[[vm]]`");
    }
    reader.finish(problems);
    draft
}

/// Reads each element of an array that may be missing.
pub(super) fn list<'i, T>(
    value: Option<&At<DeValue<'i>>>,
    wanted: &Wanted,
    problems: &mut Problems,
    mut read: impl FnMut(&At<DeValue<'i>>, &mut Problems) -> Option<T>,
) -> Vec<T> {
    let array = value.and_then(|value| expect(value, wanted, problems, DeValue::as_array));
    let Some(array) = array else { return Vec::new() };
    array.iter().filter_map(|element| read(element, problems)).collect()
}

/// The priority without its type.
pub(super) fn priority(at: Option<At<Priority>>) -> Option<At<u64>> {
    at.map(|at| At::new(at.span(), at.get_ref().0))
}

fn board(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<DraftBoard> {
    let mut reader = Reader::open(value, "`board`", problems)?;
    let board = DraftBoard {
        kind: reader.required("kind", "\"qemu-virt\"", problems),
        pcpus: reader.required("pcpus", "2", problems),
        memory: bytes(reader.required("memory", "\"1G\"", problems)),
        disks: list(reader.get("disks"), &DISKS, problems, disk),
        network: reader.optional("network", problems),
        calibration: reader.optional("calibration", problems),
    };
    reader.finish(problems);
    Some(board)
}

fn disk(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<DraftDisk> {
    let mut reader = Reader::open(value, "a disk", problems)?;
    let disk = DraftDisk {
        device: reader.required("device", "\"virtio-mmio-31\"", problems),
        file: reader.required("file", "\"root.img\"", problems),
        keep: reader.optional("keep", problems),
    };
    reader.finish(problems);
    Some(disk)
}

fn hypervisor(value: &At<DeValue<'_>>, draft: &mut Draft, problems: &mut Problems) {
    let Some(mut reader) = Reader::open(value, "`hypervisor`", problems) else { return };
    draft.priority_separation = reader.optional("priority_separation", problems);
    draft.off_when_done = reader.optional("off_when_done", problems);
    draft.reset_on_fault = reader.optional("reset_on_fault", problems);
    draft.watchdog = time(reader.optional("watchdog", problems));
    draft.consolidation_window = time(reader.optional("consolidation_window", problems));
    draft.protocol = reader.optional("protocol", problems);
    draft.trace = bytes(reader.optional("trace", problems));
    draft.sibling_grace = time(reader.optional("sibling_grace", problems));
    draft.directed_yield = reader.optional("directed_yield", problems);
    reader.finish(problems);
}

fn vm(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<DraftVm> {
    let mut reader = Reader::open(value, "a VM", problems)?;
    let r = &mut reader;
    let vm = DraftVm {
        span: value.span(),
        name: r.required("name", "\"linux\"", problems),
        kernel: r.required("kernel", "\"Image\"", problems),
        format: r.optional("format", problems),
        initramfs: r.optional("initramfs", problems),
        cmdline: r.optional("cmdline", problems),
        memory: memory(r, problems),
        vcpus: vcpus(r, problems),
        console: r.optional("console", problems),
        realtime: r.optional("realtime", problems),
        report: bytes(r.optional("report", problems)),
        shared_memory: list(r.get("shared_memory"), &SHARES, problems, share),
        restart_on_fault: r.optional("restart_on_fault", problems),
        seed: r.optional("seed", problems),
        migration_policy: r.optional("migration_policy", problems),
        may_switch_to: list(r.get("may_switch_to"), &POLICIES, problems, policy),
        delay_limit: limit(r.optional("delay_limit", problems)),
        preempt_count_at: r.optional("preempt_count_at", problems),
        yields: r.optional("yield", problems),
        timer_advance: time(r.optional("timer_advance", problems)),
        adapt_timer_advance: r.optional("adapt_timer_advance", problems),
        consolidate: r.optional("consolidate", problems),
        devices: list(r.get("devices"), &DEVICES, problems, device),
        interrupts: list(r.get("interrupts"), &INTERRUPTS, problems, interrupt),
        interrupts_to: r.optional("interrupts_to", problems),
    };
    reader.finish(problems);
    Some(vm)
}

fn memory(vm: &mut Reader<'_, '_>, problems: &mut Problems) -> DraftMemory {
    let there = vm.require("memory", "{ size = \"64M\" }", problems);
    let value = if there { vm.get("memory") } else { None };
    let Some(mut reader) = value.and_then(|value| Reader::open(value, "`memory`", problems)) else {
        return DraftMemory::default();
    };
    let memory = DraftMemory {
        size: bytes(reader.required("size", "\"64M\"", problems)),
        address: reader.optional("address", problems),
        identity: reader.optional("identity", problems),
        clear: reader.optional("clear", problems),
        device_tree: reader.optional("device_tree", problems),
    };
    reader.finish(problems);
    memory
}

fn vcpus(vm: &mut Reader<'_, '_>, problems: &mut Problems) -> Vec<DraftVcpu> {
    if !vm.require("vcpus", "[{ pcpu = 0, priority = 1 }]", problems) {
        return Vec::new();
    }
    let value = vm.get("vcpus");
    let is_empty =
        |value: &At<DeValue<'_>>| value.get_ref().as_array().is_some_and(|a| a.is_empty());
    if let Some(value) = value.filter(|value| is_empty(value)) {
        problems
            .add(Code::NoVcpu, value.span(), "the VM has no vCPU")
            .hint("give it one: `vcpus = [{ pcpu = 0, priority = 1 }]`");
    }
    list(value, &VCPUS, problems, vcpu)
}

fn vcpu(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<DraftVcpu> {
    let mut reader = Reader::open(value, "a vCPU", problems)?;
    let pcpu = reader.required("pcpu", "0", problems);
    let own = priority(reader.required("priority", "1", problems));
    let marked = priority(reader.optional("rt_priority", problems));
    // What is right while it is marked is looked at, as its guest may mark it at any time.
    let (priority, unmarked) = if marked.is_some() { (marked, own) } else { (own, None) };
    let vcpu = DraftVcpu {
        span: value.span(),
        pcpu,
        priority,
        unmarked,
        quantum: time(reader.optional("quantum", problems)),
        may_run_on: list(reader.get("may_run_on"), &PCPUS, problems, place),
        boost: reader.get("boost").and_then(|value| boost(value, problems)),
        server: reader.get("server").and_then(|value| server(value, problems)),
        tasks: list(reader.get("tasks"), &TASKS, problems, task),
        handlers: list(reader.get("handlers"), &HANDLERS, problems, handler),
    };
    reader.finish(problems);
    Some(vcpu)
}

/// A pCPU of `may_run_on`.
fn place(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<At<u64>> {
    Some(At::new(value.span(), u64::read(value, problems)?))
}

/// A policy of `may_switch_to`.
fn policy(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<At<MigrationPolicy>> {
    Some(At::new(value.span(), MigrationPolicy::read(value, problems)?))
}

fn device(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<At<String>> {
    Some(At::new(value.span(), String::read(value, problems)?))
}

/// `40`, or `{ physical = 40, virtual = 41 }`.
fn interrupt(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<DraftInterrupt> {
    if value.get_ref().is_integer() {
        let number = At::new(value.span(), u64::read(value, problems)?);
        let (physical, virtual_) = (number.clone(), number);
        return Some(DraftInterrupt { physical, virtual_, trigger: Trigger::Level });
    }
    if !value.get_ref().is_table() {
        expect(value, &INTERRUPT, problems, DeValue::as_table)?;
    }
    let mut reader = Reader::open(value, "an interrupt", problems)?;
    let physical: Option<At<u64>> = reader.required("physical", "40", problems);
    let virtual_ = match reader.get("virtual") {
        Some(_) => reader.optional("virtual", problems),
        None => physical.clone(),
    };
    let trigger = match reader.get("trigger") {
        Some(_) => reader.optional("trigger", problems).map(At::into_inner),
        None => Some(Trigger::Level),
    };
    reader.finish(problems);
    Some(DraftInterrupt { physical: physical?, virtual_: virtual_?, trigger: trigger? })
}
