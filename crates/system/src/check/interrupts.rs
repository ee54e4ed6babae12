//! Interrupts passed through, a device's own included.

use super::{devices, links, vcpus, virtio};
use crate::board::{Board, Trigger};
use crate::code::Code;
use crate::draft::{Draft, DraftVm};
use crate::model::{Machine, PassedInterrupt};
use crate::problem::{Problems, Span};
use abi::platform::{INTID_END, LINK_INTID, SPI_FIRST, UART_INTID, VIRTIO_INTID};
use abi::system::MAX_SPIS;

/// One interrupt that a VM is given.
pub(super) struct Claim {
    physical: (u64, Span),
    virtual_: (u64, Span),
    trigger: Trigger,
    /// The device that brings it.
    device: Option<&'static str>,
}

impl Claim {
    /// The interrupt without places; `None` when a number is out of range.
    pub(super) fn sound(&self) -> Option<PassedInterrupt> {
        let physical = self.physical.0.try_into().ok()?;
        let virtual_ = self.virtual_.0.try_into().ok()?;
        Some(PassedInterrupt { physical, virtual_, trigger: self.trigger })
    }

    fn whence(&self) -> String {
        match self.device {
            Some(device) => format!("device `{device}` brings it"),
            None => "given here".to_owned(),
        }
    }
}

/// Everything a VM is given.
pub(super) fn claims(vm: &DraftVm, board: &'static Board) -> Vec<Claim> {
    let devices = devices::of(vm, board).flat_map(|(at, device)| {
        device.distinct_interrupts().map(move |irq| {
            let number = (u64::from(irq.intid), at.span());
            Claim {
                physical: number.clone(),
                virtual_: number,
                trigger: irq.trigger,
                device: Some(&device.name),
            }
        })
    });
    let stated = vm.interrupts.iter().map(|irq| Claim {
        physical: (*irq.physical.get_ref(), irq.physical.span()),
        virtual_: (*irq.virtual_.get_ref(), irq.virtual_.span()),
        trigger: irq.trigger,
        device: None,
    });
    devices.chain(stated).collect()
}

/// The pCPU to which all of a VM's come, if that is stated.
pub(super) fn to(vm: &DraftVm) -> Option<usize> {
    usize::try_from(*vm.interrupts_to.as_ref()?.get_ref()).ok()
}

/// Checks where those of a VM are to come.
fn check_to(vm: &DraftVm, machine: &Machine, problems: &mut Problems) {
    let Some(to) = &vm.interrupts_to else { return };
    let (message, hint) = if vm.is_realtime() {
        let message = format!("{} is a real-time VM: its interrupts come to its vCPU", vm.title());
        (message, "leave `interrupts_to` out")
    } else if claims(vm, machine.board).is_empty() {
        let message = format!("{} has no interrupts of devices", vm.title());
        (message, "leave `interrupts_to` out, or give the VM `devices` or `interrupts`")
    } else {
        return vcpus::is_pcpu(to, machine.pcpus, problems);
    };
    problems.add(Code::InterruptsTo, to.span(), message).hint(hint);
}

pub(super) fn check(draft: &Draft, machine: &Machine, problems: &mut Problems) {
    let vms = &draft.vms;
    let board = machine.board;
    vms.iter().for_each(|vm| check_to(vm, machine, problems));
    let claims: Vec<_> = vms
        .iter()
        .enumerate()
        .flat_map(|(i, vm)| claims(vm, board).into_iter().map(move |claim| (i, vm, claim)))
        .collect();
    if let Some((_, _, surplus)) = claims.get(MAX_SPIS) {
        let message = format!("{} interrupts: a system can pass {MAX_SPIS}", claims.len());
        problems
            .add(Code::TooMany, surplus.physical.1.clone(), message)
            .hint("leave some out, from here on");
    }
    for (n, (i, vm, claim)) in claims.iter().enumerate() {
        let physical_ok = physical(claim, board, problems);
        // One number for both is reported once.
        let same = claim.virtual_.1 == claim.physical.1;
        let virtual_ok = (physical_ok || !same) && virtual_(claim, vm, draft, problems);
        if !(physical_ok && virtual_ok) {
            continue;
        }
        let mut before = claims[..n].iter();
        let (number, span) = &claim.physical;
        if let Some((_, owner, first)) = before.clone().find(|(.., c)| c.physical.0 == *number) {
            let also = format!("{}: {}", owner.title(), first.whence());
            let span = span.clone();
            if claim.device.is_some() && claim.device == first.device {
                continue; // The device itself is given twice, and that is reported.
            }
            problems
                .add(Code::InterruptTwice, span, format!("interrupt {number} is given twice"))
                .see(first.physical.1.clone(), also)
                .hint("an interrupt belongs to one VM, once");
        } else if let Some((_, _, first)) =
            before.find(|(j, _, c)| j == i && c.virtual_.0 == claim.virtual_.0)
        {
            let message = format!("the guest would see two interrupts {}", claim.virtual_.0);
            problems
                .add(Code::InterruptTwice, claim.virtual_.1.clone(), message)
                .see(first.virtual_.1.clone(), first.whence())
                .hint("choose another `virtual` number");
        }
    }
}

fn physical(claim: &Claim, board: &Board, problems: &mut Problems) -> bool {
    let (number, span) = (claim.physical.0, claim.physical.1.clone());
    let range = u64::from(SPI_FIRST)..u64::from(board.spi_end);
    if !range.contains(&number) {
        let message = if number < range.start {
            format!("interrupt {number} belongs to a core and cannot be passed through")
        } else {
            format!("board `{}` has no interrupt {number}", board.kind)
        };
        let hint = format!("its SPIs are INTID {} to {}", range.start, range.end - 1);
        problems.add(Code::UnknownInterrupt, span, message).hint(hint);
        return false;
    }
    if number == u64::from(board.uart_intid) {
        let message = format!("interrupt {number} is that of the board's console");
        problems
            .add(Code::ReservedInterrupt, span, message)
            .hint("the hypervisor carries all consoles over that UART");
        return false;
    }
    true
}

fn virtual_(claim: &Claim, vm: &DraftVm, draft: &Draft, problems: &mut Problems) -> bool {
    let (number, span) = (claim.virtual_.0, claim.virtual_.1.clone());
    let range = u64::from(SPI_FIRST)..u64::from(INTID_END);
    if !range.contains(&number) {
        let message = format!("the virtual platform has no interrupt {number}");
        let hint = format!("`virtual` can be {} to {}", range.start, range.end - 1);
        problems.add(Code::UnknownInterrupt, span, message).hint(hint);
        return false;
    }
    if number == u64::from(UART_INTID) && vm.has_console() {
        let message = format!("virtual interrupt {number} is that of the VM's console");
        problems
            .add(Code::ReservedInterrupt, span, message)
            .hint("choose another `virtual` number, or say `console = false`");
        return false;
    }
    if links::takes(vm, &draft.links, number) {
        let message = format!("virtual interrupt {number} is kept for the doorbells of links");
        problems
            .add(Code::ReservedInterrupt, span, message)
            .hint(format!("choose another `virtual` number, below {LINK_INTID}"));
        return false;
    }
    if virtio::takes(vm, &draft.virtio, number) {
        let message = format!("virtual interrupt {number} is kept for virtio devices");
        problems
            .add(Code::ReservedInterrupt, span, message)
            .hint(format!("choose another `virtual` number, below {VIRTIO_INTID}"));
        return false;
    }
    true
}
