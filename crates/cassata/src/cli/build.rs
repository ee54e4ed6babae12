//! Arguments of `cassata build`.

use clap::Args;
use std::path::PathBuf;

/// Pack a system into one bootable image
///
/// Checks the description, then writes the hypervisor, its tables, a device
/// tree for each guest and the guests' images into one file, which boots
/// with QEMU's -kernel. Needs no compiler.
///
/// Beside the image it writes a bill of materials, a CycloneDX document with
/// what the image is made of: demo.cdx.json for demo.elf. The same description
/// and files give the same bytes of both. If SOURCE_DATE_EPOCH is set, the bill
/// names that time, otherwise none.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  cassata build systems/demo.toml -o demo.elf
  qemu-system-aarch64 -M virt,virtualization=on,gic-version=3 -cpu cortex-a76 \\
      -smp 2 -m 1G -nic none -nographic -kernel demo.elf")]
pub struct Build {
    /// The system description
    pub system: PathBuf,
    /// The image to write
    #[arg(short, long, value_name = "IMAGE")]
    pub output: PathBuf,
}
