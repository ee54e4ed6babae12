//! Attacks by system registers and by exceptions.

use super::actor::{Actor, scratch, table};
use crate::arch::encodings::{COUNT, Encoding};
use crate::arch::fault;

/// Encodings of one step.
const STRIDE: u64 = 16;

/// What this program lives by: what is written there is what was read. SPSel, DAIF, SCTLR_EL1,
/// TTBR0_EL1, TCR_EL1, MAIR_EL1, VBAR_EL1.
pub const LIFELINES: [Encoding; 7] = [
    Encoding::new(3, 0, 4, 2, 0),
    Encoding::new(3, 3, 4, 2, 1),
    Encoding::new(3, 0, 1, 0, 0),
    Encoding::new(3, 0, 2, 0, 0),
    Encoding::new(3, 0, 2, 0, 2),
    Encoding::new(3, 0, 10, 2, 0),
    Encoding::new(3, 0, 12, 0, 0),
];

/// ICC_BPR0_EL1 and ICC_BPR1_EL1.
const BINARY_POINTS: [Encoding; 2] =
    [Encoding::new(3, 0, 12, 8, 3), Encoding::new(3, 0, 12, 12, 3)];

/// Returns what of `value` the machine bears. QEMU 10.0 stops at an assertion of its own
/// (`icv_gprio_mask`) after a binary point has been written in which reserved bits are set and the
/// others are not.
pub fn tamed(encoding: Encoding, value: u64) -> u64 {
    if BINARY_POINTS.contains(&encoding) { value & 7 } else { value }
}

/// Reads and writes the next encodings of all there are. Instructions that are encoded as
/// registers (op0 1) have an address of memory in X0 that is not used.
pub fn sweep(actor: &mut Actor) -> u64 {
    let table = table();
    for _ in 0..STRIDE {
        let encoding = Encoding(actor.cursor as u16);
        actor.cursor = (actor.cursor + 1) % COUNT;
        let old = table.read(encoding);
        let value = match (encoding.op0(), old) {
            (_, Ok(old)) if LIFELINES.contains(&encoding) => old,
            (_, Err(_)) if LIFELINES.contains(&encoding) => continue,
            (0 | 1, _) => scratch() + actor.random.up_to(0xfff),
            _ => actor.value(),
        };
        // Most do not exist: then that is what happens.
        let _ = table.write(encoding, tamed(encoding, value));
    }
    // The floating-point trap of its own, timers and the CPU interface are among them.
    if actor.cursor < STRIDE {
        actor.calm_down();
    }
    STRIDE
}

/// Takes exceptions of every kind, and calls with every immediate.
pub fn exceptions(actor: &mut Actor) -> u64 {
    const UDF: u32 = 0;
    const SVC: u32 = 0xd400_0001;
    const HVC: u32 = 0xd400_0002;
    const SMC: u32 = 0xd400_0003;
    const BRK: u32 = 0xd420_0000;
    const HLT: u32 = 0xd440_0000;
    const DCPS1: u32 = 0xd4a0_0001;
    let (immediate, x0) = (actor.random.up_to(0xffff) as u32, u64::from(abi::service::NULL));
    let word = match actor.random.up_to(6) {
        0 => UDF | immediate,
        1 => {
            // Its exception returns behind it.
            let _ = fault::call_instruction(SVC | immediate << 5);
            return 1;
        }
        2 => HVC | immediate << 5,
        3 => SMC | immediate << 5,
        4 => BRK | immediate << 5,
        5 => HLT | immediate << 5,
        _ => DCPS1 | immediate << 5,
    };
    // An exception is what was asked for.
    let _ = fault::instruction(word, x0);
    1
}
