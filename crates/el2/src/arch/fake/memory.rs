//! Memory by physical address, device registers among it.

use super::machine::{self, Machine, Pause};
use std::ops::Range;

/// Where the memory at a physical address is. EL2 may access as much of it as
/// the tables say is there. What is there may be another core's.
pub fn at<T>(pa: u64) -> *mut T {
    machine::pause(Pause::Access);
    machine::with(|machine| machine.pointer(pa)).cast()
}

/// Nothing is cached.
pub fn clean_to_memory<const MOST: usize>(_address: u64, _size: u64) {}

/// Guests' memory does not exist, as what they execute is made up: the core has translated where it
/// would be.
///
/// # Safety
/// As on hardware.
pub unsafe fn copy(_src: u64, dst: u64, size: u64) {
    // SAFETY: by contract.
    unsafe { clear(dst, size) };
}

/// The same.
///
/// # Safety
/// As on hardware.
pub unsafe fn clear(dst: u64, size: u64) {
    machine::pause(Pause::Access);
    machine::with(|machine| reach(machine, dst, size));
}

/// Guest memory is reached at its alias.
fn reach(machine: &mut Machine, at: u64, size: u64) {
    let root = machine.core_mut().translate_alias();
    let within = |alias: &Range<u64>| alias.contains(&at) && at + size <= alias.end;
    let alias = machine.aliases.iter().find(|(alias, _)| within(alias));
    let (_, of) = alias.expect("guest memory is reached at its alias");
    assert_eq!(root, *of, "by its VM's root");
}

/// What a guest has written is made up, from where and when: a descriptor of a table, a page or a
/// block somewhere, or none, or a count.
///
/// # Safety
/// As on hardware.
pub unsafe fn word(pa: u64) -> u64 {
    machine::pause(Pause::Access);
    machine::with(|machine| {
        reach(machine, pa, 8);
        let mut word = (pa ^ machine.now.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word ^= word >> 29;
        // Half of what it points at is where probes have their memory.
        if word & 1 << 20 == 0 { word & !0xffff_c000_0000 | 0x4000_0000 } else { word }
    })
}

/// The interrupt controller's frames, and the registers of an SMMU.
pub mod device {
    use crate::arch::fake::machine::{self, Machine, Pause};
    use abi::platform::GICD_SIZE;

    enum Frame {
        Distributor(u64),
        /// Whose, and where in the first frame.
        Control(usize, u64),
        /// Whose, and where in the second frame.
        Private(usize, u64),
        Other,
    }

    fn frame(machine: &Machine, address: u64) -> Frame {
        const SGI_FRAME: u64 = 0x1_0000;
        let board = &machine.board;
        if let Some(offset) = address.checked_sub(board.gicr_pa)
            && offset < board.gicr_stride * u64::from(board.pcpu_count)
        {
            let offset_in = offset % board.gicr_stride;
            let core = (offset / board.gicr_stride) as usize;
            return match offset_in.checked_sub(SGI_FRAME) {
                Some(offset) => Frame::Private(core, offset),
                None => Frame::Control(core, offset_in),
            };
        }
        let offset = address.checked_sub(board.gicd_pa).filter(|&offset| offset < GICD_SIZE);
        offset.map_or(Frame::Other, Frame::Distributor)
    }

    /// Reads the 32-bit register at `address`.
    pub fn read32(address: u64) -> u32 {
        machine::with(|machine| match frame(machine, address) {
            Frame::Distributor(0x4) => 8,
            Frame::Distributor(offset @ 0xc00..0xc48) => {
                machine.distributor.config[(offset - 0xc00) as usize / 4]
            }
            // The upper half of GICR_TYPER.
            Frame::Control(core, 0xc) => {
                let affinity = machine.board.pcpu_mpidr[core];
                (affinity >> 32 << 24 | affinity & 0xff_ffff) as u32
            }
            Frame::Other => machine.smmu.as_ref().map_or(0, |smmu| smmu.read(address)),
            _ => 0,
        })
    }

    /// Writes the 8-bit register at `address`.
    pub fn write8(address: u64, value: u8) {
        machine::with(|machine| match frame(machine, address) {
            Frame::Distributor(offset @ 0x400..0x520) => {
                machine.distributor.priority[(offset - 0x400) as usize] = value;
            }
            Frame::Private(core, offset @ 0x400..0x420) => {
                machine.cores[core].private.priority[(offset - 0x400) as usize] = value;
            }
            _ => {}
        });
    }

    /// Writes the 32-bit register at `address`.
    pub fn write32(address: u64, value: u32) {
        machine::pause(Pause::Access);
        machine::with(|machine| match frame(machine, address) {
            Frame::Distributor(offset) => distributor(machine, offset, value),
            Frame::Private(core, offset) => {
                let private = &mut machine.cores[core].private;
                match offset {
                    0x100 => private.enabled |= value,
                    0x180 => private.enabled &= !value,
                    0x280 => private.latched &= !value,
                    0x300 => private.active |= value,
                    0x380 => private.active &= !value,
                    0xc04 => private.config = value,
                    _ => {}
                }
            }
            Frame::Control(..) => {}
            Frame::Other => {
                machine.smmu.iter_mut().for_each(|smmu| smmu.write(address, value.into()));
            }
        });
    }

    fn distributor(machine: &mut Machine, offset: u64, value: u32) {
        let d = &mut machine.distributor;
        let word = (offset & 0x7f) as usize / 4;
        match offset {
            0x100..0x124 => d.enabled[word] |= value,
            0x180..0x1a4 => d.enabled[word] &= !value,
            0x280..0x2a4 => d.latched[word] &= !value,
            0x380..0x3a4 => d.active[word] &= !value,
            0x400..0x520 => {
                let first = (offset - 0x400) as usize;
                d.priority[first..first + 4].copy_from_slice(&value.to_le_bytes());
            }
            0xc00..0xc48 => d.config[(offset - 0xc00) as usize / 4] = value,
            _ => {}
        }
    }

    /// Writes the 64-bit register at `address`.
    pub fn write64(address: u64, value: u64) {
        machine::pause(Pause::Access);
        machine::with(|machine| match frame(machine, address) {
            Frame::Distributor(offset @ 0x6000..0x6900) => {
                machine.distributor.route[(offset - 0x6000) as usize / 8] = value;
            }
            Frame::Other => {
                machine.smmu.iter_mut().for_each(|smmu| smmu.write(address, value));
            }
            _ => {}
        });
    }
}
