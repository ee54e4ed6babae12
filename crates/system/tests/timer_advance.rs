//! Timer advance: which vCPUs have one by default, and that what a description states
//! arrives in the tables.

mod support;

use abi::system::Vcpu;
use std::sync::LazyLock;
use support::{elf, files, sound};
use system::pack;
use tempfile::TempDir;

static FILES: LazyLock<TempDir> = LazyLock::new(files);

/// Returns the advances of all vCPUs, nanoseconds: of a real-time VM on pCPUs 0 and 1,
/// and of another VM on pCPUs 1 and 2.
fn advances(of_rtos: &str, of_other: &str) -> Vec<u32> {
    vcpus(of_rtos, of_other).iter().map(|vcpu| vcpu.timer_advance_ns).collect()
}

fn vcpus(of_rtos: &str, of_other: &str) -> Vec<Vcpu> {
    let text = format!(
        r#"
board = {{ kind = "qemu-virt", pcpus = 4, memory = "256M" }}

[[vm]]
name = "rtos"
kernel = "rtos.elf"
memory = {{ size = "4M" }}
realtime = true
vcpus = [{{ pcpu = 0, priority = 9 }}, {{ pcpu = 1, priority = 9 }}]
{of_rtos}

[[vm]]
name = "other"
kernel = "rtos.elf"
memory = {{ size = "4M" }}
vcpus = [{{ pcpu = 1, priority = 1 }}, {{ pcpu = 2, priority = 1 }}]
{of_other}
"#
    );
    packed(&text)
}

fn packed(text: &str) -> Vec<Vcpu> {
    let packed = pack(&sound(FILES.path(), text), &elf::plain_hypervisor()).unwrap();
    let count = packed.tables.header.vcpu_count as usize;
    packed.tables.vcpus[..count].to_vec()
}

#[test]
fn a_vcpu_that_shares_a_core_has_one_by_default() {
    assert_eq!(advances("", ""), [0, 4_000, 0, 0]);
}

#[test]
fn a_vcpu_that_has_its_core_alone_needs_none() {
    assert_eq!(advances("", "migration_policy = \"partition\""), [0, 0, 0, 0]);
}

#[test]
fn no_vcpu_comes_to_a_real_time_core_with_balance() {
    // The first vCPU of the other VM leaves for cores without a real-time vCPU.
    assert_eq!(advances("", "migration_policy = \"balance\""), [0, 4_000, 0, 0]);
}

#[test]
fn what_is_stated_counts() {
    assert_eq!(advances("timer_advance = \"0us\"", ""), [0, 0, 0, 0]);
    assert_eq!(advances("timer_advance = \"50us\"", ""), [50_000, 50_000, 0, 0]);
}

#[test]
fn one_that_is_adapted_is_so_where_there_is_one() {
    let adapts = |of_rtos: &str| -> Vec<_> {
        vcpus(of_rtos, "").iter().map(|vcpu| (vcpu.timer_advance_ns, vcpu.adapts())).collect()
    };
    let others = [(0, false), (0, false)];
    let both = |first, second| [[first, second], others].concat();
    assert_eq!(adapts("adapt_timer_advance = true"), both((0, false), (4_000, true)));
    let all = "timer_advance = \"9us\"\nadapt_timer_advance = true";
    assert_eq!(adapts(all), both((9_000, true), (9_000, true)));
    assert_eq!(adapts("adapt_timer_advance = false"), both((0, false), (4_000, false)));
    let below = vcpus("", "realtime = true\nadapt_timer_advance = true");
    assert!(below[2].is_lower() && below[2].timer_advance_ns > 0 && !below[2].adapts());
}

/// Returns the advance of a vCPU with this `boost`, beside another VM on that pCPU if there are two.
fn advance_of_boosted(boost: &str, pcpu_of_other: u8) -> u32 {
    let text = format!(
        r#"
board = {{ kind = "qemu-virt", pcpus = 2, memory = "256M" }}

[[vm]]
name = "boosted"
kernel = "rtos.elf"
memory = {{ size = "4M" }}
vcpus = [{{ pcpu = 0, priority = 1, boost = {{ priority = 9, {boost} }} }}]

[[vm]]
name = "other"
kernel = "rtos.elf"
memory = {{ size = "4M" }}
vcpus = [{{ pcpu = 1, priority = 1 }}, {{ pcpu = {pcpu_of_other}, priority = 1 }}]
"#
    );
    packed(&text)[0].timer_advance_ns
}

#[test]
fn one_that_interrupts_boost_has_one_where_it_shares_a_core() {
    assert_eq!(advance_of_boosted("window = \"100us\"", 0), 4_000);
    assert_eq!(advance_of_boosted("window = \"100us\"", 1), 0);
    assert_eq!(advance_of_boosted("budget = \"1ms\"", 0), 0, "interrupts do not boost it");
    let stated = |advance: &str| format!("window = \"100us\", timer_advance = \"{advance}\"");
    assert_eq!(advance_of_boosted(&stated("0us"), 0), 0);
    assert_eq!(advance_of_boosted(&stated("50us"), 1), 50_000);
}
