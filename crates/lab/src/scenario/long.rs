//! Tests that take long: `cassata test` leaves them out, `cassata test --all` does not.

use crate::suite::Scenario;

/// Their names, and what each is worth its time for.
const LONG: [(&str, &str); 20] = [
    ("el2-instructions", "no visit to EL2 may become longer unnoticed, in any of three builds"),
    ("calibrate-qemu-virt", "each path of EL2 is walked some thousand times, cold and warm"),
    ("calibrate-zcu102", "the same on a GICv2"),
    ("wfe-not-trapped", "the only test where WFE does not trap; it runs in real time, as QEMU is"),
    (
        "lhp-latency",
        "FreeRTOS, on the board and beside Linux, is woken in every way that is measured",
    ),
    ("vmpcp-calls", "each call of the paper's Table II, from FreeRTOS and from Linux"),
    ("boot-fit-network", "what `boot-fit-disk` shows, with the files fetched by TFTP"),
    ("boot-fit-signed", "the same with a signature, and without it where a bit is another"),
    ("boot-image-disk", "what `boot-image-network` shows, from a disk"),
    (
        "hostile-crowd-code",
        "an adversary of many vCPUs on the RTOS's core executes what is no program",
    ),
    ("conformance-kernel.rt", "Debian's PREEMPT_RT kernel works; 60 MB are fetched for it"),
    ("conformance-kernel.backports", "that of Debian's backports works; 90 MB are fetched for it"),
    ("gathered-stock", "stock Linux while cores are powered down and called back"),
    ("io-load", "FreeRTOS wakes some thousand times beside devices and beside hackbench"),
    (
        "link-linux-rust",
        "the crate of links maps a device of Linux's; a standard library is compiled for it",
    ),
    ("peers-kvm", "points of `bench peers` under KVM, which change with Debian's kernel only"),
    ("peers-xen", "the same under Xen"),
    ("peers-freertos-kvm", "FreeRTOS as the guest of `bench peers` under KVM"),
    ("peers-freertos-xen", "the same under Xen"),
    (
        "virtio",
        "a VM has disk, console and network from another; a standard library is compiled for it",
    ),
];

/// Marks `scenario` if it is one of them.
pub fn marked(scenario: Scenario) -> Scenario {
    let is_long = LONG.iter().any(|(name, _)| *name == scenario.name);
    if is_long { scenario.with_all() } else { scenario }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::When;

    #[test]
    fn each_is_a_test_and_is_marked() {
        let all = super::super::all();
        for (name, worth) in LONG {
            let scenario = all.iter().find(|scenario| scenario.name == name);
            let scenario = scenario.unwrap_or_else(|| panic!("{name} is no test"));
            assert_eq!(scenario.when, When::WithAll, "{name}");
            assert!(!worth.is_empty());
        }
    }
}
