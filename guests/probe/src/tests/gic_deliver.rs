//! From pending to taken: enables, routes, active state, level and edge.

use crate::arch::{cpu, sysreg::read};
use crate::gic::{self, FREE_SPIS, gicd, offset::*};
use crate::platform::{self, GICD};
use crate::suite::{Check, Done, Test};
use crate::{console, cpus, ensure, ensure_eq, irq, needs_two_vcpus, pass, wait};
use abi::platform::{UART_INTID, ppi};
use arm_pl011_uart::Interrupts;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "gic.spi_pend", body: spi_pend },
    Test { name: "gic.spi_level_pend", body: spi_level_pend },
    Test { name: "gic.spi_disabled", body: spi_disabled },
    Test { name: "gic.spi_active", body: spi_active },
    Test { name: "gic.group_enable", body: group_enable },
    Test { name: "gic.ppi_pend", body: ppi_pend },
    Test { name: "gic.pend_while_active", body: pend_while_active },
    Test { name: "gic.route", body: route },
    Test { name: "gic.reroute_pending", body: reroute_pending },
    Test { name: "gic.wakes_sleeper", body: wakes_sleeper },
    Test { name: "gic.uart_level", body: uart_level },
];

const SPI: u32 = FREE_SPIS.start + 5;

fn spi_pend() -> Check<Done> {
    irq::hook(|intid| {
        STATE.store(
            u32::from(gic::bit(ISPENDR, intid)) << 1 | u32::from(gic::bit(ISACTIVER, intid)),
            SeqCst,
        );
    });
    static STATE: AtomicU32 = AtomicU32::new(0);
    let seen = irq::seen(cpu::index());
    for (number, spi) in FREE_SPIS.enumerate() {
        gic::enable_spi(spi, 0);
        gic::set(ISPENDR, spi);
        gic::expect_total(number + 1)?;
        ensure_eq!(seen.count(spi), 1, "SPI {spi} taken");
        ensure_eq!(STATE.load(SeqCst), 0b01, "pending and active bit of {spi} in its handler");
        ensure!(!gic::bit(ISACTIVER, spi), "SPI {spi} is active after its end");
    }
    pass!("{} SPIs", FREE_SPIS.len())
}

/// A level-sensitive SPI whose line is low: what software pends is taken once.
fn spi_level_pend() -> Check<Done> {
    gic::enable_spi(SPI, 0);
    gic::set_edge(SPI, false);
    for round in 1..=3 {
        gic::set(ISPENDR, SPI);
        gic::expect_total(round)?;
        ensure!(!gic::bit(ISPENDR, SPI), "pending although it was taken");
    }
    pass!("")
}

fn spi_disabled() -> Check<Done> {
    let seen = irq::seen(cpu::index());
    gic::set_edge(SPI, true);
    gic::route(SPI, 0);
    // Pended while disabled.
    gic::set(ISPENDR, SPI);
    gic::expect_total(0)?;
    gic::set(ISENABLER, SPI);
    gic::expect_total(1)?;
    // Disabled while pending and signalled.
    cpu::mask_irq();
    gic::set(ISPENDR, SPI);
    wait::until("ISR_EL1.I", cpu::irq_pending)?;
    gic::set(ICENABLER, SPI);
    gic::let_in();
    ensure!(!cpu::irq_pending(), "signalled after it was disabled");
    cpu::unmask_irq();
    gic::expect_total(1)?;
    ensure!(gic::bit(ISPENDR, SPI), "disabling took the pending state");
    gic::set(ISENABLER, SPI);
    gic::expect_total(2)?;
    // Taken back while pending and signalled.
    cpu::mask_irq();
    gic::set(ISPENDR, SPI);
    wait::until("ISR_EL1.I", cpu::irq_pending)?;
    gic::set(ICPENDR, SPI);
    cpu::unmask_irq();
    gic::expect_total(2)?;
    ensure_eq!(seen.count(SPI), 2, "SPI taken");
    pass!("")
}

/// An interrupt that is active is not taken again until it is deactivated.
fn spi_active() -> Check<Done> {
    gic::enable_spi(SPI, 0);
    gic::set(ISACTIVER, SPI);
    gic::set(ISPENDR, SPI);
    gic::expect_total(0)?;
    gic::set(ICACTIVER, SPI);
    gic::expect_total(1)?;
    pass!("")
}

fn group_enable() -> Check<Done> {
    gic::enable_spi(SPI, 0);
    let control = GICD.read32(gicd::CTLR);
    GICD.write32(gicd::CTLR, control & !gicd::CTLR_ENABLE_GROUP1);
    gic::settle();
    ensure_eq!(GICD.read32(gicd::CTLR) & gicd::CTLR_ENABLE_GROUP1, 0, "GICD_CTLR.EnableGrp1");
    gic::set(ISPENDR, SPI);
    gic::send(4, [0]);
    gic::expect_total(0)?;
    GICD.write32(gicd::CTLR, control);
    gic::settle();
    gic::expect_total(2)?;
    pass!("")
}

/// A private peripheral interrupt whose line is low, pended by software.
fn ppi_pend() -> Check<Done> {
    gic::set(ISPENDR, ppi::PHYSICAL_TIMER);
    gic::expect_total(0)?;
    gic::set(ISENABLER, ppi::PHYSICAL_TIMER);
    gic::expect_total(1)?;
    ensure!(!gic::bit(ISPENDR, ppi::PHYSICAL_TIMER), "pending although it was taken");
    pass!("")
}

/// An edge that comes while its handler runs is taken once more.
fn pend_while_active() -> Check<Done> {
    static LEFT: AtomicU32 = AtomicU32::new(0);
    LEFT.store(5, SeqCst);
    gic::enable_spi(SPI, 0);
    irq::hook(|intid| {
        if LEFT.load(SeqCst) > 0 {
            LEFT.fetch_sub(1, SeqCst);
            gic::set(ISPENDR, intid);
        }
    });
    gic::set(ISPENDR, SPI);
    gic::expect_total(6)?;
    pass!("")
}

fn route() -> Check<Done> {
    fn job() -> Check {
        let seen = irq::seen(cpu::index());
        wait::until("an SPI", || seen.total() >= 1)?;
        wait::until("leave to go off", || GO_OFF.load(SeqCst) == 1)?;
        gic::let_in();
        ensure_eq!(seen.total(), 1, "interrupts taken");
        ensure_eq!(seen.count(SPI + cpu::index() as u32), 1, "this vCPU's SPI taken");
        Ok(())
    }
    static GO_OFF: AtomicU64 = AtomicU64::new(0);
    GO_OFF.store(0, SeqCst);
    cpus::together(job, || {
        let all = 0..platform::get().vcpus.len();
        let outcome = all.clone().try_for_each(|index| {
            let spi = SPI + index as u32;
            gic::enable_spi(spi, index);
            gic::set(ISPENDR, spi);
            wait::until("an SPI at its vCPU", || irq::seen(index).count(spi) == 1)
        });
        GO_OFF.store(1, SeqCst);
        outcome
    })?;
    gic::expect_total(1)?;
    pass!("")
}

/// A pending SPI follows its route: from a vCPU that masks to one that does not.
fn reroute_pending() -> Check<Done> {
    needs_two_vcpus!();
    fn job() -> Check {
        gic::expect_total(1)
    }
    gic::enable_spi(SPI, 0);
    cpu::mask_irq();
    gic::set(ISPENDR, SPI);
    wait::until("ISR_EL1.I", cpu::irq_pending)?;
    cpus::start(1, job)?;
    gic::route(SPI, 1);
    cpus::join(1)?;
    gic::let_in();
    ensure!(!cpu::irq_pending(), "still signalled at the vCPU it was routed to before");
    cpu::unmask_irq();
    gic::expect_total(0)?;
    pass!("")
}

fn wakes_sleeper() -> Check<Done> {
    needs_two_vcpus!();
    static ROUND: AtomicU64 = AtomicU64::new(0);
    const ROUNDS: u64 = 200;
    fn job() -> Check {
        let seen = irq::seen(cpu::index());
        for round in 1..=ROUNDS {
            ROUND.store(round, SeqCst);
            wait::asleep(|| seen.total() as u64 >= round)?;
        }
        gic::expect_total(ROUNDS as usize)
    }
    ROUND.store(0, SeqCst);
    gic::enable_spi(SPI, 1);
    cpus::start(1, job)?;
    let outcome = (1..=ROUNDS).try_for_each(|round| {
        wait::until("vCPU 1 to sleep", || ROUND.load(SeqCst) >= round)?;
        gic::set(ISPENDR, SPI);
        Ok(())
    });
    cpus::join_after(1, outcome)?;
    pass!("{ROUNDS} rounds")
}

/// The UART's transmit interrupt is a level: it comes again and again until
/// its cause is gone, and not once more.
fn uart_level() -> Check<Done> {
    const AGAIN: u32 = 5;
    static LEFT: AtomicU32 = AtomicU32::new(0);
    LEFT.store(AGAIN, SeqCst);
    gic::set_edge(UART_INTID, false);
    gic::route(UART_INTID, 0);
    gic::set(ISENABLER, UART_INTID);
    irq::hook(|_| {
        if LEFT.fetch_sub(1, SeqCst) == 1 {
            console::with(|uart| uart.set_interrupt_masks(Interrupts::empty()));
        }
    });
    // Enough to run the FIFO through its trigger level.
    crate::println!("{:64}", "a line to fill the transmit FIFO of the UART");
    wait::until("UARTRIS.TXRIS", || {
        console::with(|uart| uart.raw_interrupt_status().contains(Interrupts::TXI))
    })?;
    ensure_eq!(irq::seen(0).total(), 0, "UART interrupts while UARTIMSC is 0");
    ensure!(!gic::bit(ISPENDR, UART_INTID), "pending while UARTIMSC is 0");
    cpu::mask_irq();
    console::with(|uart| uart.set_interrupt_masks(Interrupts::TXI));
    wait::until("ISR_EL1.I", cpu::irq_pending)?;
    // The line falls while the interrupt is pending: it is pending no more.
    console::with(|uart| uart.set_interrupt_masks(Interrupts::empty()));
    gic::let_in();
    ensure!(!cpu::irq_pending(), "signalled although the line has fallen");
    ensure!(!gic::bit(ISPENDR, UART_INTID), "pending although the line has fallen");
    console::with(|uart| uart.set_interrupt_masks(Interrupts::TXI));
    ensure_eq!(
        console::with(|uart| uart.masked_interrupt_status()).contains(Interrupts::TXI),
        true,
        "UARTMIS.TXMIS"
    );
    cpu::unmask_irq();
    gic::expect_total(AGAIN as usize)?;
    ensure_eq!(read::icc_rpr_el1(), 0xff, "ICC_RPR_EL1 afterwards");
    pass!("taken {AGAIN} times")
}
