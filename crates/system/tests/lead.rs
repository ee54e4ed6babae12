//! How long before its timer a vCPU gets its core: who has a lead by default, and
//! that what a description says arrives in the tables.

mod support;

use std::sync::LazyLock;
use support::{elf, files, sound};
use system::pack;
use tempfile::TempDir;

static FILES: LazyLock<TempDir> = LazyLock::new(files);

/// Leads of all vCPUs, nanoseconds: a real-time VM on pCPUs 0 and 1, which it
/// shares or not, and one that is none on pCPUs 1 and 2.
fn leads(of_rtos: &str, of_other: &str) -> Vec<u32> {
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
    let packed = pack(&sound(FILES.path(), &text), &elf::plain_hypervisor()).unwrap();
    let count = packed.tables.header.vcpu_count as usize;
    packed.tables.vcpus[..count].iter().map(|vcpu| vcpu.timer_lead_ns).collect()
}

#[test]
fn who_shares_a_core_has_one_by_default() {
    assert_eq!(leads("", ""), [0, 4_000, 0, 0]);
}

#[test]
fn who_has_the_core_alone_needs_none() {
    assert_eq!(leads("", "migration = \"partition\""), [0, 0, 0, 0]);
}

#[test]
fn nobody_comes_to_a_real_time_core_with_balance() {
    // The other one's first vCPU leaves for cores without a real-time one.
    assert_eq!(leads("", "migration = \"balance\""), [0, 4_000, 0, 0]);
}

#[test]
fn what_is_said_counts() {
    assert_eq!(leads("timer_lead_us = 0", ""), [0, 0, 0, 0]);
    assert_eq!(leads("timer_lead_us = 50", ""), [50_000, 50_000, 0, 0]);
}
