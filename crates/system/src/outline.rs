//! The beginning of a description: Linux on every pCPU, and an RTOS above it on one of them.

use crate::board::Board;
use crate::size;
use std::fmt::Write as _;
use std::path::PathBuf;
use toml::Value;

/// Memory beside that of the VMs, at least: for the hypervisor, and for images until they are in place.
const BESIDE: u64 = 256 << 20;

/// What a description is begun with. Paths are as they are to stand in it: relative to its directory.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The board.
    pub board: &'static Board,
    /// Physical cores; Linux has a vCPU on each.
    pub pcpus: usize,
    /// Linux.
    pub linux: Linux,
    /// The RTOS.
    pub rtos: Rtos,
}

/// The VM that gets what the RTOS leaves.
#[derive(Clone, Debug)]
pub struct Linux {
    /// An arm64 Image.
    pub kernel: PathBuf,
    /// An initramfs, if it has one.
    pub initramfs: Option<PathBuf>,
    /// The kernel's command line.
    pub cmdline: String,
    /// Bytes of memory.
    pub memory: u64,
    /// The name of the policy by which its vCPUs leave the RTOS's pCPU.
    pub policy: String,
}

/// The VM that comes first on its pCPU.
#[derive(Clone, Debug)]
pub struct Rtos {
    /// An ELF file, an arm64 Image or a flat image.
    pub kernel: PathBuf,
    /// Bytes of memory.
    pub memory: u64,
    /// The pCPU of its vCPU.
    pub pcpu: usize,
}

impl Outline {
    /// Returns the description, with comments on how to go on with it. It may be unsound: a VM
    /// may have too little memory for its kernel.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { board, pcpus, linux, rtos } = self;
        let memory = (linux.memory.saturating_add(rtos.memory).saturating_add(BESIDE))
            .checked_next_power_of_two()
            .unwrap_or(u64::MAX);
        let mut text = format!(
            "# Linux on every core, and an RTOS that comes first on pCPU {}.
# Sizes are \"64K\", \"512M\", \"1G\" or plain bytes. Paths are relative to this file.

[board]
kind = {}
pcpus = {pcpus}
memory = {}            # for everything: hypervisor, images, guests

[hypervisor]
# While the RTOS runs, interrupts of Linux's devices wait.
priority_separation = true
# Switch the machine off when no VM runs any more.
off_when_done = true

[[vm]]
name = \"linux\"
kernel = {}
",
            rtos.pcpu,
            quoted(&board.kind),
            quoted(&size::show(memory)),
            quoted(&linux.kernel.to_string_lossy()),
        );
        if let Some(initramfs) = &linux.initramfs {
            let _ = writeln!(text, "initramfs = {}", quoted(&initramfs.to_string_lossy()));
        }
        let _ = write!(
            text,
            "cmdline = {}
# Random bytes for its start come from this number, so that every run is the same.
seed = 1
memory = {{ size = {} }}
# What becomes of a vCPU whose core the RTOS takes.
migration_policy = {}
# One vCPU on each core. Larger priorities go first.
vcpus = [
{}]

[[vm]]
name = \"rtos\"
kernel = {}
memory = {{ size = {} }}
# Above Linux. With a `server` it is promised a budget and gets no more; with `tasks` in it `check` says
# whether their deadlines hold.
vcpus = [{{ pcpu = {}, priority = 10 }}]
realtime = true
",
            quoted(&linux.cmdline),
            quoted(&size::show(linux.memory)),
            quoted(&linux.policy),
            (0..*pcpus)
                .map(|pcpu| format!("    {{ pcpu = {pcpu}, priority = 1 }},\n"))
                .collect::<String>(),
            quoted(&rtos.kernel.to_string_lossy()),
            quoted(&size::show(rtos.memory)),
            rtos.pcpu,
        );
        text
    }
}

/// Returns a text as TOML writes it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(pcpus: usize) -> Outline {
        let board = &Board::all()[0];
        let linux = Linux {
            kernel: "a \"b\"/Image".into(),
            initramfs: Some("a\\b".into()),
            cmdline: "console=ttyAMA0".into(),
            memory: 512 << 20,
            policy: "on-demand".into(),
        };
        let rtos = Rtos { kernel: "rtos.elf".into(), memory: 32 << 20, pcpu: pcpus - 1 };
        Outline { board, pcpus, linux, rtos }
    }

    #[test]
    fn names_that_toml_has_to_quote_come_back() {
        let text = outline(3).text();
        let read: toml::Table = text.parse().unwrap();
        let vms = read["vm"].as_array().unwrap();
        assert_eq!(vms[0]["kernel"].as_str(), Some("a \"b\"/Image"));
        assert_eq!(vms[0]["initramfs"].as_str(), Some("a\\b"));
        assert_eq!(vms[0]["vcpus"].as_array().unwrap().len(), 3);
        assert_eq!(vms[1]["vcpus"][0]["pcpu"].as_integer(), Some(2));
        assert_eq!(read["board"]["memory"].as_str(), Some("1G"));
    }

    #[test]
    fn more_memory_than_there_is_is_no_overflow() {
        let mut outline = outline(1);
        outline.linux.memory = u64::MAX;
        assert!(outline.text().parse::<toml::Table>().is_ok());
    }
}
