//! Arguments of `cassata build`.

use super::values::gap_threshold;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use system::ImageFormat;

/// Pack a system into one bootable image
///
/// Checks the description, then writes the hypervisor, its tables, a device
/// tree for each guest and the guests' images into one file. Needs no compiler,
/// and no mkimage.
///
/// The file is in one of the --format's that boot loaders take. An ELF file boots
/// with QEMU's -kernel. An image or a FIT boots with U-Boot, which loads it from a
/// disk or by network with the script that --boot-script writes: on a disk it is
/// found as boot.scr, by DHCP and TFTP as boot.scr.uimg, the image beside it.
/// docs/src/boot-loaders.md says what to type without a script.
///
/// With --sign the image has the build of the hypervisor that checks signatures,
/// with the public key of KEY built in, and a signature of the whole image: that
/// hypervisor starts nothing else. The launcher builds it when it is first asked
/// for. "Signed images" in docs/src/boards.md says what this protects.
///
/// With --gaps the image has a detector in the place of the system's VMs: flashed on
/// the board, it prints each ten seconds what its firmware took of every core.
///
/// Beside the image it writes a bill of materials, a CycloneDX document with
/// what the image is made of: demo.cdx.json for demo.elf, and for an image of
/// another name the whole name with .cdx.json, such as my.fit.cdx.json for my.fit.
/// The same description and files give the same bytes of both. If SOURCE_DATE_EPOCH is set, the bill
/// names that time, otherwise none.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  openssl genpkey -algorithm ed25519 -out key.pem        a key, once
  cassata build systems/demo.toml -o demo.elf --sign key.pem
  cassata build systems/demo.toml -o demo.elf            not signed
  cassata build systems/demo.toml -o gaps.elf --gaps     what does the firmware take?
  cassata build systems/demo.toml -o demo.fit --format fit --boot-script boot.scr
  qemu-system-aarch64 -M virt,virtualization=on,gic-version=3 -cpu cortex-a76 \\
      -smp 2 -m 1G -nic none -nographic -kernel demo.elf")]
pub struct Build {
    /// The system description
    pub system: PathBuf,
    /// The image to write
    #[arg(short, long, value_name = "IMAGE")]
    pub output: PathBuf,
    /// Which kind of file it is
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
    /// Write a script for U-Boot too, which loads and starts the image
    #[arg(long, value_name = "SCRIPT")]
    pub boot_script: Option<PathBuf>,
    /// Put a detector of gaps into it instead, which reports those longer than so much
    /// [THRESHOLD: 10us]
    #[arg(long, value_name = "THRESHOLD", num_args = 0..=1, require_equals = true,
          default_missing_value = "10us", value_parser = gap_threshold)]
    pub gaps: Option<u64>,
    /// Sign the image with this private key (Ed25519, PKCS#8 in PEM)
    #[arg(long, value_name = "KEY")]
    pub sign: Option<PathBuf>,
}

/// Kinds of bootable files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// An ELF file: for QEMU's -kernel, debuggers, U-Boot's bootelf
    #[default]
    Elf,
    /// A flat arm64 Image: for U-Boot's booti, or as kernel8.img
    Image,
    /// A FIT with SHA-256 digests: for U-Boot's bootm
    Fit,
}

impl From<Format> for ImageFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Elf => Self::Elf,
            Format::Image => Self::Image,
            Format::Fit => Self::Fit,
        }
    }
}
