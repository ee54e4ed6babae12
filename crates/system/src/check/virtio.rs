//! Virtio devices that one VM, the front, gets from another one, the back.

use super::images::Images;
use super::names::too_many;
use crate::code::Code;
use crate::draft::{At, Draft, DraftVirtio, DraftVm};
use crate::image::KernelKind;
use crate::model::{Back, Front, VirtioKind};
use crate::nearest::did_you_mean;
use crate::problem::Problems;
use crate::size::show;
use abi::MAX_VMS;
use abi::platform::{LINK_INTID, MAX_VIRTIO_DEVICES, VIRTIO_INTID, VIRTIO_MEMORY_MAX_SIZE};

/// Blocks of 2 MiB are mapped, and Linux's smallest bounce buffer has 1 MiB.
const STEP: u64 = 2 << 20;

pub(super) fn check(draft: &Draft, problems: &mut Problems) {
    let all = &draft.virtio;
    too_many("`virtio`", all, MAX_VMS, |one| &one.span, problems);
    for (i, one) in all.iter().enumerate() {
        let names = [&one.front, &one.back].into_iter().flatten();
        names.for_each(|at| known(at, &draft.vms, problems));
        if let (Some(front), Some(back)) = (&one.front, &one.back)
            && front.get_ref() == back.get_ref()
        {
            problems
                .add(Code::Virtio, back.span(), "a VM cannot give virtio devices to itself")
                .hint("name another VM, which has the real ones");
        }
        if let Some(at) = &one.front {
            let before = all[..i].iter().filter_map(|one| one.front.as_ref());
            twice(at, before, problems);
        }
        if let Some(at) = &one.memory {
            memory(at, problems);
        }
        if let Some(devices) = &one.devices {
            self::devices(one, devices, problems);
        }
    }
}

/// Refuses circles of VMs each of which gets its devices from the next, as far as all of them are Linux: its drivers
/// look at their devices as it boots, and each VM waits until the one that gives it has begun its program. What another
/// kernel does, and when, is its own affair. `images` are those of the VMs, in order.
pub(super) fn circles(draft: &Draft, images: &[Option<Images>], problems: &mut Problems) {
    let has_linux = |name: &String| {
        let vm = draft.vms.iter().position(|vm| is(vm.name.as_ref(), name));
        let kernel = vm.and_then(|vm| Some(&images[vm].as_ref()?.kernel));
        kernel.is_some_and(|kernel| matches!(kernel.kind, KernelKind::Image(_)))
    };
    for last in 0..draft.virtio.len() {
        let backs = backs_around(last, &draft.virtio);
        if backs.is_empty() || !backs.iter().all(|back| has_linux(back.get_ref())) {
            continue;
        }
        let names = backs.iter().rev().chain(backs.last());
        let names: Vec<_> = names.map(|back| format!("`{}`", back.get_ref())).collect();
        let message = format!(
            "virtio devices go round in a circle, {}: each VM may wait at boot for the one before, for ever",
            names.join(" to ")
        );
        let problem = problems.add(Code::Virtio, backs[0].span(), message);
        for other in &backs[1..] {
            problem.see(other.span(), format!("`{}` gives devices here", other.get_ref()));
        }
        problem.hint("let one of them get none, or get them from a VM outside of the circle");
    }
}

/// Returns which VM gives the devices of entry `last`, which gives those of that VM, and so on, if that leads back to
/// `last` by other entries that all stand before it; else none.
fn backs_around(last: usize, all: &[DraftVirtio]) -> Vec<&At<String>> {
    let (mut entries, mut backs) = (vec![last], Vec::new());
    while let Some(back) = entries.last().and_then(|&entry| all[entry].back.as_ref()) {
        backs.push(back);
        match all.iter().position(|one| is(one.front.as_ref(), back.get_ref())) {
            // What a VM gives itself is another fault.
            Some(next) if next == last && backs.len() > 1 => return backs,
            Some(next) if next < last && !entries.contains(&next) => entries.push(next),
            _ => break,
        }
    }
    Vec::new()
}

fn known(at: &At<String>, vms: &[DraftVm], problems: &mut Problems) {
    let names = || vms.iter().filter_map(|vm| vm.name.as_ref()).map(|at| at.get_ref().as_str());
    if !names().any(|name| name == at.get_ref()) {
        problems
            .add(Code::Virtio, at.span(), format!("there is no VM `{}`", at.get_ref()))
            .hint(did_you_mean(at.get_ref(), names()));
    }
}

/// Linux has one bounce buffer for all devices, so they have one memory, and one VM reads that.
fn twice<'a>(
    at: &At<String>,
    mut before: impl Iterator<Item = &'a At<String>>,
    problems: &mut Problems,
) {
    if let Some(first) = before.find(|other| other.get_ref() == at.get_ref()) {
        let message = format!("VM `{}` has virtio devices already", at.get_ref());
        problems
            .add(Code::Virtio, at.span(), message)
            .see(first.span(), "here")
            .hint("list all its devices there: they have one memory, and come from one VM");
    }
}

fn memory(at: &At<u64>, problems: &mut Problems) {
    let size = *at.get_ref();
    if !(STEP..=VIRTIO_MEMORY_MAX_SIZE).contains(&size) || !size.is_multiple_of(STEP) {
        let message = format!("virtio devices with {} of memory are impossible", show(size));
        problems.add(Code::Virtio, at.span(), message).hint(format!(
            "a multiple of {}, up to {}",
            show(STEP),
            show(VIRTIO_MEMORY_MAX_SIZE)
        ));
    }
}

fn devices(one: &DraftVirtio, devices: &[At<String>], problems: &mut Problems) {
    for at in devices.iter().filter(|at| VirtioKind::named(at.get_ref()).is_none()) {
        let message = format!("there is no virtio device of the kind `{}`", at.get_ref());
        let names = VirtioKind::ALL.iter().map(|kind| kind.name());
        problems.add(Code::Virtio, at.span(), message).hint(did_you_mean(at.get_ref(), names));
    }
    if devices.is_empty() || devices.len() > MAX_VIRTIO_DEVICES {
        let message = format!("a VM cannot have {} virtio devices", devices.len());
        problems
            .add(Code::Virtio, one.devices_span.clone(), message)
            .hint(format!("1 to {MAX_VIRTIO_DEVICES}, such as `[\"console\", \"block\"]`"));
    }
}

/// Returns true if an interrupt is one of those that virtio takes in a VM that gets or gives devices.
pub(super) fn takes(vm: &DraftVm, all: &[DraftVirtio], intid: u64) -> bool {
    let is_at = |end: &Option<At<String>>| {
        vm.name
            .as_ref()
            .zip(end.as_ref())
            .is_some_and(|(name, end)| name.get_ref() == end.get_ref())
    };
    (u64::from(VIRTIO_INTID)..u64::from(LINK_INTID)).contains(&intid)
        && all.iter().any(|one| is_at(&one.front) || is_at(&one.back))
}

/// Returns what a VM of a system without faults gets, if it gets any.
pub(super) fn front(vm: &DraftVm, system: &Draft) -> Option<Front> {
    let own = vm.name.as_ref()?.get_ref();
    let one = system.virtio.iter().find(|one| is(one.front.as_ref(), own))?;
    let kinds = one.devices.as_ref()?.iter().map(|at| VirtioKind::named(at.get_ref()));
    Some(Front {
        number: index_of(own, system)?,
        back: one.back.as_ref()?.get_ref().clone(),
        size: *one.memory.as_ref()?.get_ref(),
        devices: kinds.collect::<Option<_>>()?,
    })
}

/// Returns what a VM gives others.
pub(super) fn backs(vm: &DraftVm, system: &Draft) -> Option<Vec<Back>> {
    let own = vm.name.as_ref()?.get_ref();
    let given = system.virtio.iter().filter(|one| is(one.back.as_ref(), own));
    let back = |one: &DraftVirtio| {
        let name = one.front.as_ref()?.get_ref();
        let of = system.vms.iter().find(|vm| is(vm.name.as_ref(), name))?;
        Some(Back { name: name.clone(), front: front(of, system)? })
    };
    given.map(back).collect()
}

fn is(at: Option<&At<String>>, name: &str) -> bool {
    at.is_some_and(|at| at.get_ref() == name)
}

fn index_of(name: &str, system: &Draft) -> Option<usize> {
    system.vms.iter().position(|vm| is(vm.name.as_ref(), name))
}
