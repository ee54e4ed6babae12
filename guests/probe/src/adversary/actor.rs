//! One vCPU of an adversary.

use super::deeds;
use crate::arch::cpu;
use crate::arch::encodings::{TABLE_SIZE, Table};
use crate::arch::sysreg::{read, write};
use crate::gic::{self, gicd, gicr, offset::*};
use crate::platform::{self, GICD};
use crate::random::Random;
use crate::roles::reset::starts_before;
use crate::timer::Timer;
use crate::{irq, println, wait};
use abi::platform::{INTID_END, SPI_FIRST};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use spin::Once;

/// CPACR_EL1.FPEN: floating point does not trap.
const FPEN: u64 = 0b11 << 20;
/// Interrupts that are let in at once, at most: an interrupt that comes again for ever would be
/// all that the vCPU does.
const LET_IN_MAX: u32 = 64;

/// Interrupts since a vCPU last let some in; of all vCPUs, since it only has to end.
static LET_IN: AtomicU32 = AtomicU32::new(0);

/// One vCPU that attacks.
pub struct Actor {
    /// What it does by chance.
    pub random: Random,
    /// Its index in the VM.
    pub index: usize,
    /// How many vCPUs the VM has.
    pub vcpus: usize,
    /// Where a sweep is.
    pub cursor: u64,
    goes_off: bool,
}

impl Actor {
    /// Begins, by `probe.seed`, with other numbers on each vCPU and in each life of the VM.
    pub fn new() -> Self {
        let (index, seed) = (cpu::index(), platform::get().number("seed", 1));
        // A sibling that is switched on again goes on with other numbers, too.
        let life = starts_before() << 48 ^ deeds::done() << 8 ^ index as u64;
        let mut random = Random::seeded((seed ^ life).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let cursor = random.word();
        Self { random, index, vcpus: platform::get().vcpus.len(), cursor, goes_off: false }
    }

    /// Returns one of `all`, which are some.
    pub fn one<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.random.up_to(all.len() as u64 - 1) as usize]
    }

    /// Returns true once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.random.up_to(times - 1) == 0
    }

    /// Returns a value that finds mistakes: no bits, all bits, one bit, any.
    pub fn value(&mut self) -> u64 {
        match self.random.up_to(5) {
            0 => 0,
            1 => !0,
            2 => 1 << self.random.up_to(63),
            3 => self.random.up_to(1023),
            _ => self.random.word(),
        }
    }

    /// Returns the index of a vCPU.
    pub fn some_vcpu(&mut self) -> usize {
        self.random.up_to(self.vcpus as u64 - 1) as usize
    }

    /// Lets the vCPU switch itself off. The first one stays: it switches the others on.
    pub fn go_off(&mut self) {
        self.goes_off = self.index != 0;
    }

    /// Whether the vCPU is to switch itself off.
    pub fn goes_off(&self) -> bool {
        self.goes_off
    }

    /// Whether the vCPU may sleep. Siblings can take any interrupt from a vCPU that sleeps: of
    /// several, the first one stays awake and calls the others ([`Actor::rescue`]).
    pub fn may_sleep(&self) -> bool {
        self.vcpus == 1 || self.index != 0
    }

    /// Brings what this vCPU needs to go on back into a known state: interrupts masked and none
    /// pending here, its timers off, floating point there.
    pub fn calm_down(&mut self) {
        cpu::mask_irq();
        self.open_float();
        Timer::there().for_each(Timer::stop);
        self.quiet_spis();
        GICD.write32(gicd::CTLR, gicd::CTLR_ARE | gicd::CTLR_ENABLE_GROUP1);
        gic::reset_vcpu();
        irq::hook(end_the_flood);
    }

    /// Lets floating point not trap here, whatever an attack has written.
    pub fn open_float(&mut self) {
        write::cpacr_el1(read::cpacr_el1() | FPEN);
    }

    /// Takes the SPIs that a mixture made pending or active.
    fn quiet_spis(&mut self) {
        if self.index == 0 {
            for word in u64::from(SPI_FIRST / 32)..u64::from(INTID_END / 32) {
                for bank in [ICENABLER, ICPENDR, ICACTIVER] {
                    GICD.write32(bank + word * 4, !0);
                }
            }
        }
    }

    /// Lets interrupts in for a moment.
    pub fn let_interrupts_in(&mut self) {
        LET_IN.store(0, Relaxed);
        cpu::unmask_irq();
        cpu::mask_irq();
    }

    /// Makes sure that this vCPU wakes, `us` microseconds from now.
    pub fn set_alarm(&mut self, us: u64) {
        const TIMER: Timer = Timer::Virtual;
        let mine = gic::sgi_frame(self.index);
        let bit = 1 << TIMER.intid();
        mine.write32(IGROUPR, !0);
        mine.write32(ICACTIVER, bit);
        mine.write8(IPRIORITYR + u64::from(TIMER.intid()), 0);
        mine.write32(ISENABLER, bit);
        GICD.write32(gicd::CTLR, gicd::CTLR_ARE | gicd::CTLR_ENABLE_GROUP1);
        // What this vCPU has taken and not ended would mask the alarm.
        write::icc_ap1r0_el1(0);
        write::icc_igrpen1_el1(1);
        write::icc_pmr_el1(0xff);
        TIMER.arm(wait::us(us));
    }

    /// Calls a sibling whose interrupts were taken from it while it slept.
    pub fn rescue(&mut self) {
        const CALL: u32 = 15;
        let sibling = self.some_vcpu();
        let rd = gic::rd_frame(sibling);
        rd.write32(gicr::WAKER, 0);
        let frame = gic::sgi_frame(sibling);
        frame.write32(IGROUPR, !0);
        frame.write8(IPRIORITYR + u64::from(CALL), 0);
        frame.write32(ISENABLER, 1 << CALL);
        frame.write32(ICACTIVER, !0);
        GICD.write32(gicd::CTLR, gicd::CTLR_ARE | gicd::CTLR_ENABLE_GROUP1);
        gic::send(CALL, [sibling]);
    }

    /// Says that something is not as it must be, by which the host knows.
    pub fn complain(&self, what: core::fmt::Arguments) {
        deeds::complain();
        println!("FAIL hostile: vCPU {}: {what}", self.index);
    }
}

/// With an interrupt that comes for ever, masks them all.
fn end_the_flood(_intid: u32) {
    if LET_IN.fetch_add(1, Relaxed) > LET_IN_MAX {
        write::icc_pmr_el1(0);
    }
}

/// Where the instructions of all encodings are.
pub fn table() -> Table {
    static TABLE: Once<Table> = Once::new();
    *TABLE.call_once(|| Table::at(platform::free_memory()))
}

/// The first byte of memory behind them.
pub fn scratch() -> u64 {
    platform::free_memory() + TABLE_SIZE
}
