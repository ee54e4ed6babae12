//! What must hold whenever no core is at EL2: nothing that a core has left for another one is
//! lost. Most of what is lost is found a little later by chance, and then nothing shows it any
//! more: a timer wakes the vCPU that slept through an interrupt.

use super::guests::waits_for_answer;
use super::quiet::state_of;
use crate::shared::power::Affinity;
use crate::shared::{BOARD, FRONTS, POWER};
use abi::system::System;
use abi::virtio::Request;
use core::sync::atomic::Ordering;
use sched::{Member, Message, VcpuId};

/// Stops if a vCPU was asked for, or interrupted, and no core will ever look.
pub fn check(system: &System) {
    for id in (0..system.header.vcpu_count as usize).map(VcpuId::numbered) {
        let owner = BOARD.find(id);
        // What a core has taken that has not run a guest yet is not known.
        let Some(core) = state_of(owner) else { continue };
        let is_asked_for = POWER[id.number()].affinity() == Affinity::OnPending;
        let sleeps_through = core.sleeps_through(id);
        let has_answer = may_go_on(system, id) && core.sleeps_for(id, waits_for_answer);
        if !is_asked_for && !sleeps_through && !has_answer {
            continue;
        }
        // A core looks at a vCPU that arrives, too.
        let kinds = [Message::Vcpus, Message::Arrivals];
        let mut messages =
            core.unread().chain(kinds.into_iter().flat_map(|kind| posted(owner, kind)));
        let will_look =
            messages.any(|(kind, member)| kinds.contains(&kind) && member == id.number());
        let VcpuId(number) = id;
        assert!(will_look || !is_asked_for, "vCPU {number}: a request to switch it on is lost");
        assert!(will_look || !sleeps_through, "vCPU {number} sleeps, and an interrupt is lost");
        assert!(will_look || !has_answer, "vCPU {number} sleeps, and an answer is lost");
    }
}

/// Returns true if a vCPU that has asked for something of a virtio device has its answer, or can ask.
fn may_go_on(system: &System, id: VcpuId) -> bool {
    let vm = usize::from(system.vcpus[id.number()].vm);
    let index = id.number() - usize::from(system.vms[vm].vcpu_first);
    let request = Request(FRONTS[vm].request.load(Ordering::Relaxed));
    system.virtio[vm].devices > 0
        && (request.is_done() || request.vcpu() == index && !request.waits())
}

/// Returns the messages of a kind that are in a core's mailbox, and leaves them there.
fn posted(core: usize, kind: Message) -> impl Iterator<Item = (Message, usize)> {
    let mailbox = BOARD.mailbox(core);
    let members = mailbox.take(kind);
    for member in members {
        let _ = mailbox.send(kind, member);
    }
    members.map(move |member| (kind, member))
}
