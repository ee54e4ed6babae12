//! Attacks by calls: PSCI (Arm DEN0022), the service of the hypervisor, resets, crashes.

use super::actor::Actor;
use super::deeds;
use crate::arch::boot::{self, secondary_entry_address};
use crate::calls::{self as call, Conduit, raw};
use crate::platform;
use abi::service::{self, psci};

/// Functions that there are, but for SYSTEM_OFF, which ends everything.
const FUNCTIONS: &[u32] = &[
    psci::VERSION,
    psci::CPU_SUSPEND_32,
    psci::CPU_SUSPEND_64,
    psci::CPU_OFF,
    psci::CPU_ON_32,
    psci::CPU_ON_64,
    psci::AFFINITY_INFO_32,
    psci::AFFINITY_INFO_64,
    psci::MIGRATE_INFO_TYPE,
    psci::FEATURES,
    service::NULL,
    service::COUNTER,
    service::REPORT_AREA,
    service::START_GCS,
    service::FINISH_GCS,
    service::MUTEX_OPEN,
    service::MUTEX_CLOSE,
    service::MUTEX_LOCK,
    service::MUTEX_TRYLOCK,
    service::MUTEX_UNLOCK,
    service::MUTEX_ABANDON,
    service::PREEMPT_DISABLE,
    service::PREEMPT_ENABLE,
    service::YIELD,
    service::PREEMPTION_LINE,
    service::MIGRATE,
    service::WHERE,
    service::MARK_RT,
    service::BOOST,
    service::DEBOOST,
    service::CALL_UID,
    service::CALL_REVISION,
    service::PV_TIME_FEATURES,
    service::PV_TIME_ST,
];

/// Calls functions that are there and such as are not, with arguments by chance.
pub fn calls(actor: &mut Actor) -> u64 {
    let function = match actor.random.up_to(7) {
        0 => actor.random.word() as u32,
        1 => actor.one(FUNCTIONS) ^ 1 << actor.random.up_to(31),
        _ => actor.one(FUNCTIONS),
    };
    match function {
        psci::SYSTEM_OFF | psci::CPU_ON_32 | psci::CPU_ON_64 => return 0,
        // The mode `reset` does nothing else.
        psci::SYSTEM_RESET if !actor.once_in(64) => return 0,
        psci::CPU_OFF => {
            actor.go_off();
            return 1;
        }
        psci::CPU_SUSPEND_32 | psci::CPU_SUSPEND_64 if !actor.may_sleep() => return 0,
        psci::CPU_SUSPEND_32 | psci::CPU_SUSPEND_64 => actor.set_alarm(2),
        _ => {}
    }
    let mut arguments = [0; 17];
    arguments.fill_with(|| some_argument(actor));
    let conduit = actor.one(&[Conduit::Hvc, Conduit::Smc]);
    let _ = raw(conduit, function, &arguments);
    switch_some_on(actor);
    1
}

fn some_argument(actor: &mut Actor) -> u64 {
    match actor.random.up_to(5) {
        0 => actor.random.up_to(9),
        1 => actor.random.up_to(1 << 8) << 8 | actor.random.up_to(8),
        2 => platform::get().ram_base + actor.random.up_to(platform::get().ram_size),
        3 => u64::from(actor.one(FUNCTIONS)),
        _ => actor.value(),
    }
}

/// CPU_ON of any vCPU, mostly such that it attacks, too.
fn switch_some_on(actor: &mut Actor) {
    let platform = platform::get();
    let sibling = actor.some_vcpu();
    let entry = match actor.random.up_to(63) {
        // Outside of its memory.
        0 => actor.random.word(),
        1 => platform.ram_end(),
        // It cannot go on from here: there is no code.
        2 if actor.once_in(64) => platform.ram_end() - 4,
        _ => secondary_entry_address(),
    };
    let context = actor.random.word();
    call::hvc(psci::CPU_ON_64, &[platform.vcpus[sibling], entry, context]);
}

/// Switches siblings on and off, all of them at once.
pub fn power(actor: &mut Actor) -> u64 {
    const TIMES: u64 = 8;
    for _ in 0..TIMES {
        switch_some_on(actor);
        let sibling = actor.some_vcpu();
        call::hvc(psci::AFFINITY_INFO_64, &[platform::get().vcpus[sibling], 0]);
    }
    if actor.once_in(4) {
        actor.go_off();
    }
    TIMES
}

/// Resets the VM at once.
pub fn reset(_: &mut Actor) -> u64 {
    deeds::count(1);
    call::system_reset()
}

/// Crashes the VM at once; its description lets it start again.
pub fn crash(_: &mut Actor) -> u64 {
    deeds::count(1);
    boot::crash()
}
