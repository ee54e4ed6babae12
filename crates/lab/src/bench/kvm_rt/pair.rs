//! Two guests that share core 1: one with real-time work, and a Linux whose other vCPU is on core 0.

use std::fmt::Write;
use std::path::Path;

/// Indices of the VMs.
pub const CONTROL: usize = 0;
pub const LINUX: usize = 1;
/// Priorities, and how long a vCPU has the core beside an equal one.
const LOW: u32 = 1;
pub const HIGH: u32 = 20;
const QUANTUM: &str = "5ms";

/// A guest.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Lines with what it boots from.
    pub image: String,
    /// True if the guest's addresses are the board's.
    pub identity: bool,
    /// Further lines.
    pub more: String,
    pub vcpus: String,
    pub told: String,
}

/// Returns the lines of a Linux with this kernel and this initramfs.
pub fn linux_image(kernel: &Path, initramfs: &Path) -> String {
    format!("kernel = {kernel:?}\ninitramfs = {initramfs:?}\nseed = 1")
}

/// Returns a vCPU of the lower priority.
pub fn equal(pcpu: u32) -> String {
    format!("{{ pcpu = {pcpu}, priority = {LOW}, quantum = \"{QUANTUM}\" }}")
}

/// Returns a vCPU of the higher priority, on core 1.
pub fn above() -> String {
    format!("{{ pcpu = 1, priority = {HIGH} }}")
}

/// Returns the description of the system.
pub fn description(control: &Guest, linux: &Guest) -> String {
    let mut text = "[board]\nkind = \"qemu-virt\"\npcpus = 2\nmemory = \"1G\"\n".to_owned();
    for (name, guest) in [("control", control), ("linux", linux)] {
        let Guest { image, identity, more, vcpus, told } = guest;
        let memory = if *identity { ", identity = true" } else { "" };
        let _ = write!(
            text,
            "\n[[vm]]\nname = \"{name}\"\n{image}\ncmdline = '{told}'\n\
             memory = {{ size = \"256M\"{memory} }}\n{more}vcpus = [{vcpus}]\n",
        );
    }
    text
}
