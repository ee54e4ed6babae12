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

use crate::arch::encodings::Encoding;
use crate::fail;
use crate::suite::{Check, Test};

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

/// Writes a register that there is.
fn set(register: Encoding, value: u64) -> Check {
    match register.write(value) {
        Ok(_) => Ok(()),
        Err(fault) => fail!("writing {register} gives exception class {:#x}", fault.class),
    }
}

/// Reads a register that there is.
fn get(register: Encoding) -> Check<u64> {
    register.read().or_else(|fault| fail!("reading {register} gives class {:#x}", fault.class))
}
