//! The link to another VM, as the device tree says where it is: what the crate `link` needs to know of this guest.

use abi::link::PEER;
use abi::platform::SPI_FIRST;
use core::arch::asm;
use core::slice;
use core::sync::atomic::AtomicU32;
use dtoolkit::fdt::{Fdt, FdtNode};
use dtoolkit::{Node, Property};
use link::{Registers, Words};

/// This VM's end: memory and registers.
pub type End = Words<'static, Trapping>;

/// Registers of a link. An access is an exit.
pub struct Trapping {
    base: u64,
}

impl Registers for Trapping {
    fn load(&self, offset: u64) -> u32 {
        assert!(offset <= PEER);
        let value;
        // SAFETY: the device tree says that a link's registers are there, which are mapped as Device; a load of
        // one has no effect on memory. The instruction is one that the hypervisor can emulate.
        unsafe {
            asm!("ldr {:w}, [{}]", out(reg) value, in(reg) self.base + offset, options(nostack, preserves_flags));
        }
        value
    }

    fn store(&self, offset: u64, value: u32) {
        assert!(offset <= PEER);
        // SAFETY: as above; a store rings or arms a doorbell, whose interrupt has a handler.
        unsafe {
            asm!("str {:w}, [{}]", in(reg) value, in(reg) self.base + offset, options(nostack, preserves_flags));
        }
    }
}

/// Finds the first link of this VM in the device tree at `address`: its end, and the doorbell's interrupt.
pub fn find(address: u64) -> Option<(End, u32)> {
    if address == 0 {
        return None;
    }
    // SAFETY: the hypervisor passes the address of a device tree in memory of this VM, which nothing changes.
    let tree = unsafe { Fdt::from_raw(address as *const u8) }.ok()?;
    let node = tree.root().children().find(|node| node.name_without_address() == "link")?;
    let interrupt = node.property("interrupts")?;
    // Of the controller: an SPI, its number, how it is signalled.
    let number = u32::from_be_bytes(interrupt.value().get(4..8)?.try_into().ok()?);
    Some((end(&node)?, SPI_FIRST + number))
}

/// Reads which addresses a link has: registers, the own half, the peer's.
fn end(node: &FdtNode<'static>) -> Option<End> {
    let mut regions = node.reg().ok().flatten()?;
    let mut next = || {
        let region = regions.next()?;
        Some((region.address::<u64>().ok()?, region.size::<u64>().ok()?))
    };
    let ((base, _), own, peer) = (next()?, next()?, next()?);
    // SAFETY: the hypervisor says that halves of a link are there, and has them mapped as long as this VM lives. Only
    // atomic words are made of them. The peer writes its own half, and of that this program only loads.
    let [own, peer] = [own, peer].map(|(address, size)| unsafe {
        slice::from_raw_parts(address as *const AtomicU32, size as usize / size_of::<AtomicU32>())
    });
    Some(Words::new(own, peer, Trapping { base }))
}
