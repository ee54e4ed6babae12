//! What a GICv2's distributor has of its own.

use super::*;
use crate::frames::v2;
use crate::{Effects, Gic};
use abi::MAX_VCPUS_PER_VM;
use abi::platform::INTID_END;

const VCPUS: usize = 4;
const ITARGETSR: u64 = 0x800;
const SGIR: u64 = 0xf00;
const CPENDSGIR: u64 = 0xf10;
const SPENDSGIR: u64 = 0xf20;

fn read(gic: &Gic, vcpu: usize, offset: u64, size: u8) -> u64 {
    v2::read(gic, vcpu, VCPUS, offset, size).0
}

fn write(gic: &Gic, vcpu: usize, offset: u64, size: u8, value: u64) -> Effects {
    v2::write(gic, vcpu, VCPUS, offset, size, value)
}

#[test]
fn it_says_what_it_is() {
    for vcpus in 1..=MAX_VCPUS_PER_VM {
        let gic = Gic::new();
        let typer = v2::read(&gic, 0, vcpus, 0x4, 4).0;
        assert_eq!((typer & 0x1f) * 32 + 32, u64::from(INTID_END));
        assert_eq!(typer >> 5, vcpus as u64 - 1, "CPUNumber, and no security extensions");
    }
    let gic = Gic::new();
    assert_eq!(read(&gic, 0, 0x8, 4), 0x43b);
    assert_eq!(read(&gic, 0, 0xfe8, 4) >> 4 & 0xf, 2, "GICv2");
    for read_only in [0x4, 0x8, 0xfe8] {
        let before = read(&gic, 0, read_only, 4);
        let _ = write(&gic, 0, read_only, 4, !before);
        assert_eq!(read(&gic, 0, read_only, 4), before);
    }
    assert_eq!(write(&gic, 0, GICD_CTLR, 4, u64::MAX).notify, 0xff);
    assert_eq!(read(&gic, 0, GICD_CTLR, 4), 3, "both groups, and no affinity routing");
}

#[test]
fn private_interrupts_are_those_of_the_vcpu_that_accesses_them() {
    let gic = Gic::new();
    for (register, clear) in [(ISENABLER, ICENABLER), (ISPENDR, ICPENDR)] {
        let _ = write(&gic, 1, register, 4, 0xffff_00f0);
        let _ = write(&gic, 1, clear, 4, 0x0fff_0000);
        assert_eq!(read(&gic, 1, register, 4), 0xf000_00f0);
        assert_eq!(read(&gic, 0, register, 4), 0);
    }
    let _ = write(&gic, 2, IPRIORITYR + 27, 1, 0xa5);
    assert_eq!(read(&gic, 2, IPRIORITYR + 24, 4), 0xa0 << 24);
    assert_eq!(read(&gic, 1, IPRIORITYR + 24, 4), 0);
    let _ = write(&gic, 0, ISENABLER + 4, 4, 0x55);
    assert_eq!(read(&gic, 3, ISENABLER + 4, 4), 0x55, "shared ones are of all");
}

#[test]
fn a_shared_interrupt_goes_to_the_first_that_is_named() {
    let gic = Gic::new();
    for named in 0..=u8::MAX {
        let _ = write(&gic, 0, ITARGETSR + 41, 1, named.into());
        let there = u32::from(named) & ((1 << VCPUS) - 1);
        let target = (there != 0).then(|| there.trailing_zeros() as usize);
        assert_eq!(gic.target(41), target, "{named:#b}");
        let shown = target.map_or(0, |target| 1 << target);
        assert_eq!(read(&gic, 0, ITARGETSR + 41, 1), shown);
        assert_eq!(read(&gic, 0, ITARGETSR + 40, 4), shown << 8 | 0x0101_0001);
    }
    let _ = write(&gic, 0, ITARGETSR + 284, 4, 0x0108_0402);
    assert_eq!([284, 285, 286, 287].map(|intid| gic.target(intid)), [1, 2, 3, 0].map(Some));
    assert_eq!(read(&gic, 0, ITARGETSR + 288, 4), 0, "behind the last");
}

#[test]
fn private_interrupts_go_to_the_vcpu_that_asks_whatever_is_written() {
    let gic = Gic::new();
    for vcpu in 0..VCPUS {
        for offset in (0..32).step_by(4) {
            assert_eq!(write(&gic, vcpu, ITARGETSR + offset, 4, u64::MAX), Effects::default());
            let own = 0x0101_0101 << vcpu;
            assert_eq!(read(&gic, vcpu, ITARGETSR + offset, 4), own);
            assert_eq!(read(&gic, vcpu, ITARGETSR + offset + 3, 1), own & 0xff);
        }
    }
}

#[test]
fn targets_are_accessed_by_bytes_and_aligned_words() {
    let gic = Gic::new();
    for (offset, size) in [(40, 2), (40, 8), (41, 4), (42, 4)] {
        assert_eq!(write(&gic, 0, ITARGETSR + offset, size, 0x0202_0202), Effects::default());
        assert_eq!(read(&gic, 0, ITARGETSR + offset, size), 0);
    }
    assert_eq!(gic.target(42), Some(0));
}

#[test]
fn an_sgi_pends_at_every_vcpu_that_is_meant() {
    // Filter, list, sender; those that get it.
    for (filter, list, sender, targets) in [
        (0, 0b0110, 0, 0b0110),
        (0, 0b1111_1000, 1, 0b1000),
        (0, 0, 0, 0),
        (1, 0, 2, 0b1011),
        (2, 0b0001, 3, 0b1000),
        (3, 0b1111, 0, 0),
    ] {
        let gic = Gic::new();
        let value = filter << 24 | list << 16 | 1 << 15 | 9;
        assert_eq!(write(&gic, sender, SGIR, 4, value).notify, targets);
        for vcpu in 0..VCPUS {
            let pends = u64::from(targets >> vcpu & 1);
            assert_eq!(read(&gic, vcpu, ISPENDR, 4), pends << 9);
            for register in [SPENDSGIR, CPENDSGIR] {
                assert_eq!(read(&gic, vcpu, register + 8, 4), pends << 8);
                assert_eq!(read(&gic, vcpu, register + 9, 1), pends);
            }
        }
        assert_eq!(read(&gic, sender, SGIR, 4), 0, "it is only written");
    }
}

#[test]
fn sgis_are_set_and_cleared_by_bytes() {
    let gic = Gic::new();
    assert_eq!(write(&gic, 1, SPENDSGIR + 4, 4, 0x8000_0101).notify, 0b10);
    assert_eq!(read(&gic, 1, ISPENDR, 4), 1 << 4 | 1 << 5 | 1 << 7);
    let _ = write(&gic, 1, CPENDSGIR + 5, 1, 0x01);
    let _ = write(&gic, 1, CPENDSGIR + 4, 4, 0);
    assert_eq!(read(&gic, 1, ISPENDR, 4), 1 << 4 | 1 << 7);
    assert_eq!(read(&gic, 0, ISPENDR, 4), 0);
    assert_eq!(write(&gic, 1, SPENDSGIR + 2, 4, 0xff), Effects::default(), "not aligned");
}

/// As in [`super::exhaustive`]: nothing that a guest does to the frame panics, and what is no
/// register reads as zero.
#[test]
fn every_access_is_answered() {
    let gic = Gic::new();
    for offset in 0..v2::SIZE {
        for size in [1, 2, 4, 8] {
            let _ = write(&gic, 3, offset, size, u64::MAX);
            let (value, _) = v2::read(&gic, 3, VCPUS, offset, size);
            if size < 8 {
                assert_eq!(value >> (8 * size), 0, "{offset:#x}");
            }
            if matches!(offset, 0xd00..0xf00 | 0xf30..0xfe8 | 0xff0..) {
                assert_eq!(value, 0, "{offset:#x}");
            }
        }
    }
}
