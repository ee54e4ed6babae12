//! The signature of an image, Ed25519 (RFC 8032), in builds with the feature `signature`: what is
//! signed is the digest of the tables, and thereby every part of the image, this code included.

use abi::system::{PUBLIC_KEY_SIZE, SIGNATURE_SIZE, System, UNSIGNED, WRONG_SIGNATURE};
use ed25519_compact::{PublicKey, Signature};

/// The key. The build has zeros here, with which nothing is signed; the packer puts the key of the
/// product in their place (`system::pack_signed`), and finds the place by this name. It has a section
/// of its own: elsewhere the compiler makes it one with any other constant that is zero, which the
/// key would overwrite.
#[cfg(feature = "signature")]
#[unsafe(export_name = "cassata_public_key")]
#[unsafe(link_section = ".rodata.key")]
static PUBLIC_KEY: [u8; PUBLIC_KEY_SIZE] = [0; PUBLIC_KEY_SIZE];

/// Checks that the image is signed with the key that is built in. The digest of the tables must
/// have been compared.
///
/// # Errors
/// Says in words what is wrong.
#[cfg(feature = "signature")]
pub fn check(system: &System) -> Result<(), &'static str> {
    // SAFETY: a static of this type. Volatile, because the compiler would take the zeros that it
    // sees for what is there when this runs.
    let key = unsafe { (&raw const PUBLIC_KEY).read_volatile() };
    check_by(key, system)
}

/// Checks that the image is signed with this key. It is not inlined: it needs 6 KiB of the
/// stack, which are free again when it returns.
///
/// # Errors
/// As [`check`].
#[inline(never)]
fn check_by(key: [u8; PUBLIC_KEY_SIZE], system: &System) -> Result<(), &'static str> {
    let signature = system.signature;
    if signature == [0; SIGNATURE_SIZE] {
        return Err(UNSIGNED);
    }
    // It refuses keys and points of small order, for which signatures of anything can be made, and
    // any second form of a signature.
    let verified = PublicKey::new(key).verify(system.signed(), &Signature::new(signature));
    verified.map_err(|_| WRONG_SIGNATURE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_compact::{KeyPair, Seed};
    use zerocopy::FromZeros;

    fn keys(seed: u8) -> KeyPair {
        KeyPair::from_seed(Seed::new([seed; Seed::BYTES]))
    }

    fn signed(keys: &KeyPair) -> System {
        let mut system = System::new_zeroed();
        system.header.version = abi::system::VERSION;
        system.header.tables_sha256 = [0x5a; abi::system::DIGEST_SIZE];
        system.signature = *keys.sk.sign(system.signed(), None);
        system
    }

    #[test]
    fn an_image_is_started_that_the_own_key_has_signed() {
        let (own, other) = (keys(1), keys(2));
        assert_eq!(check_by(*own.pk, &signed(&own)), Ok(()));
        assert_eq!(check_by(*own.pk, &signed(&other)), Err(WRONG_SIGNATURE));
        let mut unsigned = signed(&own);
        unsigned.signature = [0; SIGNATURE_SIZE];
        assert_eq!(check_by(*own.pk, &unsigned), Err(UNSIGNED));
    }

    #[test]
    fn no_bit_of_what_is_signed_or_of_the_signature_may_be_another_one() {
        let own = keys(1);
        let refused = |change: &dyn Fn(&mut System)| {
            let mut system = signed(&own);
            change(&mut system);
            assert_eq!(check_by(*own.pk, &system), Err(WRONG_SIGNATURE));
        };
        for bit in 0..8 * SIGNATURE_SIZE {
            refused(&|system| system.signature[bit / 8] ^= 1 << (bit % 8));
        }
        for bit in 0..8 * abi::system::DIGEST_SIZE {
            refused(&|system| system.header.tables_sha256[bit / 8] ^= 1 << (bit % 8));
        }
        refused(&|system| system.header.version += 1);
        // The order of the group, added to the second half: another form of the same number.
        refused(&|system| {
            let order = 27_742_317_777_372_353_535_851_937_790_883_648_493_u128.to_le_bytes();
            let mut carry = 0;
            for (at, byte) in system.signature[32..].iter_mut().enumerate() {
                let high = if at == 31 { 0x10 } else { 0 };
                let sum = u16::from(*byte) + u16::from(*order.get(at).unwrap_or(&high)) + carry;
                (*byte, carry) = (sum as u8, sum >> 8);
            }
        });
    }

    /// Such a key would take a signature that can be made without knowing any secret.
    #[test]
    fn a_build_whose_key_is_missing_starts_nothing() {
        let forged = |key: [u8; PUBLIC_KEY_SIZE]| {
            let mut system = signed(&keys(1));
            // The neutral element, and 0: right by the equation, whatever is signed.
            system.signature = [0; SIGNATURE_SIZE];
            system.signature[0] = 1;
            check_by(key, &system)
        };
        let mut neutral = [0; PUBLIC_KEY_SIZE];
        assert_eq!(forged(neutral), Err(WRONG_SIGNATURE));
        neutral[0] = 1;
        assert_eq!(forged(neutral), Err(WRONG_SIGNATURE));
        assert_eq!(check_by([0; PUBLIC_KEY_SIZE], &signed(&keys(1))), Err(WRONG_SIGNATURE));
    }
}
