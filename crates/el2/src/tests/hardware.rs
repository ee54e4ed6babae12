//! What EL2 finds out about a core, and what it writes there once.

use crate::arch::context::{self, Fault, Syndrome};
use crate::arch::fake::machine::{self, SystemError};
use crate::arch::fake::registers::Register;
use crate::arch::gic::virtual_interface;
use crate::arch::{cpu, debug, gic, timer};
use abi::system::Board;
use vgic::interface::{Hardware, Maintenance};
use zerocopy::FromZeros;

fn install() {
    machine::install(Board::new_zeroed());
}

fn register(name: &str) -> u64 {
    machine::with(|machine| machine.register(0, Register::named(name)))
}

fn set(name: &str, value: u64) {
    machine::with(|machine| machine.cores[0].registers[Register::named(name).0] = value);
}

#[test]
fn a_guest_cannot_switch_the_interrupt_interface_off() {
    const SRE_EL1: Register = Register::named("icc_sre_el1");
    const SRE_EL2: Register = Register::named("icc_sre_el2");
    install();
    assert!(gic::claim(), "its accesses trap");
    assert_eq!((register("icc_sre_el1"), register("icc_sre_el2")), (7, 7));

    // They do not trap: a core with a GICv2's interface.
    machine::with(|machine| machine.fixed.push((SRE_EL2, 8)));
    assert!(!gic::claim());
    // They do not trap, and the interface cannot be switched off: as in QEMU.
    machine::with(|machine| machine.fixed.push((SRE_EL1, 7)));
    assert!(gic::claim());
}

/// HCR_EL2.FB and BSU only where a vCPU may find what it left on another core; TWE only where
/// siblings meet.
#[test]
fn maintenance_reaches_other_cores_only_where_vcpus_change() {
    const BROADCAST: u64 = 1 << 9 | 1 << 10;
    const TWE: u64 = 1 << 14;
    install();
    cpu::configure();
    let usual = register("hcr_el2");
    assert_eq!(usual & (BROADCAST | TWE), 0);
    for (events, broadcast, more) in [
        (false, false, 0),
        (true, false, TWE),
        (false, true, BROADCAST),
        (true, true, BROADCAST | TWE),
    ] {
        cpu::control_guests(events, broadcast);
        assert_eq!(register("hcr_el2"), usual | more);
    }
}

#[test]
fn controls_of_newer_features_are_written_where_they_exist() {
    const FIRMWARE: u64 = 0xf1f1;
    const CONTROLS: [&str; 11] = [
        "s3_4_c1_c2_2",
        "s3_4_c1_c1_4",
        "s3_4_c1_c1_5",
        "s3_4_c1_c1_6",
        "s3_4_c3_c1_4",
        "s3_4_c3_c1_5",
        "s3_4_c3_c1_2",
        "s3_4_c3_c1_3",
        "s3_4_c3_c1_7",
        "s3_4_c3_c1_0",
        "s3_4_c3_c1_1",
    ];
    // What a core has by ID_AA64MMFR1_EL1.HCX and ID_AA64MMFR0_EL1.FGT.
    for (hcx, fgt, there) in [(0, 0, 0..0), (1, 0, 0..1), (1, 1, 0..6), (1, 2, 0..11)] {
        install();
        CONTROLS.iter().for_each(|name| set(name, FIRMWARE));
        set("id_aa64mmfr1_el1", hcx << 40);
        set("id_aa64mmfr0_el1", fgt << 56);
        cpu::configure();
        for (at, name) in CONTROLS.iter().enumerate() {
            let expected = if there.contains(&at) { 0 } else { FIRMWARE };
            assert_eq!(register(name), expected, "{name} with HCX {hcx}, FGT {fgt}");
        }
        assert_eq!(register("s3_4_c10_c5_0"), 0, "MPAM2_EL2 is not there");
    }
}

#[test]
fn registers_of_memory_partitioning_trap() {
    const HAS_HCR: u64 = 1 << 17;
    for (id, shift) in [("id_aa64pfr0_el1", 40), ("id_aa64pfr1_el1", 16)] {
        for (hcr, virtual_) in [(0, 0xf1), (HAS_HCR, 0)] {
            install();
            set(id, 1 << shift);
            set("s3_0_c10_c4_4", hcr);
            set("s3_4_c10_c4_0", 0xf1);
            cpu::configure();
            assert_eq!(register("s3_4_c10_c5_0"), 3 << 48);
            assert_eq!(register("s3_4_c10_c4_0"), virtual_);
        }
    }
}

/// A neighbour may ring for ever: a core's timers come first.
#[test]
fn timers_are_more_urgent_than_doorbells() {
    const FRAME: u64 = 0x1000_0000;
    let mut board = Board::new_zeroed();
    (board.pcpu_count, board.gicr_pa, board.gicr_stride) = (1, FRAME, 0x2_0000);
    let timers = [timer::EL2_INTID, timer::VIRTUAL_INTID, timer::WATCH_INTID];
    let [realtime, lower, ordinary] = gic::Doorbell::ALL.map(|doorbell| doorbell as u32);
    let others = [realtime, gic::MAINTENANCE, lower, ordinary];
    // What is left of the EL1 physical timer by firmware comes only where there is a watchdog.
    for watched in [false, true] {
        machine::install(board);
        let redistributor = gic::Redistributor::start(FRAME, /* separate */ true);
        if watched {
            redistributor.enable_watch();
        }
        machine::with(|machine| machine.cores[0].private.latched = u32::MAX);
        let taken: Vec<_> = std::iter::from_fn(|| {
            let intid = gic::acknowledge();
            if intid < gic::SPECIAL {
                gic::drop_priority(intid);
                return Some(intid);
            }
            None
        })
        .collect();
        let timers = &timers[..if watched { 3 } else { 2 }];
        assert_eq!(taken, [timers, &others].concat());
    }
}

/// A boot loader may have left them otherwise.
#[test]
fn private_interrupts_are_levels() {
    const FRAME: u64 = 0x1000_0000;
    let mut board = Board::new_zeroed();
    (board.pcpu_count, board.gicr_pa, board.gicr_stride) = (1, FRAME, 0x2_0000);
    machine::install(board);
    machine::with(|machine| machine.cores[0].private.config = u32::MAX);
    let _ = gic::Redistributor::start(FRAME, /* separate */ true);
    assert_eq!(machine::with(|machine| machine.cores[0].private.config), 0);
}

/// Erratum 1463225 of the Cortex-A76, which r4p0 mends.
#[test]
fn a_kernel_is_not_debugged_where_that_may_lose_interrupts() {
    const SS: u64 = 1 << 0;
    const KDE: u64 = 1 << 13;
    let others = [0x414f_d0b1, 0x410f_d0c0, 0x510f_d0b0];
    let sound = others.into_iter().map(|midr| (midr, KDE));
    for (midr, kernel) in [(0x410f_d0b0, 0), (0x413f_d0b1, 0)].into_iter().chain(sound) {
        install();
        set("midr_el1", midr);
        let _ = debug::set_control(SS | KDE);
        assert_eq!(register("mdscr_el1"), SS | kernel, "MIDR_EL1 = {midr:#x}");
    }
}

#[test]
fn a_step_over_what_is_emulated_is_one_step() {
    const SS: u64 = 1 << 21;
    const OTHERS: u64 = 0x6000_03c5;
    const IL: u64 = 1 << 25;
    for (il, length) in [(IL, 4), (0, 2)] {
        for steps in [0, SS] {
            install();
            set("elr_el2", 0x1000);
            set("spsr_el2", OTHERS | steps);
            context::skip_instruction(Syndrome(0x18 << 26 | il));
            assert_eq!((register("elr_el2"), register("spsr_el2")), (0x1000 + length, OTHERS));
        }
    }
    set("oslar_el1", 1);
    cpu::configure();
    assert_eq!(register("oslar_el1"), 0, "nothing steps while the OS lock is locked");
}

/// As AArch64.TakeException has it.
#[test]
fn an_exception_takes_over_what_the_architecture_says() {
    const MASKED: u64 = 0x3c5;
    const SS: u64 = 1 << 21;
    const PAN: u64 = 1 << 22;
    const DIT: u64 = 1 << 24;
    const SSBS: u64 = 1 << 12;
    const SPAN: u64 = 1 << 23;
    const DSSBS: u64 = 1 << 44;
    for (sctlr, pstate, taken) in [
        (SPAN, 0, 0),
        (0, 0, PAN),
        (SPAN, SS | PAN | DIT | SSBS, PAN | DIT),
        (SPAN | DSSBS, DIT, DIT | SSBS),
    ] {
        install();
        set("sctlr_el1", sctlr);
        set("spsr_el2", pstate);
        assert!(context::inject(Fault::Undefined));
        assert_eq!(register("spsr_el2"), MASKED | taken, "SCTLR {sctlr:#x}, PSTATE {pstate:#x}");
        assert_eq!(register("spsr_el1"), pstate);
    }
}

/// VBAR_EL1 keeps whatever a guest writes, on QEMU but for the lowest five bits.
#[test]
fn vectors_may_be_anywhere() {
    const FROM_EL0: u64 = 0x400;
    install();
    set("vbar_el1", !0x1f);
    assert!(context::inject(Fault::Undefined));
    assert_eq!(register("elr_el2"), FROM_EL0 - 0x20);
}

/// While an active interrupt is spilled ICC_DIR_EL1 traps: alone, or with all that concern both
/// groups.
#[test]
fn deactivation_traps_on_every_core_while_interrupts_are_spilled() {
    const TDS: u64 = 1 << 19;
    const TC: u64 = 1 << 10;
    const TDIR: u64 = 1 << 14;
    for (tds, trap) in [(TDS, TDIR), (0, TC)] {
        install();
        set("ich_vtr_el2", tds | 3);
        let interface = virtual_interface::Interface::start();
        let mut hw = virtual_interface::Loaded::new(interface, false);
        hw.set_maintenance(Maintenance { none_pending: false, unlisted_eoi: true });
        assert_eq!(register("ich_hcr_el2") & (TC | TDIR), trap);
        hw.set_maintenance(Maintenance { none_pending: true, unlisted_eoi: false });
        assert_eq!(register("ich_hcr_el2") & (TC | TDIR), 0);
    }
}

/// An error that pends, or that comes when what was executed is complete.
#[test]
fn an_error_of_what_was_executed_is_ended() {
    const LEFT: [(&str, u64); 2] = [("elr_el2", 0x1234), ("spsr_el2", 0x3c5)];
    for error in [None, Some(false), Some(true)] {
        install();
        LEFT.iter().for_each(|&(name, value)| set(name, value));
        machine::with(|machine| {
            machine.cores[0].error = error.map(|pends| SystemError { cause: None, pends });
        });
        assert_eq!(cpu::ends_error(), error.is_some(), "{error:?}");
        assert_eq!(machine::with(|machine| machine.cores[0].error), None);
        assert!(!cpu::ends_error() && !cpu::error_pending());
        LEFT.iter().for_each(|&(name, value)| assert_eq!(register(name), value));
    }
}
