//! The system description of a point.

use super::plan::CORES;
use super::point::{Experiment, Linux, Point, Rank, Rtos, Stage, Wake};
use super::policy::{ABOVE_RTOS, LINUX_PRIORITY, NONE, Policy, RTOS_PRIORITY};
use crate::bench::vtime::case::build_options;
use crate::guests::Images;
use std::fmt::Write;
use std::path::Path;

/// Linux's uptime when its work begins, milliseconds.
const BEGIN_MS: u32 = 1_200;
/// How long EL2 compares Linux and its initramfs with their digests, 3 instructions a byte, and fills Linux's memory
/// before it starts it, milliseconds.
const INSPECTION_MS: u32 = 180;
/// How much sooner the RTOS begins where there is no second run of Linux's work, milliseconds.
const FIRST_RUN_MS: u32 = 60;
/// When the RTOS's first tick comes after its own start, milliseconds. All points boot alike: the
/// RTOS sleeps until Linux has booted and set to work, and begins within Linux's first run, which
/// is not counted. Where Linux must be at work before the RTOS is, a run in which it is not is an error.
const START_MS: u32 = INSPECTION_MS + BEGIN_MS + 60;
/// What looking for addresses takes longer.
const SYMBOLS_MS: u32 = 1_500;
/// What unpacking the archive takes longer with which a part of Linux is built.
const UNPACKING_MS: u32 = 12_000;
const ARCHIVE_MS: u32 = 3_000;
/// What making the file takes that is to be hashed.
const FILE_MS: u32 = 400;
/// How long one Linux vCPU runs while another one is on its pCPU. A visitor goes on
/// when that is over: with less it migrates more, with more its siblings wait longer
/// for one another ("The points" in the book's chapter).
const QUANTUM: &str = "100us";

/// How much sooner Linux with the port has been compared with its digest, milliseconds: it is that
/// much smaller.
const SOONER_MS: u32 = 90;

/// What a description says of a technique.
#[derive(Default)]
pub struct Setting {
    /// Keys of the hypervisor, and of Linux's VM, each with the end of its line.
    pub hypervisor: String,
    pub vm: String,
    /// Words of Linux's command line, each after a space.
    pub words: String,
}

/// Where Linux 6.1 for arm64 waits for another CPU and keeps its own busy, as
/// what it waits for, and the first and the last function: a contended
/// spinlock; and the end of a function that others were interrupted to call.
pub const SPINNING: [(&str, [&str; 2]); 2] = [
    ("spinlock", ["queued_spin_lock_slowpath", "queued_spin_lock_slowpath"]),
    ("cross-call", ["smp_call_function_single", "smp_call_function_many_cond"]),
];
/// A symbol near the beginning of the kernel's image, and how far behind it: a
/// segment's alignment (Linux, arch/arm64/kernel/vmlinux.lds.S).
pub const TEXT: (&str, u64) = ("_stext", 0x1_0000);
/// The symbol behind the kernel's code. What runs once at boot (`.init.text`)
/// lies behind it, and is memory for programs later.
pub const TEXT_END: &str = "_etext";

/// The text of a description, or `None` for what runs without hypervisor.
pub fn of(point: &Point, root: &Path) -> Option<String> {
    let images = Images::of(root);
    let linux_cores = match &point.stage {
        Stage::Native => return None,
        Stage::Alone { cores } => *cores,
        Stage::Shared { .. } => CORES,
    };
    let pacers = u32::from(point.rtos.is_some_and(|rtos| rtos.wake != Wake::Timer));
    let pcpus = linux_cores + pacers;
    let policy = point.stage.policy().or_else(|| Policy::named(NONE))?;
    let [mut linux_setting, rtos_setting] = policy.settings();
    let technique = point.technique.map(|technique| technique.setting(policy.name));
    let technique = technique.unwrap_or_default();
    linux_setting += &technique.vm;
    let more = &technique.hypervisor;
    let kernel = if point.is_ported() { &images.own_kernel } else { &images.kernel };
    let separation = point.separation;
    let mut text = format!(
        "[board]\nkind = \"qemu-virt\"\npcpus = {pcpus}\nmemory = \"1G\"\n\n\
         [hypervisor]\npriority_separation = {separation}\noff_when_done = true\n{more}\n\
         [[vm]]\nname = \"linux\"\nkernel = {:?}\ninitramfs = {:?}\ncmdline = '{}'\nseed = {}\n\
         memory = {{ size = \"512M\" }}\n{linux_setting}vcpus = [\n",
        kernel,
        if point.builds() { images.kbuild } else { images.initramfs },
        command_line(point) + &technique.words,
        point.seed,
    );
    for pcpu in 0..linux_cores {
        let priority = linux_priority(point, policy, pcpu);
        let marked = marked_priority(point, pcpu);
        let _ = writeln!(
            text,
            "    {{ pcpu = {pcpu}, priority = {priority}{marked}, quantum = {QUANTUM:?} }},"
        );
    }
    text += "]\n";
    if let Some(rtos) = point.rtos {
        let kernel = &images.rtos;
        let advance = rtos.advance_us;
        let advance = advance.map(|us| format!("timer_advance = \"{us}us\"\n")).unwrap_or_default();
        let told =
            rtos_command_line(rtos, START_MS + later(point) + file(point) - sooner(point, policy));
        let vcpus = rtos_vcpus(rtos.wake);
        let devices = if rtos.wake == Wake::Device { "devices = [\"rtc\"]\n" } else { "" };
        let _ = write!(
            text,
            "\n[[vm]]\nname = \"rtos\"\nkernel = {kernel:?}\nmemory = {{ size = \"32M\" }}\n\
             vcpus = [\n{vcpus}]\nrealtime = true\n{devices}\
             report = \"4M\"\n{rtos_setting}{advance}\
             cmdline = {told:?}\n",
        );
    }
    Some(text)
}

/// Returns the priority of Linux's vCPU `index`.
fn linux_priority(point: &Point, policy: Policy, index: u32) -> u32 {
    match point.linux {
        Linux::Realtime { rank: Rank::Above, .. } if index == 0 => ABOVE_RTOS,
        Linux::Realtime { .. } => LINUX_PRIORITY,
        _ => policy.linux_priority(index),
    }
}

/// Returns the key that lets Linux mark its vCPU `index`, if it may.
fn marked_priority(point: &Point, index: u32) -> String {
    match point.linux {
        Linux::Realtime { rank: Rank::Marked | Rank::Unmarked, .. } if index == 0 => {
            format!(", rt_priority = {ABOVE_RTOS}")
        }
        _ => String::new(),
    }
}

/// The RTOS's vCPUs: one that shares core 0, and one on a core of its own if something else than
/// the timer wakes the first. For grants both have a task that uses the mutex, and a budget that
/// is never used up.
fn rtos_vcpus(wake: Wake) -> String {
    let vcpu = |pcpu, task| {
        let more = match wake {
            Wake::Grant => format!(
                ", server = {{ kind = \"deferrable\", budget = \"10ms\", period = \"10ms\" }}, \
                 tasks = [{{ name = \"{task}\", priority = 1, period = \"10ms\", \
                 segments = [{{ wcet = \"1ms\", gcs = \"R\" }}] }}]"
            ),
            _ => String::new(),
        };
        format!("    {{ pcpu = {pcpu}, priority = {RTOS_PRIORITY}{more} }},\n")
    };
    let pacer = if wake == Wake::Timer { String::new() } else { vcpu(CORES, "pacer") };
    vcpu(0, "measured") + &pacer
}

/// What the RTOS is told, whose first tick comes `start_ms` milliseconds after its start.
pub fn rtos_command_line(rtos: Rtos, start_ms: u32) -> String {
    let jitter = match rtos.jitter_percent {
        0 => String::new(),
        percent => format!(" jitter={percent}"),
    };
    let Rtos { load_permille, period_us, activations, .. } = rtos;
    let how = match rtos.wake {
        Wake::Timer => format!("tick_us={period_us}"),
        wake => format!("wake={}", wake.name()),
    };
    format!(
        "load={load_permille} period_us={period_us} {how} activations={activations} \
         start_ms={start_ms}{jitter}"
    )
}

/// Returns how much later Linux's work begins, by its own clock.
fn later(point: &Point) -> u32 {
    match point.experiment {
        Experiment::Spinning | Experiment::Kernel => SYMBOLS_MS,
        _ if point.builds() => UNPACKING_MS,
        _ => 0,
    }
}

/// Returns how much sooner the RTOS's first tick comes.
fn sooner(point: &Point, policy: Policy) -> u32 {
    if linux_priority(point, policy, 0) > RTOS_PRIORITY {
        // Linux is compared with its digest in the time of its first vCPU, and the RTOS starts behind
        // that.
        INSPECTION_MS
    } else if point.is_ported() {
        SOONER_MS
    } else if point.experiment == Experiment::Kernel {
        // There is one run of Linux's work.
        FIRST_RUN_MS
    } else {
        0
    }
}

fn file(point: &Point) -> u32 {
    match point.experiment {
        Experiment::Migration => FILE_MS,
        _ if point.builds() => ARCHIVE_MS,
        _ => 0,
    }
}

/// What Linux is told.
fn command_line(point: &Point) -> String {
    let begin = BEGIN_MS + later(point);
    let begin = format!("cassata.begin={}.{:02}", begin / 1_000, begin % 1_000 / 10);
    let work = match &point.linux {
        Linux::Absent => String::new(),
        Linux::Hackbench { loops, runs } => {
            format!("cassata.run=demo cassata.hackbench=\"-g 1 -l {loops}\" cassata.repeat={runs}")
        }
        Linux::BusyHackbench => "cassata.run=busy cassata.work=hackbench".into(),
        Linux::BusyWrite => "cassata.run=busy cassata.work=write".into(),
        Linux::Timed { work, count, runs } => work.options(*count, *runs),
        Linux::Builds { runs } => build_options(*runs),
        Linux::Realtime { wakes, hackbench, rank } => {
            let mark = if *rank == Rank::Marked { " cassata.mark" } else { "" };
            let beside = if *hackbench { " cassata.hackbench=\"-g 1 -l 100\"" } else { "" };
            format!("isolcpus=0 cassata.run=realtime cassata.wakes={wakes}{beside}{mark}")
        }
    };
    let more = if point.experiment.needs_symbols() {
        // Where the kernel lies must be known to count what it does there.
        let [lock, calls] = SPINNING.map(|(_, [first, last])| format!("{first} {last}"));
        format!(" nokaslr cassata.symbols=\"{} {TEXT_END} {lock} {calls}\"", TEXT.0)
    } else if point.experiment == Experiment::Overhead {
        // As in the native run, where a boot loader's random address would
        // make Linux isolate its page tables, and system calls dearer.
        " nokaslr".into()
    } else {
        String::new()
    };
    format!("console=ttyAMA0 rdinit=/init quiet loglevel=4 {begin} {work}{more}")
}

#[cfg(test)]
mod tests {
    use super::super::plan::points;
    use super::*;
    use crate::bench::Extent;
    use crate::bench::store::Case as _;
    use crate::testing;

    #[test]
    fn descriptions_are_understood() {
        testing::lack_guests_only(points(Extent::Full, &Policy::all()), of);
    }

    /// An RTOS that waited for its whole time began when Linux's runs were over.
    #[test]
    fn an_rtos_that_starts_behind_the_inspection_of_linux_begins_sooner() {
        let points = points(Extent::Full, &Policy::all());
        let start_ms = |name: &str| -> u32 {
            let point = points.iter().find(|point| point.name().starts_with(name)).unwrap();
            let text = of(point, Path::new("/root")).unwrap();
            let after = text.split("start_ms=").nth(1).unwrap();
            after.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
        };
        let [none, above] = ["none", "rt-vcpu"].map(|p| start_ms(&format!("throughput-{p}-f9")));
        assert_eq!(none - above, INSPECTION_MS);
        let [late, one_run] = ["spinning-none", "kernel-none"].map(start_ms);
        assert_eq!(late - one_run, FIRST_RUN_MS);
    }

    #[test]
    fn the_point_is_in_the_text() {
        let points = points(Extent::Full, &Policy::all());
        let text = |name: &str| {
            let point = points.iter().find(|point| point.name().starts_with(name)).unwrap();
            of(point, Path::new("/root")).unwrap()
        };
        let shared = text("throughput-on-demand-f5");
        assert!(
            shared.contains("migration_policy = \"on-demand\"") && shared.contains("load=500 ")
        );
        assert_eq!(shared.matches("priority = 1,").count(), 4);
        assert!(shared.contains("seed = 1\n"));
        assert!(text("throughput-on-demand-f5-l100-x5-seed3").contains("seed = 3\n"));
        let divided = text("latency-partition-write-97us-advance4-together");
        assert!(divided.contains("priority_separation = false"));
        assert!(divided.contains("cassata.work=write") && divided.contains("activations=5000"));
        assert!(divided.contains("timer_advance = \"4us\"") && divided.contains(" jitter=10\""));
        let granted = text("latency-none-hackbench-grant");
        assert!(granted.contains("pcpus = 5") && granted.contains("wake=grant"));
        assert_eq!(
            (granted.matches("priority = 1, quantum").count(), granted.matches("gcs").count()),
            (4, 2)
        );
        let device = text("latency-on-demand-hackbench-rtc");
        assert!(
            device.contains("devices = [\"rtc\"]") && device.contains("pcpu = 4, priority = 10 }")
        );
        let alone = text("throughput-alone-3");
        assert!(alone.contains("pcpus = 3") && !alone.contains("rtos"));
    }
}
