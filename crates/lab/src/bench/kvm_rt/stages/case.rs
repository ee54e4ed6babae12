//! One run: a way that an interrupt takes, and what else there is.

use super::machine;
use crate::bench::{Extent, store};
use serde::{Deserialize, Serialize};

/// Activations of a point; as many as a quick run has.
const ACTIVATIONS: u32 = 2_000;
const QUICK_ACTIVATIONS: u32 = 300;

/// The way of the interrupt that activates FreeRTOS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// The timer, while it runs.
    NoSwitch,
    /// The timer, while its core sleeps.
    Idle,
    /// The timer, while a program of Linux's runs.
    User,
    /// The timer, while Linux's kernel runs.
    Kernel,
    /// The timer, while EL2 works for Linux: a part of what is measured beside the kernel.
    El2,
    /// The timer, for which Linux's vCPU leaves the core (`on-demand`).
    Departure,
    /// The timer, whatever it finds; FreeRTOS is above Linux, which is the paper's prioritisation.
    Above,
    /// Likewise, but FreeRTOS is equal to Linux: not tuned.
    Equal,
    /// The timer, ahead of which the core is taken from Linux.
    Advance,
    /// A device that is passed through to it.
    Device,
    /// Another of its cores, whose interrupt EL2 passes on by a doorbell.
    Core,
}

/// What else there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// No other VM.
    Alone,
    /// The probe, which spins: machine tests need no Linux for a switch.
    Spin,
    /// A Linux that sleeps.
    Idle,
    /// A Linux whose CPUs compute in user space.
    Compute,
    /// A Linux that runs hackbench.
    Hackbench,
}

impl Route {
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSwitch => "no-switch",
            Self::Idle => "idle",
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::El2 => "el2",
            Self::Departure => "departure",
            Self::Above => "above",
            Self::Equal => "equal",
            Self::Advance => "advance",
            Self::Device => "device",
            Self::Core => "core",
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            Self::NoSwitch => "no switch",
            Self::Idle => "from idle",
            Self::User => "from Linux at EL0",
            Self::Kernel => "from Linux at EL1",
            Self::El2 => "while EL2 works for Linux",
            Self::Departure => "with a departure",
            Self::Above => "above Linux",
            Self::Equal => "equal to Linux",
            Self::Advance => "ahead of its timer",
            Self::Device => "passed-through device",
            Self::Core => "from another core",
        }
    }

    /// Returns true if FreeRTOS's other core raises the interrupt: when that was is then exact to a
    /// quantum.
    pub const fn is_raised_elsewhere(self) -> bool {
        matches!(self, Self::Device | Self::Core)
    }

    /// Returns true if Linux has a vCPU on FreeRTOS's core, too.
    pub const fn shares_the_core(self) -> bool {
        !matches!(self, Self::NoSwitch | Self::Idle)
    }
}

impl Load {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Spin => "spin",
            Self::Idle => "idle",
            Self::Compute => "compute",
            Self::Hackbench => "hackbench",
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            Self::Alone => "none",
            Self::Spin => "a guest that spins",
            Self::Idle => "Linux sleeps",
            Self::Compute => "Linux computes",
            Self::Hackbench => "hackbench",
        }
    }

    /// Returns true if Linux works.
    pub const fn is_load(self) -> bool {
        matches!(self, Self::Compute | Self::Hackbench)
    }
}

/// One run of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub route: Route,
    pub load: Load,
    pub activations: u32,
}

/// Returns all runs.
pub fn cases(extent: Extent) -> Vec<Case> {
    let activations = if extent == Extent::Quick { QUICK_ACTIVATIONS } else { ACTIVATIONS };
    let all = [
        (Route::NoSwitch, Load::Idle),
        (Route::NoSwitch, Load::Hackbench),
        (Route::Idle, Load::Idle),
        (Route::Idle, Load::Hackbench),
        (Route::User, Load::Compute),
        (Route::Kernel, Load::Hackbench),
        (Route::Departure, Load::Hackbench),
        (Route::Above, Load::Idle),
        (Route::Above, Load::Hackbench),
        (Route::Equal, Load::Idle),
        (Route::Equal, Load::Hackbench),
        (Route::Advance, Load::Idle),
        (Route::Advance, Load::Hackbench),
        (Route::Device, Load::Idle),
        (Route::Device, Load::Hackbench),
        (Route::Core, Load::Idle),
        (Route::Core, Load::Hackbench),
    ];
    all.map(|(route, load)| Case { route, load, activations }).into()
}

impl store::Case for Case {
    /// Such as `stages-departure-hackbench-2000`.
    fn name(&self) -> String {
        format!("stages-{}-{}-{}", self.route.name(), self.load.name(), self.activations)
    }

    /// Seconds of an idle processor, about.
    fn work(&self) -> f64 {
        let slowness = match self.load {
            Load::Alone | Load::Spin => 3.0,
            Load::Idle => 6.0,
            Load::Compute | Load::Hackbench => 25.0,
        };
        let slowness = if self.route.is_raised_elsewhere() { 3.0 * slowness } else { slowness };
        12.0 + slowness * f64::from(self.activations) * machine::PERIOD_US as f64 / 1e6
    }

    fn config_text(&self) -> String {
        machine::told(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_way_is_measured_and_beside_a_load() {
        let cases = cases(Extent::Full);
        let routes = |some: &dyn Fn(&Case) -> bool| {
            cases.iter().filter(|case| some(case)).map(|case| case.route).collect::<BTreeSet<_>>()
        };
        assert_eq!(routes(&|_| true).len(), 10);
        assert_eq!(routes(&|case| case.load.is_load()).len(), 10);
        assert!(cases.iter().all(|case| case.activations == 2_000));
    }
}
