//! SHA-256 (FIPS 180-4), a few rounds at a time, for EL2.
//!
//! The digest of a block takes some three thousand instructions, unless the core has some for it, and a VM
//! is filled with a million blocks while others run. No crate stops in the middle of a block to look for an
//! interrupt, so this is EL2's own; tests compare it with the crate `sha2`, by which the host computes digests.

use crate::system::DIGEST_SIZE;

/// Bytes of a block.
pub const BLOCK: usize = 64;
/// The state between two blocks.
pub type State = [u32; 8];
/// Rounds of a block.
const ROUNDS: usize = 64;
/// Rounds of a step: a divisor of those of a block.
const STEP: usize = 4;

/// FIPS 180-4, 5.3.3: the fractions of the square roots of the first eight primes.
static BEGINNING: State = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// FIPS 180-4, 4.2.2: the fractions of the cube roots of the first 64 primes.
#[rustfmt::skip]
pub static CONSTANTS: [u32; ROUNDS] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

/// The digest of blocks that come one after the other.
pub struct Hasher {
    state: State,
    /// The state and the message's words in the middle of a block, and the next of its rounds.
    work: State,
    words: [u32; 16],
    round: usize,
    /// Bytes of the blocks that have come.
    length: u64,
}

impl Default for Hasher {
    fn default() -> Self {
        Self { state: BEGINNING, work: BEGINNING, words: [0; 16], round: ROUNDS, length: 0 }
    }
}

impl Hasher {
    /// Returns true if all rounds of the latest block are done.
    #[must_use]
    pub fn is_at_end_of_block(&self) -> bool {
        self.round >= ROUNDS
    }

    /// Begins a block. All rounds of the one before must be done.
    #[inline(never)]
    pub fn begin(&mut self, block: &[u8; BLOCK]) {
        self.length += BLOCK as u64;
        self.begin_words(block);
    }

    /// Adds a block, all of whose rounds `compress` does. All rounds of the one before must be done.
    pub fn add(&mut self, compress: impl FnOnce(&mut State)) {
        self.length += BLOCK as u64;
        compress(&mut self.state);
    }

    /// Begins the block that follows the last, if all were whole.
    #[inline(never)]
    pub fn begin_padding(&mut self) {
        let mut block = [0; BLOCK];
        block[0] = 0x80;
        block[BLOCK - 8..].copy_from_slice(&(8 * self.length).to_be_bytes());
        self.begin_words(&block);
    }

    fn begin_words(&mut self, block: &[u8; BLOCK]) {
        for (word, bytes) in self.words.iter_mut().zip(block.as_chunks().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        (self.work, self.round) = (self.state, 0);
    }

    /// Does the next four rounds of the block.
    #[inline(never)]
    pub fn step(&mut self) {
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = self.work;
        for round in self.round..self.round + STEP {
            // 6.2.2, step 1: the first words are the message's own.
            let word = |at: usize| self.words[at % 16];
            let mut next = word(round);
            if round >= 16 {
                let (older, newer) = (word(round + 1), word(round + 14));
                let sigma_0 = older.rotate_right(7) ^ older.rotate_right(18) ^ older >> 3;
                let sigma_1 = newer.rotate_right(17) ^ newer.rotate_right(19) ^ newer >> 10;
                next =
                    next.wrapping_add(sigma_0).wrapping_add(word(round + 9)).wrapping_add(sigma_1);
                self.words[round % 16] = next;
            }
            // Step 3.
            let sum_1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = e & f ^ !e & g;
            let constant = CONSTANTS[round % ROUNDS];
            let t1 = h.wrapping_add(sum_1).wrapping_add(choice);
            let t1 = t1.wrapping_add(constant).wrapping_add(next);
            let sum_0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let majority = a & b ^ a & c ^ b & c;
            let t2 = sum_0.wrapping_add(majority);
            (h, g, f, e) = (g, f, e, d.wrapping_add(t1));
            (d, c, b, a) = (c, b, a, t1.wrapping_add(t2));
        }
        self.work = [a, b, c, d, e, f, g, h];
        self.round += STEP;
        if self.round >= ROUNDS {
            for (state, work) in self.state.iter_mut().zip(self.work) {
                *state = state.wrapping_add(work);
            }
        }
    }

    /// Returns the digest, once all rounds of the padding are done, and begins anew.
    #[inline(never)]
    pub fn finish(&mut self) -> [u8; DIGEST_SIZE] {
        let words = self.state.map(u32::to_be);
        *self = Self::default();
        zerocopy::transmute!(words)
    }

    /// Adds a block, without a look.
    pub fn add_by_rounds(&mut self, block: &[u8; BLOCK]) {
        self.begin(block);
        while !self.is_at_end_of_block() {
            self.step();
        }
    }
}

/// Returns the digest of bytes that follow one another, without a look; `add` adds a block.
#[inline(never)]
pub fn sha256(
    pieces: &mut dyn Iterator<Item = &[u8]>,
    add: impl Fn(&mut Hasher, &[u8; BLOCK]),
) -> [u8; DIGEST_SIZE] {
    let mut hasher = Hasher::default();
    let (mut rest, mut length) = ([0; BLOCK], 0);
    let mut take = |mut bytes: &[u8]| {
        while !bytes.is_empty() {
            let begun = length % BLOCK;
            let count = bytes.len().min(BLOCK - begun);
            let (now, later) = bytes.split_at(count);
            match now.try_into() {
                Ok(block) => add(&mut hasher, block),
                Err(_) => {
                    rest[begun..begun + count].copy_from_slice(now);
                    if begun + count == BLOCK {
                        add(&mut hasher, &rest);
                    }
                }
            }
            (bytes, length) = (later, length + count);
        }
        length
    };
    let length = pieces.fold(0, |_, piece| take(piece));
    let mut tail = [0; 2 * BLOCK];
    tail[0] = 0x80;
    let padding = (2 * BLOCK - 1 - 8 - length % BLOCK) % BLOCK + 1;
    tail[padding..padding + 8].copy_from_slice(&(8 * length as u64).to_be_bytes());
    take(&tail[..padding + 8]);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    static ALL: [u8; 1_000 * BLOCK] = {
        let mut all = [0; 1_000 * BLOCK];
        let mut at = 0;
        while at < all.len() {
            all[at] = ((at * at) >> 3) as u8;
            at += 1;
        }
        all
    };

    #[test]
    fn it_is_the_digest_of_the_standard_in_whatever_pieces() {
        for length in 0..300 {
            let all = &ALL[..length];
            for cut in [0, length / 3, length] {
                let (first, rest) = all.split_at(cut);
                let digest = sha256(&mut [first, rest].into_iter(), Hasher::add_by_rounds);
                assert_eq!(digest, *Sha256::digest(all), "{length} bytes, cut at {cut}");
            }
        }
    }

    #[test]
    fn so_it_is_of_whole_blocks_each_time_anew() {
        let mut hasher = Hasher::default();
        for count in [0, 1, 5, 2, 1_000] {
            let all = &ALL[..count * BLOCK];
            all.as_chunks().0.iter().for_each(|block| hasher.add_by_rounds(block));
            hasher.begin_padding();
            let mut steps = 0;
            while !hasher.is_at_end_of_block() {
                hasher.step();
                steps += 1;
            }
            assert_eq!(steps, ROUNDS / STEP);
            assert_eq!(hasher.finish(), *Sha256::digest(all), "{count} blocks");
        }
    }
}
