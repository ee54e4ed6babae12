//! Devices passed through.

use crate::board::{Board, Device};
use crate::code::Code;
use crate::draft::{At, DraftVm};
use crate::nearest::did_you_mean;
use crate::problem::Problems;

/// The devices a VM is given, as far as the board has them.
pub(super) fn of<'a>(
    vm: &'a DraftVm,
    board: &'static Board,
) -> impl Iterator<Item = (&'a At<String>, &'static Device)> {
    vm.devices.iter().filter_map(|at| Some((at, board.device(at.get_ref())?)))
}

pub(super) fn check(vms: &[DraftVm], board: &'static Board, problems: &mut Problems) {
    for name in vms.iter().flat_map(|vm| &vm.devices) {
        if board.device(name.get_ref()).is_none() {
            unknown(name, board, problems);
        }
    }
    let given: Vec<_> = vms
        .iter()
        .enumerate()
        .flat_map(|(i, vm)| of(vm, board).map(move |(at, device)| (i, vm, at, device)))
        .collect();
    for (n, &(i, vm, at, device)) in given.iter().enumerate() {
        if device.dma && device.streams.is_none() {
            dma(vm, at, device, problems);
        }
        let before = &given[..n];
        if let Some((_, owner, first, _)) = before.iter().find(|other| other.3 == device) {
            problems
                .add(
                    Code::DeviceTwice,
                    at.span(),
                    format!("device `{}` is given twice", device.name),
                )
                .see(first.span(), format!("{} has it", owner.title()))
                .hint("a device belongs to one VM");
        } else if let Some((_, owner, first, other)) = before
            .iter()
            .find(|other| other.0 != i && device.reached().any(|pages| other.3.overlaps(pages)))
        {
            let message = format!(
                "devices `{}` and `{}` lie in one 4 KiB page and cannot be kept apart",
                other.name, device.name
            );
            problems
                .add(Code::SharedPage, at.span(), message)
                .see(first.span(), format!("{} has this one", owner.title()))
                .hint("give both to one VM, or take a device in another page");
        }
    }
}

pub(super) fn unknown(name: &At<String>, board: &Board, problems: &mut Problems) {
    let devices = board.devices.iter().map(|device| device.name.as_str());
    let message = format!("board `{}` has no device `{}`", board.kind, name.get_ref());
    let hint =
        numbered(name.get_ref(), board).unwrap_or_else(|| did_you_mean(name.get_ref(), devices));
    problems.add(Code::UnknownDevice, name.span(), message).hint(hint);
}

/// Returns which devices the board has under the name without its number, if they are numbered: which of them
/// is meant nothing can tell.
fn numbered(name: &str, board: &Board) -> Option<String> {
    let (stem, _) = number_of(name)?;
    let devices = board.devices.iter().filter_map(|device| number_of(&device.name));
    let numbers = || devices.clone().filter(|(other, _)| *other == stem).map(|(_, number)| number);
    let (first, last) = (numbers().min()?, numbers().max()?);
    Some(format!("it has `{stem}-{first}` to `{stem}-{last}`"))
}

/// Returns what stands before a number at the end of a name, and that.
fn number_of(name: &str) -> Option<(&str, u64)> {
    let (stem, number) = name.rsplit_once('-')?;
    Some((stem, number.parse().ok()?))
}

fn dma(vm: &DraftVm, at: &At<String>, device: &Device, problems: &mut Problems) {
    let needs_identity = !device.idle_dma;
    let device = at.get_ref();
    if needs_identity && !vm.is_identity() {
        let message =
            format!("device `{device}` does DMA, but {} sees other addresses", vm.title());
        problems
            .add(Code::DmaNeedsIdentity, at.span(), message)
            .hint("give the VM `memory = { ..., identity = true }`");
        return;
    }
    let message =
        format!("device `{device}` can do DMA, and nothing keeps it inside the VM's memory");
    problems
        .add(Code::DmaUnconfined, at.span(), message)
        .hint(format!("{} must be trusted like the hypervisor", vm.title()));
}
