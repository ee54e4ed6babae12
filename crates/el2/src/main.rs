//! The hypervisor.
//!
//! One instance per physical core, one stack per core, interrupts masked: every
//! entry from a guest runs to completion, so its longest path is part of every
//! guest's latency. Read in this order:
//!
//! | module | what it is |
//! | --- | --- |
//! | `start` | from reset to the first guest |
//! | `pcpu` | a core, its vCPUs, the loop that carries decisions out |
//! | `switch` | one vCPU off the hardware, another on |
//! | `exits` | where guests come in |
//! | `interrupts`, `calls`, `mmio`, `traps`, `physical_timer` | what they come for |
//! | `policies`, `gang` | what is done when a vCPU takes another's core |
//! | `crossing` | what a guest executes, and who waits for that to change |
//! | `migration`, `transit` | vCPUs move to other cores |
//! | `visits` | vCPUs that are away from their bases go on, or back |
//! | `lead` | a real-time vCPU gets its core ahead of its own timer |
//! | `consolidation` | cores without much to do are powered down |
//! | `lifecycle` | VMs start, stop and fail |
//! | `console` | all consoles over one UART |
//! | `shared` | all the memory that several cores write |
//! | `arch` | registers |
//!
//! What needs no hardware is in the library of the same package.

#![no_std]
#![no_main]

mod arch;
mod calls;
mod console;
mod consolidation;
mod crossing;
mod exits;
mod gang;
mod interrupts;
mod lead;
mod lifecycle;
mod migration;
mod mmio;
mod pcpu;
mod physical_timer;
mod policies;
mod shared;
mod slots;
mod start;
mod status;
mod switch;
mod tables;
mod transit;
mod traps;
mod vcpu;
mod visits;

/// A bug of ours: says where and stops this core.
#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    console::emergency(format_args!("{info}\n"));
    arch::cpu::halt()
}
