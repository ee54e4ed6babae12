//! The lockstep under real threads: a board of cores that behave as QEMU's do.
//!
//! Each core's thread runs blocks, arms timers, sleeps, and kicks others, all
//! by a seeded random choice; the main loop's thread runs timers. As in QEMU
//! there is a big lock, a main loop that a core tells
//! of an earlier timer through a notifier, and sections that exclude emulated code
//! on all other cores.

mod exclusive;

use super::*;
use exclusive::Sections;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar};
use std::thread;

/// A small generator (Steele and others 2014, SplitMix64): the same steps on
/// every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// The main loop's file descriptors.
#[derive(Default)]
struct Notifier {
    pending: Mutex<bool>,
    changed: Condvar,
}

impl Notifier {
    fn write(&self) {
        *self.pending.lock().unwrap() = true;
        self.changed.notify_one();
    }

    fn read(&self) -> bool {
        std::mem::take(&mut *self.pending.lock().unwrap())
    }

    fn wait(&self) {
        drop(self.changed.wait_while(self.pending.lock().unwrap(), |pending| !*pending).unwrap());
    }
}

struct Counters {
    values: Vec<AtomicU64>,
    notifier: Arc<Notifier>,
}

impl Host for Counters {
    fn counter(&self, vcpu: usize) -> u64 {
        self.values[vcpu].load(SeqCst)
    }
    fn set_counter(&self, vcpu: usize, value: u64) {
        // Here a thread that looks on sees half of a change, if it can.
        thread::yield_now();
        self.values[vcpu].store(value, SeqCst);
    }
    fn poke_main_loop(&self) {
        self.notifier.write();
    }
}

/// What the big lock protects.
#[derive(Default)]
struct Shared {
    /// When and for which core.
    timers: BTreeSet<(u64, usize)>,
    /// Interrupts that a core has not taken, with their time.
    pending: Vec<Vec<u64>>,
    /// A core has finished and takes no more interrupts.
    finished: Vec<bool>,
    /// How late each timer's interrupt was taken.
    lateness_ns: Vec<u64>,
}

struct Board {
    lockstep: Lockstep<Counters>,
    notifier: Arc<Notifier>,
    shared: Mutex<Shared>,
    /// Set to make a core look for interrupts before its next block.
    exit_request: Vec<AtomicBool>,
    sections: Sections,
    /// Time between two holds of the machine.
    hold_every_ns: Option<u64>,
    holds: AtomicU64,
}

const LONGEST_BLOCK: u64 = 30;

impl Board {
    fn new(cores: usize, quantum_ns: u64, serial: bool) -> Arc<Self> {
        Arc::new(Self::holding(cores, quantum_ns, serial, None))
    }

    fn holding(cores: usize, quantum_ns: u64, serial: bool, hold_every_ns: Option<u64>) -> Self {
        let notifier = Arc::new(Notifier::default());
        let values = (0..cores).map(|_| AtomicU64::new(0)).collect();
        let (rate, spins, processors) = (ClockRate::DEFAULT, 20, 2);
        let config = Config { quantum_ns, rate, serial, spins, processors };
        let shared = Shared {
            pending: vec![Vec::new(); cores],
            finished: vec![false; cores],
            ..Shared::default()
        };
        let lockstep = Lockstep::new(config, Counters { values, notifier: notifier.clone() });
        lockstep.hold_at(hold_every_ns);
        Self {
            lockstep,
            notifier,
            shared: Mutex::new(shared),
            exit_request: (0..cores).map(|_| AtomicBool::new(false)).collect(),
            sections: Sections::new(cores),
            hold_every_ns,
            holds: AtomicU64::new(0),
        }
    }

    /// As `cpu_interrupt` and `qemu_cpu_kick` do: the news, then the deed.
    fn interrupt(&self, shared: &mut Shared, core: usize, at_ns: u64, by: Option<usize>) {
        if shared.finished[core] {
            return;
        }
        shared.pending[core].push(at_ns);
        self.kick(core, by);
    }

    /// As `qemu_cpu_kick` does.
    fn kick(&self, core: usize, by: Option<usize>) {
        self.lockstep.kick(core, by);
        self.exit_request[core].store(true, SeqCst);
    }

    /// As a write to a timer register does, all of it under the big lock.
    fn arm(&self, core: usize, at_ns: u64) {
        let mut shared = self.shared.lock().unwrap();
        let first = shared.timers.first().is_none_or(|t| at_ns < t.0);
        shared.timers.insert((at_ns, core));
        self.lockstep.armed(core);
        if first {
            self.notifier.write();
            self.lockstep.notified(core);
        }
    }

    /// Takes interrupts, if asked to.
    fn interrupts(&self, core: usize, expect: &mut Vec<u64>) {
        if !self.exit_request[core].swap(false, SeqCst) {
            return;
        }
        self.leave_code(core);
        self.enter_code(core);
        let mut shared = self.shared.lock().unwrap();
        let now = self.lockstep.vcpu_time_ns(core);
        for at in std::mem::take(&mut shared.pending[core]) {
            // Kicks by other cores carry time zero.
            if at != 0 {
                assert!(now >= at, "core {core} took the interrupt of {at} at {now}");
                shared.lateness_ns.push(now - at);
                expect.retain(|t| *t != at);
            }
        }
    }

    fn block(&self, core: usize, length: u64) {
        let counters = self.lockstep.host();
        let counter = counters.counter(core) + length;
        counters.set_counter(core, counter);
        if counter >= TRIP {
            self.lockstep.check_in(core);
        }
    }

    fn sleep(&self, core: usize) {
        self.leave_code(core);
        let mut shared = self.shared.lock().unwrap();
        let mut slept = false;
        while shared.pending[core].is_empty() {
            slept = true;
            self.lockstep.sleep(core);
            drop(shared);
            self.lockstep.wait_for_kick(core);
            shared = self.go_on(core, &self.shared, self.shared.lock().unwrap());
        }
        drop(shared);
        if slept {
            self.lockstep.resume(core);
        }
        self.enter_code(core);
        // As `cpu_handle_interrupt` does whenever a core enters emulated code.
        self.exit_request[core].store(true, SeqCst);
    }

    /// A wait is over: the thread goes on when it may.
    fn go_on<'a, T>(
        &self,
        core: usize,
        mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
    ) -> MutexGuard<'a, T> {
        if self.lockstep.go_on(core) {
            return guard;
        }
        drop(guard);
        self.lockstep.wait_to_go_on(core);
        mutex.lock().unwrap()
    }

    fn core(&self, core: usize, steps: u64, kicks: bool) {
        let mut random = Random(core as u64);
        let mut expect = Vec::new();
        let mut last_ns = 0;
        self.enter_code(core);
        for _ in 0..steps {
            self.interrupts(core, &mut expect);
            self.block(core, 1 + random.below(LONGEST_BLOCK));
            let now = self.lockstep.vcpu_time_ns(core);
            assert!(now > last_ns, "core {core}: time went back from {last_ns} to {now}");
            last_ns = now;
            match random.below(40) {
                0 => {
                    let at = now + 1 + random.below(3_000);
                    expect.push(at);
                    self.arm(core, at);
                }
                1 if kicks => {
                    let other = random.below(self.exit_request.len() as u64) as usize;
                    self.interrupt(&mut self.shared.lock().unwrap(), other, 0, Some(core));
                }
                // Only with a timer of its own to wake it.
                2 if !expect.is_empty() => self.sleep(core),
                3..=6 if self.sections.happen => self.section(core),
                _ => {}
            }
        }
        self.leave_code(core);
        self.shared.lock().unwrap().finished[core] = true;
        self.lockstep.remove_vcpu(core);
    }

    fn main_loop(&self) {
        loop {
            let deadline = {
                let mut shared = self.shared.lock().unwrap();
                let now = self.lockstep.now_ns();
                while let Some((at, core)) = shared.timers.first().copied().filter(|t| t.0 <= now) {
                    shared.timers.pop_first();
                    self.interrupt(&mut shared, core, at, None);
                }
                if shared.finished.iter().all(|f| *f) {
                    return;
                }
                shared.timers.first().map(|t| t.0)
            };
            // Told of something before it slept: it looks again.
            if self.notifier.read() {
                continue;
            }
            if !self.lockstep.settle(deadline) {
                self.notifier.wait();
            }
            if let Woken::Held { at_rest } = self.lockstep.unsettle() {
                self.held(at_rest);
            }
        }
    }

    /// Sees that nothing moves, and orders the next hold.
    fn held(&self, at_rest: bool) {
        let (view, every) = (self.lockstep.view(), self.hold_every_ns.unwrap());
        thread::yield_now();
        assert_eq!(self.lockstep.view(), view, "it moves");
        assert!(at_rest || view.now_ns.is_multiple_of(every), "held at {}", view.now_ns);
        self.lockstep.hold_at(Some(view.now_ns - view.now_ns % every + every));
        self.holds.fetch_add(1, SeqCst);
    }
}

/// Runs a board to its end and returns how late timers' interrupts were.
/// `kicks` says whether cores interrupt each other.
fn run(cores: usize, quantum_ns: u64, steps: u64, kicks: bool) -> (Vec<u64>, View) {
    run_board(&Board::new(cores, quantum_ns, false), steps, kicks)
}

fn run_board(board: &Arc<Board>, steps: u64, kicks: bool) -> (Vec<u64>, View) {
    let cores = board.exit_request.len();
    (0..cores).for_each(|core| board.lockstep.add_vcpu(core));
    let main_loop = {
        let board = board.clone();
        thread::spawn(move || board.main_loop())
    };
    let threads: Vec<_> = (0..cores)
        .map(|core| {
            let board = board.clone();
            thread::spawn(move || board.core(core, steps, kicks))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
        board.notifier.write();
    }
    main_loop.join().unwrap();
    let lateness = std::mem::take(&mut board.shared.lock().unwrap().lateness_ns);
    (lateness, board.lockstep.view())
}

/// The block that crosses the deadline, and the one that armed the timer if
/// that was nearer than its end.
const EXACT: u64 = 2 * LONGEST_BLOCK;

/// The thread that is to sleep has lost its processor to the one that kicks it.
#[test]
fn a_kick_before_the_wait_is_not_lost() {
    let board = Board::new(2, 1_000, true);
    (0..2).for_each(|core| board.lockstep.add_vcpu(core));
    let _ = board.lockstep.settle(None);
    board.lockstep.sleep(1);
    board.lockstep.kick(1, Some(0));
    let (begun, limit) = (std::time::Instant::now(), SAFEGUARD / 2);
    board.lockstep.wait_for_kick(1);
    assert!(begun.elapsed() < limit, "it waited for another one");
}

#[test]
fn one_core_takes_every_interrupt_within_a_block_of_its_time() {
    let (lateness, view) = run(1, 1_000, 40_000, false);
    assert!(lateness.len() > 500, "{}", lateness.len());
    assert!(lateness.iter().all(|late| *late <= EXACT), "{:?}", lateness.iter().max());
    assert!(view.counts.jumps > 0);
}

#[test]
fn four_cores_take_every_interrupt_within_a_block_of_its_time() {
    let (lateness, view) = run(4, 1_000, 20_000, false);
    assert!(lateness.len() > 1_000, "{}", lateness.len());
    assert!(lateness.iter().all(|late| *late <= EXACT), "{:?}", lateness.iter().max());
    assert!(view.counts.quanta > 0 && view.counts.settlings > 0);
}

#[test]
fn cores_that_interrupt_each_other_are_late_by_less_than_a_quantum() {
    let (lateness, _) = run(4, 1_000, 20_000, true);
    assert!(lateness.len() > 1_000, "{}", lateness.len());
    assert!(lateness.iter().all(|late| *late <= 1_000), "{:?}", lateness.iter().max());
}

#[test]
fn eight_cores_with_a_short_quantum_come_to_an_end() {
    let (lateness, _) = run(8, 100, 5_000, true);
    assert!(lateness.len() > 500, "{}", lateness.len());
}

#[test]
fn cores_that_take_turns_do_the_same_every_time() {
    let run = || run_board(&Board::new(4, 1_000, true), 5_000, true);
    let ((lateness, view), (lateness_again, view_again)) = (run(), run());
    assert!(lateness.len() > 300, "{}", lateness.len());
    assert_eq!(lateness, lateness_again);
    assert_eq!(of(view), of(view_again));
}

#[test]
fn the_order_of_exclusive_sections_does_not_depend_on_the_host() {
    let run = || {
        let mut board = Board::holding(4, 1_000, true, None);
        board.sections.happen = true;
        let board = Arc::new(board);
        let (lateness, view) = run_board(&board, 1_500, true);
        let out_of_turn = view.vcpus.iter().map(|v| v.leaves[LeaveReason::Timeout as usize]);
        assert_eq!(out_of_turn.sum::<u64>(), 0, "a core waited for nothing");
        (lateness, of(view), board.sections.taken())
    };
    let first = run();
    assert!(first.2.len() > 300, "{}", first.2.len());
    (0..3).for_each(|_| assert_eq!(run(), first));
}

/// What must be equal of runs that are.
fn of(view: View) -> Vec<(u64, u64, u64)> {
    view.vcpus.iter().map(|v| (v.instructions, v.time_ns, v.idle_ns)).collect()
}

#[test]
fn a_hold_now_and_then_changes_nothing() {
    let free = Board::new(4, 1_000, true);
    let held = Arc::new(Board::holding(4, 1_000, true, Some(10_000)));
    let (lateness, view) = run_board(&free, 5_000, true);
    let (lateness_held, view_held) = run_board(&held, 5_000, true);
    assert!(held.holds.load(SeqCst) >= view.now_ns / 10_000, "{held:?}", held = held.holds);
    assert_eq!((lateness, of(view)), (lateness_held, of(view_held)));
}

#[test]
fn another_thread_sees_each_core_at_one_moment() {
    let board = Board::new(2, 200, false);
    let over = Arc::new(AtomicBool::new(false));
    let watcher = {
        let (board, over) = (board.clone(), over.clone());
        thread::spawn(move || {
            let mut last = [(0, 0); 2];
            while !over.load(SeqCst) {
                for (last, core) in last.iter_mut().zip(board.lockstep.view().vcpus) {
                    let now = (core.time_ns, core.instructions);
                    assert!(last.0 <= now.0 && last.1 <= now.1, "from {last:?} to {now:?}");
                    *last = now;
                }
            }
        })
    };
    run_board(&board, 40_000, true);
    over.store(true, SeqCst);
    watcher.join().unwrap();
}

/// One core alone, in blocks of ten instructions.
#[test]
fn a_core_executes_nothing_in_its_stall_while_time_goes_on() {
    for (serial, at_ns) in [(false, 1_000), (true, 1_000), (false, 1_003), (true, 1_003)] {
        let board = Board::holding(1, 2_000, serial, None);
        let stalls = vec![format!("0@{at_ns}:5000").parse().unwrap()];
        let lockstep = Board { lockstep: board.lockstep.with_stalls(stalls), ..board }.lockstep;
        lockstep.add_vcpu(0);
        assert!(!lockstep.settle(None));
        let (mut last_ns, mut gaps) = (0, Vec::new());
        for _ in 0..1_000 {
            // As translated code does: it is counted, and then it may check in.
            lockstep.host().set_counter(0, lockstep.host().counter(0) + 10);
            if lockstep.host().counter(0) >= TRIP {
                lockstep.pass_stall(0, 10);
                lockstep.check_in(0);
            }
            let begun_ns = lockstep.vcpu_time_before_ns(0, 10);
            if begun_ns - last_ns > 10 {
                gaps.push((last_ns, begun_ns));
            }
            last_ns = begun_ns;
        }
        // The block that begins before the stall is executed.
        let last = if at_ns == 1_000 { 990 } else { 1_000 };
        assert_eq!(gaps, [(last, at_ns + 5_000)], "serial: {serial}");
        assert_eq!(lockstep.view().vcpus[0].instructions, 10_000);
        assert!(lockstep.now_ns() >= 6_000);
    }
}
