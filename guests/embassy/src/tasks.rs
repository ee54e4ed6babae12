//! The tasks.

use crate::peer::End;
use crate::report::Report;
use crate::{cpu, println, time};
use abi::report::Sample;
use arrayvec::ArrayString;
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use link::{Publisher, VALUE_MAX};

/// The period of `control` and of `load`, ns.
pub const PERIOD: u64 = 1_000_000;
/// How much of it `load` works, thousandths, when it begins, and at most.
const FIRST_LOAD_PERMILLE: u64 = 300;
pub const MOST_LOAD_PERMILLE: u64 = 900;
/// How often `tell` tells, ns.
const SECOND: u64 = 1_000_000_000;
/// Time from the start until the first activation, ns.
const LEAD: u64 = 5_000_000;

/// What the handler read first when the timer's interrupt came: the counter.
pub static ARRIVED: AtomicU64 = AtomicU64::new(0);
/// How much of each period `load` works, thousandths: an order changes it.
pub static LOAD_PERMILLE: AtomicU64 = AtomicU64::new(FIRST_LOAD_PERMILLE);
/// When `control` is due next, ns.
pub static DUE: AtomicU64 = AtomicU64::new(0);
/// How late `control` was at worst, ns.
pub static LATEST_NS: AtomicU64 = AtomicU64::new(0);
/// What `tell` tells.
pub static ACTIVATIONS: AtomicU64 = AtomicU64::new(0);
static MISSED: AtomicU64 = AtomicU64::new(0);

/// Wakes each period, and writes down how late. With a link, another VM sees that, too.
#[embassy_executor::task]
pub async fn control(mut publisher: Option<Publisher<'static, End>>) {
    let period = time::ticks(PERIOD);
    let mut report = Report::begin(cpu::counter_hz(), period, FIRST_LOAD_PERMILLE);
    let mut due = time::now() + LEAD;
    println!("embassy: period {} us, load {FIRST_LOAD_PERMILLE} per mille", PERIOD / 1_000);
    loop {
        DUE.store(due, Relaxed);
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
        LATEST_NS.fetch_max(time::span_ns(sample.dispatch.into()), Relaxed);
        if let Some(publisher) = &mut publisher {
            publish(publisher);
        }
        due += PERIOD;
    }
}

/// Lets the peer see how it goes, as text.
fn publish(publisher: &mut Publisher<End>) {
    let [activations, missed, late, load] =
        [&ACTIVATIONS, &MISSED, &LATEST_NS, &LOAD_PERMILLE].map(|figure| figure.load(Relaxed));
    let mut text = ArrayString::<VALUE_MAX>::new();
    let written =
        write!(text, "activations={activations} missed={missed} late_ns={late} load={load}");
    written.expect("four numbers have room");
    publisher.publish(text.as_bytes()).expect("it is not too long");
}

/// Works for a part of each period, however often that is interrupted.
#[embassy_executor::task]
pub async fn load() {
    let mut due = time::now() + LEAD;
    loop {
        time::until(due).await;
        let end = time::now() + PERIOD * LOAD_PERMILLE.load(Relaxed) / 1_000;
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
