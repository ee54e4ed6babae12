//! Real threads as cores: each runs a vCPU, posts to the others and takes what
//! is posted to it.
//!
//! Every interrupt has one sender, which waits for it to be taken before sending
//! it again. So it must be taken exactly as often as it was sent: a lost one
//! would be waited for in vain, one delivered twice counts.

use super::cpu::{Cpu, SPURIOUS};
use super::*;
use crate::frames::v3;
use crate::interface::CpuInterface;
use crate::{Bits, Effects, Gic};
use abi::platform::SPI_FIRST;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

const CORES: usize = 4;
/// Ends a test that would wait for ever. Nothing is measured.
const PATIENCE: Duration = Duration::from_secs(60);

struct Machine {
    gic: Gic,
    doorbells: [AtomicBool; CORES],
    /// How often each interrupt was taken; shared ones by whomever.
    taken: [[AtomicUsize; 64]; CORES],
    /// Shared interrupts that a guest has acknowledged and not ended.
    active: [AtomicBool; 64],
    /// Cores that have sent all they will.
    finished: AtomicUsize,
}

impl Machine {
    fn new() -> Self {
        let machine = Self {
            gic: Gic::new(),
            doorbells: Default::default(),
            taken: [const { [const { AtomicUsize::new(0) }; 64] }; CORES],
            active: [const { AtomicBool::new(false) }; 64],
            finished: AtomicUsize::new(0),
        };
        let gic = &machine.gic;
        let _ = v3::write_distributor(gic, 0, GICD_CTLR, 4, 3);
        let _ = v3::write_distributor(gic, 0, ISENABLER + 4, 4, u64::MAX);
        let _ = v3::write_distributor(gic, 0, ICFGR + 8, 4, u64::MAX);
        for vcpu in 0..CORES {
            let _ = v3::write_redistributor(gic, vcpu, 0x1_0000 + ISENABLER, 4, u64::MAX);
        }
        machine
    }

    fn carry_out(&self, effects: Effects) {
        self.ring(effects.notify);
    }

    fn ring(&self, vcpus: u8) {
        fence(Ordering::SeqCst);
        let rung = |vcpu: &u32| (*vcpu as usize) < CORES && self.gic.must_tell(*vcpu as usize);
        for vcpu in Bits(vcpus.into()).filter(rung) {
            self.doorbells[vcpu as usize].store(true, Ordering::Release);
        }
    }

    fn taken(&self, vcpu: usize, intid: u32) -> &AtomicUsize {
        &self.taken[if intid < SPI_FIRST { vcpu } else { 0 }][intid as usize]
    }
}

struct Core<'a> {
    machine: &'a Machine,
    vcpu: usize,
    cpu: Cpu,
    interface: CpuInterface,
    /// State of a linear congruential generator.
    random: u64,
}

impl Core<'_> {
    fn random(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % end
    }

    /// The hypervisor's part, and then the guest's: it takes one interrupt,
    /// and sometimes one more before it ends the first.
    fn run(&mut self) {
        self.enter();
        let intid = self.cpu.acknowledge();
        if intid == SPURIOUS {
            thread::yield_now();
            return;
        }
        let active = &self.machine.active[intid as usize];
        let shared = intid >= SPI_FIRST;
        assert!(!(shared && active.swap(true, Ordering::AcqRel)), "{intid} is active twice");
        self.machine.taken(self.vcpu, intid).fetch_add(1, Ordering::AcqRel);
        for _ in 0..self.random(3) {
            self.enter();
            thread::yield_now();
        }
        if self.random(4) == 0 {
            self.run();
        }
        active.store(false, Ordering::Release);
        self.cpu.end(intid);
        self.enter();
    }

    fn enter(&mut self) {
        let rung = self.machine.doorbells[self.vcpu].swap(false, Ordering::AcqRel);
        let news = self.random(8) == 0 && self.wait_for_core();
        if rung || news || self.cpu.wants_maintenance() {
            self.interface.sync(&self.machine.gic, &mut self.cpu);
        }
        self.machine.ring(std::mem::take(&mut self.cpu.rung));
    }

    /// Another vCPU has the core for a while. Returns true if something was posted.
    fn wait_for_core(&self) -> bool {
        self.machine.gic.begin_wait(self.vcpu);
        thread::yield_now();
        self.machine.gic.end_wait(self.vcpu);
        self.interface.has_news(&self.machine.gic)
    }

    fn wait(&mut self, target: usize, intid: u32, count: usize) {
        let began = Instant::now();
        while self.machine.taken(target, intid).load(Ordering::Acquire) < count {
            self.run();
            assert!(began.elapsed() < PATIENCE, "{intid} was lost");
        }
    }

    /// Serves the others until they need nothing more.
    fn finish(&mut self) {
        self.machine.finished.fetch_add(1, Ordering::AcqRel);
        while self.machine.finished.load(Ordering::Acquire) < CORES {
            self.run();
        }
        // Whatever were delivered twice would be delivered now.
        for _ in 0..64 {
            self.run();
        }
        assert_eq!(self.cpu.running_priority(), 0x100);
        assert!(self.cpu.registers().iter().all(|r| !r.is_pending() && !r.is_active()));
    }
}

fn on_all_cores(count: usize, machine: &Machine, body: impl Fn(&mut Core) + Sync) {
    thread::scope(|scope| {
        for vcpu in 0..CORES {
            let body = &body;
            scope.spawn(move || {
                let mut core = Core {
                    machine,
                    vcpu,
                    cpu: Cpu::new(count),
                    interface: CpuInterface::new(vcpu),
                    random: vcpu as u64 * 77 + 1,
                };
                pausing::begin(core.random);
                body(&mut core);
                core.finish();
            });
        }
    });
}

#[test]
fn sgis_between_cores_are_all_taken() {
    const ROUNDS: usize = 1500;
    for count in [1, 4] {
        let machine = Machine::new();
        on_all_cores(count, &machine, |core| {
            let intid = core.vcpu as u32;
            for round in 1..=ROUNDS {
                for target in 0..CORES {
                    let effects = machine.gic.post(target, intid);
                    machine.carry_out(effects);
                }
                for target in 0..CORES {
                    core.wait(target, intid, round);
                }
            }
        });
        for target in 0..CORES {
            for intid in 0..CORES as u32 {
                assert_eq!(machine.taken(target, intid).load(Ordering::Acquire), ROUNDS);
            }
        }
    }
}

#[test]
fn shared_interrupts_are_taken_once_while_all_threads_reroute_them() {
    const ROUNDS: usize = 1500;
    for count in [1, 4] {
        let machine = Machine::new();
        on_all_cores(count, &machine, |core| {
            let intid = SPI_FIRST + core.vcpu as u32;
            for round in 1..=ROUNDS {
                let effects = machine.gic.post(core.vcpu, intid);
                machine.carry_out(effects);
                while machine.taken(0, intid).load(Ordering::Acquire) < round {
                    let other = u64::from(SPI_FIRST) + core.random(CORES as u64);
                    let target = core.random(CORES as u64);
                    let (at, vcpu) = (IROUTER + 8 * other, core.vcpu);
                    let effects = v3::write_distributor(&machine.gic, vcpu, at, 8, target);
                    machine.carry_out(effects);
                    core.run();
                    if core.random(8) == 0 {
                        core.wait(0, intid, round);
                    }
                }
            }
        });
        for intid in SPI_FIRST..SPI_FIRST + CORES as u32 {
            assert_eq!(machine.taken(0, intid).load(Ordering::Acquire), ROUNDS);
        }
    }
}

#[test]
fn shared_interrupts_survive_being_disabled_by_any_vcpu() {
    const ROUNDS: usize = 600;
    let machine = Machine::new();
    on_all_cores(2, &machine, |core| {
        let intid = SPI_FIRST + core.vcpu as u32;
        let bit = 1 << core.vcpu;
        for round in 1..=ROUNDS {
            let gic = &machine.gic;
            let target = core.random(CORES as u64);
            let vcpu = core.vcpu;
            machine.carry_out(v3::write_distributor(gic, vcpu, ICENABLER + 4, 4, bit));
            machine.carry_out(v3::write_distributor(gic, vcpu, ISPENDR + 4, 4, bit));
            let at = IROUTER + 8 * u64::from(intid);
            machine.carry_out(v3::write_distributor(gic, vcpu, at, 8, target));
            core.run();
            machine.carry_out(v3::write_distributor(gic, vcpu, ISENABLER + 4, 4, bit));
            core.wait(0, intid, round);
        }
    });
    for intid in SPI_FIRST..SPI_FIRST + CORES as u32 {
        assert_eq!(machine.taken(0, intid).load(Ordering::Acquire), ROUNDS);
    }
}

#[test]
fn a_core_that_takes_nothing_lets_go_of_what_is_rerouted() {
    const ROUNDS: usize = 600;
    let machine = Machine::new();
    on_all_cores(2, &machine, |core| {
        let gic = &machine.gic;
        let route = |vcpu, intid: u32, target| {
            let at = IROUTER + 8 * u64::from(intid);
            machine.carry_out(v3::write_distributor(gic, vcpu, at, 8, target));
        };
        if core.vcpu == 0 {
            // Draws everything to itself, whenever.
            while machine.finished.load(Ordering::Acquire) < CORES - 1 {
                let other = 1 + core.random(CORES as u64 - 1) as u32;
                route(0, SPI_FIRST + other, 0);
                core.run();
            }
            return;
        }
        let intid = SPI_FIRST + core.vcpu as u32;
        core.cpu.mask = 0;
        for round in 1..=ROUNDS {
            route(core.vcpu, intid, core.vcpu as u64);
            machine.carry_out(gic.post(core.vcpu, intid));
            core.wait(0, intid, round);
        }
        core.cpu.mask = 0xff;
    });
    for intid in SPI_FIRST + 1..SPI_FIRST + CORES as u32 {
        assert_eq!(machine.taken(0, intid).load(Ordering::Acquire), ROUNDS);
    }
}
