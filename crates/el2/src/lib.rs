//! The hypervisor.
//!
//! One instance per physical core, one stack per core, interrupts masked: every entry from a guest
//! runs to completion, so its longest path is part of every guest's latency. Read in this order:
//!
//! | module | what it is |
//! | --- | --- |
//! | `boot` | from reset to the first guest |
//! | `parts` | what decides on one core, each part one invariant |
//! | `pcpu` | a core: its parts, and the loop that carries out what they answer |
//! | `vcpu` | a vCPU as its owner sees it |
//! | `exits` | what guests come for: interrupts, calls, emulated devices and registers |
//! | `devices` | emulated devices on a bus |
//! | `shared` | all the memory that several cores write |
//! | `bug` | what cannot happen, unless EL2 has a bug: it is counted |
//! | `tables`, `status` | what the host decided, and what it is told |
//! | `arch` | registers |
//!
//! On the host this library is there for tests only: they run all of it over a
//! machine made of memory (`arch::fake`).

#![cfg(any(test, target_os = "none"))]
#![cfg_attr(not(test), no_std)]

mod arch;
mod boot;
mod bug;
mod devices;
mod exits;
mod parts;
mod pcpu;
mod shared;
mod status;
mod tables;
#[cfg(test)]
mod tests;
mod vcpu;

/// Stops for a bug of EL2, and says what it is and where.
#[cfg(target_os = "none")]
pub fn stop(info: &core::panic::PanicInfo) -> ! {
    let (file, line) = info.location().map_or(("?", 0), |place| (place.file(), place.line()));
    let file = pcpu::console::Text::new(file);
    pcpu::console::stop(format_args!("{file}:{line}: {}", info.message()))
}
