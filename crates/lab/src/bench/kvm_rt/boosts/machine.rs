//! The system of a case: two cores, and on the second one both guests.

use super::super::command_line;
use super::case::{Case, Control, Program, Tuning};
use crate::guests::Images;
use std::fmt::Write;
use std::path::Path;

/// Indices of the VMs.
pub const CONTROL: usize = 0;
pub const LINUX: usize = 1;
/// Wake-ups of the real-time process of which it tells at once.
const WAKES: u32 = 250;
/// Microseconds between two of them: neither a divisor of Linux's tick nor of a millisecond. `cyclictest`'s stand
/// in guests/linux/init, too.
const PERIOD_US: u32 = 1_009;
/// Thousandths of its core that FreeRTOS's other task burns; Linux's other work leaves as much.
const BURNS: u32 = 950;
/// When FreeRTOS's task first wakes, ms after its start: Linux has booted.
const START_MS: u32 = 5_000;
/// Uptime of the other guest, hundredths of seconds, when its program begins: the process is awake by then,
/// or the run is an error.
const BEGIN: u32 = 350;
/// Priorities, and how long a vCPU has the core beside an equal one.
const LINUX_PRIORITY: u32 = 1;
const HIGH: u32 = 20;
const QUANTUM: &str = "5ms";
/// For so long an interrupt boosts the vCPU whose guest says nothing then: the process has done its work by
/// then, as a rule.
const WINDOW: &str = "100us";

/// Returns the description of the system, for the project at `root`.
pub fn description(case: &Case, root: &Path) -> String {
    let images = Images::of(root);
    let mut text = "[board]\nkind = \"qemu-virt\"\npcpus = 2\nmemory = \"1G\"\n".to_owned();
    let control = match case.tuning {
        Tuning::Alone | Tuning::Above | Tuning::Pinned => format!("priority = {HIGH}"),
        Tuning::Equal => format!("priority = {LINUX_PRIORITY}, quantum = \"{QUANTUM}\""),
        Tuning::Calls | Tuning::Line | Tuning::Interrupts => {
            format!("priority = 0, boost = {{ priority = {HIGH}, window = \"{WINDOW}\" }}")
        }
    };
    let lines = if case.tuning == Tuning::Line { "yield = true\n" } else { "" };
    let second = if case.tuning == Tuning::Pinned { 0 } else { 1 };
    let vcpu =
        |pcpu| format!("{{ pcpu = {pcpu}, priority = {LINUX_PRIORITY}, quantum = \"{QUANTUM}\" }}");
    let linux =
        format!("kernel = {:?}\ninitramfs = {:?}\nseed = 1", images.kernel, images.initramfs);
    let rtos = format!("kernel = {:?}\nreport = \"1M\"", images.rtos);
    let control_image = if case.control == Control::Linux { &linux } else { &rtos };
    for (name, image, more, vcpus, told) in [
        ("control", control_image, lines, format!("{{ pcpu = 1, {control} }}"), told_control(case)),
        ("linux", &linux, "", format!("{}, {}", vcpu(0), vcpu(second)), told_linux(case.program)),
    ] {
        let _ = write!(
            text,
            "\n[[vm]]\nname = \"{name}\"\n{image}\ncmdline = '{told}'\n\
             memory = {{ size = \"256M\" }}\n{more}vcpus = [{vcpus}]\n",
        );
    }
    text
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
    command_line(&format!("cassata.run=realtime cassata.wakes={WAKES} cassata.stay{work}{says}"))
}

fn told_linux(program: Program) -> String {
    let work = match program {
        Program::Idle => return command_line("cassata.run=demo cassata.repeat=0 cassata.stay"),
        Program::Compute => "cassata.run=work cassata.work=cpu cassata.count=1024",
        Program::Hackbench => "cassata.run=demo",
    };
    let begin = format!("{}.{:02}", BEGIN / 100, BEGIN % 100);
    command_line(&format!("{work} cassata.repeat=1000000 cassata.begin={begin}"))
}

/// Returns all that a machine is told, wherever the project is.
pub fn told(case: &Case) -> String {
    description(case, Path::new(""))
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
