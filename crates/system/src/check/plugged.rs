//! Disks and a network card, plugged into slots of the board.

use crate::board::{Board, Device, SlotKind};
use crate::code::Code;
use crate::draft::{At, Draft, DraftDisk, flag};
use crate::input_file;
use crate::inputs::is_same_file;
use crate::model::{Disk, Plugged, Slot};
use crate::problem::Problems;
use std::path::Path;

/// Bytes of a block: a disk is a whole number of these.
const BLOCK: u64 = 512;

/// Returns what is plugged in, as far as it can be; files lie relative to `directory`.
pub(super) fn check(
    draft: &Draft,
    board: &'static Board,
    directory: &Path,
    problems: &mut Problems,
) -> Plugged {
    let (disks, network) = (&draft.board.disks, draft.board.network.as_ref());
    let devices: Vec<_> =
        disks.iter().filter_map(|disk| disk.device.as_ref()).chain(network).collect();
    for (n, at) in devices.iter().enumerate() {
        twice(at, &devices[..n], board, problems);
    }
    for (n, disk) in disks.iter().enumerate() {
        shared_file(disk, &disks[..n], directory, problems);
    }
    let disks = disks.iter().filter_map(|disk| self::disk(disk, draft, board, directory, problems));
    let disks = disks.collect();
    let network = network.and_then(|at| slot(at, &NETWORK, draft, board, problems));
    Plugged { disks, network }
}

fn disk(
    disk: &DraftDisk,
    draft: &Draft,
    board: &'static Board,
    directory: &Path,
    problems: &mut Problems,
) -> Option<Disk> {
    let slot = disk.device.as_ref().and_then(|at| slot(at, &DISK, draft, board, problems));
    let file = disk.file.as_ref()?;
    let path = directory.join(file.get_ref());
    let size = size(&path, file, problems)?;
    if slot.is_some_and(|slot| slot.kind.is_card()) && !size.is_power_of_two() {
        let message = format!("{} has {size} bytes, and a card a power of two", path.display());
        problems
            .add(Code::Disk, file.span(), message)
            .hint("enlarge the file, such as by `truncate --size 1G`");
        return None;
    }
    input(disk, draft, directory, problems);
    Some(Disk { slot: slot?, file: path, size, keep: flag(&disk.keep, true) })
}

/// Returns how large the disk is that the file `path` has, if it has one.
fn size(path: &Path, at: &At<String>, problems: &mut Problems) -> Option<u64> {
    let path_shown = path.display();
    let length =
        input_file::open(path).map_err(|unread| (unread.why, unread.hint)).and_then(|file| {
            file.metadata().map(|file| file.len()).map_err(|error| (error.to_string(), None))
        });
    match length {
        Err((why, hint)) => {
            problems
                .add(Code::Disk, at.span(), format!("cannot read {path_shown}: {why}"))
                .hint(hint.unwrap_or("paths are relative to the description's own directory"));
            None
        }
        Ok(length) if length == 0 || !length.is_multiple_of(BLOCK) => {
            let message = format!("{path_shown} has {length} bytes: no whole number of blocks");
            problems
                .add(Code::Disk, at.span(), message)
                .hint("name a file with what is on the disk, such as `truncate --size 1G` makes");
            None
        }
        Ok(length) => Some(length),
    }
}

/// What can be plugged in: which slots take it, and what the others take.
struct Pluggable {
    is_taken_by: fn(SlotKind) -> bool,
    others_take: &'static str,
}

const DISK: Pluggable =
    Pluggable { is_taken_by: SlotKind::takes_disk, others_take: "a network and no disk" };
const NETWORK: Pluggable =
    Pluggable { is_taken_by: SlotKind::takes_network, others_take: "a card and no network" };

/// Returns the slot that is the device at `at`, if it takes such a thing, and warns if no VM has it.
fn slot(
    at: &At<String>,
    thing: &Pluggable,
    draft: &Draft,
    board: &'static Board,
    problems: &mut Problems,
) -> Option<Slot> {
    let name = at.get_ref();
    let Some(device) = board.device(name) else {
        super::devices::unknown(at, board, problems);
        return None;
    };
    let Some(bus) = &device.slot else {
        let slots = board.devices.iter().find(|device| device.slot.is_some());
        problems
            .add(Code::NoSlot, at.span(), format!("nothing can be plugged into device `{name}`"))
            .hint(slots.map_or("the board has no slots".into(), |slot| {
                format!("name a slot, such as `{}`", slot.name)
            }));
        return None;
    };
    let mut given = draft.vms.iter().flat_map(|vm| &vm.devices);
    if !given.any(|given| given.get_ref() == name) {
        problems
            .add(Code::SlotUnused, at.span(), format!("no VM has device `{name}`"))
            .hint(format!("give it to one: `devices = [\"{name}\"]`"));
    }
    let kind = device.slot_kind()?;
    if !(thing.is_taken_by)(kind) {
        let takes = |device: &&Device| device.slot_kind().is_some_and(thing.is_taken_by);
        let other = board.devices.iter().find(takes);
        problems
            .add(Code::NoSlot, at.span(), format!("device `{name}` takes {}", thing.others_take))
            .hint(other.map_or("leave it out: no device of the board takes one".into(), |other| {
                format!("name a device that takes one, such as `{}`", other.name)
            }));
        return None;
    }
    Some(Slot { bus, kind })
}

/// QEMU locks the file of each disk on which something is kept.
fn shared_file(disk: &DraftDisk, before: &[DraftDisk], directory: &Path, problems: &mut Problems) {
    let Some(at) = &disk.file else { return };
    let keeps = |disk: &DraftDisk| flag(&disk.keep, true);
    let path = |at: &At<String>| directory.join(at.get_ref());
    let others = before.iter().filter(|other| keeps(disk) || keeps(other));
    let same = |other: &&At<String>| is_same_file(&path(other), &path(at));
    if let Some(first) = others.filter_map(|other| other.file.as_ref()).find(same) {
        problems
            .add(Code::Disk, at.span(), format!("two disks have the file {}", path(at).display()))
            .see(first.span(), "the first")
            .hint("name another file, or say `keep = false` of both");
    }
}

/// What a guest writes to a disk stays: it must be in no file that the system is made of.
fn input(disk: &DraftDisk, draft: &Draft, directory: &Path, problems: &mut Problems) {
    let Some(at) = disk.file.as_ref().filter(|_| flag(&disk.keep, true)) else { return };
    let path = directory.join(at.get_ref());
    let inputs = draft.vms.iter().flat_map(|vm| {
        let files = [("kernel", &vm.kernel), ("initramfs", &vm.initramfs)];
        files.into_iter().filter_map(move |(what, file)| Some((vm, what, file.as_ref()?)))
    });
    let same = |file: &At<String>| is_same_file(&directory.join(file.get_ref()), &path);
    for (vm, what, file) in inputs.filter(|(_, _, file)| same(file)).take(1) {
        let message = format!("the disk {} is the {what} of {}", path.display(), vm.title());
        problems
            .add(Code::Disk, at.span(), message)
            .see(file.span(), "here")
            .hint("what is written to a disk stays: name a copy, or say `keep = false`");
    }
}

/// A bus has room for several.
fn twice(at: &At<String>, before: &[&At<String>], board: &Board, problems: &mut Problems) {
    if board.device(at.get_ref()).is_some_and(|device| device.window.is_some()) {
        return;
    }
    if let Some(first) = before.iter().find(|other| other.get_ref() == at.get_ref()) {
        let message = format!("two things are plugged into device `{}`", at.get_ref());
        problems
            .add(Code::DeviceTwice, at.span(), message)
            .see(first.span(), "the first")
            .hint("a slot has room for one: name another slot");
    }
}
