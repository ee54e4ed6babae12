//! The distributor's and redistributors' registers: what is written is read.

use crate::arch::cpu;
use crate::gic::{self, FREE_SPIS, gicd, gicr, offset::*};
use crate::platform::{self, GICD};
use crate::suite::{Check, Done, Test};
use crate::tests::icc::implemented;
use crate::{ensure, ensure_eq, pass};
use abi::platform::INTID_END;

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "gic.identify", body: identify },
    Test { name: "gic.redistributors", body: redistributors },
    Test { name: "gic.priorities", body: priorities },
    Test { name: "gic.trigger", body: trigger },
    Test { name: "gic.enable_bits", body: enable_bits },
    Test { name: "gic.pending_bits", body: pending_bits },
    Test { name: "gic.active_bits", body: active_bits },
    Test { name: "gic.routes", body: routes },
    Test { name: "gic.reserved", body: reserved },
];

fn identify() -> Check<Done> {
    let architecture = GICD.read32(gicd::PIDR2) >> 4 & 0xf;
    let known = if gic::IS_V2 { 2..=2 } else { 3..=4 };
    ensure!(known.contains(&architecture), "GICD_PIDR2.ArchRev is {architecture}");
    let typer = GICD.read32(gicd::TYPER);
    let lines = 32 * ((typer & 0x1f) + 1);
    ensure!(lines >= INTID_END, "GICD_TYPER tells of {lines} INTIDs");
    if gic::IS_V2 {
        let cpus = (typer >> 5 & 7) as usize + 1;
        ensure_eq!(cpus, platform::get().vcpus.len(), "CPUs of GICD_TYPER");
    } else {
        ensure!((typer >> 19 & 0x1f) + 1 >= 10, "GICD_TYPER.IDbits is too small");
    }
    GICD.read32(gicd::IIDR);
    let control = GICD.read32(gicd::CTLR);
    ensure_eq!(control & gicd::CTLR_ARE, gicd::CTLR_ARE, "GICD_CTLR.ARE");
    ensure!(control & gicd::CTLR_ENABLE_GROUP1 != 0, "GICD_CTLR.EnableGrp1 is clear");
    pass!("GICv{architecture}, {lines} INTIDs")
}

fn redistributors() -> Check<Done> {
    let vcpus = &platform::get().vcpus;
    for (index, affinity) in vcpus.iter().enumerate() {
        let typer = gic::rd_frame(index).read64(gicr::TYPER);
        let packed = affinity & 0xff_ffff | affinity >> 32 << 24;
        ensure_eq!(typer >> 32, packed, "GICR_TYPER.Affinity_Value of vCPU {index}");
        ensure_eq!(typer >> 8 & 0xffff, index as u64, "GICR_TYPER.Processor_Number");
        let last = typer & gicr::TYPER_LAST != 0;
        ensure_eq!(last, index + 1 == vcpus.len(), "GICR_TYPER.Last of vCPU {index}");
        let low = gic::rd_frame(index).read32(gicr::TYPER);
        let high = gic::rd_frame(index).read32(gicr::TYPER + 4);
        ensure_eq!(u64::from(high) << 32 | u64::from(low), typer, "GICR_TYPER in halves");
        let architecture = gic::rd_frame(index).read32(gicd::PIDR2) >> 4 & 0xf;
        ensure!((3..=4).contains(&architecture), "GICR_PIDR2.ArchRev is {architecture}");
        gic::rd_frame(index).read32(gicr::IIDR);
    }
    let waker = gic::rd_frame(cpu::index()).read32(gicr::WAKER);
    ensure_eq!(waker & (gicr::PROCESSOR_SLEEP | gicr::CHILDREN_ASLEEP), 0, "GICR_WAKER");
    pass!("{}", vcpus.len())
}

/// Bytes and words of IPRIORITYR, for SPIs and for private interrupts.
fn priorities() -> Check<Done> {
    let implemented = implemented();
    let sgi = gic::sgi_frame(cpu::index());
    let mut value = 0_u8;
    for intid in (0..32).chain(FREE_SPIS) {
        value = value.wrapping_mul(5).wrapping_add(0x3b);
        gic::set_priority(intid, value);
        // The distributor may have more bits than the CPU interface.
        let read = gic::priority(intid);
        ensure!(
            [value, value & implemented].contains(&read),
            "priority of {intid} is {read:#x} after writing {value:#x}"
        );
    }
    let word = u64::from(FREE_SPIS.start);
    for (frame, offset) in [(GICD, IPRIORITYR + word), (sgi, IPRIORITYR + 8)] {
        frame.write32(offset, 0x1020_3040);
        ensure_eq!(frame.read32(offset), 0x1020_3040, "IPRIORITYR as a word");
        for (byte, expected) in [0x40, 0x30, 0x20, 0x10].into_iter().enumerate() {
            ensure_eq!(frame.read8(offset + byte as u64), expected, "byte {byte} of the word");
        }
        frame.write8(offset + 2, 0x70);
        ensure_eq!(frame.read32(offset), 0x1070_3040, "the word after writing byte 2");
    }
    pass!("")
}

fn trigger() -> Check<Done> {
    let read = |spi: u32| GICD.read32(ICFGR + u64::from(spi / 16 * 4)) >> (spi % 16 * 2) & 0b11;
    for spi in FREE_SPIS {
        gic::set_edge(spi, true);
        ensure_eq!(read(spi) >> 1, 1, "ICFGR of {spi}, edge");
    }
    for spi in FREE_SPIS.step_by(2) {
        gic::set_edge(spi, false);
    }
    for spi in FREE_SPIS {
        ensure_eq!(read(spi) >> 1, spi % 2, "ICFGR of {spi}, even ones level");
    }
    // SGIs are edge-triggered and nothing else.
    let sgi = gic::sgi_frame(cpu::index());
    sgi.write32(ICFGR, 0);
    ensure_eq!(sgi.read32(ICFGR), 0xaaaa_aaaa, "GICR_ICFGR0");
    pass!("")
}

/// Writes 1 to every other bit of a set and clear pair and looks at both.
fn set_and_clear(set: u64, clear: u64, what: &str) -> Check {
    for word in u64::from(FREE_SPIS.start / 32)..u64::from(INTID_END / 32) {
        let ours = |value: u32| if word == 6 { value & 0xffff_0000 } else { value };
        let (set, clear) = (set + word * 4, clear + word * 4);
        GICD.write32(set, ours(0x5a5a_5a5a));
        GICD.write32(set, 0);
        ensure_eq!(GICD.read32(set), ours(0x5a5a_5a5a), "{what}, set, word {word}");
        ensure_eq!(GICD.read32(clear), ours(0x5a5a_5a5a), "{what}, seen in clear");
        GICD.write32(clear, ours(0x0f0f_0f0f));
        gic::settle();
        ensure_eq!(GICD.read32(set), ours(0x5050_5050), "{what}, partly cleared");
        GICD.write32(clear, 0);
        ensure_eq!(GICD.read32(set), ours(0x5050_5050), "{what}, after clearing nothing");
        GICD.write32(clear, ours(!0));
        gic::settle();
        ensure_eq!(GICD.read32(set), 0, "{what}, cleared");
    }
    Ok(())
}

fn enable_bits() -> Check<Done> {
    set_and_clear(ISENABLER, ICENABLER, "enable")?;
    let sgi = gic::sgi_frame(cpu::index());
    sgi.write32(ICENABLER, !0);
    gic::settle();
    ensure_eq!(sgi.read32(ISENABLER), 0, "GICR_ISENABLER0 after disabling all");
    sgi.write32(ISENABLER, 1 << 27 | 0b101);
    ensure_eq!(sgi.read32(ICENABLER), 1 << 27 | 0b101, "GICR_ICENABLER0");
    pass!("")
}

fn pending_bits() -> Check<Done> {
    FREE_SPIS.for_each(|spi| gic::set_edge(spi, true));
    set_and_clear(ISPENDR, ICPENDR, "pending")?;
    // Level-sensitive ones can be made pending by software as well.
    FREE_SPIS.for_each(|spi| gic::set_edge(spi, false));
    set_and_clear(ISPENDR, ICPENDR, "pending, level-sensitive")?;
    pass!("")
}

fn active_bits() -> Check<Done> {
    set_and_clear(ISACTIVER, ICACTIVER, "active")?;
    let sgi = gic::sgi_frame(cpu::index());
    sgi.write32(ISACTIVER, 1 << 3 | 1 << 27);
    ensure_eq!(sgi.read32(ICACTIVER), 1 << 3 | 1 << 27, "GICR_ICACTIVER0");
    sgi.write32(ICACTIVER, 1 << 3);
    ensure_eq!(sgi.read32(ISACTIVER), 1 << 27, "GICR_ISACTIVER0");
    sgi.write32(ICACTIVER, !0);
    ensure_eq!(sgi.read32(ISACTIVER), 0, "GICR_ISACTIVER0, cleared");
    pass!("")
}

fn routes() -> Check<Done> {
    if gic::IS_V2 {
        return targets();
    }
    let vcpus = &platform::get().vcpus;
    for spi in FREE_SPIS {
        let offset = gicd::IROUTER + u64::from(spi) * 8;
        let target = vcpus[spi as usize % vcpus.len()];
        GICD.write64(offset, target);
        ensure_eq!(GICD.read64(offset), target, "IROUTER of {spi}");
        ensure_eq!(GICD.read32(offset), target as u32, "IROUTER of {spi}, low half");
        // In halves, as a 32-bit guest would.
        GICD.write32(offset + 4, 0);
        GICD.write32(offset, vcpus[0] as u32);
        ensure_eq!(GICD.read64(offset), vcpus[0], "IROUTER of {spi}, written in halves");
    }
    GICD.write64(gicd::IROUTER + u64::from(FREE_SPIS.start) * 8, gicd::ROUTE_ANY);
    let any = GICD.read64(gicd::IROUTER + u64::from(FREE_SPIS.start) * 8);
    let one_of_n = GICD.read32(gicd::TYPER) & 1 << 25 == 0;
    ensure!(!one_of_n || any & gicd::ROUTE_ANY != 0, "IROUTER.IRM does not stick: {any:#x}");
    pass!("")
}

/// GICD_ITARGETSR: bytes and words of it, for SPIs and for private interrupts.
fn targets() -> Check<Done> {
    let vcpus = platform::get().vcpus.len();
    for spi in FREE_SPIS {
        let (offset, target) = (gicd::ITARGETSR + u64::from(spi), 1 << (spi as usize % vcpus));
        GICD.write8(offset, target);
        ensure_eq!(GICD.read8(offset), target, "ITARGETSR of {spi}");
    }
    let word = gicd::ITARGETSR + u64::from(FREE_SPIS.start);
    GICD.write32(word, 0x0101_0101);
    ensure_eq!(GICD.read32(word), 0x0101_0101, "ITARGETSR as a word");
    let own = u32::from_ne_bytes([1 << cpu::index(); 4]);
    for offset in (0..32).step_by(4) {
        GICD.write32(gicd::ITARGETSR + offset, !own);
        let read = GICD.read32(gicd::ITARGETSR + offset);
        // A GIC of a single CPU has no targets.
        ensure!([own, 0].contains(&read), "private interrupts go to {read:#x}");
    }
    pass!("")
}

/// Reserved places read as zero and ignore writes: no fault, no side effect.
fn reserved() -> Check<Done> {
    // GICD_SGIR and the spaces between register banks, in a GICv3 with ARE.
    let offsets: &[u64] = if gic::IS_V2 {
        &[0x14, 0x2c, 0xf30, 0xffc]
    } else {
        &[0x14, 0x2c, 0xf00, 0x4000, 0x5ffc, 0xbff8]
    };
    for &offset in offsets {
        GICD.write32(offset, !0);
        ensure_eq!(GICD.read32(offset), 0, "GICD offset {offset:#x}");
    }
    let rd = gic::rd_frame(cpu::index());
    for offset in [0xc, 0x1000, 0x7ffc].into_iter().filter(|_| !gic::IS_V2) {
        rd.write32(offset, !0);
        ensure_eq!(rd.read32(offset), 0, "GICR offset {offset:#x}");
    }
    gic::expect_total(0)?;
    pass!("")
}
