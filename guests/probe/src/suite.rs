//! Tests and their outcome.
//!
//! A run prints, for each test, `RUN name` and then one of `PASS name detail`,
//! `FAIL name: why`, `SKIP name: why`, and at last
//! `DONE passed=N failed=M skipped=K`.

use crate::{calls, cpus, gic, platform, println, wait};
use arrayvec::ArrayString;
use core::fmt::{Arguments, Write};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use spin::Mutex;

/// A line of explanation.
pub type Text = ArrayString<220>;
/// What can go wrong, with the reason.
pub type Check<T = ()> = Result<T, Text>;

/// How a test ended, when it did not fail.
#[derive(Debug)]
pub enum Done {
    /// Everything held; what was seen.
    Passed(Text),
    /// It needs what is not here.
    Skipped(&'static str),
}

/// A test.
pub struct Test {
    /// Group and name: `group.name`.
    pub name: &'static str,
    /// Runs on the booting vCPU, all others off, the GIC fresh.
    pub body: fn() -> Check<Done>,
}

/// Formats a [`Text`], cut where it is full.
pub fn text(arguments: Arguments) -> Text {
    struct Cut(Text);
    impl Write for Cut {
        fn write_str(&mut self, s: &str) -> core::fmt::Result {
            // A full line loses its end.
            s.chars().try_for_each(|c| self.0.try_push(c)).or(Ok(()))
        }
    }
    let mut cut = Cut(Text::new());
    cut.write_fmt(arguments).expect("Cut never fails");
    cut.0
}

/// Leaves the function with a reason.
#[macro_export]
macro_rules! fail {
    ($($arg:tt)*) => { return Err($crate::suite::text(format_args!($($arg)*))) };
}

/// Leaves the function with a reason unless `$condition` holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($arg:tt)*) => { if !$condition { $crate::fail!($($arg)*) } };
}

/// Leaves the function unless two values are equal.
#[macro_export]
macro_rules! ensure_eq {
    ($left:expr, $right:expr, $($arg:tt)*) => {{
        let (left, right) = ($left, $right);
        if left != right {
            $crate::fail!("{}: is {left:#x?}, should be {right:#x?}", format_args!($($arg)*))
        }
    }};
}

/// A passed test with a detail.
#[macro_export]
macro_rules! pass {
    ($($arg:tt)*) => { Ok($crate::suite::Done::Passed($crate::suite::text(format_args!($($arg)*)))) };
}

/// Leaves the test with SKIP unless Cassata is underneath.
#[macro_export]
macro_rules! needs_cassata {
    () => {
        if !$crate::platform::get().cassata {
            return Ok($crate::suite::Done::Skipped("needs Cassata underneath"));
        }
    };
}

/// Leaves the test with SKIP unless there are two vCPUs.
#[macro_export]
macro_rules! needs_two_vcpus {
    () => {
        if $crate::platform::get().vcpus.len() < 2 {
            return Ok($crate::suite::Done::Skipped("needs two vCPUs"));
        }
    };
}

static PASSED: AtomicUsize = AtomicUsize::new(0);
static FAILED: AtomicUsize = AtomicUsize::new(0);
static SKIPPED: AtomicUsize = AtomicUsize::new(0);
static CURRENT: Mutex<&str> = Mutex::new("start");

/// Runs the tests that `selection` names: `all`, groups, or single tests, and
/// roles, separated by commas. Roles are not part of `all`.
pub fn run(tests: &[&[Test]], roles: &[&[Test]], selection: &str) {
    let named =
        |test: &Test, word: &str| test.name == word || test.name.split('.').next() == Some(word);
    for word in selection.split(',') {
        let tests = tests.iter().copied().flatten();
        let mut known = word == "all";
        for test in tests
            .filter(|test| word == "all" || named(test, word))
            .chain(roles.iter().copied().flatten().filter(|role| named(role, word)))
        {
            known = true;
            if gic::IS_V2 && NOT_ON_V2.contains(&test.name) {
                tally(test.name, Ok(Done::Skipped("is not for a GICv2")));
            } else {
                run_one(test);
            }
        }
        if !known {
            tally("probe.run", Err(text(format_args!("no test is called {word:?}"))));
        }
    }
}

/// Tests that a GICv2 is not asked: it has no redistributors and no SGIs of other groups; and QEMU's does not
/// look at physical interrupts again when a list register has deactivated one, so a line that is still high
/// is signalled with the next one only.
const NOT_ON_V2: [&str; 4] =
    ["sgi.other_groups", "sgi.remote_registers", "gic.redistributors", "timer.level"];

fn run_one(test: &Test) {
    *CURRENT.lock() = test.name;
    println!("RUN {}", test.name);
    wait::begin();
    gic::reset();
    let mut outcome = (test.body)();
    if let Err(stuck) = cpus::all_off() {
        outcome = outcome.and(Err(stuck));
        tally(test.name, outcome);
        finish();
    }
    tally(test.name, outcome);
}

fn tally(name: &str, outcome: Check<Done>) {
    match outcome {
        Ok(Done::Passed(detail)) => {
            PASSED.fetch_add(1, Relaxed);
            println!("PASS {name} {detail}");
        }
        Ok(Done::Skipped(why)) => {
            SKIPPED.fetch_add(1, Relaxed);
            println!("SKIP {name}: {why}");
        }
        Err(why) => {
            FAILED.fetch_add(1, Relaxed);
            println!("FAIL {name}: {why}");
        }
    }
}

/// Prints the sum and switches off, unless told to stay (`probe.end=stay`).
pub fn finish() -> ! {
    println!("{}", Summary);
    if platform::get().argument("end") == Some("stay") {
        loop {
            crate::arch::cpu::wfi();
        }
    }
    calls::system_off()
}

/// Ends the run from anywhere: a failure that cannot be returned.
pub fn abort(why: Arguments) -> ! {
    FAILED.fetch_add(1, Relaxed);
    let name = CURRENT.try_lock().map_or("?", |current| *current);
    crate::console::force(format_args!("FAIL {name}: {why}\n{Summary}\n"));
    calls::system_off()
}

struct Summary;

impl core::fmt::Display for Summary {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let (passed, failed) = (PASSED.load(Relaxed), FAILED.load(Relaxed));
        write!(f, "DONE passed={passed} failed={failed} skipped={}", SKIPPED.load(Relaxed))
    }
}
