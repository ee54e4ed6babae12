//! Links between VMs: what there is, and which VM is at which end.

use super::names::{shared_name, too_many};
use crate::code::Code;
use crate::draft::{At, Draft, DraftLink, DraftVm, flag};
use crate::model::LinkEnd;
use crate::nearest::did_you_mean;
use crate::problem::{Problems, Span};
use crate::size::show;
use abi::platform::{INTID_END, LINK_INTID, LINK_MAX_SIZE, MAX_LINKS};
use abi::system::PAGE_SIZE;

/// Each half is whole pages.
const STEP: u64 = 2 * PAGE_SIZE;

pub(super) fn check(draft: &Draft, problems: &mut Problems) {
    let links = &draft.links;
    too_many("links", links, MAX_LINKS, |one| &one.span, problems);
    for (i, link) in links.iter().enumerate() {
        if let Some(at) = &link.name {
            let before = links[..i].iter().filter_map(|link| link.name.as_ref());
            shared_name(at, before, "a link", Code::Link, problems);
        }
        if let Some(at) = &link.size {
            size(at, problems);
        }
        if let Some(between) = &link.between {
            self::between(between, link.between_span.clone(), &draft.vms, problems);
        }
    }
}

fn size(at: &At<u64>, problems: &mut Problems) {
    let size = *at.get_ref();
    if !(STEP..=LINK_MAX_SIZE).contains(&size) || !size.is_multiple_of(STEP) {
        let message = format!("a link with {} of memory is impossible", show(size));
        problems.add(Code::Link, at.span(), message).hint(format!(
            "a multiple of {}, half of it for each side, up to {}",
            show(STEP),
            show(LINK_MAX_SIZE)
        ));
    }
}

fn between(between: &[At<String>], span: Span, vms: &[DraftVm], problems: &mut Problems) {
    let names = || vms.iter().filter_map(|vm| vm.name.as_ref()).map(|at| at.get_ref().as_str());
    let unknown = between.iter().filter(|at| !names().any(|name| name == at.get_ref()));
    for at in unknown {
        problems
            .add(Code::Link, at.span(), format!("there is no VM `{}`", at.get_ref()))
            .hint(did_you_mean(at.get_ref(), names()));
    }
    match between {
        [first, second] if first.get_ref() != second.get_ref() => {}
        [_, second] => {
            problems
                .add(Code::Link, second.span(), "a link is between two VMs, and this is the first")
                .hint("name another VM");
        }
        _ => {
            let message = format!("a link is between two VMs, not {}", between.len());
            problems
                .add(Code::Link, span, message)
                .hint("for example `between = [\"linux\", \"rtos\"]`");
        }
    }
}

/// Returns true if an interrupt is a doorbell's in a VM that has an end of any link.
pub(super) fn takes(vm: &DraftVm, links: &[DraftLink], intid: u64) -> bool {
    let is_end = |link: &DraftLink| {
        vm.name.as_ref().zip(link.between.as_ref()).is_some_and(|(name, ends)| ends.contains(name))
    };
    let doorbells = u64::from(LINK_INTID)..u64::from(INTID_END);
    doorbells.contains(&intid) && links.iter().any(is_end)
}

/// A VM's ends of the links of a system without faults.
pub(super) fn of(vm: &DraftVm, links: &[DraftLink]) -> Option<Vec<LinkEnd>> {
    let own = vm.name.as_ref()?.get_ref();
    let mut ends = Vec::new();
    for (number, link) in links.iter().enumerate() {
        let between = link.between.as_ref()?;
        let Some(side) = between.iter().position(|at| at.get_ref() == own) else { continue };
        ends.push(LinkEnd {
            number,
            side,
            name: link.name.as_ref()?.get_ref().clone(),
            peer: between.get(1 - side)?.get_ref().clone(),
            size: *link.size.as_ref()?.get_ref(),
            cached: flag(&link.cached, false),
        });
    }
    Some(ends)
}
