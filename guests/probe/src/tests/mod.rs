//! The tests, by what they test.

pub mod access;
pub mod boot;
pub mod context;
pub mod counters;
pub mod debug;
pub mod fp;
pub mod gic_deliver;
pub mod gic_nest;
pub mod gic_registers;
pub mod icc;
pub mod isolation;
pub mod monitors;
pub mod psci;
pub mod sgi;
pub mod sgi_stress;
pub mod stolen;
pub mod sysregs;
pub mod timer;

use crate::suite::Test;

/// All tests, in the order in which they run.
pub const ALL: &[&[Test]] = &[
    boot::TESTS,
    psci::TESTS,
    icc::TESTS,
    sgi::TESTS,
    sgi_stress::TESTS,
    gic_registers::TESTS,
    gic_deliver::TESTS,
    gic_nest::TESTS,
    access::TESTS,
    timer::TESTS,
    context::TESTS,
    debug::TESTS,
    fp::TESTS,
    sysregs::TESTS,
    isolation::TESTS,
    stolen::TESTS,
    monitors::TESTS,
    counters::TESTS,
];
