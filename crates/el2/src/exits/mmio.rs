//! Data aborts: accesses to emulated devices, and to addresses where nothing is.

use crate::arch::context::{self, Fault, Syndrome};
use crate::bug::bug;
use crate::devices::bus::{self, Caller, Device, Guest, Outcome};
use crate::exits;
use crate::pcpu::Pcpu;
use crate::pcpu::virtio::Reply;
use crate::vcpu::Loaded;
use abi::MAX_VMS;
use abi::link;
use abi::platform::{
    LINK_STRIDE, LINKS_BASE, MAX_LINKS, VIRTIO_BACK_BASE, VIRTIO_BASE, VIRTIO_SIZE,
};
use abi::status::Exit;
use abi::system::{Vm, parts};

/// A load or store, as the syndrome describes it (DDI 0487, ISS encoding for a
/// data abort).
#[derive(Clone, Copy)]
struct Access {
    write: bool,
    /// Bytes.
    size: u8,
    register: usize,
    sign_extend: bool,
    /// The destination is 64 bits wide.
    wide: bool,
}

impl Access {
    /// Decodes a syndrome; none when it does not describe the instruction, or when the fault is
    /// not that stage 2 maps nothing there: only then does HPFAR_EL2 say where (DDI 0487,
    /// D19.2.56), and it may hold what an earlier fault left, of another VM.
    fn decode(iss: u64) -> Option<Self> {
        const VALID: u64 = 1 << 24;
        const CACHE_MAINTENANCE: u64 = 1 << 8;
        /// Stage 2 fault on a stage 1 table walk.
        const ON_WALK: u64 = 1 << 7;
        const STATUS: u64 = 0b11_1100;
        const TRANSLATION_FAULT: u64 = 0b00_0100;
        let describes = iss & (VALID | CACHE_MAINTENANCE | ON_WALK) == VALID;
        (describes && iss & STATUS == TRANSLATION_FAULT).then_some(Self {
            write: iss & 1 << 6 != 0,
            size: 1 << (iss >> 22 & 3),
            register: (iss >> 16 & 0x1f) as usize,
            sign_extend: iss & 1 << 21 != 0,
            wide: iss & 1 << 15 != 0,
        })
    }

    /// Returns what a store writes of what the guest's register has.
    const fn written(self, register: u64) -> u64 {
        let unused = 64 - 8 * self.size as u32;
        register << unused >> unused
    }

    /// Extends a value that was read as the guest's register gets it.
    fn extend(self, value: u64) -> u64 {
        let unused = 64 - 8 * u32::from(self.size);
        let narrow = value << unused;
        let extended =
            if self.sign_extend { ((narrow as i64) >> unused) as u64 } else { narrow >> unused };
        if self.wide { extended } else { extended & 0xffff_ffff }
    }
}

/// Handles a guest's access to an address that stage 2 does not map.
#[inline(never)]
pub fn data_abort(core: &mut Pcpu, syndrome: Syndrome) -> Exit {
    let (address, ipa) = context::fault_addresses();
    // First, and on its own, which saves registers less: a peer waits.
    if parts::has(parts::LINKS) && (LINKS_BASE..LINKS_END).contains(&ipa) {
        return link_abort(core, syndrome, address, ipa - LINKS_BASE);
    }
    if parts::has(parts::VIRTIO) && (VIRTIO_BASE..VIRTIO_END).contains(&ipa) {
        return virtio_abort(core, syndrome, address, ipa - VIRTIO_BASE);
    }
    let done = Access::decode(syndrome.iss()).and_then(|access| emulate(core, access, ipa));
    finish(core, syndrome, address, done)
}

/// Handles one to the registers of links, so many bytes from their beginning.
#[inline(never)]
fn link_abort(core: &mut Pcpu, syndrome: Syndrome, address: u64, offset: u64) -> Exit {
    let done = Access::decode(syndrome.iss()).and_then(|access| link(core, access, offset));
    finish(core, syndrome, address, done)
}

/// Handles one to the registers of virtio, so many bytes from their beginning.
#[inline(never)]
fn virtio_abort(core: &mut Pcpu, syndrome: Syndrome, address: u64, offset: u64) -> Exit {
    let done = Access::decode(syndrome.iss()).and_then(|access| virtio(core, access, offset));
    finish(core, syndrome, address, done)
}

#[inline(always)]
fn finish(core: &mut Pcpu, syndrome: Syndrome, address: u64, done: Option<Done>) -> Exit {
    match done {
        Some(Done::Yes) => {
            context::skip_instruction(syndrome);
            Exit::Mmio
        }
        Some(Done::Later) => Exit::Mmio,
        None => {
            exits::deliver(core, Fault::Data(address, syndrome.iss() & 1 << 6 != 0));
            Exit::Abort
        }
    }
}

/// What became of an access.
enum Done {
    Yes,
    /// The guest has to execute it again.
    Later,
}

/// Lets the device at a guest-physical address carry an access out; none if there is no device.
fn emulate(core: &mut Pcpu, access: Access, ipa: u64) -> Option<Done> {
    let system = core.system();
    let Some(vcpu) = core.loaded() else {
        bug!("an access without a loaded vCPU");
        return None;
    };
    let table = system.vm(vcpu.vm());
    let (device, offset) = bus::find(table, ipa)?;
    if !access.write && device.can_peek(offset) {
        peek(core, access, device, offset);
        return Some(Done::Yes);
    }
    let (vm, caller) = (vcpu.vm(), caller(table, vcpu));
    let write = access.write.then(|| vcpu.register(access.register));
    let mut outcome = Outcome::default();
    core.with_device(|interface, list_registers| {
        let mut guest = Guest { caller, interface, list_registers, injected: 0 };
        outcome = (device.access)(&mut guest, bus::Access { offset, size: access.size, write });
        (guest.injected, outcome.effects)
    });
    if outcome.again {
        return Some(Done::Later);
    }
    if write.is_none()
        && let Some(vcpu) = core.loaded_mut()
    {
        vcpu.set_register(access.register, access.extend(outcome.value));
    }
    if outcome.has_output {
        core.console_has_output(vm);
    }
    Some(Done::Yes)
}

/// Returns what a device may know of a vCPU, which is one of a VM with this table.
#[inline(always)]
fn caller(table: &Vm, vcpu: &Loaded) -> Caller<'static> {
    let shared = vcpu.config().shared();
    Caller { index: vcpu.index(), vcpus: table.vcpu_count.into(), shared }
}

/// Reads a register for which nothing has to be brought up to date. Apart, so that what is called for that is
/// told from what an access calls (crates/el2/bounds.toml).
#[inline(never)]
fn peek(core: &mut Pcpu, access: Access, device: &Device, offset: u64) {
    let system = core.system();
    let Some(vcpu) = core.loaded_mut() else { return };
    let asked = bus::Access { offset, size: access.size, write: None };
    let value = (device.peek)(&caller(system.vm(vcpu.vm()), vcpu), asked);
    vcpu.set_register(access.register, access.extend(value));
}

/// Where the registers of all links end.
const LINKS_END: u64 = LINKS_BASE + MAX_LINKS as u64 * LINK_STRIDE;
/// Where the registers of virtio end, of all VMs.
const VIRTIO_END: u64 = VIRTIO_BACK_BASE + MAX_VMS as u64 * VIRTIO_SIZE;

/// Lets the register of a link, so many bytes from the first one, carry an access out; none if the VM
/// has no such link. It is no device of the bus: it has nothing to do with the interrupt controller
/// of the VM that accesses it, which would be brought up to date for it.
#[inline(always)]
fn link(core: &mut Pcpu, access: Access, offset: u64) -> Option<Done> {
    // Below `LINKS_END`, which the compiler does not know here.
    let (number, register) = ((offset / LINK_STRIDE) as usize % MAX_LINKS, offset % LINK_STRIDE);
    let end = core.loaded_end(number)?;
    let is_word = access.size == 4;
    if access.write {
        match register {
            link::RING if is_word => core.ring_peer(end),
            link::ARM if is_word => {
                let ticks = core.loaded().map_or(0, |vcpu| vcpu.register(access.register));
                core.arm_doorbell(end, ticks as u32);
            }
            _ => {}
        }
        return Some(Done::Yes);
    }
    let value = if is_word && register == link::PEER { end.peer_life().into() } else { 0 };
    if let Some(vcpu) = core.loaded_mut() {
        vcpu.set_register(access.register, access.extend(value));
    }
    Some(Done::Yes)
}

/// Lets a register of virtio, so many bytes from the first one, carry an access out: that of a device that
/// the VM gets, or one by which it gives devices to another VM.
#[inline(always)]
fn virtio(core: &mut Pcpu, access: Access, offset: u64) -> Option<Done> {
    let (page, register) = (offset / VIRTIO_SIZE, offset % VIRTIO_SIZE);
    let write = match (access.write, core.loaded()) {
        (true, Some(vcpu)) => Some(access.written(vcpu.register(access.register))),
        _ => None,
    };
    let reply = match page.checked_sub(1) {
        None => core.access_virtio(register, access.size, write),
        Some(front) => core.access_virtio_back(front as usize, register, access.size, write),
    };
    let value = match reply {
        Reply::Value(value) => value,
        Reply::Later => return Some(Done::Later),
        Reply::Nothing => return None,
    };
    if write.is_none()
        && let Some(vcpu) = core.loaded_mut()
    {
        vcpu.set_register(access.register, access.extend(value));
    }
    Some(Done::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest need not clear the upper half of a register before it stores the lower one.
    #[test]
    fn a_store_writes_no_more_than_its_width() {
        for (size, written) in
            [(0, 0xef), (1, 0xcdef), (2, 0x89ab_cdef), (3, 0x0123_4567_89ab_cdef)]
        {
            // Valid, a store, a translation fault, of x0.
            let access = Access::decode(1 << 24 | size << 22 | 1 << 6 | 0b00_0111).unwrap();
            assert_eq!(access.written(0x0123_4567_89ab_cdef), written);
        }
    }

    /// DDI 0487, D19.2.37, ISS encoding for an exception from a data abort, field by field.
    #[test]
    fn every_syndrome_says_what_the_architecture_says() {
        let mut emulated = 0;
        for iss in 0..1_u64 << 25 {
            let field = |high: u32, low: u32| iss >> low & ((1 << (high - low + 1)) - 1);
            let [isv, sse, sf, cm, s1ptw, wnr] = [24, 21, 15, 8, 7, 6].map(|bit| field(bit, bit));
            let is_translation_fault = field(5, 2) == 1;
            let access = Access::decode(iss);
            let expected = isv == 1 && cm == 0 && s1ptw == 0 && is_translation_fault;
            assert_eq!(access.is_some(), expected, "{iss:#x}");
            let Some(access) = access else { continue };
            assert_eq!(u64::from(access.size), [1, 2, 4, 8][field(23, 22) as usize], "{iss:#x}");
            assert_eq!(access.register as u64, field(20, 16), "{iss:#x}");
            let flags = [access.write, access.sign_extend, access.wide].map(u64::from);
            assert_eq!(flags, [wnr, sse, sf], "{iss:#x}");
            emulated += 1;
        }
        // All but ISV, CM, S1PTW and four bits of the status is free.
        assert_eq!(emulated, 1 << 18);
    }

    #[test]
    fn every_byte_and_halfword_is_extended_as_its_load_says() {
        for (size, values) in [(1, 0..1_u64 << 8), (2, 0..1 << 16)] {
            for value in values {
                for (sign_extend, wide) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    let access = Access { write: false, size, register: 0, sign_extend, wide };
                    let signed = if size == 1 {
                        i64::from(value as u8 as i8)
                    } else {
                        i64::from(value as u16 as i16)
                    };
                    let expected = if sign_extend { signed as u64 } else { value };
                    let expected = if wide { expected } else { u64::from(expected as u32) };
                    // What is above is not the access's.
                    let noise = 0xa5a5_a5a5_a5a5_0000 | if size == 1 { 0x7700 } else { 0 };
                    assert_eq!(access.extend(noise | value), expected, "{value:#x}");
                }
            }
        }
    }

    #[test]
    fn what_is_mapped_is_not_emulated() {
        const STORE: u64 = 1 << 24 | 2 << 22 | 1 << 6;
        // Translation faults of levels 0 to 3.
        for status in 0b00_0100..0b00_1000 {
            assert!(Access::decode(STORE | status).is_some(), "{status:#b}");
            let (on_walk, maintenance) = (1 << 7, 1 << 8);
            for not_described in [on_walk, maintenance] {
                assert!(Access::decode(STORE | status | not_described).is_none(), "{status:#b}");
            }
        }
        // Address size, access flag and permission faults, external aborts, alignment.
        for status in (0..0b00_0100).chain(0b00_1000..0b100_0000) {
            assert!(Access::decode(STORE | status).is_none(), "{status:#b}");
        }
    }
}
