//! The interrupt controller as the architecture has it: one state machine for
//! each interrupt, no list registers, no delays. IHI 0069H, section 4.1.2 and
//! the descriptions of the registers.

use super::cpu::SPURIOUS;
use abi::platform::{INTID_END, SPI_FIRST, ppi::GRANT};

/// One interrupt: pending is what is latched, or the line of a level-triggered
/// one.
#[derive(Clone, Default, Debug)]
pub struct Interrupt {
    pub enabled: bool,
    pub group1: bool,
    pub edge: bool,
    pub latched: bool,
    pub high: bool,
    pub active: bool,
    pub priority: u8,
    pub route: u64,
}

impl Interrupt {
    pub fn is_pending(&self) -> bool {
        self.latched || self.high && !self.edge
    }
}

/// What a vCPU's CPU interface remembers.
#[derive(Clone, Default)]
struct Interface {
    running: Vec<u8>,
}

/// See the module.
pub struct Ideal {
    private: Vec<Vec<Interrupt>>,
    shared: Vec<Interrupt>,
    interfaces: Vec<Interface>,
    pub groups: [bool; 2],
}

impl Ideal {
    pub fn new(vcpus: usize) -> Self {
        let private =
            |intid| Interrupt { edge: intid < 16 || intid == GRANT, ..Interrupt::default() };
        Self {
            private: vec![(0..SPI_FIRST).map(private).collect(); vcpus],
            shared: vec![Interrupt::default(); (INTID_END - SPI_FIRST) as usize],
            interfaces: vec![Interface::default(); vcpus],
            groups: [true; 2],
        }
    }

    pub fn of(&mut self, vcpu: usize, intid: u32) -> &mut Interrupt {
        match intid.checked_sub(SPI_FIRST) {
            None => &mut self.private[vcpu][intid as usize],
            Some(shared) => &mut self.shared[shared as usize],
        }
    }

    pub fn set_level(&mut self, vcpu: usize, intid: u32, high: bool) {
        let interrupt = self.of(vcpu, intid);
        interrupt.latched |= interrupt.edge && high && !interrupt.high;
        interrupt.high = high;
    }

    fn deliverable(&self, vcpu: usize) -> impl Iterator<Item = (u32, &Interrupt)> {
        let private = self.private[vcpu].iter();
        let shared = self.shared.iter().map(move |i| (i.route == vcpu as u64, i));
        let all = private.map(|interrupt| (true, interrupt)).chain(shared).enumerate();
        all.filter_map(move |(intid, (mine, i))| {
            let group = self.groups[usize::from(i.group1)];
            (mine && i.enabled && group && i.is_pending() && !i.active).then_some((intid as u32, i))
        })
    }

    /// The most urgent interrupt that the vCPU may take; of several equally
    /// urgent ones the architecture prefers none, we the lowest INTID.
    pub fn signalled(&self, vcpu: usize, mask: u8) -> u32 {
        let running = self.interfaces[vcpu].running.last().map_or(0x100, |&p| p.into());
        self.deliverable(vcpu)
            .min_by_key(|&(intid, interrupt)| (interrupt.priority, intid))
            .filter(|(_, i)| i.priority < mask && u16::from(i.priority) < running)
            .map_or(SPURIOUS, |(intid, _)| intid)
    }

    pub fn acknowledge(&mut self, vcpu: usize, intid: u32) {
        let interrupt = self.of(vcpu, intid);
        interrupt.latched = false;
        interrupt.active = true;
        let priority = interrupt.priority;
        self.interfaces[vcpu].running.push(priority);
    }

    pub fn drop_priority(&mut self, vcpu: usize) {
        self.interfaces[vcpu].running.pop();
    }
}
