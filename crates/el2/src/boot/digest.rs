//! SHA-256 (FIPS 180-4), by the crate `sha2`, without instructions of its own: EL2 has no SIMD
//! registers to itself.

use abi::system::DIGEST_SIZE;
use sha2::{Digest, Sha256};

/// Returns the digest of bytes that follow one another. Once in the image, for all that ask.
#[inline(never)]
pub fn sha256(bytes: &mut dyn Iterator<Item = &[u8]>) -> [u8; DIGEST_SIZE] {
    let mut hasher = Sha256::new();
    bytes.for_each(|bytes| hasher.update(bytes));
    hasher.finalize().into()
}
