//! Runs machines and experiments; writes results, figures and reports.
//!
//! | module | story |
//! | --- | --- |
//! | [`qemu`] | which QEMU there is, and whether it is new enough |
//! | [`machine`] | a QEMU process that cannot outlive us, and its memory as a file |
//! | [`console`] | one UART taken apart into one log for each guest |
//! | [`guests`] | what guests say on their consoles |
//! | [`observe`] | what EL2 and guests write into memory, as shares, counts and latencies |
//! | [`interrupt`] | Ctrl-C |
//! | [`bundle`] | a system that is ready to boot |
//! | [`session`] | a machine from its description to what was seen |
//! | [`operator`] | what an operator changes while a system runs |
//! | [`view`] | what a running system looks like |
//! | [`dataset`] | results as typed columns with units, from which every form follows |
//! | [`answer`] | what an experiment answers: tables, plots, files and checks at once |
//! | [`documents`] | figures that stand in documents, written there by commands |
//! | [`results`] | what an experiment found, and whether that was demanded |
//! | [`report`] | the same as a page worth looking at |
//! | [`figures`] | what an observer saw, as figures and tables |
//! | [`bounds`] | which deadlines hold and why, as tables |
//! | [`looks`] | how far EL2 went without looking for interrupts, beside how far it goes at most |
//! | [`paths`] | the longest paths of EL2 in a system |
//! | [`computed`] | what EL2 takes at most, from the longest paths of its image |
//! | [`run`] | what is said of any system that has run |
//! | [`calibrate`] | how long EL2 takes on a board |
//! | [`gaps`] | time in which a core executes nothing, and EL2 is not the reason |
//! | [`demo`] | Linux and FreeRTOS share cores |
//! | [`simulate`] | a system of vCPUs and tasks in the simulator, beside its bounds |
//! | [`trace`] | what EL2 recorded, kept in a file and drawn |
//! | [`mod@bench`] | measurements with goals: the hypervisor, its policies, virtual time |
//! | [`executed`] | what machines executed of the hypervisor, as they recorded it |
//! | [`coverage`] | which lines of EL2 the machine tests execute |
//! | [`scenario`] | tests of the hypervisor on a machine |
//! | `source` | which code runs at EL2, and how much |
//! | [`suite`] | running every test there is |
//! | [`promises`] | what was computed for a system, and whether a run stayed below it |
//! | [`table`] | a table, for the terminal and for a report alike |
//! | [`quantity`] | quantities as people read them |
//! | [`progress`] | one line that says what is going on |

#![forbid(unsafe_code)]

pub mod answer;
pub mod bench;
pub mod bounds;
pub mod bundle;
pub mod calibrate;
pub mod computed;
pub mod console;
pub mod coverage;
pub mod dataset;
pub mod demo;
pub mod documents;
pub mod executed;
pub mod figures;
pub mod gaps;
pub mod guests;
pub mod interrupt;
pub mod looks;
pub mod machine;
pub mod observe;
pub mod operator;
pub mod paths;
pub mod progress;
pub mod promises;
pub mod qemu;
pub mod quantity;
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod session;
pub mod simulate;
pub mod source;
pub mod suite;
pub mod table;
pub mod trace;
pub mod view;

#[cfg(test)]
mod testing;
