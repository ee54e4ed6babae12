//! What a guest does in scenarios of several VMs. Named on the command line
//! like a test, but not part of `all`.

mod absence;
mod bench;
mod boost;
mod bystander;
pub mod calibrate;
mod counts;
mod demand;
mod device;
mod dma;
mod echo;
mod gaps;
mod gic_storm;
mod grant;
mod grasp;
mod link;
mod mark;
mod migrant;
mod mutex;
mod neighbour;
mod power;
mod preempted;
mod preemption;
pub mod report;
pub mod reset;
mod rhythm;
mod round_robin;
mod shared;
mod supply;
mod tasks;
mod tides;
mod timer_advance;
mod wfe;

use crate::suite::Test;

/// All roles.
pub const ALL: &[Test] = &[
    Test { name: "spin", body: bystander::spin },
    Test { name: "spin.float", body: bystander::spin_float },
    Test { name: "mask", body: bystander::mask },
    Test { name: "counts", body: counts::counts },
    Test { name: "crash", body: bystander::crash },
    Test { name: "crash-sibling", body: bystander::crash_sibling },
    Test { name: "demand", body: demand::demand },
    Test { name: "rtc", body: device::rtc },
    Test { name: "dma-tries", body: dma::tries },
    Test { name: "dma-guards", body: dma::guards },
    Test { name: "dma-lives", body: dma::lives },
    Test { name: "ebb", body: tides::ebb },
    Test { name: "echo", body: echo::echo },
    Test { name: "gaps", body: gaps::gaps },
    Test { name: "gic-ends", body: gic_storm::ends },
    Test { name: "gic-pending", body: gic_storm::pending },
    Test { name: "grasp", body: grasp::grasp },
    Test { name: "leftover", body: grasp::leftover },
    Test { name: "outranked", body: grasp::outranked },
    Test { name: "boost", body: boost::says },
    Test { name: "boost-silent", body: boost::silent },
    Test { name: "link-calls", body: link::calls },
    Test { name: "link-answers", body: link::answers },
    Test { name: "link-floods", body: link::floods },
    Test { name: "link-flooded", body: link::flooded },
    Test { name: "link-lives", body: link::lives },
    Test { name: "link-watches", body: link::watches },
    Test { name: "mark", body: mark::mark },
    Test { name: "migrant", body: migrant::migrant },
    Test { name: "moved-supply", body: supply::moved },
    Test { name: "mutex", body: mutex::mutex },
    Test { name: "mutex-abandons", body: mutex::abandons },
    Test { name: "mutex-busy", body: mutex::busy },
    Test { name: "mutex-dies", body: mutex::dies },
    Test { name: "mutex-told", body: mutex::told },
    Test { name: "neighbour", body: neighbour::neighbour },
    Test { name: "flood", body: bystander::flood },
    Test { name: "pester", body: bystander::pester },
    Test { name: "power", body: power::power },
    Test { name: "sleeper", body: migrant::sleeper },
    Test { name: "holds-off", body: preemption::holds_off },
    Test { name: "preempted", body: preempted::preempted },
    Test { name: "reset", body: reset::few },
    Test { name: "reset-loop", body: reset::endless },
    Test { name: "rhythm", body: rhythm::rhythm },
    Test { name: "roundrobin", body: round_robin::round_robin },
    Test { name: "shared", body: shared::shared },
    Test { name: "supply", body: supply::supply },
    Test { name: "tasks", body: tasks::tasks },
    Test { name: "tides", body: tides::tides },
    Test { name: "wfe", body: wfe::wfe },
    Test { name: "timer-advance", body: timer_advance::timer_advance },
    Test { name: "timer-advance-reset", body: timer_advance::reset },
    Test { name: "yields", body: preemption::yields },
    Test { name: "absence", body: absence::absence },
    Test { name: "bench.console", body: bench::console },
    Test { name: "bench.device", body: device::bench },
    Test { name: "bench.gic-read", body: bench::gic_read },
    Test { name: "bench.gic-write", body: bench::gic_write },
    Test { name: "bench.null", body: bench::null },
    Test { name: "bench.gcs", body: bench::gcs },
    Test { name: "bench.mutex", body: bench::mutex },
    Test { name: "bench.grant", body: grant::grant },
    Test { name: "bench.replenish", body: bench::replenish },
    Test { name: "bench.timer", body: bench::timer },
    Test { name: "bench.doorbell", body: bench::doorbell },
];
