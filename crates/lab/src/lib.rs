//! Runs machines and experiments; writes results, figures and reports.
//!
//! | module | story |
//! | --- | --- |
//! | [`qemu`] | which QEMU there is, and whether it is new enough |
//! | [`machine`] | a QEMU process that cannot outlive us, and its memory as a file |
//! | [`console`] | one UART taken apart into one log for each guest |
//! | [`observe`] | what EL2 and guests write into memory, as shares, counts and latencies |
//! | [`interrupt`] | Ctrl-C |
//! | [`bundle`] | a system that is ready to boot |
//! | [`session`] | a machine, its observer and a view, from the start to some end |
//! | [`view`] | what a running system looks like |
//! | [`results`] | what an experiment found, and whether that was demanded |
//! | [`conditions`] | under which conditions something was measured |
//! | [`report`] | the same as a page worth looking at |
//! | [`figures`] | what an observer saw, as figures and tables |
//! | [`experiment`] | experiments of published papers, repeated |
//! | [`bounds`] | which deadlines hold and why, as tables |
//! | [`run`] | any system, for as long as one likes |
//! | [`demo`] | Linux and FreeRTOS share cores |
//! | [`simulate`] | a system of vCPUs and tasks in the simulator, beside its bounds |
//! | [`bench`] | measurements with goals: the hypervisor, virtual time |
//! | [`scenario`] | tests of the hypervisor on a machine |
//! | [`suite`] | running every test there is |
//! | [`progress`] | one line that says what is going on |

#![forbid(unsafe_code)]

pub mod bench;
pub mod bounds;
pub mod bundle;
pub mod conditions;
pub mod console;
pub mod demo;
pub mod experiment;
pub mod figures;
pub mod interrupt;
pub mod machine;
pub mod observe;
pub mod progress;
pub mod qemu;
pub mod quantity;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod session;
pub mod simulate;
pub mod suite;
pub mod table;
pub mod view;

#[cfg(test)]
mod testing;
