//! A core hangs at EL2, anywhere, and the others report it.

use super::drive::{self, World, chance};
use super::systems::{self, Prepared};
use crate::arch::fake::machine;
use crate::parts::UNWATCHED;
use crate::shared::{LOG, SIGNS};
use crate::tables::Vcpus;
use core::sync::atomic::Ordering;

/// Histories of each machine.
const HISTORIES: u64 = 200;
/// More steps than any of them needs, at the beginning and until a report.
const ENOUGH: u32 = 100_000;

fn now() -> u64 {
    machine::with(|machine| machine.now)
}

fn find(name: &str) -> &'static Prepared {
    systems::all().iter().find(|system| system.name == name).expect("a machine of this name")
}

/// Goes on until a core is at EL2 that others watch, and lets it hang there. Returns it, if there
/// is another one that stays on.
fn hang(world: &mut World) -> Option<usize> {
    let steps = 50 + chance(2_000);
    (0..steps).for_each(|_| {
        world.step();
    });
    let count = world.tables.board.pcpu_count as usize;
    let is_watched = |core: usize| SIGNS[core].load(Ordering::Relaxed) != UNWATCHED.0;
    let stays = |core: usize| {
        is_watched(core) && usize::from(world.tables.board.consolidation_target[core]) == core
    };
    let mut able = world.at_el2();
    able.retain(|&core| is_watched(core) && (0..count).any(|other| other != core && stays(other)));
    let core = *able.get(chance(able.len() as u32) as usize)?;
    world.hang(core);
    Some(core)
}

/// Goes on until an instant. Returns false if the machine is off before.
fn go_on_until(world: &mut World, end: u64) -> bool {
    for _ in 0..ENOUGH {
        if machine::with(|machine| machine.off) {
            return false;
        }
        if now() >= end {
            return true;
        }
        world.step();
    }
    panic!("time stands still");
}

#[test]
fn a_core_that_hangs_is_reported_and_no_other() {
    let (mut hung, mut logs) = (0, 0);
    for name in ["beside-reports.watched", "gathered.watched"] {
        let system = find(name);
        for seed in 0..HISTORIES {
            let mut world = drive::begin(seed, system);
            let Some(core) = hang(&mut world) else { continue };
            let (time, began) = (system.watchdog(), now());
            // Its latest sign may be older than the time from one to the next, as it may have paused.
            if !go_on_until(&mut world, began + 9 * time / 10) {
                continue;
            }
            assert_eq!(drive::hung(&world.tables), 0, "{name}, {seed}: core {core}, too early");
            // Others, too, may be at EL2 for a while.
            if !go_on_until(&mut world, began + 5 * time / 2) {
                continue;
            }
            let is_it = 1 << core;
            assert_eq!(drive::hung(&world.tables), is_it, "{name}, {seed}: core {core} hangs");
            assert_eq!(SIGNS[core].load(Ordering::Relaxed), UNWATCHED.0);
            hung += 1;
            if core == Vcpus::of(&world.tables).topology().uart_core()
                && go_on_until(&mut world, began + 6 * time)
            {
                logs += u32::from(LOG.is_empty());
            }
        }
    }
    println!("{hung} cores hung, of {logs} another one wrote the report");
    assert!(hung > 50 && logs > 5);
}

#[test]
fn a_core_that_hangs_has_the_machine_reset_where_that_is_described() {
    let mut resets = 0;
    for seed in 0..HISTORIES {
        let system = find("beside-reports.resets");
        let mut world = drive::begin(seed, system);
        if hang(&mut world).is_none() {
            continue;
        }
        let end = now() + 5 * system.watchdog() / 2;
        assert!(!go_on_until(&mut world, end), "{seed}: the machine goes on");
        resets += u32::from(machine::with(|machine| machine.was_reset));
    }
    println!("{resets} resets");
    assert!(resets > 25);
}
