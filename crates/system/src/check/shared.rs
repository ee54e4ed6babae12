//! Memory that VMs share: what there is, which VM has it, and where it lies in each.

use super::names::{shared_name, too_many};
use crate::code::Code;
use crate::draft::{Access, At, Draft, DraftShare, DraftSharedMemory, DraftVm};
use crate::model::SharedMemory;
use crate::nearest::did_you_mean;
use crate::problem::Problems;
use crate::size::show;
use abi::platform::{MAX_SHARED, SHARED_ALIGN, SHARED_BASE, SHARED_MAX_SIZE};
use abi::system::{PAGE_SIZE, Region};

pub(super) fn check(draft: &Draft, problems: &mut Problems) {
    let memories = &draft.shared_memory;
    too_many("shared memories", memories, MAX_SHARED, |one| &one.span, problems);
    for (i, memory) in memories.iter().enumerate() {
        if let Some(at) = &memory.name {
            let before = memories[..i].iter().filter_map(|memory| memory.name.as_ref());
            shared_name(at, before, "shared memory", Code::SharedMemory, problems);
            users(at, &draft.vms, problems);
        }
        if let Some(at) = &memory.size {
            size(at, problems);
        }
    }
    for vm in &draft.vms {
        for (i, share) in vm.shared_memory.iter().enumerate() {
            self::share(share, &vm.shared_memory[..i], memories, problems);
        }
    }
}

fn size(at: &At<u64>, problems: &mut Problems) {
    let size = *at.get_ref();
    if !(PAGE_SIZE..=SHARED_MAX_SIZE).contains(&size) || !size.is_multiple_of(PAGE_SIZE) {
        problems
            .add(
                Code::SharedMemory,
                at.span(),
                format!("shared memory of {} is impossible", show(size)),
            )
            .hint(format!("a multiple of 4K, from 4K to {}", show(SHARED_MAX_SIZE)));
    }
}

/// Warns of memory that fewer than two VMs have.
fn users(at: &At<String>, vms: &[DraftVm], problems: &mut Problems) {
    let has = |vm: &&DraftVm| vm.shared_memory.iter().any(|share| share.name == *at);
    let users: Vec<_> = vms.iter().filter(has).collect();
    let (message, hint) = match users[..] {
        [] => {
            ("no VM has", "name it in the `shared_memory` of two VMs, or leave it out".to_owned())
        }
        [only] => ("no second VM has", format!("{} could have it in its own memory", only.title())),
        _ => return,
    };
    let message = format!("{message} shared memory `{}`", at.get_ref());
    problems.add(Code::SharedMemoryUnused, at.span(), message).hint(hint);
}

fn share(
    share: &DraftShare,
    before: &[DraftShare],
    memories: &[DraftSharedMemory],
    problems: &mut Problems,
) {
    let name = share.name.get_ref();
    let names = || memories.iter().filter_map(|memory| memory.name.as_ref());
    if !names().any(|known| known.get_ref() == name) {
        let hint = match memories {
            [] => "describe it under `[[shared_memory]]`".to_owned(),
            _ => did_you_mean(name, names().map(|at| at.get_ref().as_str())),
        };
        problems
            .add(
                Code::SharedMemory,
                share.name.span(),
                format!("there is no shared memory `{name}`"),
            )
            .hint(hint);
    } else if let Some(first) = before.iter().find(|other| other.name.get_ref() == name) {
        problems
            .add(
                Code::SharedMemory,
                share.name.span(),
                format!("shared memory `{name}` is given twice"),
            )
            .see(first.name.span(), "here")
            .hint("name it once");
    }
}

/// What a VM has of the shared memory of a system without faults.
pub(super) fn of(vm: &DraftVm, memories: &[DraftSharedMemory]) -> Option<Vec<SharedMemory>> {
    let mut next = SHARED_BASE;
    let mut regions = Vec::new();
    for memory in memories {
        regions.push(Region::new(next, *memory.size.as_ref()?.get_ref()));
        next = (next + regions.last()?.size).next_multiple_of(SHARED_ALIGN);
    }
    let share = |share: &DraftShare| {
        let name = share.name.get_ref();
        let number = memories
            .iter()
            .position(|memory| memory.name.as_ref().is_some_and(|at| at.get_ref() == name))?;
        Some(SharedMemory {
            number,
            name: name.clone(),
            guest: regions[number],
            read_only: share.access == Access::ReadOnly,
        })
    };
    vm.shared_memory.iter().map(share).collect()
}
