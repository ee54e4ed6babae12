//! The CPU interface: the ICC registers, with SGIs to oneself as stimulus.

use crate::arch::{cpu, sysreg::read, sysreg::write};
use crate::gic::{self, NONE, offset::*};
use crate::suite::{Check, Done, Test};
use crate::{ensure, ensure_eq, irq, pass, wait};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "icc.idle", body: idle },
    Test { name: "icc.masked", body: masked },
    Test { name: "icc.acknowledge", body: acknowledge },
    Test { name: "icc.priority_mask", body: priority_mask },
    Test { name: "icc.pmr_readback", body: pmr_readback },
    Test { name: "icc.binary_point", body: binary_point },
    Test { name: "icc.group_enable", body: group_enable },
    Test { name: "icc.order", body: order },
    Test { name: "icc.eoi_mode1", body: eoi_mode1 },
    Test { name: "icc.deactivate_out_of_order", body: deactivate_out_of_order },
    Test { name: "icc.withdrawn", body: withdrawn },
];

/// Pends SGI `intid` here and waits until the CPU interface shows it.
pub fn pend_self(intid: u32) -> Check {
    gic::send(intid, [cpu::index()]);
    wait::until("an SGI to oneself to be pending", || gic::bit(ISPENDR, intid))
}

/// Waits until the interface signals `intid` as the highest pending one.
fn highest(intid: u32) -> Check {
    wait::until("ICC_HPPIR1_EL1", || read::icc_hppir1_el1() as u32 == intid)
}

/// Priority bits that are implemented, as a mask of the upper bits.
pub fn implemented() -> u8 {
    let bits = (read::icc_ctlr_el1() >> 8 & 0b111) + 1;
    (0xff00_u16 >> bits) as u8
}

fn idle() -> Check<Done> {
    cpu::mask_irq();
    ensure_eq!(read::icc_iar1_el1() as u32, NONE, "ICC_IAR1_EL1 with nothing pending");
    ensure_eq!(read::icc_hppir1_el1() as u32, NONE, "ICC_HPPIR1_EL1 with nothing pending");
    ensure_eq!(read::icc_rpr_el1(), 0xff, "ICC_RPR_EL1 with nothing active");
    ensure_eq!(read::icc_ap1r0_el1(), 0, "ICC_AP1R0_EL1 with nothing active");
    ensure_eq!(read::icc_sre_el1() & 1, 1, "ICC_SRE_EL1.SRE");
    ensure!(!cpu::irq_pending(), "ISR_EL1.I with nothing pending");
    let implemented = implemented();
    ensure!(implemented & 0xf0 == 0xf0, "fewer than 16 priorities: {implemented:#x}");
    pass!("priority bits {implemented:#x}")
}

fn masked() -> Check<Done> {
    cpu::mask_irq();
    let seen = irq::seen(cpu::index());
    for _ in 0..3 {
        pend_self(5)?;
    }
    wait::until("ISR_EL1.I", cpu::irq_pending)?;
    gic::let_in();
    ensure_eq!(seen.total(), 0, "interrupts taken while masked");
    cpu::unmask_irq();
    gic::expect_total(1)?;
    ensure_eq!(seen.count(5), 1, "SGI 5 sent three times while pending, taken");
    ensure!(!gic::bit(ISPENDR, 5), "pending after it was taken");
    ensure!(!gic::bit(ISACTIVER, 5), "active after it was ended");
    pass!("")
}

fn acknowledge() -> Check<Done> {
    cpu::mask_irq();
    gic::set_priority(3, 0x50);
    pend_self(3)?;
    highest(3)?;
    ensure_eq!(read::icc_hppir1_el1() as u32, 3, "ICC_HPPIR1_EL1, read again");
    ensure!(!gic::bit(ISACTIVER, 3), "active before acknowledge");
    ensure_eq!(gic::acknowledge(), 3, "ICC_IAR1_EL1");
    ensure!(gic::bit(ISACTIVER, 3), "not active after acknowledge");
    ensure!(!gic::bit(ISPENDR, 3), "still pending after acknowledge");
    ensure_eq!(read::icc_rpr_el1(), 0x50, "ICC_RPR_EL1 while active");
    ensure!(read::icc_ap1r0_el1() != 0, "ICC_AP1R0_EL1 is 0 while active");
    ensure_eq!(gic::acknowledge(), NONE, "ICC_IAR1_EL1, second read");
    // Active and pending: sent again while its handler runs.
    pend_self(3)?;
    ensure!(gic::bit(ISACTIVER, 3), "sending again ended it");
    ensure_eq!(gic::acknowledge(), NONE, "the same priority preempts");
    gic::end(3);
    ensure_eq!(read::icc_rpr_el1(), 0xff, "ICC_RPR_EL1 after the end");
    ensure!(!gic::bit(ISACTIVER, 3), "active after the end");
    highest(3)?;
    ensure_eq!(gic::acknowledge(), 3, "ICC_IAR1_EL1 for the second one");
    gic::end(3);
    pass!("")
}

fn priority_mask() -> Check<Done> {
    cpu::mask_irq();
    gic::set_priority(4, 0x80);
    // An interrupt passes when its priority is higher (less) than the mask.
    write::icc_pmr_el1(0x80);
    pend_self(4)?;
    gic::let_in();
    ensure!(!cpu::irq_pending(), "signalled at a priority equal to the mask");
    ensure_eq!(gic::acknowledge(), NONE, "ICC_IAR1_EL1 behind the mask");
    ensure!(gic::bit(ISPENDR, 4), "the masked read lost it");
    write::icc_pmr_el1(0x88);
    wait::until("ISR_EL1.I", cpu::irq_pending)?;
    ensure_eq!(gic::acknowledge(), 4, "ICC_IAR1_EL1 above the mask");
    gic::end(4);
    // The mask closes on what is already signalled, and opens again.
    pend_self(4)?;
    wait::until("ISR_EL1.I", cpu::irq_pending)?;
    write::icc_pmr_el1(0);
    gic::let_in();
    ensure!(!cpu::irq_pending(), "signalled although the mask is 0");
    cpu::unmask_irq();
    gic::let_in();
    ensure_eq!(irq::seen(cpu::index()).total(), 0, "interrupts taken with the mask at 0");
    write::icc_pmr_el1(0xff);
    gic::expect_total(1)?;
    pass!("")
}

fn pmr_readback() -> Check<Done> {
    let implemented = u64::from(implemented());
    for value in 0..=255 {
        write::icc_pmr_el1(value);
        let read = read::icc_pmr_el1();
        write::icc_pmr_el1(0xff);
        ensure_eq!(read, value & implemented, "ICC_PMR_EL1 after {value:#x}");
    }
    pass!("")
}

fn binary_point() -> Check<Done> {
    write::icc_bpr1_el1(0);
    let least = read::icc_bpr1_el1();
    for value in least..8 {
        write::icc_bpr1_el1(value);
        ensure_eq!(read::icc_bpr1_el1(), value, "ICC_BPR1_EL1");
    }
    cpu::mask_irq();
    // With BPR1 = 7 the group priority is bit 7 alone: 0x60 runs as 0, and 0x40
    // does not preempt it. With the least value it does.
    for (point, running, preempts) in [(7, 0, false), (least, 0x60, true)] {
        write::icc_bpr1_el1(point);
        gic::set_priority(1, 0x60);
        gic::set_priority(2, 0x40);
        pend_self(1)?;
        highest(1)?;
        ensure_eq!(gic::acknowledge(), 1, "ICC_IAR1_EL1");
        ensure_eq!(read::icc_rpr_el1(), running, "ICC_RPR_EL1 with BPR1 {point}");
        pend_self(2)?;
        gic::let_in();
        ensure_eq!(cpu::irq_pending(), preempts, "0x40 preempts 0x60 with BPR1 {point}");
        if !preempts {
            gic::end(1);
        }
        highest(2)?;
        ensure_eq!(gic::acknowledge(), 2, "ICC_IAR1_EL1");
        gic::end(2);
        if preempts {
            gic::end(1);
        }
    }
    pass!("least value {least}")
}

fn group_enable() -> Check<Done> {
    let seen = irq::seen(cpu::index());
    write::icc_igrpen1_el1(0);
    ensure_eq!(read::icc_igrpen1_el1(), 0, "ICC_IGRPEN1_EL1");
    pend_self(6)?;
    gic::let_in();
    ensure_eq!(seen.total(), 0, "interrupts taken with ICC_IGRPEN1_EL1 0");
    write::icc_igrpen1_el1(1);
    gic::expect_total(1)?;
    pass!("")
}

/// 16 SGIs pended in one order are taken in the order of their priorities.
fn order() -> Check<Done> {
    cpu::mask_irq();
    // 5 is coprime to 16: every SGI gets its own one of 16 priorities.
    let rank = |intid: u32| intid * 5 % 16;
    for intid in 0..16 {
        gic::set_priority(intid, (rank(intid) * 16) as u8);
        pend_self(intid)?;
    }
    // The lowest priority of all is 0xf0, below which the mask 0xff lies.
    cpu::unmask_irq();
    gic::expect_total(16)?;
    for (position, intid) in irq::seen(cpu::index()).order().enumerate() {
        ensure_eq!(rank(intid), position as u32, "rank of the interrupt taken at {position}");
    }
    pass!("")
}

fn eoi_mode1() -> Check<Done> {
    cpu::mask_irq();
    write::icc_ctlr_el1(gic::CTLR_EOIMODE);
    ensure!(read::icc_ctlr_el1() & gic::CTLR_EOIMODE != 0, "ICC_CTLR_EL1.EOImode stays 0");
    pend_self(7)?;
    highest(7)?;
    ensure_eq!(gic::acknowledge(), 7, "ICC_IAR1_EL1");
    gic::end(7);
    ensure_eq!(read::icc_rpr_el1(), 0xff, "ICC_RPR_EL1 after the priority drop");
    ensure!(gic::bit(ISACTIVER, 7), "the priority drop deactivated it");
    pend_self(7)?;
    gic::let_in();
    ensure!(!cpu::irq_pending(), "signalled again while active");
    // Another of the same priority is not held up.
    pend_self(8)?;
    wait::until("another SGI after the priority drop", cpu::irq_pending)?;
    ensure_eq!(gic::acknowledge(), 8, "ICC_IAR1_EL1 for the other");
    gic::end(8);
    write::icc_dir_el1(8);
    write::icc_dir_el1(7);
    ensure!(!gic::bit(ISACTIVER, 7), "active after ICC_DIR_EL1");
    wait::until("the second one once deactivated", cpu::irq_pending)?;
    ensure_eq!(gic::acknowledge(), 7, "ICC_IAR1_EL1 after ICC_DIR_EL1");
    gic::end(7);
    write::icc_dir_el1(7);
    write::icc_ctlr_el1(0);
    pass!("")
}

/// With EOImode 1, ten interrupts are active at once and deactivated first in,
/// first out: more than a CPU interface has list registers.
fn deactivate_out_of_order() -> Check<Done> {
    write::icc_ctlr_el1(gic::CTLR_EOIMODE);
    irq::keep_active(true);
    for intid in 0..10 {
        gic::send(intid, [cpu::index()]);
        gic::expect_total(intid as usize + 1)?;
    }
    for intid in 0..10 {
        ensure!(gic::bit(ISACTIVER, intid), "SGI {intid} is not active before ICC_DIR_EL1");
        write::icc_dir_el1(intid.into());
        ensure!(!gic::bit(ISACTIVER, intid), "SGI {intid} is active after ICC_DIR_EL1");
    }
    irq::keep_active(false);
    for intid in 0..10 {
        gic::send(intid, [cpu::index()]);
        gic::expect_total(intid as usize + 11)?;
    }
    write::icc_ctlr_el1(0);
    pass!("")
}

/// What is pending and masked can be taken back.
fn withdrawn() -> Check<Done> {
    cpu::mask_irq();
    pend_self(9)?;
    wait::until("ISR_EL1.I", cpu::irq_pending)?;
    gic::set(ICPENDR, 9);
    gic::let_in();
    ensure!(!gic::bit(ISPENDR, 9), "pending after ICPENDR");
    ensure!(!cpu::irq_pending(), "ISR_EL1.I after ICPENDR");
    pend_self(9)?;
    gic::set(ICENABLER, 9);
    gic::let_in();
    ensure!(!cpu::irq_pending(), "ISR_EL1.I after ICENABLER");
    ensure!(gic::bit(ISPENDR, 9), "ICENABLER took the pending state");
    cpu::unmask_irq();
    gic::let_in();
    ensure_eq!(irq::seen(cpu::index()).total(), 0, "disabled interrupts taken");
    gic::set(ISENABLER, 9);
    gic::expect_total(1)?;
    pass!("")
}
