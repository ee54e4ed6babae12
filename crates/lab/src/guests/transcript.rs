//! All that the guests of a machine say, each line understood once.

use super::{
    CalibrationProgress, CyclictestProgress, DebianProgress, FreertosProgress, GapsProgress,
    Hypervisor, LinuxProgress, MetronomeProgress, ProbeProgress, SelftestsProgress, Tail,
    UBootProgress, WakerProgress,
};
use crate::bundle::channel;
use crate::console::Line;
use abi::console::HYPERVISOR;

/// What the hypervisor and all guests have said so far.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The hypervisor.
    pub hypervisor: Hypervisor,
    /// Each VM; a machine without a hypervisor has a single guest.
    pub guests: Vec<Guest>,
    /// The single guest has the UART to itself.
    is_plain: bool,
}

/// What a guest has said. Its lines tell which of them it is.
#[derive(Clone, Debug, Default)]
pub struct Guest {
    /// As Linux with our init.
    pub linux: LinuxProgress,
    /// As FreeRTOS.
    pub freertos: FreertosProgress,
    /// As the probe.
    pub probe: ProbeProgress,
    /// As the probe that detects gaps.
    pub gaps: GapsProgress,
    /// As the probe that measures EL2's paths.
    pub calibration: CalibrationProgress,
    /// As the metronome.
    pub metronome: MetronomeProgress,
    /// As Linux that its authors' tests are run in.
    pub selftests: SelftestsProgress,
    /// As a stock Debian.
    pub debian: DebianProgress,
    /// As U-Boot.
    pub u_boot: UBootProgress,
    /// As the waker.
    pub waker: WakerProgress,
    /// As Linux whose only work is cyclictest, beside another one.
    pub cyclictest: CyclictestProgress,
    /// The last lines, as whatever it is.
    pub tail: Tail,
}

impl Guest {
    fn hear(&mut self, line: &str) {
        self.linux.hear(line);
        self.freertos.hear(line);
        self.probe.hear(line);
        self.gaps.hear(line);
        self.calibration.hear(line);
        self.metronome.hear(line);
        self.selftests.hear(line);
        self.debian.hear(line);
        self.u_boot.hear(line);
        self.waker.hear(line);
        self.cyclictest.hear(line);
        self.tail.hear(line);
    }
}

impl Transcript {
    /// Returns an empty one for a hypervisor with `vms` VMs, or, if that is 0, for a guest
    /// without a hypervisor.
    #[must_use]
    pub fn new(vms: usize) -> Self {
        let guests = vec![Guest::default(); vms.max(1)];
        Self { guests, is_plain: vms == 0, ..Self::default() }
    }

    /// Takes new lines of all consoles.
    pub fn hear(&mut self, lines: &[Line]) {
        for line in lines {
            if line.channel == HYPERVISOR && !self.is_plain {
                self.hypervisor.hear(&line.text);
                continue;
            }
            let is_from = |vm: &usize| self.is_plain || channel(*vm) == line.channel;
            if let Some(vm) = (0..self.guests.len()).find(is_from) {
                self.guests[vm].hear(&line.text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::lines;

    #[test]
    fn each_line_belongs_to_the_guest_whose_console_it_came_on() {
        let text = "\x1f0cassata: hypervisor fault\n\x1f1PASS a x=1\n\x1f2cassata: linux done\n\
                    \x1f1freertos: summary activations=7\n";
        let mut said = Transcript::new(2);
        said.hear(&lines(text));
        assert_eq!(said.hypervisor.faults().count(), 1);
        assert_eq!(said.guests[0].probe.figure("a", "x"), Some(1));
        assert!(!said.guests[0].linux.done && said.guests[1].linux.done);
        let [one, two] = [0, 1].map(|vm| said.guests[vm].freertos.activations);
        assert_eq!((one, two), (Some(7), None));
        let tail: Vec<_> = said.guests[1].tail.lines().collect();
        assert_eq!(tail, ["cassata: linux done"]);
        let mut plain = Transcript::new(0);
        plain.hear(&lines("PASS b\n"));
        assert!(plain.guests[0].probe.passed.contains_key("b"));
    }
}
