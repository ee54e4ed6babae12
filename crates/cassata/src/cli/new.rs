//! Arguments of `cassata new`.

use clap::Args;
use std::path::PathBuf;

/// Write a system description that passes `check`
///
/// Linux on every pCPU, and an RTOS that comes first on one of them: a beginning to go on with. There may be
/// several of either: VMs with Linux share out the pCPUs, and an RTOS comes first on one of a Linux's. What no
/// option says is asked for at a terminal; elsewhere, and with --defaults, it is what stands here. Nothing is
/// written unless `cassata check` finds it sound.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata new mine.toml
  cassata new mine.toml --pcpus 4 --rtos my-rtos.elf --defaults
  cassata new mine.toml --board raspi4b --defaults
  cassata new mine.toml --pcpus 4 --linux-vms 2 --rtos-vms 2 --link 64K --defaults
  cassata new mine.toml --disk root.img --network --cmdline \"console=ttyAMA0 root=/dev/vda\"")]
pub struct New {
    /// Where to write it; a file that is there is left as it is
    pub system: PathBuf,
    /// The board, as descriptions name it: docs/src/boards.md lists them [default: qemu-virt]
    #[arg(long, value_name = "NAME")]
    pub board: Option<String>,
    /// Physical cores [default: 2]
    #[arg(long, value_name = "N")]
    pub pcpus: Option<usize>,
    /// VMs with Linux, from none to one for each pCPU [default: 1]
    #[arg(long, value_name = "N")]
    pub linux_vms: Option<usize>,
    /// VMs with an RTOS, from none to one for each pCPU [default: 1]
    #[arg(long, value_name = "N")]
    pub rtos_vms: Option<usize>,
    /// Linux's kernel, an arm64 Image [default: the project's Debian kernel]
    #[arg(long, value_name = "FILE")]
    pub linux: Option<PathBuf>,
    /// Linux's initramfs [default: the project's beside its kernel, none beside another one]
    #[arg(long, value_name = "FILE")]
    pub initramfs: Option<PathBuf>,
    /// Linux's command line [default: a shell with the project's initramfs, else console=ttyAMA0]
    #[arg(long, value_name = "TEXT")]
    pub cmdline: Option<String>,
    /// Linux's memory [default: 512M]
    #[arg(long, value_name = "SIZE", value_parser = system::size::parse)]
    pub linux_memory: Option<u64>,
    /// A file that is the first Linux's disk [default: it has none]
    #[arg(long, value_name = "FILE")]
    pub disk: Option<PathBuf>,
    /// The first Linux has a network card [default: it has none]
    #[arg(long)]
    pub network: bool,
    /// What becomes of a vCPU of Linux whose core an RTOS takes [default: on-demand, none where an RTOS is on each
    /// of its cores]
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<String>,
    /// The RTOS's kernel [default: the project's FreeRTOS, for the board's interrupt controller]
    #[arg(long, value_name = "FILE")]
    pub rtos: Option<PathBuf>,
    /// The RTOS's memory [default: 32M]
    #[arg(long, value_name = "SIZE", value_parser = system::size::parse)]
    pub rtos_memory: Option<u64>,
    /// The pCPU of the first RTOS [default: the last]
    #[arg(long, value_name = "PCPU")]
    pub rtos_pcpu: Option<usize>,
    /// Memory of a link between each RTOS and the Linux whose pCPU it has; without one of them between each VM and
    /// the next [default: none]
    #[arg(long, value_name = "SIZE")]
    pub link: Option<String>,
    /// Ask nothing
    #[arg(long)]
    pub defaults: bool,
}
