//! The distributor's and redistributors' register frames.
//!
//! A single security state (GICD_CTLR.DS = 1), affinity routing always on, no
//! LPIs, no message-based SPIs. Unknown and reserved registers read as zero and
//! ignore writes (IHI 0069H, section 12.1.3). Accesses of 1, 2, 4 and 8 bytes
//! are taken where the architecture allows any of them: byte registers by the
//! byte, the rest by whole 32-bit words, 64-bit ones by halves too.

use super::atomic::AtomicU32;
use super::{Bits, CTLR_GROUP0, CTLR_GROUP1, Effects, Gic, PRIORITY_MASK, SPIS, WORDS};
use abi::platform::SPI_FIRST;
use core::sync::atomic::Ordering;

const GICD_CTLR: u64 = 0x0000;
const GICD_TYPER: u64 = 0x0004;
const GICD_IIDR: u64 = 0x0008;
const GICD_IROUTER: u64 = 0x6000;
const GICD_IROUTER_SPI: u64 = GICD_IROUTER + 8 * SPI_FIRST as u64;
const GICD_IROUTER_END: u64 = GICD_IROUTER_SPI + 8 * SPIS as u64;

const GICR_IIDR: u64 = 0x0004;
const GICR_TYPER: u64 = 0x0008;
const GICR_TYPER_HIGH: u64 = 0x000c;
/// The second 64 KiB frame, with the registers of SGIs and PPIs.
const SGI_FRAME: u64 = 0x1_0000;

const PIDR2: u64 = 0xffe8;
/// GICv3.
const PIDR2_GICV3: u32 = 0x3b;
/// Implementer Arm; product and revision are ours.
const IIDR: u32 = 0x43b;

/// ITLinesNumber; IDbits: 10; No1N: routing to any PE is not supported; no
/// Aff3, no range selectors.
const TYPER: u32 = (WORDS as u32 - 1) | 9 << 19 | 1 << 25;
/// GICD_IROUTER.Aff2, Aff1, Aff0; Interrupt_Routing_Mode is RAZ/WI.
const ROUTE_MASK: u64 = 0x00ff_ffff;

/// GICD_CTLR.DS and ARE_NS, both read-as-one here.
const CTLR_FIXED: u32 = 1 << 6 | 1 << 4;

impl Gic {
    /// Reads `size` bytes at `offset` of the distributor, on behalf of vCPU
    /// `vcpu`.
    pub fn read_distributor(&self, vcpu: usize, offset: u64, size: u8) -> (u64, Effects) {
        let value = match (offset, size) {
            (GICD_IROUTER_SPI..GICD_IROUTER_END, _) => self.read_route(offset, size),
            (GICD_CTLR, 4) => u64::from(self.ctlr.load(Ordering::Relaxed) | CTLR_FIXED),
            (GICD_TYPER, 4) => u64::from(TYPER),
            (GICD_IIDR, 4) => u64::from(IIDR),
            (PIDR2, 4) => u64::from(PIDR2_GICV3),
            _ => return self.read_bank(vcpu, offset, size, 1..WORDS),
        };
        (value, Effects::default())
    }

    /// Writes `size` bytes at `offset` of the distributor.
    pub fn write_distributor(&self, vcpu: usize, offset: u64, size: u8, value: u64) -> Effects {
        match (offset, size) {
            (GICD_IROUTER_SPI..GICD_IROUTER_END, _) => self.write_route(offset, size, value),
            (GICD_CTLR, 4) => {
                self.ctlr.store(value as u32 & (CTLR_GROUP0 | CTLR_GROUP1), Ordering::Release);
                self.mark(u8::MAX, (1 << WORDS) - 1);
                Effects { notify: u8::MAX, deactivate: None }
            }
            _ => self.write_bank(vcpu, offset, size, value, 1..WORDS),
        }
    }

    /// Reads from the redistributor of vCPU `vcpu`, the `last` of its VM or not.
    pub fn read_redistributor(
        &self,
        vcpu: usize,
        last: bool,
        offset: u64,
        size: u8,
    ) -> (u64, Effects) {
        let affinity = vcpu as u64;
        let typer = affinity << 32 | affinity << 8 | u64::from(last) << 4;
        let value = match (offset, size) {
            (SGI_FRAME.., _) => return self.read_bank(vcpu, offset - SGI_FRAME, size, 0..1),
            (GICR_IIDR, 4) => u64::from(IIDR),
            (GICR_TYPER, 8) => typer,
            (GICR_TYPER, 4) => typer & 0xffff_ffff,
            (GICR_TYPER_HIGH, 4) => typer >> 32,
            (PIDR2, 4) => u64::from(PIDR2_GICV3),
            // GICR_CTLR: no LPIs. GICR_WAKER: awake, whatever is written.
            _ => 0,
        };
        (value, Effects::default())
    }

    /// Writes to the redistributor of vCPU `vcpu`.
    pub fn write_redistributor(&self, vcpu: usize, offset: u64, size: u8, value: u64) -> Effects {
        match offset.checked_sub(SGI_FRAME) {
            Some(offset) => self.write_bank(vcpu, offset, size, value, 0..1),
            None => Effects::default(),
        }
    }

    fn read_bank(
        &self,
        vcpu: usize,
        offset: u64,
        size: u8,
        words: core::ops::Range<usize>,
    ) -> (u64, Effects) {
        let (kind, word) = match Register::decode(offset, size, &words) {
            None => return (0, Effects::default()),
            Some(Register::Priority { first }) => {
                return (self.read_priorities(vcpu, first, size), Effects::default());
            }
            Some(Register::Bits { kind, word }) => (kind, word),
        };
        let bank = self.bank(vcpu, word);
        let mut effects = Effects::default();
        let value = match kind {
            Kind::Group => bank.group.load(Ordering::Relaxed),
            Kind::SetEnable | Kind::ClearEnable => bank.enabled.load(Ordering::Relaxed),
            Kind::SetPending | Kind::ClearPending => {
                let listed = bank.listed.load(Ordering::Relaxed);
                effects = self.refresh(vcpu, word, listed);
                bank.pending_bits() | (listed & !bank.active.load(Ordering::Relaxed))
            }
            Kind::SetActive | Kind::ClearActive => {
                effects = self.refresh(vcpu, word, bank.listed.load(Ordering::Relaxed));
                bank.active.load(Ordering::Relaxed) & !bank.drop_active.load(Ordering::Relaxed)
            }
            Kind::Config { upper } => {
                let edge = bank.edge.load(Ordering::Relaxed);
                spread(edge >> if upper { 16 } else { 0 })
            }
        };
        (u64::from(value), effects)
    }

    fn write_bank(
        &self,
        vcpu: usize,
        offset: u64,
        size: u8,
        value: u64,
        words: core::ops::Range<usize>,
    ) -> Effects {
        match Register::decode(offset, size, &words) {
            None => Effects::default(),
            Some(Register::Priority { first }) => self.write_priorities(vcpu, first, size, value),
            Some(Register::Bits { kind, word }) => self.write_bits(vcpu, word, kind, value as u32),
        }
    }

    fn write_bits(&self, vcpu: usize, word: usize, kind: Kind, value: u32) -> Effects {
        let bank = self.bank(vcpu, word);
        let mut deactivate = None;
        let changed = match kind {
            Kind::Group => {
                bank.group.store(value, Ordering::Relaxed);
                u32::MAX
            }
            Kind::SetEnable => {
                bank.enabled.fetch_or(value, Ordering::AcqRel);
                value
            }
            Kind::ClearEnable => {
                bank.enabled.fetch_and(!value, Ordering::AcqRel);
                value
            }
            Kind::SetPending => {
                bank.pending.fetch_or(value, Ordering::AcqRel);
                value
            }
            Kind::ClearPending => {
                deactivate = self.clear_pending(bank, word, value);
                value
            }
            Kind::SetActive => {
                for bit in Bits(value & !bank.busy()) {
                    // No guest took it, so its end comes after all that were.
                    bank.running[bit as usize].store(u8::MAX, Ordering::Relaxed);
                    if word > 0 {
                        let intid = word as u32 * 32 + bit;
                        self.hold(self.target(intid).unwrap_or(vcpu), intid);
                    }
                }
                bank.active.fetch_or(value, Ordering::AcqRel);
                value
            }
            Kind::ClearActive => {
                return Effects {
                    notify: self.request_deactivation(vcpu, word, value),
                    deactivate: None,
                };
            }
            Kind::Config { upper } => {
                let shift = if upper { 16 } else { 0 };
                // SGIs are edge-triggered whatever is written.
                let writable = if word == 0 && !upper { 0 } else { 0xffffu32 << shift };
                let wanted = gather(value) << shift & writable;
                // In two steps: another vCPU may write the other half.
                bank.edge.fetch_or(wanted, Ordering::Relaxed);
                bank.edge.fetch_and(wanted | !writable, Ordering::Relaxed);
                writable
            }
        };
        Effects { deactivate, ..self.notify_word(vcpu, word, changed) }
    }

    /// Asks the vCPUs that have these interrupts listed to take them back, so
    /// that a later read sees what the guest has done with them meanwhile.
    fn refresh(&self, vcpu: usize, word: usize, listed: u32) -> Effects {
        if listed == 0 { Effects::default() } else { self.notify_word(vcpu, word, listed) }
    }

    fn read_priorities(&self, vcpu: usize, first: usize, size: u8) -> u64 {
        (0..usize::from(size)).rev().fold(0, |value, at| {
            let intid = first + at;
            let priority = &self.bank(vcpu, intid / 32).priority[intid % 32];
            value << 8 | u64::from(priority.load(Ordering::Relaxed))
        })
    }

    fn write_priorities(&self, vcpu: usize, first: usize, size: u8, value: u64) -> Effects {
        let bank = self.bank(vcpu, first / 32);
        let mut changed = 0;
        for at in 0..usize::from(size) {
            let bit = (first + at) % 32;
            let priority = (value >> (8 * at)) as u8 & PRIORITY_MASK;
            if bank.priority[bit].swap(priority, Ordering::Relaxed) != priority {
                changed |= 1 << bit;
            }
        }
        // What is pending already comes in the new order.
        self.notify_word(vcpu, first / 32, changed)
    }

    /// The route, unless the access is to the half that has Aff3 only, which is
    /// always zero.
    fn route_at(&self, offset: u64, size: u8) -> Option<&AtomicU32> {
        let at = (offset - GICD_IROUTER_SPI) as usize;
        (matches!(size, 4 | 8) && at.is_multiple_of(8)).then(|| &self.route[at / 8])
    }

    fn read_route(&self, offset: u64, size: u8) -> u64 {
        self.route_at(offset, size).map_or(0, |route| route.load(Ordering::Relaxed).into())
    }

    fn write_route(&self, offset: u64, size: u8, value: u64) -> Effects {
        let Some(route) = self.route_at(offset, size) else { return Effects::default() };
        route.store((value & ROUTE_MASK) as u32, Ordering::Release);
        let intid = SPI_FIRST as usize + (offset - GICD_IROUTER_SPI) as usize / 8;
        self.notify_word(0, intid / 32, 1 << (intid % 32))
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Group,
    SetEnable,
    ClearEnable,
    SetPending,
    ClearPending,
    SetActive,
    ClearActive,
    /// Two bits for each interrupt: registers for the lower and upper 16.
    Config {
        upper: bool,
    },
}

enum Register {
    Bits { kind: Kind, word: usize },
    Priority { first: usize },
}

impl Register {
    /// Which register stands at this offset; none when it is not one of these,
    /// does not belong to the frame's `words`, or must not be accessed so.
    fn decode(offset: u64, size: u8, words: &core::ops::Range<usize>) -> Option<Self> {
        let bit_register = |kind, base: u64| {
            let word = (offset - base) as usize / 4;
            let whole = size == 4 && offset.is_multiple_of(4);
            (whole && words.contains(&word)).then_some(Self::Bits { kind, word })
        };
        match offset {
            0x080..0x100 => bit_register(Kind::Group, 0x080),
            0x100..0x180 => bit_register(Kind::SetEnable, 0x100),
            0x180..0x200 => bit_register(Kind::ClearEnable, 0x180),
            0x200..0x280 => bit_register(Kind::SetPending, 0x200),
            0x280..0x300 => bit_register(Kind::ClearPending, 0x280),
            0x300..0x380 => bit_register(Kind::SetActive, 0x300),
            0x380..0x400 => bit_register(Kind::ClearActive, 0x380),
            0x400..0x800 => {
                let first = (offset - 0x400) as usize;
                let aligned = size <= 4 && first.is_multiple_of(usize::from(size.max(1)));
                (aligned && words.contains(&(first / 32))).then_some(Self::Priority { first })
            }
            0xc00..0xd00 => {
                let half = (offset - 0xc00) as usize / 4;
                let (word, upper) = (half / 2, half % 2 == 1);
                let whole = size == 4 && offset.is_multiple_of(4);
                (whole && words.contains(&word))
                    .then_some(Self::Bits { kind: Kind::Config { upper }, word })
            }
            _ => None,
        }
    }
}

/// Bit n of the lower half becomes bit 2n + 1, as GICD_ICFGR has it.
fn spread(bits: u32) -> u32 {
    Bits(bits & 0xffff).fold(0, |value, bit| value | 2 << (2 * bit))
}

/// The reverse of [`spread`].
fn gather(value: u32) -> u32 {
    Bits(value & 0xaaaa_aaaa).fold(0, |bits, bit| bits | 1 << (bit / 2))
}
