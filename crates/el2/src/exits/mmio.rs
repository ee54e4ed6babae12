//! Data aborts: accesses to emulated devices, and to addresses where nothing is.

use crate::arch::context::{self, Fault, Syndrome};
use crate::arch::gic;
use crate::bug::bug;
use crate::devices::bus::{self, Guest, Outcome};
use crate::exits;
use crate::pcpu::Pcpu;
use crate::shared::VMS;
use abi::status::Exit;
use vgic::Effects;

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
    /// Decodes a syndrome; none when it does not describe the instruction.
    fn decode(iss: u64) -> Option<Self> {
        const VALID: u64 = 1 << 24;
        const CACHE_MAINTENANCE: u64 = 1 << 8;
        (iss & VALID != 0 && iss & CACHE_MAINTENANCE == 0).then_some(Self {
            write: iss & 1 << 6 != 0,
            size: 1 << (iss >> 22 & 3),
            register: (iss >> 16 & 0x1f) as usize,
            sign_extend: iss & 1 << 21 != 0,
            wide: iss & 1 << 15 != 0,
        })
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
    /// Stage 2 fault on a stage 1 table walk.
    const ON_WALK: u64 = 1 << 7;
    let (address, ipa) = context::fault_addresses();
    let iss = syndrome.iss();
    let access = Access::decode(iss).filter(|_| iss & ON_WALK == 0);
    let is_emulated = access.is_some_and(|access| emulate(core, access, ipa));
    if is_emulated {
        context::skip_instruction();
        Exit::Mmio
    } else {
        exits::deliver(core, Fault::Data(address, iss & 1 << 6 != 0));
        Exit::Abort
    }
}

/// Lets the device at a guest-physical address carry an access out. Returns true if there
/// is one.
fn emulate(core: &mut Pcpu, access: Access, ipa: u64) -> bool {
    let system = core.system();
    let Some(vcpu) = core.loaded() else {
        bug!("an access without a loaded vCPU");
        return false;
    };
    let (vm, index, shared) = (vcpu.vm(), vcpu.index(), vcpu.config().shared());
    let table = &system.vms[vm];
    let Some((device, offset)) = bus::find(table, ipa) else { return false };
    let write = access.write.then(|| vcpu.register(access.register));
    let mut outcome = Outcome::default();
    core.with_interface(|interface, _, list_registers| {
        let vcpus = table.vcpu_count.into();
        let mut guest = Guest { index, vcpus, shared, interface, list_registers, injected: 0 };
        outcome = (device.access)(&mut guest, bus::Access { offset, size: access.size, write });
        guest.injected
    });
    if write.is_none()
        && let Some(vcpu) = core.loaded_mut()
    {
        vcpu.set_register(access.register, access.extend(outcome.value));
    }
    deactivate_physical(vm, outcome.effects);
    core.notify(vm, outcome.effects);
    if outcome.has_output {
        core.console_has_output(vm);
    }
    true
}

/// Deactivates the physical interrupts behind those that the guest made inactive.
fn deactivate_physical(vm: usize, effects: Effects) {
    let Some((word, bits)) = effects.deactivate else { return };
    for bit in sched::Members(u64::from(bits)) {
        if let Some(physical) = VMS[vm].gic.physical((word * 32 + bit) as u32) {
            gic::deactivate(physical);
        }
    }
}
