//! What is booted beside Bao itself. Bao has one image for each guest and hands it nothing, so Linux comes
//! in one piece with its device tree, its initramfs and a few instructions that know where these are.

use super::super::machine::{is_image, read};
use super::super::tree;
use super::config::{GICD, GICR, LINUX_PA, LINUX_SIZE, UART};
use crate::guests::Images;
use miette::{Result, WrapErr, ensure};
use std::fmt::Write;
use std::path::Path;

/// What an arm64 Image begins with: 64 bytes (Linux, `Documentation/arm64/booting.rst`).
const HEADER: usize = 64;
/// Where its size in memory stands.
const IMAGE_SIZE: usize = 16;
/// Where the tree and the initramfs lie behind the instructions, bytes.
const TREE: usize = 0x1000;
const INITRAMFS: usize = 0x2_0000;
/// What Linux's memory is divided in.
const BLOCK: u64 = 2 << 20;
/// Bytes of the distributor's registers, and of all redistributors' that QEMU's board has room for: Linux
/// looks for the last one by what they say.
const GICD_SIZE: u64 = 0x1_0000;
const GICR_SIZE: u64 = 0xf6_0000;

/// Linux in one piece.
#[derive(Debug)]
pub struct Linux {
    kernel: Vec<u8>,
    tree: Vec<u8>,
    initramfs: Vec<u8>,
}

impl Linux {
    /// Reads Linux and makes its tree in `directory`: so many cores, and a command line.
    ///
    /// # Errors
    /// When a file cannot be read or is none, or the compiler of device trees objects.
    pub fn of(images: &Images, told: &str, cores: u32, directory: &Path) -> Result<Self> {
        let (kernel, initramfs) = (read(&images.kernel)?, read(&images.peers)?);
        is_image(&kernel).wrap_err_with(|| images.kernel.display().to_string())?;
        let linux = Self { kernel, tree: Vec::new(), initramfs };
        let begin = linux.entry() + INITRAMFS as u64;
        let source = source(told, cores, begin..begin + linux.initramfs.len() as u64);
        let [path, compiled] = ["linux.dts", "linux.dtb"].map(|name| directory.join(name));
        crate::results::write_file(&path, source.as_bytes())?;
        tree::compile(&path, &compiled, &path.display().to_string())?;
        let tree = read(&compiled)?;
        ensure!(tree.len() <= INITRAMFS - TREE, "Linux's device tree is too large");
        Ok(Self { tree, ..linux })
    }

    /// Returns the physical address at which the piece is entered: behind what the kernel takes.
    pub fn entry(&self) -> u64 {
        let word = self.kernel[IMAGE_SIZE..IMAGE_SIZE + 8].try_into().expect("eight bytes");
        let taken = u64::from_le_bytes(word).max(self.kernel.len() as u64);
        LINUX_PA + taken.next_multiple_of(BLOCK)
    }

    /// Writes the piece, which belongs at the beginning of Linux's memory.
    ///
    /// # Errors
    /// When it cannot be written, or does not fit.
    pub fn write(&self, path: &Path) -> Result<()> {
        let offset = usize::try_from(self.entry() - LINUX_PA).expect("a size in memory");
        let mut bytes = self.kernel.clone();
        bytes.resize(offset, 0);
        bytes.extend(code(&enter_linux(LINUX_PA)));
        bytes.resize(offset + TREE, 0);
        bytes.extend(&self.tree);
        bytes.resize(offset + INITRAMFS, 0);
        bytes.extend(&self.initramfs);
        ensure!((bytes.len() as u64) < LINUX_SIZE / 2, "Linux is too large for its memory");
        crate::results::write_file(path, &bytes)
    }
}

/// Returns instructions (DDI 0487, C6.2) that enter the kernel at `pa` with the tree behind them.
fn enter_linux(pa: u64) -> Vec<u32> {
    let [x1, x2, x3] = [1, 2, 3].map(|register| 0xaa1f_03e0 | register);
    let mut code = vec![adr(0, TREE as u32), x1, x2, x3];
    code.extend(branch(pa));
    code
}

/// Returns ADR of an address so many bytes ahead: a multiple of four below 1 MiB.
const fn adr(register: u32, ahead: u32) -> u32 {
    0x1000_0000 | ((ahead >> 2) << 5) | register
}

/// Returns instructions that go to `pa`, a multiple of 64 KiB below 4 GiB, by X4.
fn branch(pa: u64) -> [u32; 2] {
    let high = u32::try_from(pa >> 16).expect("below 4 GiB");
    assert!(high <= 0xffff && pa.is_multiple_of(1 << 16), "MOVZ has 16 bits");
    [0xd2a0_0000 | (high << 5) | 4, 0xd61f_0080]
}

fn code(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns an arm64 Image that goes to `pa`. QEMU enters what it loads as a kernel at EL2 with PSCI by SMC:
/// Bao, which is loaded beside, has no header of that kind and expects what its firmware leaves.
pub fn first(pa: u64) -> Vec<u8> {
    // A branch over the header.
    let mut bytes = code(&[0x1400_0000 | (HEADER as u32 / 4)]);
    bytes.resize(IMAGE_SIZE, 0);
    bytes.extend(4096_u64.to_le_bytes());
    // Little-endian, pages of 4 KiB, anywhere in memory.
    bytes.extend(0xa_u64.to_le_bytes());
    bytes.resize(0x38, 0);
    bytes.extend(b"ARM\x64");
    bytes.resize(HEADER, 0);
    bytes.extend(code(&branch(pa)));
    bytes
}

/// Returns the source of Linux's tree.
fn source(told: &str, cores: u32, initramfs: std::ops::Range<u64>) -> String {
    let mut cpus = String::new();
    for cpu in 0..cores {
        let _ = writeln!(
            cpus,
            "cpu@{cpu} {{ device_type = \"cpu\"; compatible = \"arm,cortex-a76\"; reg = <{cpu}>; \
             enable-method = \"psci\"; }};"
        );
    }
    let told = tree::quoted(told);
    let std::ops::Range { start, end } = initramfs;
    format!(
        "/dts-v1/;\n/ {{\n#address-cells = <2>;\n#size-cells = <2>;\ninterrupt-parent = <&gic>;\n\
         compatible = \"linux,dummy-virt\";\nmodel = \"a VM of Bao's\";\n\
         chosen {{ bootargs = {told}; stdout-path = \"/serial@{UART:x}\";\n\
         linux,initrd-start = <0 {start:#x}>; linux,initrd-end = <0 {end:#x}>; }};\n\
         memory@{LINUX_PA:x} {{ device_type = \"memory\"; reg = <0 {LINUX_PA:#x} 0 {LINUX_SIZE:#x}>; }};\n\
         cpus {{ #address-cells = <1>; #size-cells = <0>;\n{cpus}}};\n\
         psci {{ compatible = \"arm,psci-0.2\"; method = \"smc\"; }};\n\
         timer {{ compatible = \"arm,armv8-timer\"; always-on;\n\
         interrupts = <1 13 4>, <1 14 4>, <1 11 4>, <1 10 4>; }};\n\
         gic: interrupt-controller@{GICD:x} {{ compatible = \"arm,gic-v3\"; interrupt-controller;\n\
         #interrupt-cells = <3>; #address-cells = <0>;\n\
         reg = <0 {GICD:#x} 0 {GICD_SIZE:#x}>, <0 {GICR:#x} 0 {GICR_SIZE:#x}>; }};\n\
         clock: clock {{ compatible = \"fixed-clock\"; #clock-cells = <0>; clock-frequency = <24000000>; }};\n\
         serial@{UART:x} {{ compatible = \"arm,pl011\", \"arm,primecell\"; reg = <0 {UART:#x} 0 0x1000>;\n\
         interrupts = <0 1 4>; clocks = <&clock>, <&clock>; clock-names = \"uartclk\", \"apb_pclk\"; }};\n\
         }};\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Assembled by hand; binutils' disassembler has the same.
    #[test]
    fn instructions_are_those_of_the_architecture() {
        assert_eq!(enter_linux(0x6000_0000)[0], 0x1000_8000, "adr x0, .+0x1000");
        assert_eq!(branch(0x5000_0000), [0xd2aa_0004, 0xd61f_0080]);
        let image = first(0x5000_0000);
        assert_eq!(&image[..4], [0x10, 0, 0, 0x14], "b .+64");
        assert_eq!((&image[0x38..0x3c], image.len()), (&b"ARMd"[..], 72));
    }

    fn linux(kernel: usize, taken: u64) -> Linux {
        let mut kernel = vec![7; kernel];
        kernel[IMAGE_SIZE..IMAGE_SIZE + 8].copy_from_slice(&taken.to_le_bytes());
        Linux { kernel, tree: vec![8; 100], initramfs: vec![9; 10] }
    }

    /// What the kernel clears must not contain the tree.
    #[test]
    fn tree_and_initramfs_lie_behind_all_that_the_kernel_takes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("linux.bin");
        for (taken, offset) in [(2 << 20, 2 << 20), ((2 << 20) + 1, 4 << 20), (0, 2 << 20)] {
            let linux = linux(1 << 20, taken);
            assert_eq!(linux.entry(), LINUX_PA + offset as u64);
            linux.write(&path).unwrap();
            let piece = std::fs::read(&path).unwrap();
            assert_eq!(piece[offset..offset + 4], 0x1000_8000_u32.to_le_bytes());
            assert_eq!(&piece[offset + TREE..offset + TREE + 100], [8; 100]);
            assert_eq!(&piece[offset + INITRAMFS..], [9; 10]);
        }
        assert!(linux(100, 300 << 20).write(&path).is_err());
    }

    #[test]
    fn the_tree_says_what_linux_has() {
        let directory = tempfile::tempdir().unwrap();
        let [source_path, tree] = ["x.dts", "x.dtb"].map(|name| directory.path().join(name));
        let told = "console=ttyAMA0 cassata.hackbench=\"-g 1\"";
        std::fs::write(&source_path, source(told, 3, 0x6230_0000..0x6240_0000)).unwrap();
        let mut compile = Command::new("dtc");
        compile.args(["-I", "dts", "-O", "dtb", "-o"]).args([&tree, &source_path]);
        let ran = compile.output().unwrap();
        assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
        let back = tree::decompile(&tree, "Linux's tree").unwrap();
        for there in [
            "bootargs = \"console=ttyAMA0 cassata.hackbench=\\\"-g 1\\\"\"",
            "linux,initrd-end = <0x00 0x62400000>",
            "reg = <0x00 0x60000000 0x00 0x20000000>",
            "cpu@2",
            "method = \"smc\"",
            "reg = <0x00 0x8000000 0x00 0x10000 0x00 0x80a0000 0x00 0xf60000>",
        ] {
            assert!(back.contains(there), "{there}: {back}");
        }
        assert!(!back.contains("cpu@3"), "the last core is the guest's");
    }
}
