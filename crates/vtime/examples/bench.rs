//! Runs the bench of virtual time by hand:
//!
//!     cargo run --release -p cassata-vtime --example bench -- [short|full] [CASE...]
//!
//! in the project's root, once `./cassata` has built the guests and the
//! instrument. CASE picks the cases whose names contain one of the words.
//! Writes JSON to standard output and progress to standard error.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use vtime::bench::{Case, Images, Measurement, check, matrix};
use vtime::options::Options;
use vtime::stats::Statistics;
use vtime::wrap::{FILE_NAME, Instrument};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let short = words.first().is_none_or(|word| word != "full");
    words.retain(|word| !matches!(word.as_str(), "short" | "full"));
    let build = PathBuf::from("build");
    let instrument = Instrument::at(&build.join(FILE_NAME))?;
    let images = Images {
        kernel: build.join("guests/linux/Image"),
        initramfs: build.join("guests/linux/initramfs.cpio.gz"),
        metronome: build.join("guests/metronome.elf"),
    };
    let mut measurements = Vec::new();
    for case in matrix(short) {
        if words.is_empty() || words.iter().any(|word| case.name().contains(word)) {
            eprint!("{} ... ", case.name());
            let measurement = run(&instrument, &images, &case)?;
            eprintln!("{:.1} s", measurement.real_s);
            measurements.push(measurement);
        }
    }
    let checks = check(&measurements);
    let holds = checks.iter().all(|c| c.holds);
    println!("{:#}", serde_json::json!({ "checks": checks, "measurements": measurements }));
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run(
    instrument: &Instrument,
    images: &Images,
    case: &Case,
) -> Result<Measurement, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("statistics.json");
    let options = Options {
        quantum_ns: case.quantum_ns,
        statistics: Some(file.clone()),
        ..Options::default()
    };
    let program = Path::new("qemu-system-aarch64");
    let arguments = case.arguments(images);
    let mut command = if case.plain {
        let mut command = Command::new(program);
        command.args(arguments);
        command
    } else {
        instrument.command(program, arguments, &options)?
    };
    let busy = case.busy_host.then(Busy::start);
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let real_s = start.elapsed().as_secs_f64();
    drop(busy);
    let figures = case.read(&String::from_utf8_lossy(&output.stdout))?;
    let statistics = if case.plain { None } else { Some(Statistics::read(&file)?) };
    Ok(Measurement { case: case.clone(), real_s, statistics, figures })
}

/// Work for every processor of the host.
struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let count = thread::available_parallelism().map_or(1, usize::from);
        let work = |stop: Arc<AtomicBool>| while !stop.load(Relaxed) {};
        let threads = (0..count)
            .map(|_| {
                thread::spawn({
                    let stop = stop.clone();
                    move || work(stop)
                })
            })
            .collect();
        Self { stop, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
