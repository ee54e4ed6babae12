//! The system that the host packed is believed only when it is whole, and this machine
//! can do what it needs.

use crate::arch::{boot, cpu, digest, gic, memory, timer};
use crate::tables;
use abi::digest::sha256;
use abi::system::{HYPERVISOR_SIZE, Invalid, Part, System, part};
use sched::policy::MigrationPolicy;

/// Checks that the tables themselves are what the host wrote.
///
/// # Errors
/// Says in words what is wrong.
pub fn tables(system: &System) -> Result<(), &'static str> {
    system.header.identify().map_err(Invalid::message)?;
    if system.digest(|bytes| sha256(&mut bytes.into_iter(), digest::add))
        != system.header.tables_sha256
    {
        return Err(Invalid::TablesDigest.message());
    }
    #[cfg(feature = "signature")]
    super::signature::check(system)?;
    system.validate().map_err(Invalid::message)?;
    if cfg!(feature = "gic-v2") && !system.has_gic_v2() {
        return Err(
            "the system is one of a board with a GICv3, and this hypervisor is for a GICv2",
        );
    }
    let image = boot::image_pa();
    if system.board.hypervisor_pa != image || system.header.bundle_pa != image + HYPERVISOR_SIZE {
        return Err("the system was packed for another address");
    }
    Ok(())
}

/// Checks what EL2 can reach by its page table, before it uses it.
///
/// # Errors
/// Says in words what is wrong.
pub fn own_reach(system: &System) -> Result<(), &'static str> {
    system.check_stage1(&word).map_err(Invalid::message)
}

/// Checks what the VMs can reach by theirs.
///
/// # Errors
/// Says in words what is wrong.
pub fn reach_of_vms(system: &System) -> Result<(), &'static str> {
    system.check_stage2(&word).map_err(Invalid::message)
}

/// Reads a word of a page table.
fn word(pa: u64) -> u64 {
    // SAFETY: the checks ask for words of pages in the bundle only, of which `System::validate`
    // has shown that it lies in RAM; no core writes it.
    unsafe { memory::at::<u64>(pa).read() }
}

/// Checks that EL2's page table is what the host packed.
///
/// # Errors
/// If it is not: it.
pub fn own_table(system: &'static System) -> Result<(), &'static Part> {
    parts(system, |part| part.kind == part::STAGE1)
}

/// Checks that the hypervisor's code and the VMs' page tables are what the host packed. What a VM
/// is filled with is compared before that VM starts.
///
/// # Errors
/// The first part that is not.
pub fn own_parts(system: &'static System) -> Result<(), &'static Part> {
    parts(system, |part| part.kind != part::STAGE1 && !part.fills_memory())
}

fn parts(system: &'static System, asked: impl Fn(&Part) -> bool) -> Result<(), &'static Part> {
    let sound = |part: &&Part| {
        // SAFETY: `System::validate` has shown that the part lies in the bundle or in the
        // hypervisor's memory. The host makes one there of what no core writes.
        let bytes =
            unsafe { core::slice::from_raw_parts(memory::at::<u8>(part.pa), part.size as usize) };
        sha256(&mut [bytes].into_iter(), digest::add) == part.sha256
    };
    system.parts().iter().filter(|part| asked(part)).find(|part| !sound(part)).map_or(Ok(()), Err)
}

/// Checks that this machine can do what the migration policies need.
///
/// # Errors
/// Says in words what is wrong.
pub fn policies(system: &System) -> Result<(), &'static str> {
    for vm in system.vms() {
        let kind = MigrationPolicy::from_number(vm.migration_policy)
            .ok_or("a VM has an unknown migration policy")?;
        if kind.needs().views && !cpu::has_xnx() {
            return Err("a VM's migration policy needs FEAT_XNX, which this core lacks");
        }
        let others = tables::other_policies(vm);
        let can_follow = others.is_within(MigrationPolicy::SWITCHABLE) && kind.is_switchable();
        if !others.is_empty() && !can_follow {
            return Err("a VM's migration policies cannot follow each other");
        }
    }
    Ok(())
}

/// Checks that the core has EL2's registers, as EL2 uses them. Nothing else may be done before.
///
/// # Errors
/// Says in words what is wrong.
pub fn level() -> Result<(), &'static str> {
    if !cpu::is_at_el2() {
        return Err("the boot loader or firmware did not enter at EL2");
    }
    if cpu::is_host() {
        return Err("this core cannot leave VHE (HCR_EL2.E2H)");
    }
    Ok(())
}

/// Checks, on each core that begins, that it is the core that the tables mean, in the state that
/// EL2 needs, and that it can be shared.
///
/// # Errors
/// Says in words what is wrong.
pub fn core(system: &System, index: usize) -> Result<(), &'static str> {
    // In this order: what is looked at may be there only if the conditions before hold.
    level()?;
    let affinity = cpu::affinity();
    if system.board.pcpu_mpidr[index] != affinity {
        return Err("a core's affinity (MPIDR_EL1) is not that of its place in pcpu_mpidr");
    }
    if timer::frequency_hz() == 0 {
        return Err("the firmware has not set CNTFRQ_EL0");
    }
    gic::check(&system.board, index, affinity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::fake::machine;
    use crate::arch::fake::registers::Register;
    use zerocopy::FromZeros;

    /// Two cores, on the second of which the test executes, as the firmware leaves them.
    fn prepare() -> System {
        let mut system = System::new_zeroed();
        system.board.pcpu_count = 2;
        system.board.pcpu_mpidr[..2].copy_from_slice(&[0x100, 0x2_0000_0101]);
        (system.board.gicr_pa, system.board.gicr_stride) = (0x1000_0000, 0x2_0000);
        machine::install(system.board);
        machine::with(|machine| machine.current = 1);
        system
    }

    fn refuses(system: &System, word: &str) {
        let objection = core(system, 1).expect_err(word);
        assert!(objection.contains(word), "{objection}");
    }

    #[test]
    fn a_core_is_taken_in_the_state_that_boards_must_leave_it_in() {
        assert_eq!(core(&prepare(), 1), Ok(()));
        for (register, value, word) in [
            ("currentel", 1 << 2, "EL2"),
            ("hcr_el2", 1 << 34, "VHE"),
            ("mpidr_el1", 0x100, "pcpu_mpidr"),
            ("cntfrq_el0", 0, "CNTFRQ_EL0"),
        ] {
            let system = prepare();
            machine::with(|machine| {
                machine.cores[1].registers[Register::named(register).0] = value
            });
            refuses(&system, word);
        }
    }

    #[test]
    fn each_core_has_its_own_redistributor() {
        let mut system = prepare();
        system.board.gicr_pa -= system.board.gicr_stride;
        refuses(&system, "redistributor");
    }

    #[test]
    fn a_core_that_no_doorbell_reaches_is_refused() {
        const RANGE_SELECTOR: u64 = 1 << 18;
        let mut system = prepare();
        system.board.pcpu_mpidr[0] = 0x10;
        refuses(&system, "range selector");
        machine::with(|machine| {
            machine.cores[1].registers[Register::named("icc_ctlr_el1").0] = RANGE_SELECTOR;
        });
        assert_eq!(core(&system, 1), Ok(()));
    }
}
