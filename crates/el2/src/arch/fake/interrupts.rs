//! The physical interrupt controller and the timers (Arm IHI 0069), as far as
//! EL2 uses them.

use super::guest::list_registers;
use super::machine::{Machine, Stale};
use super::registers::{
    CNTHP_CTL, CNTHP_CVAL, CNTP_CTL, CNTP_CVAL, CNTV_CTL, CNTV_CVAL, ICH_HCR, ICH_LR0, PMR,
    Register,
};
use crate::arch::gic::MAINTENANCE;
use crate::arch::timer::{EL2_INTID, VIRTUAL_INTID, WATCH_INTID};
use vgic::interface::ListRegister;

/// Words of 32 interrupts that there are.
const WORDS: usize = 9;
/// A guest may set its timer to the end of days, ticks.
const FAR: u64 = 1 << 40;
/// Priority of a core that has acknowledged nothing.
const IDLE_PRIORITY: u8 = 0xff;

/// A core's private interrupts, a bit each.
#[derive(Debug, Default)]
pub struct Private {
    pub enabled: u32,
    pub latched: u32,
    pub active: u32,
    /// GICR_ICFGR1.
    pub config: u32,
    pub priority: [u8; 32],
}

/// Shared interrupts, a bit each in words of 32.
pub struct Distributor {
    pub enabled: [u32; WORDS],
    pub latched: [u32; WORDS],
    pub level: [u32; WORDS],
    pub active: [u32; WORDS],
    pub config: [u32; 2 * WORDS],
    pub priority: [u8; 32 * WORDS],
    pub route: [u64; 32 * WORDS],
}

impl Default for Distributor {
    fn default() -> Self {
        Self {
            enabled: [0; WORDS],
            latched: [0; WORDS],
            level: [0; WORDS],
            active: [0; WORDS],
            config: [0; 2 * WORDS],
            priority: [0; 32 * WORDS],
            route: [0; 32 * WORDS],
        }
    }
}

impl Machine {
    /// CNTV_CTL_EL0 of a core, with ISTATUS.
    pub fn virtual_timer_control(&self, core: usize) -> u64 {
        let (control, compare) = (self.register(core, CNTV_CTL), self.register(core, CNTV_CVAL));
        control & 3 | self.timer_status((control, compare))
    }

    /// ISTATUS of a timer with these registers.
    fn timer_status(&self, (control, compare): (u64, u64)) -> u64 {
        u64::from(control & 1 != 0 && self.now >= compare) << 2
    }

    /// What the core that executes reads of its virtual timer's control.
    pub fn read_timer_control(&self) -> u64 {
        let control = self.virtual_timer_control(self.current);
        match self.core().stale {
            Some(stale) => control & 3 | self.timer_status(stale.timer),
            None => control,
        }
    }

    /// What the core that executes reads of its empty list registers.
    pub fn read_empty_list_registers(&self) -> u32 {
        let stale = self.core().stale;
        stale.map_or_else(|| self.empty_list_registers(self.current), |stale| stale.empty)
    }

    /// The core that executes writes a register whose effects it may read in another one.
    pub fn grow_stale(&mut self) {
        let core = self.current;
        if self.core().stale.is_none() {
            let timer = (self.register(core, CNTV_CTL), self.register(core, CNTV_CVAL));
            let stale = Stale { empty: self.empty_list_registers(core), timer };
            self.core_mut().stale = Some(stale);
        }
    }

    fn levels(&self, core: usize) -> u32 {
        let fires = |control: Register, compare: Register| {
            self.register(core, control) & 3 == 1 && self.now >= self.register(core, compare)
        };
        let virtual_ = self.virtual_timer_control(core) & 7 == 5;
        u32::from(fires(CNTHP_CTL, CNTHP_CVAL)) << EL2_INTID
            | u32::from(fires(CNTP_CTL, CNTP_CVAL)) << WATCH_INTID
            | u32::from(virtual_) << VIRTUAL_INTID
            | u32::from(self.wants_maintenance(core)) << MAINTENANCE
    }

    /// ICH_MISR_EL2 is not zero.
    fn wants_maintenance(&self, core: usize) -> bool {
        const EN: u64 = 1 << 0;
        const LRENPIE: u64 = 1 << 2;
        const NPIE: u64 = 1 << 3;
        let control = self.register(core, ICH_HCR);
        if control & EN == 0 {
            return false;
        }
        let mut registers = list_registers(&self.cores[core]);
        let none_pending = control & NPIE != 0 && !registers.clone().any(ListRegister::is_pending);
        let unlisted = control & LRENPIE != 0 && control >> 27 & 0x1f != 0;
        none_pending || unlisted || registers.any(has_eoi)
    }

    /// ICH_ELRSR_EL2.
    pub fn empty_list_registers(&self, core: usize) -> u32 {
        let registers = list_registers(&self.cores[core]).enumerate();
        let empty = |register: ListRegister| {
            !register.is_pending() && !register.is_active() && !has_eoi(register)
        };
        registers.filter(|&(_, register)| empty(register)).fold(0, |set, (at, _)| set | 1 << at)
    }

    /// The interrupt that is signalled to a core, if any.
    pub fn signalled(&self, core: usize) -> Option<u32> {
        let at = &self.cores[core];
        let mask =
            (at.registers[PMR.0] as u8).min(at.running.last().copied().unwrap_or(IDLE_PRIORITY));
        let private =
            (at.private.latched | self.levels(core)) & at.private.enabled & !at.private.active;
        let private = bits(private).map(|intid| (at.private.priority[intid as usize], intid));
        let d = &self.distributor;
        let shared = (1..WORDS).flat_map(|word| {
            let ready = (d.latched[word] | d.level[word]) & d.enabled[word] & !d.active[word];
            bits(ready).map(move |bit| word as u32 * 32 + bit)
        });
        let shared = shared
            .filter(|&intid| d.route[intid as usize] == self.board.pcpu_mpidr[core])
            .map(|intid| (d.priority[intid as usize], intid));
        let best = private.chain(shared).filter(|&(priority, _)| priority < mask).min();
        best.map(|(_, intid)| intid)
    }

    /// ICC_IAR1_EL1 of the core that executes.
    pub fn acknowledge(&mut self) -> Option<u32> {
        let intid = self.signalled(self.current)?;
        let (word, bit) = (intid as usize / 32, 1 << (intid % 32));
        let priority = if word == 0 {
            let private = &mut self.core_mut().private;
            private.latched &= !bit;
            private.active |= bit;
            private.priority[intid as usize]
        } else {
            self.distributor.latched[word] &= !bit;
            self.distributor.active[word] |= bit;
            self.distributor.priority[intid as usize]
        };
        self.core_mut().running.push(priority);
        Some(intid)
    }

    /// ICC_EOIR1_EL1, with EOImode 1.
    pub fn drop_priority(&mut self, intid: u32) {
        let dropped = self.core_mut().running.pop();
        assert!(dropped.is_some(), "the priority of {intid} was dropped, but none was running");
    }

    /// ICC_DIR_EL1, or the end of an interrupt that a list register named.
    pub fn deactivate(&mut self, intid: u32) {
        let (word, bit) = (intid as usize / 32, 1 << (intid % 32));
        if word == 0 {
            self.core_mut().private.active &= !bit;
        } else {
            self.distributor.active[word] &= !bit;
        }
    }

    /// ICC_SGI1R_EL1. Affinities are below 16 here, so a target list is a set of
    /// cores.
    pub fn send_sgi(&mut self, value: u64) {
        let intid = value >> 24 & 0xf;
        for core in bits(value as u32 & 0xffff) {
            self.cores[core as usize].private.latched |= 1 << intid;
        }
    }

    /// A device signals.
    pub fn raise(&mut self, intid: u32) {
        self.distributor.latched[intid as usize / 32] |= 1 << (intid % 32);
    }

    /// When the first timer of any core fires that is on and has not, unless that
    /// is too far away to wait for.
    pub fn next_timer(&self) -> Option<u64> {
        let timers = (0..self.cores.len()).flat_map(|core| {
            let all = [(CNTHP_CTL, CNTHP_CVAL), (CNTP_CTL, CNTP_CVAL), (CNTV_CTL, CNTV_CVAL)];
            all.map(|(control, compare)| {
                let on = self.cores[core].on && self.register(core, control) & 3 == 1;
                on.then(|| self.register(core, compare))
            })
        });
        timers.flatten().filter(|&at| at > self.now && at - self.now < FAR).min()
    }

    /// The register of a list register.
    pub fn list_register(&mut self, core: usize, index: usize) -> &mut u64 {
        &mut self.cores[core].registers[ICH_LR0.0 + index]
    }
}

/// Ended, and EL2 is to hear of it.
fn has_eoi(register: ListRegister) -> bool {
    const HARDWARE: u64 = 1 << 61;
    const EOI: u64 = 1 << 41;
    let state = register.is_pending() || register.is_active();
    !state && register.0 & HARDWARE == 0 && register.0 & EOI != 0
}

/// The numbers of the bits that are set.
pub fn bits(set: u32) -> impl Iterator<Item = u32> + Clone {
    (0..32).filter(move |bit| set >> bit & 1 == 1)
}
