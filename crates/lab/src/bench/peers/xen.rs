//! Xen's device tree: QEMU's, with what Xen starts (Xen, `docs/misc/arm/device-tree/booting.txt`).

use super::tree::{self, quoted};
use crate::machine::VirtualTime;
use crate::suite::Bench;
use miette::{Result, miette};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What messages call the tree.
const NAME: &str = "Xen's device tree";
/// Memory of the machine, bytes.
pub const MEMORY: u64 = 2 << 30;
/// Where the modules lie: QEMU puts Xen and the tree below the first.
pub const LINUX_PA: u64 = 0x5000_0000;
pub const INITRAMFS_PA: u64 = 0x5800_0000;
pub const GUEST_PA: u64 = 0x5a00_0000;
pub const GUEST_INITRAMFS_PA: u64 = 0x5e00_0000;

/// What Xen starts.
#[derive(Clone, Debug)]
pub struct Modules {
    /// Xen's own command line.
    pub xen: String,
    /// The command line of its first domain.
    pub linux: String,
    /// Bytes of Linux and its initramfs.
    pub sizes: [u64; 2],
    /// The real-time guest.
    pub guest: Option<Domain>,
}

/// A domain that Xen starts besides.
#[derive(Clone, Debug)]
pub struct Domain {
    pub vcpus: u32,
    /// Memory of the domain.
    pub kib: u64,
    /// Command line of the domain.
    pub told: String,
    /// Bytes of the image, and of an initramfs if there is one.
    pub size: u64,
    pub initramfs_size: Option<u64>,
}

impl Modules {
    /// Returns what stands behind the board's tree in its source.
    pub fn nodes(&self) -> String {
        let [linux, initramfs] = self.sizes;
        let mut text = format!(
            "/ {{ chosen {{\n#address-cells = <2>;\n#size-cells = <2>;\nxen,xen-bootargs = {};\n",
            quoted(&self.xen)
        );
        let arguments = format!("bootargs = {};", quoted(&self.linux));
        module(&mut text, "multiboot,kernel", LINUX_PA, linux, &arguments);
        module(&mut text, "multiboot,ramdisk", INITRAMFS_PA, initramfs, "");
        if let Some(guest) = &self.guest {
            guest.add_to(&mut text);
        }
        text + "};\n};\n"
    }

    /// Makes the tree of a board with so many cores, in the directory of `bench`.
    ///
    /// # Errors
    /// When QEMU or the compiler of device trees cannot be run, or object.
    pub fn tree(&self, cores: u32, bench: &Bench) -> Result<PathBuf> {
        let [dump, source, tree] =
            ["board.dtb", "xen.dts", "xen.dtb"].map(|name| bench.directory.join(name));
        let hz = VirtualTime::COUNTER_HZ;
        let mut qemu = Command::new(&bench.qemu.program);
        qemu.arg("-M")
            .arg(format!("virt,virtualization=on,gic-version=3,dumpdtb={}", path(&dump)?));
        qemu.arg("-cpu").arg(format!("cortex-a76,cntfrq={hz}")).arg("-smp").arg(cores.to_string());
        qemu.arg("-m").arg(format!("{MEMORY}B")).args(["-seed", "1", "-nic", "none"]);
        tree::run(qemu.args(["-display", "none", "-nodefaults"]), NAME)?;
        let board = tree::decompile(&dump, NAME)?;
        crate::results::write_file(&source, format!("{board}\n{}", self.nodes()).as_bytes())?;
        tree::compile(&source, &tree, NAME)?;
        Ok(tree)
    }
}

impl Domain {
    /// Adds its node to the source of a tree.
    fn add_to(&self, text: &mut String) {
        let Self { vcpus, kib, told, size, initramfs_size } = self;
        let _ = writeln!(
            text,
            "domU1 {{\ncompatible = \"xen,domain\";\n#address-cells = <2>;\n#size-cells = <2>;\n\
             cpus = <{vcpus}>;\nmemory = <0 {kib:#x}>;\nvpl011;"
        );
        let arguments = format!("bootargs = {};", quoted(told));
        module(text, "multiboot,kernel", GUEST_PA, *size, &arguments);
        if let Some(size) = *initramfs_size {
            module(text, "multiboot,ramdisk", GUEST_INITRAMFS_PA, size, "");
        }
        text.push_str("};\n");
    }
}

/// Adds a module to the source of a tree.
fn module(text: &mut String, kind: &str, pa: u64, size: u64, more: &str) {
    let _ = writeln!(
        text,
        "module@{pa:x} {{\ncompatible = \"{kind}\", \"multiboot,module\";\n\
         reg = <{:#x} {:#x} {:#x} {:#x}>;\n{more}\n}};",
        pa >> 32,
        pa & 0xffff_ffff,
        size >> 32,
        size & 0xffff_ffff
    );
}

fn path(path: &Path) -> Result<&str> {
    let sound = path.to_str().filter(|path| !path.contains(','));
    sound.ok_or_else(|| {
        miette!(
            help = "put the project where its path has no comma",
            "QEMU cannot write a device tree to {}",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules() -> Modules {
        Modules {
            xen: "console=dtuart sched=credit2".into(),
            linux: "console=hvc0 peers.tune=\"credit2 65535\"".into(),
            sizes: [33_000_000, 3_000_000],
            guest: Some(Domain {
                vcpus: 2,
                kib: 32 << 10,
                told: "load=0".into(),
                size: 8_520,
                initramfs_size: Some(77),
            }),
        }
    }

    /// The compiler merges the nodes with the board's, and what it has compiled says what was asked
    /// for.
    #[test]
    fn what_xen_starts_stands_in_the_tree() {
        let directory = tempfile::tempdir().unwrap();
        let [source, tree] = ["x.dts", "x.dtb"].map(|name| directory.path().join(name));
        let board = "/dts-v1/;\n/ { chosen { stdout-path = \"/pl011@9000000\"; }; };\n";
        std::fs::write(&source, format!("{board}{}", modules().nodes())).unwrap();
        tree::compile(&source, &tree, NAME).unwrap();
        let back = tree::decompile(&tree, NAME).unwrap();
        for there in [
            "stdout-path = \"/pl011@9000000\"",
            "xen,xen-bootargs = \"console=dtuart sched=credit2\"",
            "bootargs = \"console=hvc0 peers.tune=\\\"credit2 65535\\\"\"",
            "reg = <0x00 0x50000000 0x00 0x1f78a40>",
            "reg = <0x00 0x5a000000 0x00 0x2148>",
            "bootargs = \"load=0\"",
            "reg = <0x00 0x5e000000 0x00 0x4d>",
            "memory = <0x00 0x8000>",
            "cpus = <0x02>",
            "vpl011;",
        ] {
            assert!(back.contains(there), "{there}: {back}");
        }
        assert_eq!(back.matches("chosen {").count(), 1);
    }

    #[test]
    fn qemu_cannot_write_where_a_comma_is() {
        assert!(path(Path::new("/a,b")).is_err() && path(Path::new("/a/b")).is_ok());
    }
}
