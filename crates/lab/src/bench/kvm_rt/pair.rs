//! Two guests that share core 1: one with real-time work, and a Linux whose other vCPU is on core 0.

use super::{INIT, command_line};
use std::fmt::Write;
use std::path::Path;

/// Indices of the VMs.
pub const CONTROL: usize = 0;
pub const LINUX: usize = 1;
/// Priorities, and how long a vCPU has the core beside an equal one.
pub const LOW: u32 = 1;
pub const HIGH: u32 = 20;
const QUANTUM: &str = "5ms";

/// What a Linux does that is there, and nothing else.
pub const SLEEPS: &str = "cassata.run=demo cassata.repeat=0 cassata.stay";
/// What it does without end: `sha256sum` on each CPU,
pub const COMPUTES: &str =
    "cassata.run=work cassata.work=cpu cassata.count=1024 cassata.repeat=1000000";
/// or `hackbench`.
pub const HACKBENCH: &str = "cassata.run=demo cassata.repeat=1000000";

/// A guest.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Lines with what it boots from.
    pub image: String,
    /// More about its memory, such as `, identity = true`.
    pub memory: &'static str,
    /// Further lines.
    pub more: String,
    pub vcpus: String,
    pub told: String,
}

impl Guest {
    /// A Linux with one vCPU on core 0, and one on core `second`.
    pub fn linux(image: String, second: u32, told: String) -> Self {
        let vcpus = format!("{}, {}", equal(0), equal(second));
        Self { image, memory: "", more: String::new(), vcpus, told }
    }
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

/// Returns what Linux is told that does this from the beginning.
pub fn told(work: &str) -> String {
    command_line(INIT, work)
}

/// Returns the description of the system.
pub fn description(control: &Guest, linux: &Guest) -> String {
    let mut text = "[board]\nkind = \"qemu-virt\"\npcpus = 2\nmemory = \"1G\"\n".to_owned();
    for (name, guest) in [("control", control), ("linux", linux)] {
        let Guest { image, memory, more, vcpus, told } = guest;
        let _ = write!(
            text,
            "\n[[vm]]\nname = \"{name}\"\n{image}\ncmdline = '{told}'\n\
             memory = {{ size = \"256M\"{memory} }}\n{more}vcpus = [{vcpus}]\n",
        );
    }
    text
}
