//! What machine to start, and the command line that says so.

use super::time::Time;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use system::board::{Board, Qemu};
use vtime::options::Pipes;

/// A machine that QEMU emulates.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// The board.
    pub board: &'static Board,
    /// What boots.
    pub image: PathBuf,
    /// True if that is firmware, which lies in the board's flash and is entered there. What is
    /// not lies in RAM.
    pub is_firmware: bool,
    /// Physical cores, 1 to 8.
    pub pcpus: u32,
    /// Bytes of RAM.
    pub memory: u64,
    /// True if there is an EL2 (and the image is entered there).
    pub el2: bool,
    /// True if the PCI host bridge is behind an SMMU, and all of it within 32 bits.
    pub smmu: bool,
    /// How its time passes.
    pub time: Time,
    /// True if a reset of the whole machine boots it again, instead of ending
    /// it.
    pub reboots: bool,
    /// Further arguments, such as `-initrd` and `-append` for a plain Linux.
    pub extra_args: Vec<OsString>,
}

impl MachineConfig {
    /// QEMU's `virt` board with EL2, a GICv3 and cortex-a76 cores, in real time, that boots `image`.
    ///
    /// # Panics
    /// If that is no board.
    #[must_use]
    pub fn new(image: impl Into<PathBuf>, pcpus: u32, memory: u64) -> Self {
        let board = Board::find("qemu-virt").expect("it is built in");
        let (is_firmware, el2, smmu, reboots) = (false, true, false, false);
        let (time, extra_args) = (Time::Real, Vec::new());
        let image = image.into();
        Self { board, image, is_firmware, pcpus, memory, el2, smmu, time, reboots, extra_args }
    }

    /// Returns how much RAM the machine has, bytes: more than was asked for, if the board has but one size.
    #[must_use]
    pub fn ram_size(&self) -> u64 {
        self.board.qemu.memory.unwrap_or(self.memory)
    }

    /// QEMU's arguments, with RAM in the file `ram`. In virtual time the
    /// instrument is held through `pipes`, if there are any. The monitor starts the machine, as the
    /// file `orders` says, if there is one.
    #[must_use]
    pub fn args(&self, ram: &Path, pipes: Option<Pipes>, orders: Option<&Path>) -> Vec<OsString> {
        let Qemu { machine, cpu, .. } = &self.board.qemu;
        let memory = self.ram_size();
        let machine = if self.el2 {
            machine.clone()
        } else {
            machine.replace("virtualization=on", "virtualization=off")
        };
        let mut args: Vec<OsString> = Vec::new();
        let mut option = |name: &str, value: String| args.extend([name.into(), value.into()]);
        let smmu = if self.smmu { ",iommu=smmuv3,highmem-ecam=off" } else { "" };
        option("-M", format!("{machine},memory-backend=ram{smmu}"));
        option("-m", format!("{memory}B"));
        option(
            "-object",
            format!("memory-backend-file,id=ram,size={memory},share=on,mem-path={}", ram.display()),
        );
        option("-cpu", format!("{cpu}{}", self.time.cpu_options()));
        option("-smp", self.board.qemu.cpus.unwrap_or(self.pcpus).to_string());
        option("-accel", "tcg,thread=multi".into());
        option("-nic", "none".into());
        option("-display", "none".into());
        option("-monitor", "none".into());
        // Not `stdio` itself: it would leave Ctrl-C to QEMU.
        option("-chardev", "stdio,id=uart,signal=off".into());
        (0..self.board.qemu.serial).for_each(|_| option("-serial", "null".into()));
        option("-serial", "chardev:uart".into());
        if let Some(orders) = orders {
            let file = format!("file,id=orders,path=/dev/null,input-path={}", orders.display());
            option("-chardev", file);
            option("-mon", "chardev=orders,mode=control".into());
            args.push("-S".into());
        }
        args.push("-nodefaults".into());
        if !self.reboots {
            args.push("-no-reboot".into());
        }
        args.extend(self.board.qemu.options.iter().map(Into::into));
        args.push(if self.is_firmware { "-bios" } else { "-kernel" }.into());
        args.push(self.image.clone().into());
        args.extend(self.time.args(pipes));
        args.extend(self.extra_args.iter().cloned());
        args
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_injected_comes_last() {
        let mut config = MachineConfig::new("system.bin", 4, 1 << 30);
        config.extra_args = vec!["-append".into(), "quiet".into()];
        let args = config.args(Path::new("/proc/1/fd/3"), None, None);
        let text: Vec<_> = args.iter().map(|arg| arg.to_str().unwrap()).collect();
        assert!(text.ends_with(&["-kernel", "system.bin", "-append", "quiet"]));
        assert!(text.contains(&"virt,virtualization=on,gic-version=3,memory-backend=ram"));
        assert!(text.windows(2).any(|pair| pair == ["-smp", "4"]));
        assert!(!args.contains(&"-S".into()), "no orders will come");
        config.el2 = false;
        config.is_firmware = true;
        config.smmu = true;
        let args = config.args(Path::new("x"), None, Some(Path::new("o")));
        assert!(args.contains(&"-S".into()));
        assert!(args.windows(2).any(|pair| pair == ["-mon", "chardev=orders,mode=control"]));
        assert!(args[1].to_str().unwrap().contains("virtualization=off"));
        assert!(args[1].to_str().unwrap().ends_with(",iommu=smmuv3,highmem-ecam=off"));
        assert!(args.windows(2).any(|pair| pair == ["-bios", "system.bin"]));
    }
}
