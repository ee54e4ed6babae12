//! Every access: each offset of the distributor and of a redistributor, in each width, as a load
//! and as a store of several values, beside registers that are kept as the architecture describes
//! them (IHI 0069H, sections 12.9 and 12.11): a bit, two bits, a byte or a doubleword for each
//! interrupt.
//!
//! No vCPU runs here, so nothing is listed.

use super::*;
use crate::frames::v3;
use crate::{Gic, PRIORITY_MASK, WORDS};
use abi::platform::{GICD_SIZE, GICR_STRIDE, INTID_END, SPI_FIRST, ppi::GRANT};
use std::sync::atomic::Ordering;

/// Stored at each offset: nothing, everything, patterns, and single bits.
const VALUES: [u64; 8] = [
    0,
    u64::MAX,
    0x5555_5555_5555_5555,
    0x0123_4567_89ab_cdef,
    0xaaaa_aaaa_aaaa_aaaa,
    1,
    1 << 31,
    1 << 63,
];
const WIDTHS: [u8; 4] = [1, 2, 4, 8];
/// The vCPU that accesses, and the one whose redistributor that is.
const VCPU: usize = 3;
const OWNER: usize = 5;

/// One interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Interrupt {
    group1: bool,
    enabled: bool,
    pending: bool,
    active: bool,
    /// The end was asked for, and its vCPU has not seen that.
    ends: bool,
    priority: u8,
    edge: bool,
    route: u32,
}

/// What a register has for each interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Group,
    SetEnable,
    ClearEnable,
    SetPending,
    ClearPending,
    SetActive,
    ClearActive,
    Priority,
    Config,
    Route,
}

/// Registers: the first offset, bits for each interrupt, what.
const REGISTERS: [(u64, u64, Field); 10] = [
    (IGROUPR, 1, Field::Group),
    (ISENABLER, 1, Field::SetEnable),
    (ICENABLER, 1, Field::ClearEnable),
    (ISPENDR, 1, Field::SetPending),
    (ICPENDR, 1, Field::ClearPending),
    (ISACTIVER, 1, Field::SetActive),
    (ICACTIVER, 1, Field::ClearActive),
    (IPRIORITYR, 8, Field::Priority),
    (ICFGR, 2, Field::Config),
    (IROUTER, 64, Field::Route),
];

/// The registers of a frame.
struct Naive {
    groups: u64,
    all: [Interrupt; INTID_END as usize],
    is_distributor: bool,
}

impl Naive {
    fn new(is_distributor: bool) -> Self {
        let interrupt = |intid: usize| Interrupt {
            edge: intid < 16 || intid == GRANT as usize,
            ..Interrupt::default()
        };
        Self { groups: 0, all: std::array::from_fn(interrupt), is_distributor }
    }

    /// Returns the interrupts whose part of a register an access covers: which, what of it, and
    /// from which bit of the value on.
    fn covered(&self, offset: u64, width: u8) -> Vec<(usize, Field, u64)> {
        let (start, end) = (offset * 8, offset * 8 + u64::from(width) * 8);
        let is_aligned = offset.is_multiple_of(width.into());
        let mut covered = Vec::new();
        for (base, bits, field) in REGISTERS {
            let is_allowed = is_aligned
                && match field {
                    Field::Priority => width <= 4,
                    // The upper half is Aff3, of which there is nothing.
                    Field::Route => width == 8 || width == 4 && offset.is_multiple_of(8),
                    _ => width == 4,
                };
            let first = if self.is_distributor { SPI_FIRST } else { 0 };
            let last = if self.is_distributor { INTID_END } else { SPI_FIRST };
            if !is_allowed || !self.is_distributor && field == Field::Route {
                continue;
            }
            let from = base * 8 + bits * u64::from(first);
            let to = base * 8 + bits * u64::from(last);
            let mut at = start.max(from);
            while at < end.min(to) {
                covered.push((((at - base * 8) / bits) as usize, field, at - start));
                at += bits;
            }
        }
        covered
    }

    fn store(&mut self, offset: u64, width: u8, value: u64) {
        if self.is_distributor && (offset, width) == (GICD_CTLR, 4) {
            self.groups = value & 3;
        }
        for (intid, field, shift) in self.covered(offset, width) {
            let interrupt = &mut self.all[intid];
            let (value, is_set) = (value >> shift, value >> shift & 1 == 1);
            match field {
                Field::Group => interrupt.group1 = is_set,
                Field::SetEnable => interrupt.enabled |= is_set,
                Field::ClearEnable => interrupt.enabled &= !is_set,
                Field::SetPending => interrupt.pending |= is_set,
                Field::ClearPending => interrupt.pending &= !is_set,
                Field::SetActive => interrupt.active |= is_set,
                Field::ClearActive => interrupt.ends |= is_set && interrupt.active,
                Field::Priority => interrupt.priority = value as u8 & PRIORITY_MASK,
                Field::Config => interrupt.edge = intid < 16 || value & 2 != 0,
                Field::Route => interrupt.route = value as u32 & 0xff_ffff,
            }
        }
    }

    fn load(&self, offset: u64, width: u8) -> u64 {
        match (self.is_distributor, offset, width) {
            // ARE_NS and DS are one.
            (true, 0x0, 4) => return self.groups | 0x50,
            // 32 × 9 interrupts, 10 bits of INTID, no routing to any PE.
            (true, 0x4, 4) => return 8 | 9 << 19 | 1 << 25,
            (true, 0x8, 4) => return 0x43b,
            // GICv3.
            (true, 0xffe8, 4) => return 0x3b,
            _ => {}
        }
        let value = |(intid, field, shift): (usize, Field, u64)| {
            let interrupt = &self.all[intid];
            let value = match field {
                Field::Group => interrupt.group1.into(),
                Field::SetEnable | Field::ClearEnable => interrupt.enabled.into(),
                Field::SetPending | Field::ClearPending => interrupt.pending.into(),
                Field::SetActive | Field::ClearActive => {
                    u64::from(interrupt.active && !interrupt.ends)
                }
                Field::Priority => interrupt.priority.into(),
                Field::Config => u64::from(interrupt.edge) << 1,
                Field::Route => interrupt.route.into(),
            };
            value << shift
        };
        self.covered(offset, width).into_iter().map(value).sum()
    }

    /// Everything in the banks is as here.
    fn compare(&self, gic: &Gic, at: &str) {
        let words = if self.is_distributor { 1..WORDS } else { 0..1 };
        if self.is_distributor {
            assert_eq!(u64::from(gic.ctlr.load(Ordering::Relaxed)), self.groups, "{at}");
        }
        for intid in words.flat_map(|word| word * 32..word * 32 + 32) {
            let (bank, bit) = (gic.bank(OWNER, intid / 32), intid % 32);
            let is = |word: &crate::atomic::AtomicU32| word.load(Ordering::Relaxed) >> bit & 1 == 1;
            let route = intid.checked_sub(SPI_FIRST as usize);
            let found = Interrupt {
                group1: is(&bank.group),
                enabled: is(&bank.enabled),
                pending: is(&bank.pending),
                active: is(&bank.active),
                ends: is(&bank.drop_active),
                priority: bank.priority[bit].load(Ordering::Relaxed),
                edge: is(&bank.edge),
                route: route.map_or(0, |at| gic.route[at].load(Ordering::Relaxed)),
            };
            assert_eq!(found, self.all[intid], "{intid} after {at}");
        }
    }
}

/// Accesses every offset of a frame; returns how many accesses that were.
fn every(
    naive: &mut Naive,
    gic: &Gic,
    end: u64,
    store: impl Fn(u64, u8, u64),
    load: impl Fn(u64, u8) -> u64,
) -> u64 {
    let mut count = 0;
    for offset in 0..end {
        for width in WIDTHS {
            for value in VALUES {
                store(offset, width, value);
                naive.store(offset, width, value);
                assert_eq!(load(offset, width), naive.load(offset, width), "{offset:#x} {width}");
                count += 2;
                // What an access changed that it must not would stay so for the next look.
                if !naive.covered(offset, width).is_empty() || offset.is_multiple_of(0x100) {
                    naive.compare(gic, &format!("{value:#x} at {offset:#x}, {width} bytes"));
                }
            }
        }
    }
    naive.compare(gic, "everything");
    count
}

#[test]
fn every_access_to_the_distributor() {
    let (gic, mut naive) = (Gic::new(), Naive::new(true));
    let count = every(
        &mut naive,
        &gic,
        GICD_SIZE,
        |offset, width, value| {
            let effects = v3::write_distributor(&gic, VCPU, offset, width, value);
            assert_eq!(effects.deactivate, None, "nothing is linked");
        },
        |offset, width| v3::read_distributor(&gic, VCPU, offset, width).0,
    );
    assert_eq!(count, GICD_SIZE * 4 * 8 * 2);
    println!("{count} accesses");
    // Nothing of it reached a vCPU's private interrupts.
    let mut private = Naive::new(false);
    private.is_distributor = false;
    private.compare(&gic, "all accesses to the distributor");
}

#[test]
fn every_access_to_a_redistributor() {
    const SGI_FRAME: u64 = 0x1_0000;
    let (gic, mut naive) = (Gic::new(), Naive::new(false));
    for offset in 0..SGI_FRAME {
        for width in WIDTHS {
            let expected = match (offset, width) {
                (0x4, 4) => 0x43b,
                // Affinity and number; the last of its VM.
                (0x8, 8) => (OWNER as u64) << 32 | (OWNER as u64) << 8 | 1 << 4,
                (0x8, 4) => (OWNER as u64) << 8 | 1 << 4,
                (0xc, 4) => OWNER as u64,
                (0xffe8, 4) => 0x3b,
                _ => 0,
            };
            let load = || v3::read_redistributor(&gic, OWNER, true, offset, width).0;
            assert_eq!(load(), expected, "{offset:#x} {width}");
            for value in VALUES {
                let _ = v3::write_redistributor(&gic, OWNER, offset, width, value);
                assert_eq!(load(), expected, "{offset:#x} {width} after {value:#x}");
            }
        }
    }
    naive.compare(&gic, "all of the control frame");
    let count = every(
        &mut naive,
        &gic,
        GICR_STRIDE - SGI_FRAME,
        |offset, width, value| {
            let _ = v3::write_redistributor(&gic, OWNER, SGI_FRAME + offset, width, value);
        },
        |offset, width| v3::read_redistributor(&gic, OWNER, true, SGI_FRAME + offset, width).0,
    );
    println!("{} accesses", count + SGI_FRAME * 4 * 17);
    Naive::new(true).compare(&gic, "all accesses to a redistributor");
}
