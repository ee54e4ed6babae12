//! Attacks by links: registers in every form, doorbells without end, and memory that the peer reads.

use super::actor::Actor;
use crate::arch::loads;
use crate::platform::{self, Link};
use abi::link::{ARM, PEER, RING};
use abi::platform::LINK_STRIDE;

/// Accesses of one step.
const STRIDE: u64 = 8;
/// "LNK1", and what follows in a half as `guests/include/cassata_link.h` lays it out: a peer that finds
/// this believes more than one that finds nothing.
const MAGIC: u64 = 0x314b_4e4c;
/// Bytes before the ring.
const HEADER: u64 = 272;
/// `STR W0, [X1]` and `STR X0, [X1]`.
const STORES: [u64; 2] = [loads::READS + 2, loads::READS + 3];

/// Rings, arms, and writes what the peer has to doubt. A VM without links does nothing.
pub fn links(actor: &mut Actor) -> u64 {
    let links = &platform::get().links;
    if links.is_empty() {
        return 0;
    }
    for _ in 0..STRIDE {
        let link = actor.one(links);
        match actor.random.up_to(7) {
            0..=2 => link.registers().write32(RING, actor.value() as u32),
            3 => registers(actor, link),
            4 => write_header(actor, link),
            5 => access(actor, link.own.base, link.own.size),
            6 => access(actor, link.peer.base, link.peer.size),
            _ => {
                link.registers().write32(ARM, 1);
                link.registers().read32(PEER);
            }
        }
        if actor.once_in(64) {
            actor.let_interrupts_in();
        }
    }
    STRIDE
}

/// Accesses the registers in any form, at any offset.
fn registers(actor: &mut Actor, link: Link) {
    access(actor, link.registers, LINK_STRIDE);
}

/// Accesses memory in any form, near its end or anywhere.
fn access(actor: &mut Actor, base: u64, size: u64) {
    let offset = if actor.once_in(4) { size - 8 } else { actor.random.up_to(size - 1) };
    let form = actor.random.up_to(loads::COUNT - 1);
    // An abort is what some ask for.
    let _ = loads::execute(form, base + offset, actor.value());
}

/// Writes a word of the header, so that the peer finds one that could be, and then is not.
fn write_header(actor: &mut Actor, link: Link) {
    let half = link.own.base;
    let ring = 1 << (63 - (link.own.size - HEADER).leading_zeros());
    let word = actor.random.up_to(7);
    let value = match word {
        0 => MAGIC,
        2 => ring,
        _ => actor.value(),
    };
    let _ = loads::execute(STORES[0], half + 4 * word, value);
    // A length of a message, or a word of the latest value.
    let at = HEADER + (actor.random.up_to(ring - 8) & !7);
    let _ = loads::execute(STORES[1], half + at, actor.value());
}
