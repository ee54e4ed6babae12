//! A model of one core's list registers and of the CPU interface its guest
//! sees: 32 priorities, binary points at their least.

use crate::interface::{Hardware, ListRegister, Maintenance};
use std::collections::VecDeque;

/// What an acknowledge answers when nothing can be signalled.
pub const SPURIOUS: u32 = 1023;

const PENDING: u64 = 1 << 62;
const ACTIVE: u64 = 1 << 63;
const HARDWARE: u64 = 1 << 61;
const GROUP1: u64 = 1 << 60;
const TELL_EOI: u64 = 1 << 41;
/// ICH_HCR_EL2.EOIcount has five bits.
const EOI_COUNT_END: u32 = 32;

/// See the module.
pub struct Cpu {
    registers: Vec<ListRegister>,
    eoi_count: u32,
    maintenance: Maintenance,
    /// ICC_PMR_EL1.
    pub mask: u8,
    /// ICC_CTLR_EL1.EOImode: EOI only drops the priority, DIR deactivates.
    pub split_eoi: bool,
    /// ICC_IGRPEN0_EL1 and ICC_IGRPEN1_EL1.
    pub groups: [bool; 2],
    /// Priorities of what was acknowledged and not yet dropped, innermost last.
    running: Vec<u8>,
    /// vCPUs whose cores were rung.
    pub rung: u8,
    /// Physical interrupts deactivated, by the list registers or by EL2.
    pub deactivated: VecDeque<u32>,
    /// Says at each look whether something urgent has come.
    pub looks: Looks,
}

/// What [`Hardware::urgent`] answers.
pub enum Looks {
    /// Nothing ever comes.
    Never,
    /// Something has come at every look.
    Always,
    /// At those looks whose bit is set, from the lowest on and round again.
    Bits(u64),
}

impl Cpu {
    pub fn new(count: usize) -> Self {
        Self {
            registers: vec![ListRegister(0); count],
            eoi_count: 0,
            maintenance: Maintenance::default(),
            mask: 0xff,
            split_eoi: false,
            groups: [true; 2],
            running: Vec::new(),
            rung: 0,
            deactivated: VecDeque::new(),
            looks: Looks::Never,
        }
    }

    pub fn registers(&self) -> &[ListRegister] {
        &self.registers
    }

    pub fn running_priority(&self) -> u16 {
        self.running.last().map_or(0x100, |&priority| priority.into())
    }

    fn signalled(&self) -> Option<usize> {
        let best = (0..self.registers.len())
            .filter(|&at| {
                let register = self.registers[at];
                let group = usize::from(register.0 & GROUP1 != 0);
                register.is_pending() && !register.is_active() && self.groups[group]
            })
            .min_by_key(|&at| (self.registers[at].priority(), self.registers[at].intid()))?;
        let priority = self.registers[best].priority();
        (priority < self.mask && u16::from(priority) < self.running_priority()).then_some(best)
    }

    /// What an acknowledge would answer now.
    pub fn signalled_intid(&self) -> u32 {
        self.signalled().map_or(SPURIOUS, |at| self.registers[at].intid())
    }

    /// The guest reads ICC_IAR0_EL1 or ICC_IAR1_EL1, whichever applies.
    pub fn acknowledge(&mut self) -> u32 {
        let Some(at) = self.signalled() else { return SPURIOUS };
        let register = &mut self.registers[at];
        register.0 = register.0 & !PENDING | ACTIVE;
        self.running.push(register.priority());
        register.intid()
    }

    /// The guest writes ICC_EOIR0_EL1 or ICC_EOIR1_EL1.
    pub fn end(&mut self, intid: u32) {
        self.running.pop().expect("an EOI matches an acknowledge");
        if !self.split_eoi {
            self.deactivate_virtual(intid);
        }
    }

    /// The guest writes ICC_DIR_EL1 and it does not trap.
    pub fn deactivate_virtual(&mut self, intid: u32) {
        let found = self.registers.iter_mut().find(|r| r.is_active() && r.intid() == intid);
        let Some(register) = found else {
            self.eoi_count = (self.eoi_count + 1) % EOI_COUNT_END;
            return;
        };
        register.0 &= !ACTIVE;
        self.deactivated.extend(register.physical());
    }

    /// DIR traps while an interrupt may be active without a list register.
    pub fn traps_dir(&self) -> bool {
        self.maintenance.unlisted_eoi
    }

    /// The vCPU starts anew: nothing is running.
    pub fn restart(&mut self) {
        self.running.clear();
    }

    /// Returns true if the maintenance interrupt is asserted.
    pub fn wants_maintenance(&self) -> bool {
        let none_pending = !self.registers.iter().any(|r| r.is_pending());
        let ended = self.registers.iter().any(|r| {
            !r.is_pending() && !r.is_active() && r.0 & HARDWARE == 0 && r.0 & TELL_EOI != 0
        });
        ended
            || self.maintenance.none_pending && none_pending
            || self.maintenance.unlisted_eoi && self.eoi_count > 0
    }
}

impl Hardware for Cpu {
    fn count(&self) -> usize {
        self.registers.len()
    }

    fn read(&self, index: usize) -> ListRegister {
        self.registers[index]
    }

    fn write(&mut self, index: usize, value: ListRegister) {
        self.registers[index] = value;
        let busy = |r: &ListRegister| r.is_pending() || r.is_active();
        if busy(&value) {
            let same = |r: &&ListRegister| busy(r) && r.intid() == value.intid();
            assert_eq!(self.registers.iter().filter(same).count(), 1, "one INTID listed twice");
            assert!(
                value.physical().is_none() || !(value.is_pending() && value.is_active()),
                "a physical interrupt must not be active and pending"
            );
        }
    }

    fn empty(&self) -> u32 {
        let idle = |r: &ListRegister| {
            let tells = r.0 & HARDWARE == 0 && r.0 & TELL_EOI != 0;
            !r.is_pending() && !r.is_active() && !tells
        };
        (0..self.registers.len()).filter(|&at| idle(&self.registers[at])).map(|at| 1 << at).sum()
    }

    fn take_eoi_count(&mut self) -> u32 {
        std::mem::take(&mut self.eoi_count)
    }

    fn set_maintenance(&mut self, wanted: Maintenance) {
        self.maintenance = wanted;
        // It is in the register that is written.
        self.eoi_count = 0;
    }

    fn deactivate(&mut self, physical: u32) {
        self.deactivated.push_back(physical);
    }

    fn notify(&mut self, vcpus: u8) {
        self.rung |= vcpus;
    }

    fn urgent(&mut self) -> bool {
        super::work::look();
        match &mut self.looks {
            Looks::Never => false,
            Looks::Always => true,
            Looks::Bits(bits) => {
                let urgent = *bits & 1 != 0;
                *bits = bits.rotate_right(1);
                urgent
            }
        }
    }
}
