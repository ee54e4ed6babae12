//! The beginning of a description: Linux on every pCPU, and an RTOS above it on one of them; or several of either.

use crate::board::{Board, Device};
use crate::size;
use abi::platform::OCCUPIED;
use abi::system::RAM_ALIGN;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::PathBuf;
use toml::Value;

/// Memory beside that of the VMs, at least: for the hypervisor, and for images until they are in place.
const BESIDE: u64 = 256 << 20;

/// What a description is begun with. Paths are as they are to stand in it: relative to its directory.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The board.
    pub board: &'static Board,
    /// Physical cores. Each is of one Linux, if there is any.
    pub pcpus: usize,
    /// VMs with Linux, at most as many as pCPUs.
    pub linux_vms: usize,
    /// What each of them is.
    pub linux: Linux,
    /// VMs with the RTOS, at most as many as pCPUs.
    pub rtos_vms: usize,
    /// What each of them is.
    pub rtos: Rtos,
    /// Bytes of a link between each RTOS and a Linux, or between each VM and the next where all are alike.
    pub link: Option<u64>,
}

/// A VM that gets what the RTOS leaves.
#[derive(Clone, Debug, Default)]
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
    /// What is on the disk of the first one, if that has one.
    pub disk: Option<PathBuf>,
    /// The first one has a network.
    pub network: bool,
}

/// A VM that comes first on its pCPU.
#[derive(Clone, Debug, Default)]
pub struct Rtos {
    /// An ELF file, an arm64 Image or a flat image.
    pub kernel: PathBuf,
    /// The kernel finds its link by the words `link=NAME` of its command line, as the project's FreeRTOS does.
    pub takes_link: bool,
    /// Bytes of memory.
    pub memory: u64,
    /// The pCPU of the vCPU of the first one.
    pub pcpu: usize,
}

impl Outline {
    /// Returns the description, with comments on how to go on with it. It may be unsound: a VM
    /// may have too little memory for its kernel.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.head();
        for (name, [one, other]) in self.links() {
            let size = quoted(&size::show(self.link.unwrap_or_default()));
            let (name, one, other) = (quoted(&name), quoted(&one), quoted(&other));
            let _ = write!(
                text,
                "
# Memory that both have, and a doorbell for each. The first one writes the first half.
[[link]]
name = {name}
between = [{one}, {other}]
size = {size}
"
            );
        }
        for (number, pcpus) in self.shares().into_iter().enumerate() {
            text += &self.linux(number, pcpus);
        }
        for (number, pcpu) in self.rtos_pcpus().into_iter().enumerate() {
            text += &self.rtos(number, pcpu);
        }
        text
    }

    /// Returns true if each Linux has a pCPU that no RTOS has, so that vCPUs have a place to go.
    #[must_use]
    pub fn leaves_room(&self) -> bool {
        let taken = self.rtos_pcpus();
        self.shares().into_iter().all(|mut pcpus| pcpus.any(|pcpu| !taken.contains(&pcpu)))
    }

    /// Returns the pCPUs of each Linux.
    fn shares(&self) -> Vec<Range<usize>> {
        let begin = |number: usize| number * self.pcpus / self.linux_vms;
        (0..self.linux_vms).map(|number| begin(number)..begin(number + 1)).collect()
    }

    /// Returns the pCPU of each RTOS: the one that is said, then the last of each Linux that has none yet,
    /// from the last Linux on.
    fn rtos_pcpus(&self) -> Vec<usize> {
        let shares = self.shares();
        let mut all = vec![self.rtos.pcpu];
        let share_of = |pcpu: usize| shares.iter().position(|share| share.contains(&pcpu));
        while all.len() < self.rtos_vms {
            let free = (0..self.pcpus).rev().filter(|pcpu| !all.contains(pcpu));
            let neighbours = |pcpu: &usize| {
                all.iter().filter(|other| share_of(**other) == share_of(*pcpu)).count()
            };
            let Some(next) = free.min_by_key(neighbours) else { break };
            all.push(next);
        }
        all.truncate(self.rtos_vms);
        all
    }

    /// Returns the name of each link, and the VMs that it is between.
    fn links(&self) -> Vec<(String, [String; 2])> {
        if self.link.is_none() {
            return Vec::new();
        }
        let shares = self.shares();
        let pairs: Vec<[String; 2]> = match (self.linux_vms, self.rtos_vms) {
            (0, all) => (1..all).map(|n| [rtos_name(n - 1), rtos_name(n)]).collect(),
            (all, 0) => (1..all).map(|n| [linux_name(n - 1), linux_name(n)]).collect(),
            _ => {
                let linux = |pcpu: usize| shares.iter().position(|share| share.contains(&pcpu));
                let pcpus = self.rtos_pcpus().into_iter().enumerate();
                pcpus
                    .map(|(n, pcpu)| [linux_name(linux(pcpu).unwrap_or_default()), rtos_name(n)])
                    .collect()
            }
        };
        pairs.into_iter().enumerate().map(|(n, pair)| (numbered("link", n), pair)).collect()
    }

    fn head(&self) -> String {
        let Self { board, pcpus, linux, rtos, .. } = self;
        let all = |memory: u64, vms: usize| memory.saturating_mul(vms as u64);
        let needed = all(linux.memory, self.linux_vms)
            .saturating_add(all(rtos.memory, self.rtos_vms))
            .saturating_add(self.left_alone())
            .saturating_add(BESIDE);
        // More than the board has only where less would not do, which `check` then says.
        let round = needed.checked_next_power_of_two().unwrap_or(u64::MAX);
        let memory = round
            .min(board.ram_max.max(needed.checked_next_multiple_of(RAM_ALIGN).unwrap_or(u64::MAX)));
        let plugged = self.plugged();
        format!(
            "# {}
# Sizes are \"64K\", \"512M\", \"1G\" or plain bytes. Paths are relative to this file.

[board]
kind = {}
pcpus = {pcpus}
memory = {}            # for everything: hypervisor, images, guests
{plugged}
[hypervisor]
# While an RTOS runs, interrupts of Linux's devices wait.
priority_separation = true
# Switch the machine off when no VM runs any more.
off_when_done = true
",
            self.about(),
            quoted(&board.kind),
            quoted(&size::show(memory)),
        )
    }

    /// Returns the first line.
    fn about(&self) -> String {
        let rtos = self.rtos_pcpus().iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        match (self.linux_vms, self.rtos_vms) {
            (1, 0) => "Linux on every core.".into(),
            (1, 1) => format!("Linux on every core, and an RTOS that comes first on pCPU {rtos}."),
            (linux, 0) => format!("{linux} Linux, each with cores of its own."),
            (0, _) => format!("An RTOS on pCPU {rtos}."),
            (linux, vms) => format!(
                "{linux} VMs with Linux share out the cores; an RTOS, of {vms}, comes first on pCPU {rtos}."
            ),
        }
    }

    /// Returns bytes at the beginning of RAM that no VM gets: what lies below the hypervisor, and, if a VM sees the
    /// board's own addresses, what lies below the end of the virtual platform's.
    fn left_alone(&self) -> u64 {
        let platform = OCCUPIED.iter().filter(|_| self.needs_identity());
        let end = platform.map(|(base, size)| base + size).max().unwrap_or_default();
        end.max(self.board.hypervisor_pa).saturating_sub(self.board.ram_pa)
    }

    /// Returns true if the first Linux has a device that does DMA.
    fn needs_identity(&self) -> bool {
        self.slots().into_iter().flatten().any(|slot| slot.dma && !slot.idle_dma)
    }

    /// Returns the slots of the first Linux's disk and network, as far as it has them.
    fn slots(&self) -> [Option<&'static Device>; 2] {
        let [disk, network] = self.board.slots();
        [disk.filter(|_| self.linux.disk.is_some()), network.filter(|_| self.linux.network)]
    }

    fn plugged(&self) -> String {
        let mut text = String::new();
        let [disk, network] = self.slots();
        if let Some((slot, file)) = disk.zip(self.linux.disk.as_ref()) {
            let (slot, file) = (quoted(&slot.name), quoted(&file.to_string_lossy()));
            let _ = writeln!(
                text,
                "# What is written to it stays; `keep = false` behind the file forgets it.
disks = [{{ device = {slot}, file = {file} }}]"
            );
        }
        if let Some(slot) = network {
            let _ = writeln!(text, "network = {}", quoted(&slot.name));
        }
        text
    }

    fn linux(&self, number: usize, pcpus: Range<usize>) -> String {
        let linux = &self.linux;
        let mut text = format!(
            "
[[vm]]
name = {}
kernel = {}
",
            quoted(&linux_name(number)),
            quoted(&linux.kernel.to_string_lossy())
        );
        if let Some(initramfs) = &linux.initramfs {
            let _ = writeln!(text, "initramfs = {}", quoted(&initramfs.to_string_lossy()));
        }
        let slots: Vec<_> = self.slots().into_iter().flatten().filter(|_| number == 0).collect();
        let identity = number == 0 && self.needs_identity();
        let names = slots.iter().map(|slot| quoted(&slot.name)).collect::<Vec<_>>().join(", ");
        let about = "# Devices that do DMA know no other addresses than the board's.\n";
        let devices = match names.is_empty() {
            true => String::new(),
            false => format!("{}devices = [{names}]\n", if identity { about } else { "" }),
        };
        let identity = if identity { ", identity = true" } else { "" };
        let _ = write!(
            text,
            "cmdline = {}
# Random bytes for its start come from this number, so that every run is the same.
seed = {}
memory = {{ size = {}{identity} }}
{devices}",
            quoted(&linux.cmdline),
            number + 1,
            quoted(&size::show(linux.memory)),
        );
        if self.rtos_vms > 0 {
            let policy = quoted(&linux.policy);
            let _ = write!(
                text,
                "# What becomes of a vCPU whose core the RTOS takes.
migration_policy = {policy}
"
            );
        }
        let vcpus = pcpus.map(|pcpu| format!("    {{ pcpu = {pcpu}, priority = 1 }},\n"));
        let _ = write!(
            text,
            "# One vCPU on each of its cores. Larger priorities go first.
vcpus = [
{}]
",
            vcpus.collect::<String>()
        );
        text
    }

    fn rtos(&self, number: usize, pcpu: usize) -> String {
        let (rtos, name) = (&self.rtos, rtos_name(number));
        let links = self.links();
        let link = links.iter().find(|(_, between)| between.contains(&name));
        let link = link.filter(|_| rtos.takes_link);
        let cmdline = link.map_or_else(String::new, |(link, _)| {
            format!("cmdline = {}\n", quoted(&format!("link={link}")))
        });
        format!(
            "
[[vm]]
name = {}
kernel = {}
{cmdline}memory = {{ size = {} }}
# Above Linux. With a `server` it is promised a budget and gets no more; with `tasks` in it `check` says
# whether their deadlines hold.
vcpus = [{{ pcpu = {pcpu}, priority = 10 }}]
realtime = true
",
            quoted(&name),
            quoted(&rtos.kernel.to_string_lossy()),
            quoted(&size::show(rtos.memory)),
        )
    }
}

fn linux_name(number: usize) -> String {
    numbered("linux", number)
}

fn rtos_name(number: usize) -> String {
    numbered("rtos", number)
}

/// Returns `name`, `name-2`, `name-3` and so on.
fn numbered(name: &str, number: usize) -> String {
    if number == 0 { name.into() } else { format!("{name}-{}", number + 1) }
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
            ..Linux::default()
        };
        let rtos =
            Rtos { kernel: "rtos.elf".into(), memory: 32 << 20, pcpu: pcpus - 1, takes_link: true };
        Outline { board, pcpus, linux_vms: 1, linux, rtos_vms: 1, rtos, link: None }
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

    /// Each Linux has cores of its own, and has an RTOS before another one has two.
    #[test]
    fn cores_are_shared_out_and_each_linux_has_its_rtos() {
        let mut outline = outline(4);
        (outline.linux_vms, outline.rtos_vms, outline.link) = (2, 2, Some(64 << 10));
        assert_eq!(outline.shares(), [0..2, 2..4]);
        assert_eq!(outline.rtos_pcpus(), [3, 1]);
        assert!(outline.leaves_room());
        let pair = |one: &str, other: &str| [one.to_owned(), other.to_owned()];
        let links = [("link", pair("linux-2", "rtos")), ("link-2", pair("linux", "rtos-2"))];
        assert_eq!(outline.links(), links.map(|(name, pair)| (name.to_owned(), pair)));
        assert!(outline.text().contains("cmdline = \"link=link-2\""), "{}", outline.text());
        outline.rtos_vms = 4;
        assert_eq!(outline.rtos_pcpus(), [3, 1, 2, 0]);
        assert!(!outline.leaves_room());
        (outline.linux_vms, outline.rtos_vms) = (0, 3);
        assert_eq!(outline.rtos_pcpus(), [3, 2, 1]);
        assert_eq!(outline.links().len(), 2);
    }
}
