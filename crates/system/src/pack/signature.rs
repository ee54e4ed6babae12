//! Signing an image: Ed25519 (RFC 8032), by the crate `ed25519-compact`, of the digest of the tables.

use super::error::PackError;
use super::hypervisor::{Hypervisor, REBUILD, Segment};
use crate::input_file;
use crate::paging::stage1::Kind;
use abi::system::{PUBLIC_KEY_SIZE, PUBLIC_KEY_SYMBOL, Region, SIGNATURE_SIZE, System};
use ed25519_compact::KeyPair;
use object::Endianness;
use object::elf::{FileHeader64, SHT_SYMTAB};
use object::read::elf::{FileHeader, Sym};
use std::fmt;
use std::path::Path;

/// A private key, with the public one that belongs to it.
pub struct SigningKey(KeyPair);

impl fmt::Debug for SigningKey {
    /// Says nothing of what is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.0.pk).finish()
    }
}

impl SigningKey {
    /// Reads a private key from a file: PKCS#8 as PEM (RFC 5958, RFC 8410), not encrypted.
    ///
    /// # Errors
    /// When there is no such file, or no such key in it.
    pub fn read(path: &Path) -> Result<Self, PackError> {
        let text = input_file::read_text(path).map_err(|unread| {
            let message = format!("cannot read the key {}: {unread}", path.display());
            PackError::new(message, unread.hint.unwrap_or("name a file with a private key"))
        })?;
        Self::from_pem(&text).ok_or_else(|| {
            let message = format!("{} is no private key for Ed25519", path.display());
            PackError::new(
                message,
                "it must be PKCS#8 in PEM without a password, as `openssl genpkey -algorithm \
                 ed25519` writes it",
            )
        })
    }

    /// Reads a private key from PEM; none if there is none.
    #[must_use]
    pub fn from_pem(text: &str) -> Option<Self> {
        KeyPair::from_pem(text).ok().map(Self)
    }

    /// Returns the public key, which is built into the hypervisor.
    #[must_use]
    pub fn public(&self) -> [u8; PUBLIC_KEY_SIZE] {
        *self.0.pk
    }

    /// Returns the signature of tables whose digests are right. The same tables and key give the same
    /// signature.
    #[must_use]
    pub fn sign(&self, tables: &System) -> [u8; SIGNATURE_SIZE] {
        *self.0.sk.sign(tables.signed(), None)
    }
}

/// Returns where the public key belongs, from the beginning of the hypervisor's ELF file in memory;
/// none if that build checks no signature.
pub(super) fn place(file: &[u8]) -> object::read::Result<Option<u64>> {
    let header = FileHeader64::<Endianness>::parse(file)?;
    let endian = header.endian()?;
    let symbols = header.sections(endian, file)?.symbols(endian, file, SHT_SYMTAB)?;
    let is_key = |symbol: &&object::elf::Sym64<Endianness>| {
        symbol
            .name(endian, symbols.strings())
            .is_ok_and(|name| name == PUBLIC_KEY_SYMBOL.as_bytes())
    };
    Ok(symbols.iter().find(is_key).map(|symbol| symbol.st_value(endian)))
}

impl Hypervisor {
    /// Builds in the public key of `key`. Without a key, there must be no place for one: that build
    /// starts nothing that is not signed.
    pub(super) fn build_in(&mut self, key: Option<&SigningKey>) -> Result<(), PackError> {
        match (self.key, key) {
            (None, None) => Ok(()),
            (Some(_), None) => Err(PackError::new(
                "this build of the hypervisor starts only what is signed",
                "give it a key, or take the build without the feature `signature`",
            )),
            (None, Some(_)) => Err(PackError::new(
                "this build of the hypervisor checks no signature",
                "build it with the feature `signature`",
            )),
            (Some(place), Some(key)) => {
                let room = Region::new(place, PUBLIC_KEY_SIZE as u64);
                let is_constant = |segment: &&mut Segment| segment.kind() == Kind::Constant;
                let mut constants = self.segments.iter_mut().filter(is_constant);
                let room = constants.find_map(|segment| segment.bytes_at(room));
                let room = room.ok_or_else(|| {
                    let message = "the key's place is not among the hypervisor's constants";
                    PackError::new(message, REBUILD)
                })?;
                room.copy_from_slice(&key.public());
                Ok(())
            }
        }
    }
}
