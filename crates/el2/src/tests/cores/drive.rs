//! One history: at each step a core goes on until its next pause, or time
//! passes, or a device signals. Everything comes from the seed.

use super::reached::Reached;
use super::supply::Supply;
use super::systems::{self, Prepared};
use super::{guests, lost, quiet, silent};
use crate::arch::fake::machine::{self, Pause, SystemError};
use crate::arch::fake::registers::TTBR0_EL2;
use crate::arch::fake::smmu::Smmu;
use crate::arch::{memory, vectors};
use crate::boot;
use crate::shared::IDLE;
use abi::MAX_PCPUS;
use abi::status::Status;
use abi::system::{System, server};
use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::atomic::Ordering;

type Fiber = Coroutine<(), Pause, ()>;

/// Bytes of a core's stack; the host's frames are larger than the target's.
const STACK_SIZE: usize = 1 << 20;

/// Accesses after which a core that executes no guest and does not wait never will, where cores
/// pause at accesses.
const LONGEST_STAY: u32 = 2_000_000;

thread_local! {
    static CHANCE: RefCell<ChaCha8Rng> = RefCell::new(ChaCha8Rng::seed_from_u64(0));
    static YIELDERS: [Cell<*const Yielder<(), Pause>>; MAX_PCPUS] =
        const { [const { Cell::new(ptr::null()) }; MAX_PCPUS] };
    /// The core that executes; none while the world moves, whose accesses are no core's.
    static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
    /// Accesses until the executing core gives way, and how many on average.
    static ACCESSES: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    /// Accesses that each core has made since it executed a guest or waited.
    static STAYS: [Cell<u32>; MAX_PCPUS] = const { [const { Cell::new(0) }; MAX_PCPUS] };
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
    /// One look in so many sees an interrupt that is withdrawn; 0: none does.
    static WITHDRAWN: Cell<u32> = const { Cell::new(0) };
    static TELL: Cell<bool> = const { Cell::new(false) };
}

/// Returns a number below `end`.
pub fn chance(end: u32) -> u32 {
    CHANCE.with_borrow_mut(|chance| chance.next_u32() % end.max(1))
}

/// Says what happens, if the run is to explain a bug.
pub fn tell(text: impl FnOnce() -> String) {
    if TELL.get() {
        match CURRENT.get() {
            Some(core) => eprintln!("core {core}: {}", text()),
            None => eprintln!("{}", text()),
        }
    }
}

/// Runs a history and checks it; panics if something is wrong. Returns what EL2
/// did in it.
pub fn history(seed: u64, steps: u32, tell: bool) -> Reached {
    TELL.set(tell);
    CURRENT.set(None);
    CHANCE.set(ChaCha8Rng::seed_from_u64(seed));
    let all = systems::all();
    // Few systems have global critical sections, and those take long to be reached: the one with
    // most VMs has most of them.
    let with_sections = all.iter().filter(|system| {
        seed % 4 == 3 && system.has_sections() && system.has_ceilings() == (seed % 16 != 3)
    });
    let with_sections = with_sections.max_by_key(|system| system.tables().header.vm_count);
    // The seeds that are left, counted: else a number of systems that four divides would leave a
    // fourth of the systems out.
    let left = seed / 4 * 3 + seed % 4;
    let system = with_sections.unwrap_or(&all[left as usize % all.len()]);
    let often = [7, 60, 500, 100_000][chance(4) as usize];
    ACCESSES.set((often, often));
    let withdrawn = [0, 2, 10, 100][chance(4) as usize];
    WITHDRAWN.set(withdrawn);
    let mut world = World::new(system);
    let lacks_xnx = !system.needs_xnx() && chance(2) == 0;
    machine::with(|machine| {
        if lacks_xnx {
            machine.lack_xnx();
        }
        machine.withdraws = || WITHDRAWN.get() > 0 && chance(WITHDRAWN.get()) == 0;
    });
    self::tell(|| {
        let name = &system.name;
        format!(
            "seed {seed}, {name}, a pause in {often} accesses, withdrawn {withdrawn}, \
             lacks XNX {lacks_xnx}"
        )
    });
    while world.steps < steps && world.step() {}
    guests::only_finish(true);
    let rests = quiet::check(&mut world);
    guests::only_finish(false);
    assert_eq!(hung(&world.tables), 0, "a core is said to hang");
    Reached::of(&world.tables, rests)
}

/// Returns the cores that others have reported to hang, a bit each.
pub fn hung(tables: &System) -> u64 {
    // SAFETY: no core executes, so nothing else accesses the area.
    unsafe { (*memory::at::<Status>(tables.board.status_pa)).hung }
}

/// Begins a history of a machine in which cores pause seldom.
pub fn begin(seed: u64, system: &'static Prepared) -> World {
    const OFTEN: u32 = 60;
    TELL.set(false);
    CURRENT.set(None);
    CHANCE.set(ChaCha8Rng::seed_from_u64(seed));
    ACCESSES.set((OFTEN, OFTEN));
    WITHDRAWN.set(0);
    World::new(system)
}

/// From now on cores pause only before they execute guests, and where they wait.
pub fn pause_for_guests_only() {
    ACCESSES.set((u32::MAX, u32::MAX));
}

/// The cores as they stand, and the machine they stand on.
pub struct World {
    /// What is described.
    pub system: &'static Prepared,
    /// The tables, as EL2 has them.
    pub tables: Box<System>,
    /// How much has happened; that a core goes on between two accesses is nothing.
    steps: u32,
    fibers: [Option<(Fiber, Pause)>; MAX_PCPUS],
    /// What vCPUs have had, if some have budgets.
    supply: Option<Supply>,
    /// A core that hangs: it does not go on.
    hangs: Option<usize>,
}

impl World {
    /// A machine as its firmware leaves it.
    pub fn new(system: &'static Prepared) -> Self {
        let tables = Box::new(system.tables());
        guests::cast(&tables);
        machine::install(tables.board);
        machine::pause_with(pause);
        vgic::before_each_access(|| machine::pause(Pause::Access));
        vectors::enter_with(guests::run);
        machine::with(|machine| {
            machine.add_memory(tables.header.bundle_pa, &system.bundle);
            machine.add_memory(tables.board.hypervisor_pa, &system.hypervisor);
            machine.add_memory(tables.board.status_pa, &vec![0; size_of::<Status>()]);
            let smmu = tables.smmu.registers_pa;
            machine.smmu = (smmu != 0).then(|| Smmu::new(smmu));
            let trace = tables.trace();
            machine.add_memory(trace.start, &vec![0; trace.size as usize]);
            for vm in tables.vms() {
                machine.add_memory(vm.stolen_pa, &[0; 4096]);
                if vm.lines_pa != 0 {
                    machine.add_memory(vm.lines_pa, &[0xff; 4096]);
                }
                let alias = vm.alias();
                machine.aliases.push((alias.start..alias.start + alias.size, vm.stage1_pa));
            }
            // A UART that has nothing to read and always room: FR.TXFE, FR.RXFE.
            let mut uart = [0; 4096];
            uart[0x18] = 0x90;
            machine.add_memory(tables.board.uart_pa, &uart);
            // The boot loader may have left system errors.
            for core in &mut machine.cores {
                let error = SystemError { cause: None, pends: chance(2) == 0 };
                core.error = (chance(4) == 0).then_some(error);
            }
        });
        let has_budgets = tables.vcpus.iter().any(|vcpu| vcpu.server != server::NONE);
        let supply = has_budgets.then(Supply::new);
        Self { system, tables, steps: 0, fibers: [const { None }; MAX_PCPUS], supply, hangs: None }
    }

    /// Looks what vCPUs have had, before time leaps and after, and after a core has gone on.
    fn look(&mut self, executed: Option<usize>) {
        let fibers = &self.fibers;
        let state = |core: usize| fibers[core].as_ref().map(|(_, state)| *state);
        if let Some(supply) = &mut self.supply {
            supply.look(&self.tables, executed, state);
        }
    }

    /// Something happens. Returns false if nothing ever will again.
    pub fn step(&mut self) -> bool {
        self.switch();
        if machine::with(|machine| machine.off) {
            assert!(self.system.off_when_done(), "the machine was switched off");
            return false;
        }
        match chance(24) {
            0 => {
                self.steps += 1;
                let ticks = u64::from(chance(20_000));
                machine::with(|machine| machine.now += ticks);
                self.look(None);
                true
            }
            1 if self.tables.header.spi_count > 0 => {
                self.steps += 1;
                let spi = chance(self.tables.header.spi_count) as usize;
                machine::with(|machine| machine.raise(self.tables.spis[spi].physical));
                true
            }
            _ => self.go_on(),
        }
    }

    /// Lets a core go on that can. Time passes if there is none.
    pub fn go_on(&mut self) -> bool {
        self.switch();
        let able: Vec<usize> = (0..MAX_PCPUS).filter(|&core| self.is_able(core)).collect();
        if able.is_empty() {
            return self.skip();
        }
        self.resume(able[chance(able.len() as u32) as usize]);
        true
    }

    /// Time passes until the next timer fires. Returns false if there is none.
    fn skip(&mut self) -> bool {
        let skips = machine::with(|machine| match machine.next_timer() {
            Some(at) => {
                machine.now = at;
                true
            }
            None => false,
        });
        self.look(None);
        skips
    }

    /// Returns the cores that are at EL2.
    pub fn at_el2(&self) -> Vec<usize> {
        let is_there = |&core: &usize| matches!(self.fibers[core], Some((_, Pause::Access)));
        (0..MAX_PCPUS).filter(is_there).collect()
    }

    /// Lets a core hang where it is.
    pub fn hang(&mut self, core: usize) {
        self.hangs = Some(core);
    }

    fn is_able(&self, core: usize) -> bool {
        match self.fibers[core] {
            _ if self.hangs == Some(core) => false,
            Some((_, Pause::Access | Pause::Guest)) => true,
            Some((_, Pause::Wait)) => machine::with(|machine| {
                // A system error ends a WFI, too.
                let errs = machine.cores[core].error.is_some_and(|error| error.pends);
                errs || machine.signalled(core).is_some()
            }),
            Some((_, Pause::Off)) | None => false,
        }
    }

    /// Cores that were switched on begin, those that were switched off end.
    fn switch(&mut self) {
        for core in 0..MAX_PCPUS {
            let on = machine::with(|machine| machine.cores[core].on);
            let ended = matches!(self.fibers[core], Some((_, Pause::Off)));
            if ended {
                self.end(core);
            }
            if on && self.fibers[core].is_none() {
                self.begin(core);
            }
        }
    }

    fn begin(&mut self, core: usize) {
        let spare = STACKS.with_borrow_mut(Vec::pop);
        let stack = spare.unwrap_or_else(|| DefaultStack::new(STACK_SIZE).expect("memory"));
        let fiber = Fiber::with_stack(stack, move |yielder, ()| {
            YIELDERS.with(|yielders| yielders[core].set(yielder));
            boot::start(core)
        });
        self.fibers[core] = Some((fiber, Pause::Access));
    }

    fn end(&mut self, core: usize) {
        YIELDERS.with(|yielders| yielders[core].set(ptr::null()));
        STAYS.with(|stays| stays[core].set(0));
        if let Some((mut fiber, _)) = self.fibers[core].take() {
            // SAFETY: what is on its stack owns nothing: EL2 allocates nothing.
            unsafe { fiber.force_reset() };
            STACKS.with_borrow_mut(|stacks| stacks.push(fiber.into_stack()));
        }
    }

    fn resume(&mut self, core: usize) {
        machine::with(|machine| machine.current = core);
        let Some((fiber, state)) = &mut self.fibers[core] else { return };
        self.steps += u32::from(*state != Pause::Access);
        CURRENT.set(Some(core));
        match fiber.resume(()) {
            CoroutineResult::Yield(why) => *state = why,
            CoroutineResult::Return(()) => unreachable!("`start` does not return"),
        }
        let (_, state) = self.fibers[core].as_ref().expect("it is there");
        tell(|| format!("pauses: {state:?}"));
        let state = *state;
        CURRENT.set(None);
        self.look(Some(core));
        let (root, alias) =
            machine::with(|machine| (machine.register(core, TTBR0_EL2), machine.cores[core].alias));
        let is_common = (root, alias) == (self.tables.board.stage1_pa, None);
        let looks = matches!(state, Pause::Guest | Pause::Wait);
        assert!(is_common || !looks, "core {core} reaches guest memory, and {state:?}");
        let passes_for_idle = IDLE.load(Ordering::Relaxed).has(core);
        assert!(state != Pause::Guest || !passes_for_idle, "core {core} has a guest, and idles");
        let is_at_el2 = |fiber: &Option<(Fiber, Pause)>| matches!(fiber, Some((_, Pause::Access)));
        if !self.fibers.iter().any(is_at_el2) {
            lost::check(&self.tables);
            silent::check(&self.tables);
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        (0..MAX_PCPUS).for_each(|core| self.end(core));
    }
}

/// The executing core pauses, if it is its turn to.
fn pause(why: Pause) {
    let Some(core) = CURRENT.get() else { return };
    let made = STAYS.with(|stays| stays[core].get());
    let ends = made < LONGEST_STAY || ACCESSES.get().1 == u32::MAX;
    assert!(ends, "core {core} executes no guest and does not wait");
    STAYS.with(|stays| stays[core].set(if why == Pause::Access { made + 1 } else { 0 }));
    if why == Pause::Access {
        let (left, often) = ACCESSES.get();
        ACCESSES.set((left.wrapping_sub(1), often));
        if left > 0 {
            return;
        }
        ACCESSES.set((chance(2 * often), often));
    }
    let yielder = YIELDERS.with(|yielders| yielders[core].get());
    // SAFETY: `begin` put it there when the fiber that executes, which is this core's, began.
    unsafe { (*yielder).suspend(why) };
}
