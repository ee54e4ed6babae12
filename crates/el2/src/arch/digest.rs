//! SHA-256 by the core's own instructions, where it has them.

use super::machine::digest::compress;
use super::{context, cpu};
use abi::digest::{BLOCK, Hasher};

/// Adds a block, by whatever is faster on this core.
pub fn add(hasher: &mut Hasher, block: &[u8; BLOCK]) {
    if cpu::has_sha256() { add_at_once(hasher, block) } else { hasher.add_by_rounds(block) }
}

/// Adds a block by the core's instructions, which it must have. A guest's registers stay as they are.
pub fn add_at_once(hasher: &mut Hasher, block: &[u8; BLOCK]) {
    context::with_open_float(|| hasher.add(|state| compress(state, block)));
}
