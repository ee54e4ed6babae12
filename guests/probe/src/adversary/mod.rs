//! The adversary: what a guest may do to the hypervisor and its neighbours, each attack by its
//! name (`probe.mode=NAME`), and all of them mixed by chance (`probe.mode=mix`).
//!
//! | module | story |
//! | --- | --- |
//! | `actor` | one vCPU of an adversary: its chance, and how it survives what it causes |
//! | `deeds` | how much was done, where the host sees it |
//! | `interrupts` | the virtual GIC: distributor, redistributors, CPU interface, SGIs |
//! | `registers` | every system register there may be |
//! | `calls` | hypercalls, PSCI, resets, crashes |
//! | `links` | doorbells, and memory that another VM reads |
//! | `virtio` | devices of another VM, as the one that gets and as the one that gives them |
//! | `messages` | what cores tell each other: vCPUs that are woken, switched on, migrate |
//! | `memory` | devices, stage 2, caches and translations, code that changes |
//! | `dma` | a device that reads and writes where it is told |
//! | `time` | timers, WFI and WFE |
//! | `mix` | all of them by chance |
//! | `leak` | one VM writes everything, another one looks for it, and in its own second life |
//!
//! Each vCPU does the same, `probe.seed` (1) decides what. An attack that fails at EL1 is caught
//! and goes on behind the instruction; a VM that resets or crashes counts on where it was.

mod actor;
mod calls;
mod deeds;
mod dma;
mod interrupts;
mod leak;
mod links;
mod memory;
mod messages;
mod mix;
mod registers;
mod time;
mod virtio;

use crate::roles::reset::{note_start, starts_before};
use crate::suite::{Check, Done, Test};
use crate::{cpus, fail, pass, platform, println};
use actor::Actor;

/// The roles of adversaries.
pub const ALL: &[Test] = &[
    Test { name: "hostile", body: hostile },
    Test { name: "leak.write", body: leak::write },
    Test { name: "leak.look", body: leak::look },
    Test { name: "leak.restart", body: leak::restart },
];

/// An attack.
struct Mode {
    name: &'static str,
    /// What must be so before; also again, after others have changed it.
    prepare: fn(&mut Actor),
    /// Does it once; answers how many operations that were.
    step: fn(&mut Actor) -> u64,
    /// Ends the VM's life: a mixture does it seldom.
    is_final: bool,
}

impl Mode {
    const fn new(name: &'static str, prepare: fn(&mut Actor), step: fn(&mut Actor) -> u64) -> Self {
        Self { name, prepare, step, is_final: false }
    }

    /// As `new`, of one that ends the VM's life.
    const fn last(name: &'static str, step: fn(&mut Actor) -> u64) -> Self {
        Self { name, prepare: |_| (), step, is_final: true }
    }
}

/// All attacks.
const MODES: &[Mode] = &[
    Mode::new("pending", interrupts::prepare_pending, interrupts::pending),
    Mode::new("active", interrupts::prepare_active, interrupts::active),
    Mode::new("burst", interrupts::prepare_active, interrupts::burst),
    Mode::new("distributor", Actor::calm_down, interrupts::distributor),
    Mode::new("redistributor", Actor::calm_down, interrupts::redistributor),
    Mode::new("interface", Actor::calm_down, interrupts::interface),
    Mode::new("sgi", Actor::calm_down, interrupts::sgi),
    Mode::new("messages", messages::prepare, messages::messages),
    Mode::new("registers", Actor::calm_down, registers::sweep),
    Mode::new("exceptions", Actor::calm_down, registers::exceptions),
    Mode::new("calls", Actor::calm_down, calls::calls),
    Mode::new("power", Actor::calm_down, calls::power),
    Mode::new("devices", Actor::calm_down, memory::devices),
    Mode::new("stage2", Actor::calm_down, memory::stage2),
    Mode::new("maintenance", Actor::calm_down, memory::maintenance),
    Mode::new("code", Actor::calm_down, memory::code),
    Mode::new("console", Actor::calm_down, memory::console),
    Mode::new("timer", Actor::calm_down, time::timer),
    Mode::new("sleep", Actor::calm_down, time::sleep),
    Mode::new("float", Actor::calm_down, time::float),
    Mode::new("links", Actor::calm_down, links::links),
    Mode::new("virtio", virtio::prepare, virtio::virtio),
    Mode::new("dma", Actor::calm_down, dma::dma),
    Mode::new("mix", Actor::calm_down, mix::mix),
    Mode::last("reset", calls::reset),
    Mode::last("crash", calls::crash),
];

/// Looks a mode up.
fn named(name: &str) -> Option<&'static Mode> {
    MODES.iter().find(|mode| mode.name == name)
}

/// The mode on the command line, `mix` if there is none.
fn mode() -> Option<&'static Mode> {
    named(platform::get().argument("mode").unwrap_or("mix"))
}

/// Before anything else, so that lives of the VM are short, and see what a boot leaves: resets or
/// crashes it, if that is asked.
pub fn at_entry() {
    let run = platform::get().argument("run");
    if run == Some("leak.restart") {
        leak::restart_at_entry();
    }
    let is_asked = run == Some("hostile");
    if let Some(mode) = mode().filter(|mode| is_asked && mode.is_final) {
        begin(mode);
        attack(mode);
    }
}

/// Counts the start.
fn begin(mode: &Mode) {
    let before = starts_before();
    note_start(before + 1);
    if before == 0 {
        println!("hostile: {}", mode.name);
    }
    deeds::open();
}

/// Attacks on every vCPU, for ever.
fn hostile() -> Check<Done> {
    let Some(mode) = mode() else { fail!("no mode is called so") };
    begin(mode);
    cpus::run_wild(|| attack(mode_of_secondary()));
    for index in platform::get().others() {
        // Under `power` siblings switch each other on and off from here on.
        cpus::launch_wild(index)?;
    }
    attack(mode);
    pass!("{} operations", deeds::done())
}

/// The mode, as a vCPU that was started later finds it.
fn mode_of_secondary() -> &'static Mode {
    mode().unwrap_or(&MODES[0])
}

/// Attacks until the asked number of operations is done (`probe.operations`, without end if not
/// said), or the vCPU is to go off.
fn attack(mode: &Mode) {
    let mut actor = Actor::new();
    let most = platform::get().number("operations", u64::MAX);
    (mode.prepare)(&mut actor);
    while deeds::done() < most && !actor.goes_off() {
        let done = (mode.step)(&mut actor);
        deeds::count(done);
    }
}
