//! Every register by itself: what reads back, what is reserved, which sizes.

use super::*;
use crate::frames::v3;
use crate::{Effects, Gic};
use abi::platform::ppi::GRANT;

const SGI_FRAME: u64 = 0x1_0000;

fn read_d(gic: &Gic, offset: u64, size: u8) -> u64 {
    v3::read_distributor(gic, 0, offset, size).0
}

fn read_r(gic: &Gic, offset: u64, size: u8) -> u64 {
    v3::read_redistributor(gic, 0, true, offset, size).0
}

fn write_d(gic: &Gic, offset: u64, size: u8, value: u64) {
    let _ = v3::write_distributor(gic, 0, offset, size, value);
}

fn write_r(gic: &Gic, offset: u64, size: u8, value: u64) {
    let _ = v3::write_redistributor(gic, 0, offset, size, value);
}

#[test]
fn the_distributor_says_what_it_is() {
    let gic = Gic::new();
    let typer = read_d(&gic, 0x4, 4);
    assert_eq!((typer & 0x1f) * 32 + 32, u64::from(abi::platform::INTID_END));
    assert_eq!(typer >> 19 & 0x1f, 9, "10 bits of INTID");
    assert_eq!(typer >> 25 & 1, 1, "No1N");
    assert_eq!(typer & !(0x1f | 0x1f << 19 | 1 << 25), 0, "no LPIs, MBIs, security, Aff3");
    assert_eq!(read_d(&gic, 0x8, 4), 0x43b);
    assert_eq!(read_d(&gic, 0xffe8, 4) >> 4 & 0xf, 3, "GICv3");
    for read_only in [0x4, 0x8, 0xffe8] {
        let before = read_d(&gic, read_only, 4);
        write_d(&gic, read_only, 4, !before);
        assert_eq!(read_d(&gic, read_only, 4), before);
    }
}

#[test]
fn distributor_control_has_two_bits_to_write() {
    let gic = Gic::new();
    assert_eq!(read_d(&gic, GICD_CTLR, 4), 0x50, "DS and ARE");
    let effects = v3::write_distributor(&gic, 0, GICD_CTLR, 4, u64::MAX);
    assert_eq!(effects, Effects { notify: 0xff, deactivate: None });
    assert_eq!(read_d(&gic, GICD_CTLR, 4), 0x53);
    write_d(&gic, GICD_CTLR, 4, 2);
    assert_eq!(read_d(&gic, GICD_CTLR, 4), 0x52);
    write_d(&gic, GICD_CTLR, 1, 1);
    assert_eq!(read_d(&gic, GICD_CTLR, 4), 0x52, "whole words only");
    assert_eq!(read_d(&gic, GICD_CTLR, 2), 0);
}

#[test]
fn redistributors_say_whose_they_are() {
    let gic = Gic::new();
    for (vcpu, last) in [(0, false), (3, true), (7, true)] {
        let read = |offset, size| v3::read_redistributor(&gic, vcpu, last, offset, size).0;
        let affinity = vcpu as u64;
        let typer = affinity << 32 | affinity << 8 | u64::from(last) << 4;
        assert_eq!(read(0x8, 8), typer);
        assert_eq!(read(0x8, 4), typer & 0xffff_ffff);
        assert_eq!(read(0xc, 4), typer >> 32);
        assert_eq!(read(0x4, 4), 0x43b);
        assert_eq!(read(0xffe8, 4) >> 4 & 0xf, 3);
    }
    for reserved in [0x0, 0x10, 0x14, 0x40, 0x70, 0x78, 0xfff0] {
        write_r(&gic, reserved, 4, u64::MAX);
        assert_eq!(read_r(&gic, reserved, 4), 0, "awake, no LPIs");
    }
}

#[test]
fn bit_registers_read_back() {
    for (set, clear) in [(ISENABLER, ICENABLER), (ISPENDR, ICPENDR), (ISACTIVER, ICACTIVER)] {
        let gic = Gic::new();
        for word in 1..9 {
            write_d(&gic, set + 4 * word, 4, 0xf0f0_1234);
            for register in [set, clear] {
                assert_eq!(read_d(&gic, register + 4 * word, 4), 0xf0f0_1234);
            }
            write_d(&gic, set + 4 * word, 4, 0);
            write_d(&gic, clear + 4 * word, 4, 0x00f0_0030);
            assert_eq!(read_d(&gic, set + 4 * word, 4), 0xf000_1204);
        }
        write_r(&gic, SGI_FRAME + set, 4, 0xff00_00ff);
        write_r(&gic, SGI_FRAME + clear, 4, 0x0f00_000f);
        for register in [set, clear] {
            assert_eq!(read_r(&gic, SGI_FRAME + register, 4), 0xf000_00f0);
        }
        let other = v3::read_redistributor(&gic, 1, false, SGI_FRAME + set, 4).0;
        assert_eq!(other, 0, "private to a vCPU");
    }
}

#[test]
fn groups_read_back() {
    let gic = Gic::new();
    write_d(&gic, IGROUPR + 8, 4, 0x1234_5678);
    write_r(&gic, SGI_FRAME + IGROUPR, 4, 0x8765_4321);
    assert_eq!(read_d(&gic, IGROUPR + 8, 4), 0x1234_5678);
    assert_eq!(read_r(&gic, SGI_FRAME + IGROUPR, 4), 0x8765_4321);
}

#[test]
fn the_distributor_has_no_private_interrupts_and_ends_after_its_last() {
    let gic = Gic::new();
    for base in
        [IGROUPR, ISENABLER, ICENABLER, ISPENDR, ICPENDR, ISACTIVER, ICACTIVER, 0xd00, 0xe00]
    {
        for offset in [0, 4 * 9, 0x7c] {
            write_d(&gic, base + offset, 4, u64::MAX);
            assert_eq!(read_d(&gic, base + offset, 4), 0, "{base:#x} + {offset:#x}");
        }
    }
    for offset in [IPRIORITYR, IPRIORITYR + 28, IPRIORITYR + 288, IPRIORITYR + 1016, ICFGR] {
        write_d(&gic, offset, 4, u64::MAX);
        assert_eq!(read_d(&gic, offset, 4), 0, "{offset:#x}");
    }
    for offset in [ISENABLER + 4, IPRIORITYR + 32, ICFGR + 8, 0xd00, 0xe00, 0xf00, 0xffe8] {
        write_r(&gic, SGI_FRAME + offset, 4, u64::MAX);
        assert_eq!(read_r(&gic, SGI_FRAME + offset, 4), 0, "{offset:#x}");
    }
}

#[test]
fn bit_registers_are_whole_words() {
    let gic = Gic::new();
    for size in [1, 2, 8] {
        write_d(&gic, ISENABLER + 4, size, u64::MAX);
        assert_eq!(read_d(&gic, ISENABLER + 4, 4), 0);
    }
    write_d(&gic, ISENABLER + 6, 4, u64::MAX);
    assert_eq!(read_d(&gic, ISENABLER + 4, 4), 0);
    write_d(&gic, ISENABLER + 4, 4, u64::MAX);
    assert_eq!(read_d(&gic, ISENABLER + 4, 4), 0xffff_ffff);
    assert_eq!(read_d(&gic, ISENABLER + 4, 1), 0);
}

#[test]
fn priorities_have_five_bits_and_are_bytes_or_words() {
    let gic = Gic::new();
    write_d(&gic, IPRIORITYR + 32, 4, 0xffa7_4307);
    assert_eq!(read_d(&gic, IPRIORITYR + 32, 4), 0xf8a0_4000);
    assert_eq!(read_d(&gic, IPRIORITYR + 34, 1), 0xa0);
    write_d(&gic, IPRIORITYR + 33, 1, 0x88);
    assert_eq!(read_d(&gic, IPRIORITYR + 32, 4), 0xf8a0_8800);
    write_d(&gic, IPRIORITYR + 287, 1, 0x50);
    assert_eq!(read_d(&gic, IPRIORITYR + 284, 4), 0x5000_0000);
    write_r(&gic, SGI_FRAME + IPRIORITYR + 28, 4, 0x1020_3040);
    assert_eq!(read_r(&gic, SGI_FRAME + IPRIORITYR + 31, 1), 0x10);
    write_d(&gic, IPRIORITYR + 34, 4, 0);
    assert_eq!(read_d(&gic, IPRIORITYR + 32, 4), 0xf8a0_8800, "aligned only");
}

#[test]
fn a_new_priority_reorders_what_is_listed() {
    let mut world = World::new(1, 1);
    for (intid, priority) in [(3, 0x80), (4, 0x88), (40, 0x90)] {
        world.enable(0, intid, priority);
        world.write_bit(0, ISPENDR, intid);
    }
    assert_eq!(world.listed_intids(0), [3]);
    world.enable(0, 40, 0);
    assert_eq!(world.listed_intids(0), [40]);
    world.enable(0, 4, 0x78);
    assert_eq!(world.drain(0), [40, 4, 3]);
}

#[test]
fn configuration_is_two_bits_each_and_fixed_for_sgis() {
    let gic = Gic::new();
    assert_eq!(read_r(&gic, SGI_FRAME + ICFGR, 4), 0xaaaa_aaaa);
    let grant = 2 << (2 * (GRANT - 16));
    assert_eq!(read_r(&gic, SGI_FRAME + ICFGR + 4, 4), grant, "no line is behind it");
    write_r(&gic, SGI_FRAME + ICFGR, 4, 0);
    assert_eq!(read_r(&gic, SGI_FRAME + ICFGR, 4), 0xaaaa_aaaa);
    write_r(&gic, SGI_FRAME + ICFGR + 4, 4, 0xffff_ffff);
    assert_eq!(read_r(&gic, SGI_FRAME + ICFGR + 4, 4), 0xaaaa_aaaa, "lower bits reserved");
    write_d(&gic, ICFGR + 8, 4, 0x8000_0002);
    write_d(&gic, ICFGR + 12, 4, 0x0000_0008);
    assert_eq!(read_d(&gic, ICFGR + 8, 4), 0x8000_0002);
    assert_eq!(read_d(&gic, ICFGR + 12, 4), 0x0000_0008);
    write_d(&gic, ICFGR + 8, 4, 0x0000_0008);
    assert_eq!(read_d(&gic, ICFGR + 8, 4), 0x0000_0008);
    // INTIDs 33 and 49: edges latch, 32 and 48 follow the line.
    for (intid, latches) in [(33, true), (49, true), (32, false), (48, false)] {
        let _ = gic.set_level(0, intid, true);
        let _ = gic.set_level(0, intid, false);
        let bit = read_d(&gic, ISPENDR + 4, 4) >> (intid - 32) & 1;
        assert_eq!(bit != 0, latches, "{intid}");
    }
}

#[test]
fn routes_read_back_whole_or_by_halves() {
    let gic = Gic::new();
    for intid in [32, 100, 287] {
        let at = IROUTER + 8 * intid;
        write_d(&gic, at, 8, 0x0000_00ff_8012_3405);
        assert_eq!(read_d(&gic, at, 8), 0x0012_3405, "no Aff3, no routing to any PE");
        write_d(&gic, at, 4, 0x3);
        write_d(&gic, at + 4, 4, 0xff);
        assert_eq!((read_d(&gic, at, 8), read_d(&gic, at + 4, 4)), (3, 0));
        write_d(&gic, at, 2, 0x1);
        write_d(&gic, at + 1, 4, 0x1);
        write_d(&gic, at + 4, 8, 0x1);
        assert_eq!(read_d(&gic, at, 4), 3);
    }
    for outside in [IROUTER, IROUTER + 8 * 31, IROUTER + 8 * 288] {
        write_d(&gic, outside, 8, 1);
        assert_eq!(read_d(&gic, outside, 8), 0);
    }
}

#[test]
fn routes_lead_to_vcpus() {
    let gic = Gic::new();
    let at = IROUTER + 8 * 40;
    assert_eq!(gic.target(40), Some(0));
    for (route, target) in
        [(7, Some(7)), (8, None), (0x100, None), (0x1_0000, None), (1 << 31, Some(0))]
    {
        write_d(&gic, at, 8, route);
        assert_eq!(gic.target(40), target);
    }
    assert_eq!((gic.target(31), gic.target(288)), (None, None));
}

#[test]
fn nothing_answers_elsewhere() {
    let gic = Gic::new();
    let known = [GICD_CTLR, 0x4, 0x8, 0xffe8];
    for offset in (0..0x1_0000).step_by(4) {
        write_d(&gic, offset, 4, 0);
        let zero = read_d(&gic, offset, 4) == 0;
        assert!(zero || known.contains(&offset), "{offset:#x}");
    }
    for offset in (0..0x2_0000).step_by(4) {
        write_r(&gic, offset, 4, 0);
        let known = [0x4, 0x8, 0xffe8, SGI_FRAME + ICFGR].contains(&offset);
        assert!(read_r(&gic, offset, 4) == 0 || known, "{offset:#x}");
    }
}

#[test]
fn the_target_is_notified() {
    let gic = Gic::new();
    write_d(&gic, IROUTER + 8 * 40, 8, 2);
    assert_eq!(gic.post(5, 40).notify, 1 << 2);
    assert_eq!(gic.post(5, 3).notify, 1 << 5);
    assert_eq!(gic.set_level(0, 40, true).notify, 1 << 2);
    assert_eq!(gic.set_level(0, 40, true), Effects::default(), "no change");
    let bits = v3::write_distributor(&gic, 0, ISENABLER + 4, 4, 1 << 8 | 1 << 9);
    assert_eq!(bits.notify, 1 << 2 | 1 << 0);
    assert_eq!(v3::write_redistributor(&gic, 3, SGI_FRAME + ICENABLER, 4, 1).notify, 1 << 3);
}
