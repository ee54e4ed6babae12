//! The configuration that Bao is built with: one C file.

use std::fmt::Write;
use std::path::Path;

/// The files that the configuration names, in the directory of the run.
pub const LINUX: &str = "linux.bin";
pub const WAKER: &str = "waker.bin";

/// Where Linux's memory is, in the machine and for Linux, and its bytes.
pub const LINUX_PA: u64 = 0x6000_0000;
pub const LINUX_SIZE: u64 = 512 << 20;
/// Where the guest finds its memory, and its bytes.
const WAKER_IPA: u64 = 0x9000_0000;
const WAKER_SIZE: u64 = 32 << 20;

/// QEMU's board: both guests find its devices at their own addresses.
pub const GICD: u64 = 0x0800_0000;
pub const GICR: u64 = 0x080a_0000;
pub const UART: u64 = 0x0900_0000;
const UART_INTID: u32 = 33;
/// The EL1 virtual timer.
const TIMER_INTID: u32 = 27;

/// A guest in the configuration.
struct Vm<'a> {
    image: &'a str,
    ipa: u64,
    size: u64,
    entry: u64,
    /// True if its memory is at the same address in the machine.
    is_placed: bool,
    cores: u32,
    affinity: u64,
    /// INTIDs of the UART.
    uart: &'a [u32],
}

/// Returns the configuration of a board with so many cores, of which Linux has all but the last and the
/// guest that one. `header`: Bao's own `config.h`, in which the list of VMs is an array or a pointer.
/// `directory`: where the images are. `entry`: where Linux's image is entered.
pub fn text(cores: u32, header: &str, directory: &Path, entry: u64) -> String {
    let linux = Vm {
        image: "linux_image",
        ipa: LINUX_PA,
        size: LINUX_SIZE,
        entry,
        is_placed: true,
        cores: cores - 1,
        affinity: (1 << (cores - 1)) - 1,
        uart: &[UART_INTID],
    };
    let waker = Vm {
        image: "waker_image",
        ipa: WAKER_IPA,
        size: WAKER_SIZE,
        entry: WAKER_IPA,
        is_placed: false,
        cores: 1,
        affinity: 1 << (cores - 1),
        // Linux has its interrupt.
        uart: &[],
    };
    let mut text = "#include <config.h>\n\n".to_owned();
    for (vm, file) in [(&linux, LINUX), (&waker, WAKER)] {
        let path = directory.join(file);
        let _ = writeln!(text, "VM_IMAGE({}, \"{}\")", vm.image, path.display());
    }
    let list = if header.contains("vmlist[]") { "" } else { "(struct vm_config[]) " };
    let _ = write!(
        text,
        "\nstruct config config = {{\n    .vmlist_size = 2,\n    .vmlist = {list}{{\n{}{}    }},\n}};\n",
        linux.text(),
        waker.text()
    );
    text
}

impl Vm<'_> {
    fn text(&self) -> String {
        let Self { image, ipa, size, entry, cores, affinity, .. } = self;
        let place = if self.is_placed {
            format!(", .place_phys = true, .phys = {ipa:#x}")
        } else {
            String::new()
        };
        let uart = interrupts(self.uart);
        let timer = interrupts(&[TIMER_INTID]);
        format!(
            "        {{\n\
             \x20           .image = VM_IMAGE_BUILTIN({image}, {ipa:#x}),\n\
             \x20           .entry = {entry:#x},\n\
             \x20           .cpu_affinity = {affinity:#x},\n\
             \x20           .platform = {{\n\
             \x20               .cpu_num = {cores},\n\
             \x20               .region_num = 1,\n\
             \x20               .regions = (struct vm_mem_region[]) {{\n\
             \x20                   {{ .base = {ipa:#x}, .size = {size:#x}{place} }},\n\
             \x20               }},\n\
             \x20               .dev_num = 2,\n\
             \x20               .devs = (struct vm_dev_region[]) {{\n\
             \x20                   {{ .pa = {UART:#x}, .va = {UART:#x}, .size = 0x1000{uart} }},\n\
             \x20                   {{ .pa = 0, .va = 0, .size = 0{timer} }},\n\
             \x20               }},\n\
             \x20               .arch = {{ .gic = {{ .gicd_addr = {GICD:#x}, .gicr_addr = {GICR:#x} }} }},\n\
             \x20           }},\n\
             \x20       }},\n"
        )
    }
}

/// Returns the fields of a device that say which interrupts it has.
fn interrupts(intids: &[u32]) -> String {
    if intids.is_empty() {
        return String::new();
    }
    let all: Vec<_> = intids.iter().map(ToString::to_string).collect();
    let (count, all) = (intids.len(), all.join(", "));
    format!(", .interrupt_num = {count}, .interrupts = (irqid_t[]) {{ {all} }}")
}
