//! SMCCC calls: PSCI by the `smccc` crate, Cassata's own service by number.

use abi::service;
use smccc::{Call, Hvc, Smc};

/// Which instruction carries a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conduit {
    /// HVC #0.
    Hvc,
    /// SMC #0.
    Smc,
}

/// A call with arguments from X1 on; answers X0 to X17.
pub fn raw(conduit: Conduit, function: u32, first: &[u64]) -> [u64; 18] {
    let mut arguments = [0; 17];
    arguments[..first.len()].copy_from_slice(first);
    match conduit {
        Conduit::Hvc => Hvc::call64(function, arguments),
        Conduit::Smc => Smc::call64(function, arguments),
    }
}

/// A call by HVC; answers X0 as a signed number.
pub fn hvc(function: u32, arguments: &[u64]) -> i64 {
    raw(Conduit::Hvc, function, arguments)[0] as i64
}

/// A call whose answer is 32 bits wide (SMC32): bits 63:32 of X0 say nothing.
pub fn hvc32(function: u32, arguments: &[u64]) -> i64 {
    i64::from(raw(Conduit::Hvc, function, arguments)[0] as i32)
}

/// Whether the hypervisor answers with Cassata's UID.
pub fn is_cassata() -> bool {
    let answer = raw(Conduit::Hvc, service::CALL_UID, &[]);
    answer[..4].iter().map(|&word| word as u32).eq(service::UID)
}

/// The report area's address and size, if there is one.
pub fn report_area() -> Option<(u64, u64)> {
    let answer = raw(Conduit::Hvc, service::REPORT_AREA, &[]);
    (crate::platform::get().cassata && answer[0] == 0).then_some((answer[1], answer[2]))
}

/// Word `word` of [`abi::status::VcpuStatus`] of vCPU `vcpu`.
pub fn counter(vcpu: u64, word: u64) -> Result<u64, i64> {
    let answer = raw(Conduit::Hvc, service::COUNTER, &[vcpu, word]);
    if answer[0] == 0 { Ok(answer[1]) } else { Err(answer[0] as i64) }
}

/// Asks that a vCPU of this VM go to a pCPU; answers what [`service::MIGRATE`] does.
pub fn migrate(vcpu: usize, pcpu: u64) -> i64 {
    hvc(service::MIGRATE, &[vcpu as u64, pcpu])
}

/// The pCPU that has a vCPU of this VM.
pub fn place(vcpu: usize) -> Result<u64, i64> {
    let answer = raw(Conduit::Hvc, service::WHERE, &[vcpu as u64]);
    if answer[0] == 0 { Ok(answer[1]) } else { Err(answer[0] as i64) }
}

/// Marks this vCPU as real-time (1), or no longer (0); answers what [`service::MARK_RT`] does.
pub fn mark(mark: u64) -> i64 {
    hvc(service::MARK_RT, &[mark])
}

/// PSCI SYSTEM_OFF; does not return.
pub fn system_off() -> ! {
    let answer = smccc::psci::system_off::<Hvc>();
    panic!("SYSTEM_OFF returned: {answer:?}");
}

/// PSCI SYSTEM_RESET; does not return.
pub fn system_reset() -> ! {
    let answer = smccc::psci::system_reset::<Hvc>();
    panic!("SYSTEM_RESET returned: {answer:?}");
}
