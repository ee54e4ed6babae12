//! The statistics file, the record of what was executed, and the watchdog.

use crate::instrument::Instrument;
use rustix::thread::nanosleep;
use rustix::time::Timespec;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use vtime::coverage::Executed;
use vtime::lockstep::VcpuView;
use vtime::marks::{AllSequences, Marks};
use vtime::stats::{ForcedLeaves, RangeStatistics, Statistics, VcpuStatistics};
use vtime::watchdog::Watchdog;

/// How often the thread looks.
const PERIOD: Timespec = Timespec { tv_sec: 0, tv_nsec: PERIOD_NS as i64 };
const PERIOD_NS: u64 = 10_000_000;

/// Set when the final statistics are written; held while any are.
static FINISHED: Mutex<bool> = Mutex::new(false);

fn finished() -> MutexGuard<'static, bool> {
    FINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the first statistics and an empty record of what was executed, in the place of those of
/// an earlier machine, and starts the thread.
///
/// # Errors
/// If they cannot be written.
pub fn start(instrument: &'static Instrument) -> Result<(), String> {
    write(instrument, false)?;
    write_executed(instrument)?;
    std::thread::spawn(move || watch(instrument));
    Ok(())
}

/// Writes the final statistics, and what was executed.
pub fn finish(instrument: &Instrument) {
    let mut finished = finished();
    *finished = true;
    for error in [write(instrument, true), write_executed(instrument), write_noted(instrument)]
        .into_iter()
        .filter_map(Result::err)
    {
        eprintln!("virtual time: {error}");
    }
    let out_of_turn: u64 =
        statistics(instrument, true).vcpus.iter().map(|vcpu| vcpu.forced_leaves.timeout).sum();
    if out_of_turn > 0 {
        eprintln!(
            "virtual time: cores went on out of turn {out_of_turn} times, after 10 s in which \
             nothing did; another run may differ"
        );
    }
    if instrument.options.summary {
        eprint!("{}", statistics(instrument, true).summary());
    }
}

fn watch(instrument: &'static Instrument) {
    let mut watchdog = Watchdog::new(instrument.options.watchdog);
    let mut write_at = instrument.options.period;
    let mut failing = false;
    loop {
        // Cut short by a signal it just looks sooner.
        let _ = nanosleep(&PERIOD);
        let view = instrument.lockstep.view();
        let now = Duration::from_nanos(instrument.real_ns());
        if let Some(report) = watchdog.look(&view, now) {
            eprint!("{report}");
        }
        if now >= write_at {
            write_at = now + instrument.options.period;
            let finished = finished();
            if *finished {
                return;
            }
            let written = write(instrument, false);
            // Said once, not each second.
            if let Some(error) = written.as_ref().err().filter(|_| !failing) {
                eprintln!("virtual time: {error}");
            }
            failing = written.is_err();
        }
    }
}

fn write(instrument: &Instrument, finished: bool) -> Result<(), String> {
    let Some(path) = &instrument.options.statistics else { return Ok(()) };
    let written = statistics(instrument, finished).write(path);
    written.map_err(|error| format!("cannot write statistics to {}: {error}", path.display()))
}

fn write_executed(instrument: &Instrument) -> Result<(), String> {
    let options = &instrument.options;
    let Some((cells, coverage)) = instrument.executed.zip(options.coverage.as_ref()) else {
        return Ok(());
    };
    let mut executed = Executed::none(coverage.instructions());
    let indices = 0..coverage.instructions();
    indices.filter(|&index| cells.cell(index).is_set()).for_each(|index| executed.insert(index));
    let (written, path) = (executed.write(&coverage.file), coverage.file.display());
    written.map_err(|error| format!("cannot write what was executed to {path}: {error}"))
}

/// Writes what cores have noted at marks.
fn write_noted(instrument: &Instrument) -> Result<(), String> {
    let Some(Marks { file, all }) = &instrument.options.marks else { return Ok(()) };
    let vcpus = 0..instrument.lockstep.view().vcpus.len();
    let noted = AllSequences {
        names: all.iter().map(|(_, mark)| mark.name.clone()).collect(),
        vcpus: vcpus.map(|vcpu| instrument.with_sequences(vcpu, |all| all.clone())).collect(),
    };
    let written = noted.write(file);
    written.map_err(|error| format!("cannot write what was noted to {}: {error}", file.display()))
}

fn statistics(instrument: &Instrument, finished: bool) -> Statistics {
    let view = instrument.lockstep.view();
    let real_ns = instrument.real_ns();
    Statistics {
        finished,
        quantum_ns: instrument.options.quantum_ns,
        mhz: instrument.options.rate.mhz(),
        virtual_ns: view.now_ns,
        real_ns,
        slowdown: real_ns as f64 / view.now_ns.max(1) as f64,
        counts: view.counts,
        vcpus: view
            .vcpus
            .iter()
            .enumerate()
            .map(|(i, v)| vcpu_statistics(instrument, i, v))
            .collect(),
    }
}

fn vcpu_statistics(instrument: &Instrument, index: usize, view: &VcpuView) -> VcpuStatistics {
    let [stall, main_loop, timeout] = view.leaves;
    VcpuStatistics {
        instructions: view.instructions,
        idle_ns: view.idle_ns,
        forced_leaves: ForcedLeaves { stall, main_loop, timeout },
        range: instrument.options.range.as_ref().map(|_| range_statistics(instrument, index)),
    }
}

fn range_statistics(instrument: &Instrument, index: usize) -> RangeStatistics {
    let instructions = instrument.lockstep.host().in_range.get(index);
    instrument.with_visits(index, |visits| RangeStatistics {
        instructions,
        visits: visits.by_entry().values().map(|tally| tally.visits).sum(),
        by_entry: visits
            .by_entry()
            .iter()
            .map(|(entry, t)| (format!("{entry:#x}"), t.clone()))
            .collect(),
    })
}
