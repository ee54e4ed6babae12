//! Finding the system the host packed, and believing it only when it is whole.

use crate::arch::{boot, cache};
use abi::system::{HYPERVISOR_SIZE, Invalid, PAGE_SIZE, System};
use zerocopy::IntoBytes;

/// The tables, right behind the hypervisor's memory. Not yet verified.
pub fn find() -> &'static System {
    let bundle = (boot::image_pa() + HYPERVISOR_SIZE) as *const System;
    // SAFETY: the boot loader put the bundle there; any bytes are a `System`,
    // and nobody writes them. Should there be no RAM, we cannot run either.
    unsafe { &*bundle }
}

/// Whether the tables themselves are what the host wrote.
///
/// # Errors
/// What is wrong, in words.
pub fn verify(system: &System) -> Result<(), &'static str> {
    system.header.identify().map_err(Invalid::message)?;
    if system.tables_crc(cache::crc32) != system.header.tables_crc {
        return Err(Invalid::TablesChecksum.message());
    }
    system.validate().map_err(Invalid::message)?;
    let (image, bundle) = (boot::image_pa(), (&raw const *system) as u64);
    if system.board.hypervisor_pa != image || system.header.bundle_pa != bundle {
        return Err("the system was packed for another address");
    }
    Ok(())
}

/// Whether all that lies behind the tables is what the host wrote.
///
/// # Errors
/// What is wrong, in words.
pub fn verify_payload(system: &System) -> Result<(), &'static str> {
    let begin = system.header.bundle_pa + system.as_bytes().len() as u64;
    let length = system.header.bundle_size - system.as_bytes().len() as u64;
    debug_assert!(length < u64::MAX - PAGE_SIZE);
    // SAFETY: `System::validate` has shown that the bundle lies in RAM; it is
    // mapped and nobody writes it.
    let payload = unsafe { core::slice::from_raw_parts(begin as *const u8, length as usize) };
    if cache::crc32(0, payload) == system.header.payload_crc {
        Ok(())
    } else {
        Err(Invalid::PayloadChecksum.message())
    }
}
