//! Arguments of `cassata new`.

use clap::Args;
use std::path::PathBuf;

/// Write a system description that passes `check`
///
/// Linux on every pCPU, and an RTOS that comes first on one of them: a beginning to go on with. What no
/// option says is asked for at a terminal; elsewhere, and with --defaults, it is what stands here. Nothing is
/// written unless `cassata check` finds it sound.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  cassata new mine.toml
  cassata new mine.toml --pcpus 4 --rtos my-rtos.elf --defaults")]
pub struct New {
    /// Where to write it; a file that is there is left as it is
    pub system: PathBuf,
    /// Physical cores [default: 2]
    #[arg(long, value_name = "N")]
    pub pcpus: Option<usize>,
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
    /// What becomes of a vCPU of Linux whose core the RTOS takes [default: on-demand]
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<String>,
    /// The RTOS's kernel [default: the project's FreeRTOS]
    #[arg(long, value_name = "FILE")]
    pub rtos: Option<PathBuf>,
    /// The RTOS's memory [default: 32M]
    #[arg(long, value_name = "SIZE", value_parser = system::size::parse)]
    pub rtos_memory: Option<u64>,
    /// The RTOS's pCPU [default: the last]
    #[arg(long, value_name = "PCPU")]
    pub rtos_pcpu: Option<usize>,
    /// Ask nothing
    #[arg(long)]
    pub defaults: bool,
}
