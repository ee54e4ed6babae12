//! What both halves share.

use crate::control::Control;
use crate::host::{Cell, Cells, Qemu};
use libc::pthread_cond_t;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::num::NonZero;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, OnceLock, PoisonError};
use vtime::lockstep::{Config, Lockstep};
use vtime::machine::MAX_VCPUS;
use vtime::marks::{Kind, Noted, Sequences};
use vtime::options::Options;
use vtime::visits::Visits;

/// The instrument of this process.
pub struct Instrument {
    pub options: Options,
    pub lockstep: Lockstep<Qemu>,
    /// What says of each instruction of [`Options::coverage`] that it was executed.
    pub executed: Option<Cells>,
    /// The program that holds the machine, if one does.
    pub control: Option<Control>,
    /// The conditions that cores sleep on, once they have slept.
    halt_conditions: Vec<AtomicPtr<pthread_cond_t>>,
    /// The conditions that cores wait for otherwise; null if they do not.
    awaited: Vec<AtomicPtr<pthread_cond_t>>,
    /// What each core has noted at marks.
    sequences: Vec<Mutex<Sequences>>,
    /// Each core's visits to the address range.
    visits: Vec<Mutex<Visits>>,
    /// How far host addresses of the guest's memory lie above its physical
    /// ones, once known; see [`Instrument::physical`].
    ram_offset: AtomicU64,
    /// True if code at a virtual address in a range asked for has run.
    ran_in_range: AtomicBool,
    /// The host's clocks when virtual time began.
    monotonic_start_ns: u64,
    realtime_start_ns: u64,
}

/// Rounds a core spins for another one that has a processor: about as long as it
/// takes to put a thread to sleep and wake it again.
const SPINS: u32 = 2_000;

/// [`Instrument::ram_offset`] before it is known: no host address is so high.
const UNKNOWN: u64 = u64::MAX;

static INSTRUMENT: OnceLock<Instrument> = OnceLock::new();

/// The instrument, once QEMU has loaded its plugin half.
pub fn get() -> Option<&'static Instrument> {
    INSTRUMENT.get()
}

/// Begins virtual time.
///
/// # Errors
/// If the process is out of file descriptors, or the pipes that the options name
/// cannot be opened.
pub fn install(options: Options) -> std::io::Result<&'static Instrument> {
    let processors = processors(options.serial);
    let config = Config {
        quantum_ns: options.quantum_ns,
        rate: options.rate,
        serial: options.serial,
        // On one processor nothing goes on while a thread spins.
        spins: if processors > 1 { SPINS } else { 0 },
        processors,
    };
    let instrument = Instrument {
        lockstep: Lockstep::new(config, Qemu::new()?).with_stalls(options.stalls.clone()),
        executed: options.coverage.as_ref().map(|coverage| Cells::new(coverage.instructions())),
        control: options.control.as_ref().map(Control::open).transpose()?,
        options,
        halt_conditions: (0..MAX_VCPUS).map(|_| AtomicPtr::default()).collect(),
        awaited: (0..MAX_VCPUS).map(|_| AtomicPtr::default()).collect(),
        sequences: (0..MAX_VCPUS).map(|_| Mutex::default()).collect(),
        visits: (0..MAX_VCPUS).map(|_| Mutex::default()).collect(),
        ram_offset: AtomicU64::new(UNKNOWN),
        ran_in_range: AtomicBool::new(false),
        monotonic_start_ns: host_clock_ns(ClockId::Monotonic),
        realtime_start_ns: host_clock_ns(ClockId::Realtime),
    };
    Ok(INSTRUMENT.get_or_init(|| instrument))
}

/// Returns how many processors of the host this process uses.
///
/// Cores that take turns keep one busy, so the process keeps to the one it is on: its threads hand
/// over to each other in less time than it takes to wake another processor. What they do in virtual
/// time is the same anywhere.
fn processors(serial: bool) -> usize {
    let all = std::thread::available_parallelism().map_or(1, NonZero::get);
    if !serial {
        return all;
    }
    let mut this = CpuSet::new();
    this.set(sched_getcpu());
    // No thread has been started yet that would not inherit it.
    sched_setaffinity(None, &this).map_or(all, |()| 1)
}

/// A clock of the host's, in ns, past our own stand-in for `clock_gettime`.
fn host_clock_ns(clock: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    u64::try_from(tv_sec * 1_000_000_000 + tv_nsec).unwrap_or(0)
}

impl Instrument {
    /// Virtual time as the given thread sees it, in ns since the start.
    pub fn time_ns(&self, vcpu: Option<usize>) -> u64 {
        vcpu.map_or_else(|| self.lockstep.now_ns(), |vcpu| self.lockstep.vcpu_time_ns(vcpu))
    }

    /// Real time since the start in ns.
    pub fn real_ns(&self) -> u64 {
        host_clock_ns(ClockId::Monotonic) - self.monotonic_start_ns
    }

    /// How far the given thread's virtual time is behind real time, in ns; less
    /// than 0 if it is ahead.
    pub fn behind_ns(&self, vcpu: Option<usize>) -> i64 {
        // Both are below 2^63 for three centuries after the start.
        self.real_ns() as i64 - self.time_ns(vcpu) as i64
    }

    /// What the monotonic clock shows at a virtual time.
    pub fn monotonic_ns(&self, time_ns: u64) -> u64 {
        self.monotonic_start_ns + time_ns
    }

    /// What the wall clock shows at a virtual time.
    pub fn realtime_ns(&self, time_ns: u64) -> u64 {
        self.realtime_start_ns + time_ns
    }

    /// A core sleeps on `condition`.
    pub fn learn(&self, vcpu: usize, condition: *mut pthread_cond_t) {
        self.halt_conditions[vcpu].store(condition, Release);
    }

    /// The core that sleeps on `condition`, if one does.
    pub fn sleeper(&self, condition: *mut pthread_cond_t) -> Option<usize> {
        self.halt_conditions.iter().position(|c| c.load(Acquire) == condition)
    }

    /// A core waits for `condition`, or, if that is null, for nothing more.
    pub fn wait_for(&self, vcpu: usize, condition: *mut pthread_cond_t) {
        self.awaited[vcpu].store(condition, Release);
    }

    /// The cores that wait for `condition`.
    pub fn waiting_for(
        &self,
        condition: *mut pthread_cond_t,
    ) -> impl Iterator<Item = usize> + use<'_> {
        let of = move |(vcpu, awaited): (usize, &AtomicPtr<pthread_cond_t>)| {
            (awaited.load(Acquire) == condition).then_some(vcpu)
        };
        self.awaited.iter().enumerate().filter_map(of)
    }

    /// What a core sleeps on; null before it first slept.
    pub fn halt_condition(&self, vcpu: usize) -> *mut pthread_cond_t {
        self.halt_conditions[vcpu].load(Acquire)
    }

    /// Works on a core's visits to the address range.
    pub fn with_visits<T>(&self, vcpu: usize, work: impl FnOnce(&mut Visits) -> T) -> T {
        work(&mut self.visits[vcpu].lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Works on what a core has noted at marks.
    pub fn with_sequences<T>(&self, vcpu: usize, work: impl FnOnce(&mut Sequences) -> T) -> T {
        work(&mut self.sequences[vcpu].lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The kind and the index of the mark at the instruction at these addresses, if there is one.
    pub fn mark(&self, virtual_address: u64, host_address: u64) -> Option<(Kind, usize)> {
        let marks = self.options.marks.as_ref()?;
        let index = marks.at(self.physical(virtual_address, host_address)?)?;
        Some((marks.all[index].0, index))
    }

    /// Notes that a core is at a mark, before the latest `ahead` instructions that its counter has.
    pub fn note(&self, vcpu: usize, mark: usize, level: Option<u8>, ahead: u64) {
        let time_ns = self.lockstep.vcpu_time_before_ns(vcpu, ahead);
        let marks = self.options.marks.as_ref();
        let ends = marks.is_some_and(|marks| marks.all[mark].0 == Kind::End);
        let index = u8::try_from(mark).unwrap_or(u8::MAX);
        self.with_sequences(vcpu, |all| all.note(Noted(index, level, time_ns), ends));
    }

    /// Returns true if code at virtual address `virtual_address`, which QEMU keeps at host address
    /// `host_address`, lies in the address range whose visits are counted.
    pub fn in_range(&self, virtual_address: u64, host_address: u64) -> bool {
        let Some(range) = &self.options.range else { return false };
        self.physical(virtual_address, host_address).is_some_and(|address| range.contains(&address))
    }

    /// What translated code sets when it executes the instruction at these addresses, if that is
    /// recorded.
    pub fn executed(&self, virtual_address: u64, host_address: u64) -> Option<Cell> {
        let (cells, coverage) = self.executed.zip(self.options.coverage.as_ref())?;
        let address = self.physical(virtual_address, host_address)?;
        coverage.index(address).map(|index| cells.cell(index))
    }

    /// Returns the physical address of code at virtual address `virtual_address`, which QEMU
    /// keeps at host address `host_address`; none of a device's.
    ///
    /// The plugin interface tells no physical addresses of code. But guest
    /// memory is one piece at the host, and the first code of all runs with the
    /// MMU off: its address is physical. If that was not in RAM but in a boot
    /// ROM, the first code to run at a virtual address in a range asked for corrects
    /// it, which then has to run with the MMU off or mapped one to one. From
    /// then on the host address tells.
    fn physical(&self, virtual_address: u64, host_address: u64) -> Option<u64> {
        if host_address == 0 {
            return None; // a device
        }
        let offset = host_address.wrapping_sub(virtual_address);
        let coverage = self.options.coverage.iter().map(|coverage| &coverage.range);
        let asked =
            coverage.chain(&self.options.range).any(|range| range.contains(&virtual_address));
        // Losing a race to another core is as good as winning it.
        if asked && !self.ran_in_range.swap(true, Relaxed) {
            self.ram_offset.store(offset, Relaxed);
        }
        let _ = self.ram_offset.compare_exchange(UNKNOWN, offset, Relaxed, Relaxed);
        Some(host_address.wrapping_sub(self.ram_offset.load(Relaxed)))
    }
}
