//! Trapped system registers.
//!
//! Only SGIs are frequent. A guest sees the identification registers of the core,
//! less features that EL2 does not switch (they would leak between guests).
//! Trace registers, and those debug registers that are no breakpoint's, read as zero
//! and ignore writes, which suffices for guests that probe for them.

use crate::arch::context::{self, Fault, Syndrome};
use crate::arch::debug;
#[cfg(not(feature = "gic-v2"))]
use crate::arch::gic::common_group;
use crate::arch::monitors::{self, Monitor};
use crate::arch::sysreg::read_sysreg;
use crate::arch::timer;
use crate::bug::bug;
use crate::exits;
use crate::pcpu::Pcpu;
use crate::shared::{Sibling, SiblingSet, VMS};
use abi::status::Exit;
use vgic::Effects;

/// The register an instruction names.
type Name = (u64, u64, u64, u64, u64);

/// op0, op1, CRn, CRm, op2.
fn name(iss: u64) -> Name {
    (iss >> 20 & 3, iss >> 14 & 7, iss >> 10 & 0xf, iss >> 1 & 0xf, iss >> 17 & 7)
}

const ICC_SGI1R: Name = (3, 0, 12, 11, 5);
const ICC_ASGI1R: Name = (3, 0, 12, 11, 6);
const ICC_SGI0R: Name = (3, 0, 12, 11, 7);
const ICC_DIR: Name = (3, 0, 12, 11, 1);
#[cfg(not(feature = "gic-v2"))]
const ICC_PMR: Name = (3, 0, 4, 6, 0);
#[cfg(not(feature = "gic-v2"))]
const ICC_RPR: Name = (3, 0, 12, 11, 3);
#[cfg(not(feature = "gic-v2"))]
const ICC_CTLR: Name = (3, 0, 12, 12, 4);
#[cfg(not(feature = "gic-v2"))]
const ICC_SRE: Name = (3, 0, 12, 12, 5);
/// A guest's interface to the interrupt controller is one of system registers.
const HAS_INTERFACE: bool = cfg!(not(feature = "gic-v2"));
const ACTLR_EL1: Name = (3, 0, 1, 0, 1);
const MDSCR_EL1: Name = (2, 0, 0, 2, 2);
const OSLSR_EL1: Name = (2, 0, 1, 1, 4);

/// Handles an MSR, MRS or system instruction that trapped.
#[inline(never)]
pub fn system_register(core: &mut Pcpu, syndrome: Syndrome) -> Exit {
    let iss = syndrome.iss();
    let is_read = iss & 1 != 0;
    let register = (iss >> 5 & 0x1f) as usize;
    let value = core.loaded().map_or(0, |vcpu| vcpu.register(register));
    let name = name(iss);
    if HAS_INTERFACE && !is_read && matches!(name, ICC_SGI1R | ICC_ASGI1R | ICC_SGI0R) {
        context::skip_instruction(syndrome);
        send_sgi(core, value, name == ICC_SGI1R);
        return Exit::Sgi;
    }
    if HAS_INTERFACE && !is_read && name == ICC_DIR {
        if deactivate(core, value as u32 & 0xff_ffff) {
            context::skip_instruction(syndrome);
        }
        return Exit::SystemRegister;
    }
    if !is_read && let (3, 3, 14, 2, op2 @ 0..=2) = name {
        context::skip_instruction(syndrome);
        core.write_physical_timer(op2, value);
        return Exit::SystemRegister;
    }
    let outcome = if is_read { read(core, name) } else { write(core, name, value) };
    match outcome {
        Some(value) => {
            context::skip_instruction(syndrome);
            if is_read && let Some(vcpu) = core.loaded_mut() {
                vcpu.set_register(register, value);
            }
        }
        None => exits::deliver(core, Fault::Undefined),
    }
    Exit::SystemRegister
}

/// Reads a register; none: there is no such register.
fn read(core: &mut Pcpu, name: Name) -> Option<u64> {
    match name {
        (3, 3, 14, 2, op2) => core.loaded()?.read_physical_timer(op2, timer::now()),
        (3, 0, 0, crm @ 1..=7, op2) => Some(identification(crm, op2)),
        MDSCR_EL1 => Some(debug::control()),
        (2, 0, 0, number, kind @ 4..=7) => Some(core.loaded()?.debug_register(number, kind)),
        #[cfg(not(feature = "gic-v2"))]
        // SRE, DFB, DIB: the interface is one of system registers, and stays so.
        ICC_SRE => Some(0x7),
        #[cfg(not(feature = "gic-v2"))]
        ICC_PMR => Some(common_group::priority_mask()),
        #[cfg(not(feature = "gic-v2"))]
        ICC_RPR => Some(common_group::running_priority()),
        #[cfg(not(feature = "gic-v2"))]
        ICC_CTLR => Some(common_group::control()),
        // The OS lock is implemented (OSLM) and unlocked.
        OSLSR_EL1 => Some(1 << 3),
        _ => access_other(core, name, None),
    }
}

/// Writes a register; none: there is no such register.
fn write(core: &mut Pcpu, name: Name, value: u64) -> Option<u64> {
    match name {
        MDSCR_EL1 => core.loaded_mut()?.set_debug_control(value),
        (2, 0, 0, number, kind @ 4..=7) => {
            core.loaded_mut()?.set_debug_register(number, kind, value);
        }
        #[cfg(not(feature = "gic-v2"))]
        ICC_SRE => {}
        #[cfg(not(feature = "gic-v2"))]
        ICC_PMR => common_group::set_priority_mask(value),
        #[cfg(not(feature = "gic-v2"))]
        ICC_CTLR => common_group::set_control(value),
        _ => return access_other(core, name, Some(value)),
    }
    Some(0)
}

/// Deactivates an interrupt: a write to ICC_DIR_EL1. Returns false if the guest has to execute
/// that again.
fn deactivate(core: &mut Pcpu, intid: u32) -> bool {
    let mut done = true;
    core.with_interface(|interface, gic, hw| {
        done = interface.deactivate(gic, hw, intid);
        0
    });
    done
}

/// Returns true if a register reads as zero and ignores writes: ACTLR_EL1, what else there is of
/// debug, trace, event counters.
fn is_silent(name: Name) -> bool {
    matches!(
        name,
        ACTLR_EL1 | (2, ..) | (3, 0, 9, 14, _) | (3, 3, 9, 12..=14, _) | (3, 3, 14, 8..=15, _)
    )
}

/// Writes a value, or reads a register of which nothing else is known here: one that concerns the
/// cycle counter, or is silent.
#[inline(never)]
fn access_other(core: &mut Pcpu, name: Name, value: Option<u64>) -> Option<u64> {
    let (op0, op1, crn, crm, op2) = name;
    match Monitor::named(op1, crn, crm, op2).filter(|_| op0 == 3) {
        Some(monitor) => Some(core.loaded_mut()?.access_monitor(monitor, value)),
        None => is_silent(name).then_some(0),
    }
}

/// Sends an SGI: a write to ICC_SGI1R_EL1, ICC_ASGI1R_EL1 or ICC_SGI0R_EL1 (IHI 0069H,
/// section 12.2).
fn send_sgi(core: &mut Pcpu, value: u64, for_group1: bool) {
    const ALL_BUT_SELF: u64 = 1 << 40;
    const HIGHER_AFFINITY: u64 = 0xff << 48 | 0xff << 32 | 0xff << 16;
    const RANGE: u64 = 0xf << 44;
    const TARGETS: u64 = 0xffff;
    let Some(vcpu) = core.loaded() else { return bug!("an SGI without a loaded vCPU") };
    let (vm, sender) = (vcpu.vm(), vcpu.index());
    let own = SiblingSet::of(Sibling(sender));
    let all = SiblingSet::of_first(core.system().vm(vm).vcpu_count.into());
    let targets = if value & ALL_BUT_SELF != 0 {
        all - own
    } else if value & (HIGHER_AFFINITY | RANGE) == 0 {
        SiblingSet::from_bits(value & TARGETS) & all
    } else {
        SiblingSet::EMPTY
    };
    let intid = (value >> 24 & 0xf) as u32;
    let mut notify = 0;
    for Sibling(target) in targets {
        // As a write for group 0, or for the other security state's group 1,
        // reaches only what its owner put into group 0.
        if for_group1 || !VMS[vm].gic.is_group1(target, intid) {
            notify |= VMS[vm].gic.post(target, intid).notify;
        }
    }
    if targets != own {
        core.notify(vm, Effects { notify, deactivate: None });
    } else if notify != 0
        && let Some(id) = core.loaded().map(|vcpu| vcpu.id())
    {
        // It runs here, so where it is need not be found out.
        core.deliver_or_list_later(id);
    }
}

macro_rules! raw_identification {
    ($crm:expr, $op2:expr; $($m:literal $p:literal),* $(,)?) => {
        match ($crm, $op2) {
            $(($m, $p) => read_sysreg!(concat!("s3_0_c0_c", $m, "_", $p)),)*
            _ => 0,
        }
    };
}

/// Returns an identification register (op0 3, op1 0, CRn 0) of this core, less what guests must not
/// use. Not inlined: it has a place for each register of which anything passes.
#[inline(never)]
pub fn identification(crm: u64, op2: u64) -> u64 {
    let raw = raw_identification!(crm, op2;
        1 0, 1 1, 1 2, 1 3, 1 4, 1 5, 1 6, 1 7,
        2 0, 2 1, 2 2, 2 3, 2 4, 2 5, 2 6, 2 7,
        3 0, 3 1, 3 2, 3 3, 3 4, 3 5, 3 6, 3 7,
        4 0, 4 1, 5 0, 6 0, 6 1, 6 2, 7 0, 7 1, 7 2,
    );
    limit(crm, op2, raw & identification_mask(crm, op2))
}

/// Lowers the fields of ID_AA64PFR0_EL1 and ID_AA64DFR0_EL1 that promise more than guests get.
fn limit(crm: u64, op2: u64, value: u64) -> u64 {
    if (crm, op2) == (5, 0) {
        return value & !(0xf << 8) | monitors::version(value) << 8;
    }
    const EL1_AARCH64_ONLY: u64 = 1 << 4;
    const CSV2_SHIFT: u32 = 56;
    if (crm, op2) != (4, 0) {
        return value;
    }
    // CSV2 of 2 and more would mean SCXTNUM_ELx, which is not switched.
    let csv2 = (value >> CSV2_SHIFT & 0xf).min(1);
    (value & !(0xf << 4 | 0xf << CSV2_SHIFT)) | EL1_AARCH64_ONLY | csv2 << CSV2_SHIFT
}

/// Fields (4 bits each, by number from the lowest) that pass.
const fn fields(numbers: &[u32]) -> u64 {
    let mut mask = 0;
    let mut at = 0;
    while at < numbers.len() {
        mask |= 0xf << (4 * numbers[at]);
        at += 1;
    }
    mask
}

fn identification_mask(crm: u64, op2: u64) -> u64 {
    match (crm, op2) {
        // ID_DFR0_EL1: no performance monitors for AArch32, no trace.
        (1, 2) => fields(&[0, 1, 2]),
        (1..=3, _) => u64::MAX,
        // ID_AA64PFR0_EL1: no EL2, EL3, RAS, SVE, MPAM, AMU.
        (4, 0) => fields(&[0, 1, 4, 5, 6, 12, 14, 15]),
        // ID_AA64PFR1_EL1: BT, SSBS, CSV2_frac.
        (4, 1) => fields(&[0, 1, 8]),
        // ID_AA64DFR0_EL1: the architecture, performance monitors, breakpoints; no trace or profiling.
        (5, 0) => fields(&[0, 2, 3, 5, 7]),
        // ID_AA64ISAR0_EL1: no TME.
        (6, 0) => !fields(&[6]),
        // ID_AA64ISAR1_EL1: no pointer authentication, no 64-byte accesses.
        (6, 1) => !fields(&[1, 2, 6, 7, 15]),
        // ID_AA64ISAR2_EL1: RPRES, BC, CLRBHB. No WFxT: a WFI with a timeout
        // would lose it.
        (6, 2) => fields(&[1, 5, 7]),
        // ID_AA64MMFR0_EL1: no ECV, no fine-grained traps.
        (7, 0) => !fields(&[14, 15]),
        // ID_AA64MMFR1_EL1: HAFDBS, VMIDBits, HPDS, PAN, SpecSEI, ETS.
        (7, 1) => fields(&[0, 1, 3, 5, 6, 9]),
        // ID_AA64MMFR2_EL1: no nested virtualisation, no EVT.
        (7, 2) => !fields(&[6, 14]),
        // Not yet allocated when this was written, or not offered.
        _ => 0,
    }
}
