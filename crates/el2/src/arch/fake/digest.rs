//! SHA-256.

use super::machine;
use super::registers::Register;
use abi::digest::{BLOCK, State};
use sha2::block_api::compress256;

/// Does all rounds of a block; the trap of floating point must be open, and the core must have the instructions.
pub fn compress(state: &mut State, block: &[u8; BLOCK]) {
    /// CPTR_EL2.TFP.
    const TRAPPED: u64 = 1 << 10;
    let [cptr, isar0] = ["cptr_el2", "id_aa64isar0_el1"].map(Register::named);
    machine::with(|machine| {
        let registers = &machine.core().registers;
        assert_eq!(registers[cptr.0] & TRAPPED, 0, "SHA256H would trap");
        assert_ne!(registers[isar0.0] >> 12 & 0xf, 0, "SHA256H is undefined");
    });
    compress256(state, core::slice::from_ref(block));
}
