//! The GIC's virtual CPU interface: list registers and their control. What differs between versions is in
//! each one's `list_registers`.

pub use super::version::list_registers::empty;

use super::version::list_registers::{
    self, ActivePriorities, Extras, control, guest_control, read_list, set_control,
    set_guest_control, write_list,
};
use crate::arch::machine::instructions;
use crate::arch::{cpu, gic};
use notes::{Bounded, each};
use vgic::interface::{Hardware, ListRegister, MAX_LIST_REGISTERS, Maintenance};

const HCR_EN: u64 = 1 << 0;
const HCR_LRENPIE: u64 = 1 << 2;
const HCR_NPIE: u64 = 1 << 3;
const HCR_EOI_COUNT_SHIFT: u32 = 27;

/// A guest's view of its CPU interface while others use the hardware.
#[derive(Clone, Default)]
pub struct Saved {
    list: [ListRegister; MAX_LIST_REGISTERS],
    /// Those of `list` that hold something; the others are empty.
    live: u32,
    control: u64,
    vmcr: u64,
    active_priorities: ActivePriorities,
}

impl Saved {
    /// As after reset: nothing enabled, everything masked.
    pub fn reset() -> Self {
        Self { control: HCR_EN, ..Self::default() }
    }
}

/// What this core's interface offers.
#[derive(Clone, Copy)]
pub struct Interface {
    list_registers: usize,
    extras: Extras,
}

impl Interface {
    /// Asks the hardware, and empties it.
    pub fn start() -> Self {
        let (list_registers, extras) = (list_registers::count(), Extras::ask(cpu::has_ras()));
        let interface = Self { list_registers, extras };
        for index in 0..interface.list_registers {
            write_list(index, ListRegister(0));
        }
        interface.switch_off();
        interface
    }

    /// No vCPU is loaded: none asks for maintenance. What the last one asked
    /// for would be asserted for ever, as nothing is pending or active now.
    pub fn switch_off(self) {
        set_control(0);
    }

    /// Returns what asks for these maintenance interrupts (ICH_HCR_EL2).
    fn control(self, wanted: Maintenance) -> u64 {
        let mut control = HCR_EN;
        if wanted.none_pending {
            control |= HCR_NPIE;
        }
        if wanted.unlisted_eoi {
            control |= HCR_LRENPIE | self.extras.deactivation_trap();
        }
        control
    }

    /// Takes the interface of a vCPU with these list registers in use off the
    /// hardware.
    pub fn save(self, used: u32, saved: &mut Saved) {
        saved.live = used & !empty();
        for index in bits(saved.live) {
            saved.list[index] = read_list(index);
            write_list(index, ListRegister(0));
        }
        saved.control = control();
        saved.vmcr = guest_control();
        saved.active_priorities.save(self.extras);
    }

    /// Puts it back. The list registers must be empty. What they hold is certain to be seen in
    /// [`empty`] when the timer is [loaded](crate::arch::timer::Timer::load). Inlined, as every
    /// switch comes by.
    #[inline(always)]
    pub fn load(self, saved: &Saved) {
        saved.active_priorities.load(self.extras);
        if self.extras.has_deferred_errors() {
            // Identification registers show no FEAT_RAS, so no guest counts on its value.
            instructions::clear_deferred_error();
        }
        set_guest_control(saved.vmcr);
        set_control(saved.control);
        for index in bits(saved.live) {
            write_list(index, saved.list[index]);
        }
    }
}

/// The list registers of the vCPU that is loaded.
pub struct Loaded {
    interface: Interface,
    /// Another vCPU may wait for the core, so work is stopped at the first look.
    awaited: bool,
    /// What has to be done afterwards.
    pub after: After,
}

/// What a change of list registers leaves to be done; as a rule nothing, so all of it is in one
/// word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct After(u16);

impl After {
    const STOPPED: u16 = 1 << 8;

    /// Returns true if there is nothing to do.
    #[inline(always)]
    pub fn is_nothing(self) -> bool {
        self.0 == 0
    }

    /// Returns the siblings (bit set by index) that have to be notified.
    pub fn notify(self) -> u8 {
        self.0 as u8
    }

    /// Returns true if the work stopped because an interrupt came, or another vCPU waits: it has
    /// to go on before the guest runs.
    pub fn is_unfinished(self) -> bool {
        self.0 & Self::STOPPED != 0
    }
}

impl Loaded {
    /// Access to them, while the vCPU stays loaded. `awaited`: another vCPU may wait for the core.
    /// Its interrupt was taken, so it pends no more and no look would find it.
    #[inline(always)]
    pub fn new(interface: Interface, awaited: bool) -> Self {
        Self { interface, awaited, after: After::default() }
    }
}

impl Hardware for Loaded {
    fn count(&self) -> usize {
        self.interface.list_registers
    }

    fn read(&self, index: usize) -> ListRegister {
        read_list(index)
    }

    fn write(&mut self, index: usize, value: ListRegister) {
        write_list(index, value);
    }

    fn empty(&self) -> u32 {
        empty()
    }

    fn take_eoi_count(&mut self) -> u32 {
        let control = control();
        set_control(control & 0xffff_ffff >> (32 - HCR_EOI_COUNT_SHIFT));
        (control >> HCR_EOI_COUNT_SHIFT & 0x1f) as u32
    }

    fn set_maintenance(&mut self, wanted: Maintenance) {
        set_control(self.interface.control(wanted));
    }

    fn deactivate(&mut self, physical: u32) {
        gic::deactivate(physical);
    }

    fn notify(&mut self, vcpus: u8) {
        self.after.0 |= u16::from(vcpus);
    }

    /// What the priority mask keeps pending does not count.
    fn urgent(&mut self) -> bool {
        let urgent = cpu::interrupt_pending() | self.awaited;
        if urgent {
            self.after.0 |= After::STOPPED;
        }
        urgent
    }
}

/// The list registers of a vCPU that is not loaded.
pub struct Unloaded<'a> {
    saved: &'a mut Saved,
    interface: Interface,
    /// Siblings (bit set by index) that have to be notified afterwards.
    pub notify: u8,
}

impl<'a> Unloaded<'a> {
    /// Access to them.
    pub fn new(saved: &'a mut Saved, interface: Interface) -> Self {
        Self { saved, interface, notify: 0 }
    }
}

impl Hardware for Unloaded<'_> {
    fn count(&self) -> usize {
        self.interface.list_registers
    }

    fn read(&self, index: usize) -> ListRegister {
        if self.saved.live >> index & 1 == 1 { self.saved.list[index] } else { ListRegister(0) }
    }

    fn write(&mut self, index: usize, value: ListRegister) {
        self.saved.list[index] = value;
        self.saved.live |= 1 << index;
    }

    fn empty(&self) -> u32 {
        (0..self.count())
            // One that was live and is invalid now has an EOI to tell of.
            .filter(|&index| self.read(index) == ListRegister(0))
            .fold(0, |set, index| set | 1 << index)
    }

    fn take_eoi_count(&mut self) -> u32 {
        let count = (self.saved.control >> HCR_EOI_COUNT_SHIFT & 0x1f) as u32;
        self.saved.control &= (1 << HCR_EOI_COUNT_SHIFT) - 1;
        count
    }

    fn set_maintenance(&mut self, wanted: Maintenance) {
        self.saved.control = self.interface.control(wanted);
    }

    /// Private interrupts were made inactive when the vCPU was unloaded; the
    /// loaded one's must not suffer for it.
    fn deactivate(&mut self, physical: u32) {
        if physical >= abi::platform::SPI_FIRST {
            gic::deactivate(physical);
        }
    }

    fn notify(&mut self, vcpus: u8) {
        self.notify |= vcpus;
    }

    fn urgent(&mut self) -> bool {
        cpu::interrupt_pending()
    }
}

/// The priority below which the loaded guest takes no interrupt
/// (ICH_VMCR_EL2.VPMR), and whether it takes groups 0 and 1 at all. A GICv2 has all of it at the same place.
pub fn guest_mask() -> (u8, bool, bool) {
    let vmcr = guest_control();
    ((vmcr >> 24) as u8, vmcr & 1 != 0, vmcr & 2 != 0)
}

/// The list registers in `used`.
pub fn registers(used: u32) -> impl Iterator<Item = ListRegister> {
    bits(used).map(read_list)
}

fn bits(mut set: u32) -> impl Iterator<Item = usize> {
    let registers = core::iter::from_fn(move || {
        (set != 0).then(|| {
            let index = set.trailing_zeros() as usize;
            set &= set - 1;
            index
        })
    });
    registers.one_for::<{ each::LIST_REGISTER }, MAX_LIST_REGISTERS>()
}
