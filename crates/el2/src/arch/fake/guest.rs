//! What a guest does without EL2: its own CPU interface.

use super::machine::{Core, Machine};
use super::registers::{ICH_AP1R0, ICH_HCR, ICH_LR0, ICH_VMCR};
use vgic::interface::ListRegister;

/// List registers that this machine has.
const LIST_REGISTERS: usize = 4;
const PENDING: u64 = 1 << 62;
const ACTIVE: u64 = 1 << 63;

/// The list registers of a core.
pub fn list_registers(core: &Core) -> impl Iterator<Item = ListRegister> + Clone + use<> {
    let mut values = [0; LIST_REGISTERS];
    values.copy_from_slice(&core.registers[ICH_LR0.0..ICH_LR0.0 + LIST_REGISTERS]);
    values.into_iter().map(ListRegister)
}

impl Machine {
    /// The list register whose interrupt the guest of a core would take now.
    pub fn virtual_signalled(&self, core: usize) -> Option<usize> {
        let vmcr = self.register(core, ICH_VMCR);
        let (mask, groups) = ((vmcr >> 24) as u8, [vmcr & 1 != 0, vmcr & 2 != 0]);
        let running = self.running_priority(core);
        if self.register(core, ICH_HCR) & 1 == 0 {
            return None;
        }
        let ready = |register: &ListRegister| {
            register.is_pending()
                && !register.is_active()
                && groups[usize::from(register.is_group1())]
                && register.priority() < mask
                && u32::from(register.priority()) < running
        };
        let registers = list_registers(&self.cores[core]).enumerate();
        let ready = registers.filter(|(_, register)| ready(register));
        ready.min_by_key(|(_, register)| (register.priority(), register.intid())).map(|(at, _)| at)
    }

    /// By the active priorities register; 5 bits of priority.
    fn running_priority(&self, core: usize) -> u32 {
        let active = self.register(core, ICH_AP1R0) as u32;
        if active == 0 { 0x100 } else { active.trailing_zeros() << 3 }
    }

    /// The guest acknowledges its most urgent interrupt.
    pub fn virtual_acknowledge(&mut self, core: usize) -> Option<u32> {
        let at = self.virtual_signalled(core)?;
        let register = self.list_register(core, at);
        *register = *register & !PENDING | ACTIVE;
        let taken = ListRegister(*register);
        self.cores[core].registers[ICH_AP1R0.0] |= 1 << (taken.priority() >> 3);
        Some(taken.intid())
    }

    /// The guest ends an interrupt it has acknowledged.
    pub fn virtual_end(&mut self, core: usize, intid: u32) {
        const EOI_COUNT: u64 = 1 << 27;
        let active = &mut self.cores[core].registers[ICH_AP1R0.0];
        *active &= active.wrapping_sub(1);
        let mut registers = list_registers(&self.cores[core]);
        let found =
            registers.position(|register| register.is_active() && register.intid() == intid);
        let Some(at) = found else {
            let control = &mut self.cores[core].registers[ICH_HCR.0];
            if *control >> 27 & 0x1f < 0x1f {
                *control += EOI_COUNT;
            }
            return;
        };
        let register = self.list_register(core, at);
        *register &= !ACTIVE;
        let physical = ListRegister(*register).physical();
        if let Some(physical) = physical {
            let current = std::mem::replace(&mut self.current, core);
            self.deactivate(physical);
            self.current = current;
        }
    }
}
