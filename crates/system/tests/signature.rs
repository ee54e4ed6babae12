//! A signed image has the key in its hypervisor, and a signature of everything.

mod support;

use abi::system::{PUBLIC_KEY_SYMBOL, Region, SIGNATURE_SIZE, System, VERSION};
use ed25519_compact::{PublicKey, Signature};
use sha2::{Digest, Sha256};
use std::fs;
use std::mem::offset_of;
use support::elf::{self, DATA};
use support::{files, sound};
use system::{Packed, SigningKey, pack, pack_signed, unpack};
use zerocopy::IntoBytes;

/// The private key that RFC 8410, section 10.3, shows, and its public one of section 10.1.
const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
    -----END PRIVATE KEY-----\n";
const PUBLIC: [u8; 32] = [
    0x19, 0xbf, 0x44, 0x09, 0x69, 0x84, 0xcd, 0xfe, 0x85, 0x41, 0xba, 0xc1, 0x67, 0xdc, 0x3b, 0x96,
    0xc8, 0x50, 0x86, 0xaa, 0x30, 0xb6, 0xb6, 0xcb, 0x0c, 0x5c, 0x38, 0xad, 0x70, 0x31, 0x66, 0xe1,
];
/// Where the test's hypervisor has its constants, with room for a key behind the first 16 bytes.
const CONSTANTS: u64 = 0x1_4000;
const PLACE: u64 = CONSTANTS + 16;

const TEXT: &str = r#"
[board]
kind = "qemu-virt"
pcpus = 1
memory = "256M"

[[vm]]
name = "linux"
kernel = "Image"
initramfs = "initramfs"
memory = { size = "64M" }
vcpus = [{ pcpu = 0, priority = 1 }]
"#;

/// A hypervisor that checks signatures with the key at this place.
fn hypervisor(place: u64) -> Vec<u8> {
    let plain = elf::hypervisor(&[]).segment(CONSTANTS, &[0; 64], 64, elf::R);
    plain.symbol(PUBLIC_KEY_SYMBOL, place).build()
}

fn key() -> SigningKey {
    SigningKey::from_pem(PRIVATE).unwrap()
}

fn signed() -> Packed {
    let directory = files();
    pack_signed(&sound(directory.path(), TEXT), &hypervisor(PLACE), &key()).unwrap()
}

fn bytes(packed: &Packed) -> Vec<u8> {
    let mut file = Vec::new();
    packed.write(&mut file).unwrap();
    file
}

#[test]
fn a_key_is_read_as_openssl_writes_it() {
    assert_eq!(key().public(), PUBLIC);
    let directory = files();
    let at = directory.path().join("key.pem");
    let refused = |text: &str| {
        fs::write(&at, text).unwrap();
        let error = SigningKey::read(&at).unwrap_err();
        assert!(error.hint().contains("openssl genpkey -algorithm ed25519"), "{}", error.hint());
        let message = error.to_string();
        assert!(message.ends_with("key.pem is no private key for Ed25519"), "{message}");
    };
    fs::write(&at, PRIVATE).unwrap();
    assert_eq!(SigningKey::read(&at).unwrap().public(), PUBLIC);
    refused("");
    // The public key instead; an encrypted one; one for X25519; one that is cut short.
    refused(
        "-----BEGIN PUBLIC KEY-----\n\
         MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n\
         -----END PUBLIC KEY-----\n",
    );
    refused(&PRIVATE.replace("PRIVATE", "ENCRYPTED PRIVATE"));
    refused(&PRIVATE.replace("K2Vw", "K2Vu"));
    refused(&PRIVATE.replace("EdVhC", ""));
    fs::remove_file(&at).unwrap();
    let message = SigningKey::read(&at).unwrap_err().to_string();
    assert!(message.starts_with("cannot read the key ") && !message.contains('\n'), "{message}");
    // What is printed of a key while debugging is no secret.
    let printed = format!("{:?}", key());
    assert!(!printed.contains("d4") && !printed.contains("212"), "{printed}");
}

#[test]
fn what_is_signed_is_the_digest_of_the_tables() {
    let packed = signed();
    let tables = &packed.tables;
    let mut zeroed = tables.clone();
    zeroed.header.tables_sha256 = [0; 32];
    let digest = Sha256::digest(&zeroed.as_bytes()[..offset_of!(System, signature)]);
    let message = [&b"Cassata boot"[..], &VERSION.to_le_bytes(), &digest].concat();
    let signature = Signature::new(tables.signature);
    PublicKey::new(PUBLIC).verify(&message, &signature).unwrap();
    assert!(PublicKey::new(PUBLIC).verify(digest, &signature).is_err());
    assert_eq!(bytes(&packed), bytes(&signed()), "the same key gives the same bytes");
}

#[test]
fn the_key_is_in_the_hypervisor_and_in_its_digest() {
    let file = bytes(&signed());
    let unpacked = unpack(&file).unwrap();
    let base = unpacked.tables.board.hypervisor_pa;
    let room = Region::new(base + PLACE, 32);
    assert_eq!(unpacked.at(room), Some(&PUBLIC[..]));
    let covered = unpacked.tables.parts().iter().any(|part| part.region().contains(room));
    assert!(covered, "a part has it");
}

#[test]
fn a_key_and_a_build_that_do_not_belong_together_are_refused() {
    let directory = files();
    let checked = sound(directory.path(), TEXT);
    let unsigned = pack(&checked, &elf::plain_hypervisor()).unwrap();
    assert_eq!(unsigned.tables.signature, [0; SIGNATURE_SIZE]);
    for (packed, reason) in [
        (pack(&checked, &hypervisor(PLACE)), "starts only what is signed"),
        (pack_signed(&checked, &elf::plain_hypervisor(), &key()), "checks no signature"),
        (pack_signed(&checked, &hypervisor(DATA), &key()), "not among the hypervisor's constants"),
        (pack_signed(&checked, &hypervisor(CONSTANTS + 33), &key()), "not among"),
        (pack_signed(&checked, &hypervisor(u64::MAX), &key()), "not among"),
    ] {
        let error = packed.expect_err(reason);
        assert!(error.to_string().contains(reason), "{error}");
        assert!(!error.hint().is_empty());
    }
}
