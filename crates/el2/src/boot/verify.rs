//! The system that the host packed is believed only when it is whole, and this machine
//! can do what it needs.

use crate::arch::{boot, cpu, memory};
use abi::system::{HYPERVISOR_SIZE, Invalid, PAGE_SIZE, System};
use sched::policy::MigrationPolicy;
use zerocopy::IntoBytes;

/// Checks that the tables themselves are what the host wrote.
///
/// # Errors
/// Says in words what is wrong.
pub fn tables(system: &System) -> Result<(), &'static str> {
    system.header.identify().map_err(Invalid::message)?;
    if system.tables_crc(memory::crc32) != system.header.tables_crc {
        return Err(Invalid::TablesChecksum.message());
    }
    system.validate().map_err(Invalid::message)?;
    let image = boot::image_pa();
    if system.board.hypervisor_pa != image || system.header.bundle_pa != image + HYPERVISOR_SIZE {
        return Err("the system was packed for another address");
    }
    Ok(())
}

/// Checks that all that lies behind the tables is what the host wrote.
///
/// # Errors
/// Says in words what is wrong.
pub fn payload(system: &System) -> Result<(), &'static str> {
    let begin = system.header.bundle_pa + system.as_bytes().len() as u64;
    let length = system.header.bundle_size - system.as_bytes().len() as u64;
    debug_assert!(length < u64::MAX - PAGE_SIZE);
    // SAFETY: `System::validate` has shown that the bundle lies in RAM; it is
    // mapped and no core writes it.
    let payload = unsafe { core::slice::from_raw_parts(memory::at::<u8>(begin), length as usize) };
    if memory::crc32(0, payload) == system.header.payload_crc {
        Ok(())
    } else {
        Err(Invalid::PayloadChecksum.message())
    }
}

/// Checks that this machine can do what the migration policies need.
///
/// # Errors
/// Says in words what is wrong.
pub fn policies(system: &System) -> Result<(), &'static str> {
    for vm in system.vms() {
        let kind = MigrationPolicy::from_number(vm.migration_policy)
            .ok_or("a VM has an unknown migration policy")?;
        if kind.policy().needs().views && !cpu::has_xnx() {
            return Err("a VM's migration policy needs FEAT_XNX, which this core has not");
        }
    }
    Ok(())
}
