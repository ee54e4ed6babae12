//! The system of a case: two cores, and on the second one both guests.

use super::super::pair::{self, Guest, HIGH};
use super::super::{INIT, command_line};
use super::case::{Case, Control, Tuning};
use crate::guests::Images;
use std::path::Path;

/// Returns of how many wake-ups of its real-time process Linux tells at once: each time the process starts anew, for which
/// it may have to wait until the other guest lets it.
pub const fn wakes_at_once(case: &Case) -> u32 {
    if case.tuning.is_compared() { 1_000 } else { 250 }
}

/// Microseconds between two of them: neither a divisor of Linux's tick nor of a millisecond. `cyclictest`'s stand
/// in guests/linux/init, too.
pub const PERIOD_US: u32 = 1_009;
/// Thousandths of its core that FreeRTOS's other task burns; Linux's other work leaves as much.
const BURNS: u32 = 950;
/// When FreeRTOS's task first wakes, ms after its start: Linux has booted.
const START_MS: u32 = 2_680;
/// Uptimes in seconds, with two decimals. A Linux with the real-time process begins with that and its other work when the
/// other guest has booted, which could not beside it. That one's program begins when the process is awake,
/// or the run is an error.
const CONTROL_BEGIN: &str = "4.00";
const BEGIN: &str = "4.50";

/// Returns the description of the system, for the project at `root`.
pub fn description(case: &Case, root: &Path) -> String {
    let images = Images::of(root);
    let vcpus = match case.tuning {
        Tuning::Alone | Tuning::Above | Tuning::Pinned | Tuning::Realtime => pair::above(),
        Tuning::Equal => pair::equal(1),
        Tuning::Calls | Tuning::Line | Tuning::Interrupts => boosted(case.control, ""),
        Tuning::LateCalls | Tuning::LateLine | Tuning::LateInterrupts => {
            boosted(case.control, ", timer_advance = \"0us\"")
        }
    };
    let image = match case.control {
        Control::Linux => pair::linux_image(&images.kernel, &images.initramfs),
        Control::Freertos => format!("kernel = {:?}\nreport = \"1M\"", images.rtos),
    };
    let more = match case.tuning {
        Tuning::Line | Tuning::LateLine => "yield = true\n",
        Tuning::Realtime => "realtime = true\n",
        _ => "",
    };
    let (told, more) = (told_control(case), more.to_owned());
    let control = Guest { image, identity: false, more, vcpus, told };
    let second = if case.tuning == Tuning::Pinned { 0 } else { 1 };
    pair::description(&control, &case.program.guest(&images, second, Some(BEGIN)))
}

/// Returns for how long an interrupt boosts the vCPU whose guest says nothing then: several times what its process
/// or task takes to begin and do its work. What is left of it goes to the guest's other work.
const fn window(control: Control) -> &'static str {
    match control {
        Control::Linux => "100us",
        Control::Freertos => "20us",
    }
}

/// Returns the vCPU of a guest that is boosted, with `more` of its boost.
fn boosted(control: Control, more: &str) -> String {
    let window = window(control);
    let boost = format!("boost = {{ priority = {HIGH}, window = \"{window}\"{more} }}");
    format!("{{ pcpu = 1, priority = 0, {boost} }}")
}

/// Returns how the guest says what it runs, as both guests call that; none: it does not.
const fn said(tuning: Tuning) -> Option<&'static str> {
    match tuning {
        Tuning::Calls | Tuning::LateCalls => Some("call"),
        Tuning::Line | Tuning::LateLine => Some("line"),
        _ => None,
    }
}

fn told_control(case: &Case) -> String {
    if case.control == Control::Freertos {
        let load = if case.tuning == Tuning::Alone { 0 } else { BURNS };
        let boost = said(case.tuning).unwrap_or("none");
        return format!(
            "load={load} period_us={PERIOD_US} tick_us={PERIOD_US} start_ms={START_MS} boost={boost}"
        );
    }
    let work = if case.tuning == Tuning::Alone { "" } else { " cassata.compute" };
    let says = said(case.tuning).map_or_else(String::new, |how| format!(" cassata.boost={how}"));
    let wakes = wakes_at_once(case);
    let realtime =
        format!("cassata.run=realtime cassata.wakes={wakes} cassata.begin={CONTROL_BEGIN}");
    command_line(INIT, &format!("{realtime} cassata.stay{work}{says}"))
}

/// Returns all that a machine is told, wherever the project is.
pub fn told(case: &Case) -> String {
    description(case, Path::new("")) + &case.program.qemu_arguments().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::case::cases;
    use super::*;
    use crate::bench::Extent;
    use crate::testing;

    #[test]
    fn descriptions_are_understood() {
        testing::lack_guests_only(cases(Extent::Full), |case, root| Some(description(case, root)));
    }
}
