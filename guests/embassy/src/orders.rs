//! Orders of another VM, which come by a link as messages of text, each answered by one: `late`, `activations`, `load 300`
//! (thousandths of each period), `ping ANYTHING`.

use crate::peer::End;
use crate::tasks::{self, ACTIVATIONS, DUE, LATEST_NS, LOAD_PERMILLE, PERIOD};
use crate::time;
use arrayvec::ArrayString;
use core::cell::Cell;
use core::fmt::Write;
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::task::{Poll, Waker};
use critical_section::Mutex;
use link::{Error, Peer, Receiver, Sender};

/// Longest order and answer, bytes.
const LONGEST: usize = 64;
/// Orders that are taken at once, and how often in a period: another VM can have this one busy for no longer.
const MOST_ORDERS: usize = 8;
const MOST_ARMED: u64 = 8;
/// The doorbell does not ring for so long before the task with a deadline is due, ns: longer than what a ring makes this VM do.
const GUARD: u64 = 20_000;

/// The doorbell has rung.
static RANG: AtomicBool = AtomicBool::new(false);
/// What waits for it.
static WAITS: Mutex<Cell<Option<Waker>>> = Mutex::new(Cell::new(None));

/// What the interrupt's handler does.
pub fn doorbell() {
    RANG.store(true, Relaxed);
    if let Some(waker) = critical_section::with(|section| WAITS.borrow(section).take()) {
        waker.wake();
    }
}

/// Waits for the doorbell, or until the clock says `limit`.
async fn rung(limit: u64) {
    poll_fn(|context| {
        // First this: what comes between the two is seen.
        critical_section::with(|section| WAITS.borrow(section).set(Some(context.waker().clone())));
        if RANG.swap(false, Relaxed) || time::now() >= limit {
            return Poll::Ready(());
        }
        time::wake_at(limit, context.waker());
        Poll::Pending
    })
    .await;
}

/// Takes orders, below the task with a deadline, whose beginning no doorbell may interrupt.
#[embassy_executor::task]
pub async fn obey(
    mut sender: Sender<'static, End>,
    mut receiver: Receiver<'static, End>,
    peer: Peer<'static, End>,
) {
    loop {
        let (now, due) = (time::now(), DUE.load(Relaxed));
        if now + GUARD >= due {
            time::until(due + GUARD).await;
            continue;
        }
        // First arm, then look: a ring between the two is not lost.
        receiver.arm_within(u32::try_from(time::ticks(due - GUARD - now)).unwrap_or(u32::MAX));
        let again = now + PERIOD / MOST_ARMED;
        let count = take_orders(&mut sender, &mut receiver);
        if count > 0 {
            peer.notify();
        }
        if count < MOST_ORDERS {
            rung(due).await;
        }
        time::until(again).await;
    }
}

/// Answers the orders that there are, up to [`MOST_ORDERS`]. Returns how many.
fn take_orders(sender: &mut Sender<End>, receiver: &mut Receiver<End>) -> usize {
    let mut room = [0; LONGEST];
    for count in 0..MOST_ORDERS {
        match receiver.receive(&mut room) {
            Ok(order) => {
                let answer = answer(order);
                // A peer that was opened again is told so by what it asks next; one that does not read gets no answer.
                if sender.send(answer.as_bytes()) == Err(Error::Restarted) {
                    let _ = sender.send(answer.as_bytes());
                }
            }
            Err(Error::Restarted | Error::TooLong) => {}
            // Nothing more, or it was not opened yet; what cannot be ends when the peer is opened again.
            Err(Error::Empty | Error::Absent | Error::Broken | Error::Full) => return count,
        }
    }
    MOST_ORDERS
}

/// Carries an order out. What is too long for an answer is cut.
fn answer(order: &[u8]) -> ArrayString<{ LONGEST + 16 }> {
    let mut answer = ArrayString::new();
    let order = str::from_utf8(order).unwrap_or("");
    let written = match order.split_once(' ').unwrap_or((order, "")) {
        ("ping", _) => answer.write_str(order),
        ("activations", "") => write!(answer, "activations {}", ACTIVATIONS.load(Relaxed)),
        ("late", "") => write!(answer, "late {} ns", LATEST_NS.load(Relaxed)),
        ("load", permille) => match permille.parse() {
            Ok(permille) if permille <= tasks::MOST_LOAD_PERMILLE => {
                LOAD_PERMILLE.store(permille, Relaxed);
                write!(answer, "done: load {permille}")
            }
            _ => write!(answer, "not possible: {order}"),
        },
        _ => write!(answer, "unknown: {order}"),
    };
    // It is as long as the longest order and what stands before it.
    let _ = written;
    answer
}
