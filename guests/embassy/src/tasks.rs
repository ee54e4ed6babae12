//! The tasks.

use crate::report::Report;
use crate::{cpu, println, time};
use abi::report::Sample;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The period of `control` and of `load`, ns.
const PERIOD: u64 = 1_000_000;
/// How much of it `load` works, thousandths.
const LOAD_PERMILLE: u64 = 300;
/// How often `tell` tells, ns.
const SECOND: u64 = 1_000_000_000;
/// Time from the start until the first activation, ns.
const LEAD: u64 = 5_000_000;

/// What the handler read first when the timer's interrupt came: the counter.
pub static ARRIVED: AtomicU64 = AtomicU64::new(0);
/// What `tell` tells.
static ACTIVATIONS: AtomicU64 = AtomicU64::new(0);
static MISSED: AtomicU64 = AtomicU64::new(0);

/// Wakes each period, and writes down how late.
#[embassy_executor::task]
pub async fn control() {
    let period = time::ticks(PERIOD);
    let mut report = Report::begin(cpu::counter_hz(), period, LOAD_PERMILLE);
    let mut due = time::now() + LEAD;
    println!("embassy: period {} us, load {LOAD_PERMILLE} per mille", PERIOD / 1_000);
    loop {
        time::until(due).await;
        let begins = cpu::counter();
        let raised = time::ticks(due);
        let late = |ticks: u64| u32::try_from(ticks.saturating_sub(raised)).unwrap_or(u32::MAX);
        let response = late(ARRIVED.load(Relaxed));
        let sample = Sample { raised, response, dispatch: late(begins) };
        let is_missed = begins >= raised + period;
        ACTIVATIONS.fetch_add(1, Relaxed);
        MISSED.fetch_add(is_missed.into(), Relaxed);
        if let Some(report) = &mut report {
            report.add(sample, is_missed);
        }
        due += PERIOD;
    }
}

/// Works for a part of each period, however often that is interrupted.
#[embassy_executor::task]
pub async fn load() {
    let mut due = time::now() + LEAD;
    loop {
        time::until(due).await;
        let end = time::now() + PERIOD * LOAD_PERMILLE / 1_000;
        while time::now() < end {}
        due += PERIOD;
    }
}

/// Says how it goes.
#[embassy_executor::task]
pub async fn tell() {
    let mut due = time::now() + SECOND;
    loop {
        time::until(due).await;
        let [activations, missed] = [&ACTIVATIONS, &MISSED].map(|count| count.load(Relaxed));
        println!("embassy: summary activations={activations} missed={missed}");
        due += SECOND;
    }
}
