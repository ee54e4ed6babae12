//! The system of a case: two cores, and on the second one both guests.

use super::super::pair::{self, Guest, HIGH};
use super::super::{PROGRAMS_INIT, command_line};
use super::case::{Case, Control, Program, Tuning};
use crate::guests::Images;
use std::path::Path;

/// Wake-ups of the real-time process of which it tells at once.
const WAKES: u32 = 250;
/// Microseconds between two of them: neither a divisor of Linux's tick nor of a millisecond. `cyclictest`'s stand
/// in guests/linux/init, too.
const PERIOD_US: u32 = 1_009;
/// Thousandths of its core that FreeRTOS's other task burns; Linux's other work leaves as much.
const BURNS: u32 = 950;
/// When FreeRTOS's task first wakes, ms after its start: Linux has booted.
const START_MS: u32 = 5_000;
/// Uptimes, hundredths of seconds. A Linux with the real-time process begins with that and its other work when the
/// other guest has booted, which could not beside it. That one's program begins when the process is awake,
/// or the run is an error.
const CONTROL_BEGIN: u32 = 400;
const BEGIN: u32 = 450;
/// The disk's place on the board.
const DISK: &str = "virtio-mmio-31";
const DISK_BUS: &str = "virtio-mmio-bus.31";
const DISK_BYTES: u64 = 4 << 30;
/// How long it takes for a request: what waits in QEMU's main loop does so for whole milliseconds.
const DISK_LATENCY_NS: u32 = 1_000_000;
/// Today's interface of virtio. And a core that tells the disk of a request hands it over itself: else QEMU's main
/// loop takes it when the host gets to it, and the request takes as long as that.
const MODERN: &str = "virtio-mmio.force-legacy=false";
const AT_ONCE: &str = "virtio-mmio.ioeventfd=off";
/// For so long an interrupt boosts the vCPU whose guest says nothing then: the process has done its work by
/// then, as a rule.
const WINDOW: &str = "100us";

/// Returns the description of the system, for the project at `root`.
pub fn description(case: &Case, root: &Path) -> String {
    let images = Images::of(root);
    let linux_with = |initramfs: &Path| pair::linux_image(&images.kernel, initramfs);
    let vcpus = match case.tuning {
        Tuning::Alone | Tuning::Above | Tuning::Pinned => pair::above(),
        Tuning::Equal => pair::equal(1),
        Tuning::Calls | Tuning::Line | Tuning::Interrupts => {
            let boost = format!("boost = {{ priority = {HIGH}, window = \"{WINDOW}\" }}");
            format!("{{ pcpu = 1, priority = 0, {boost} }}")
        }
    };
    let image = match case.control {
        Control::Linux => linux_with(&images.initramfs),
        Control::Freertos => format!("kernel = {:?}\nreport = \"1M\"", images.rtos),
    };
    let more = if case.tuning == Tuning::Line { "yield = true\n" } else { "" }.to_owned();
    let control = Guest { image, memory: "", more, vcpus, told: told_control(case) };
    let timed = if case.program.is_packed() {
        linux_with(&images.program(case.program.name()))
    } else {
        linux_with(&images.initramfs)
    };
    let second = if case.tuning == Tuning::Pinned { 0 } else { 1 };
    let mut linux = Guest::linux(timed, second, told_linux(case.program));
    if case.program == Program::Disk {
        linux.more = format!("devices = [\"{DISK}\"]\n");
        // The disk's DMA knows no other addresses than the board's.
        linux.memory = ", identity = true";
    }
    pair::description(&control, &linux)
}

/// Returns QEMU's arguments for what the board has besides: the disk, which keeps nothing.
pub fn devices(program: Program) -> Vec<String> {
    if program != Program::Disk {
        return Vec::new();
    }
    let disk = format!(
        "node-name=disk,driver=null-co,size={DISK_BYTES},latency-ns={DISK_LATENCY_NS},read-zeroes=on"
    );
    // With a geometry. QEMU would guess one from the first block, and wait for it before time begins.
    let place = format!("virtio-blk-device,drive=disk,bus={DISK_BUS},cyls=8322,heads=16,secs=63");
    ["-global", MODERN, "-global", AT_ONCE, "-blockdev", &disk, "-device", &place]
        .map(str::to_owned)
        .to_vec()
}

fn told_control(case: &Case) -> String {
    if case.control == Control::Freertos {
        let load = if case.tuning == Tuning::Alone { 0 } else { BURNS };
        let boost = u32::from(case.tuning == Tuning::Calls);
        return format!(
            "load={load} period_us={PERIOD_US} tick_us={PERIOD_US} start_ms={START_MS} boost={boost}"
        );
    }
    let work = if case.tuning == Tuning::Alone { "" } else { " cassata.compute" };
    let says = match case.tuning {
        Tuning::Calls => " cassata.boost=call",
        Tuning::Line => " cassata.boost=line",
        _ => "",
    };
    let begin = uptime(CONTROL_BEGIN);
    let realtime = format!("cassata.run=realtime cassata.wakes={WAKES} cassata.begin={begin}");
    pair::told(&format!("{realtime} cassata.stay{work}{says}"))
}

/// Returns an uptime as the guests understand it.
fn uptime(hundredths: u32) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn told_linux(program: Program) -> String {
    let begin = uptime(BEGIN);
    match program {
        Program::Idle => pair::told(pair::SLEEPS),
        Program::Compute => pair::told(&format!("{} cassata.begin={begin}", pair::COMPUTES)),
        Program::Hackbench => pair::told(&format!("{} cassata.begin={begin}", pair::HACKBENCH)),
        _ => command_line(PROGRAMS_INIT, &format!("programs.begin={begin}")),
    }
}

/// Returns all that a machine is told, wherever the project is.
pub fn told(case: &Case) -> String {
    description(case, Path::new("")) + &devices(case.program).join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::case::cases;
    use super::*;
    use crate::bench::Extent;
    use crate::bench::store::Case as _;
    use crate::testing;

    /// Every description is one that the packer would take, but for the files, which are not built
    /// in tests.
    #[test]
    fn descriptions_are_understood() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("system.toml");
        for case in cases(Extent::Full) {
            let text = description(&case, directory.path());
            testing::lacks_guests_only(&path, &text, &case.name());
        }
    }
}
