//! Packed systems whose bytes are others than were packed.

use crate::bytes::Bytes;
use crate::files;
use std::sync::LazyLock;
use system::Unpacked;

/// Systems that have something of everything.
pub static SYSTEMS: LazyLock<[Vec<u8>; 2]> =
    LazyLock::new(|| [VIEWS, GATHERED].map(|text| files::packed(&files::checked(text)).1));

/// Several VMs with devices, shared memory, servers, mutexes and views.
const VIEWS: &str = r#"
[board]
kind = "qemu-virt"
pcpus = 2
memory = "128M"

[hypervisor]
trace = "4K"

[[shared_memory]]
name = "page"
size = "8K"

[[vm]]
name = "one"
kernel = "Image"
memory = { size = "6M" }
vcpus = [{ pcpu = 0, priority = 1 }, { pcpu = 1, priority = 1 }]
migration_policy = "trap-based"
report = "8K"
interrupts = [50, 51]

[[vm]]
name = "two"
kernel = "rtos.elf"
memory = { size = "4M" }
devices = ["gpio"]
shared_memory = ["page"]
realtime = true
report = "8K"

[[vm.vcpus]]
pcpu = 1
priority = 2
server = { kind = "deferrable", budget = "1ms", period = "10ms", overrun = true }

[[vm.vcpus.tasks]]
name = "low"
period = "20ms"
priority = 1
segments = [{ wcet = "20us" }, { wcet = "10us", gcs = "page" }]

[[vm]]
name = "three"
kernel = "rtos.elf"
memory = { size = "2M" }
shared_memory = ["page"]

[[vm.vcpus]]
pcpu = 0
priority = 3
server = { kind = "deferrable", budget = "1ms", period = "10ms", overrun = true }

[[vm.vcpus.tasks]]
name = "high"
period = "30ms"
priority = 1
segments = [{ wcet = "20us" }, { wcet = "10us", gcs = "page" }]
"#;

/// A system one of whose cores may be powered down.
const GATHERED: &str = r#"
board = { kind = "qemu-virt", pcpus = 3, memory = "128M" }

[[vm]]
name = "one"
kernel = "Image"
memory = { size = "4M" }
vcpus = [{ pcpu = 0, priority = 1 }, { pcpu = 1, priority = 1 }, { pcpu = 2, priority = 1 }]
consolidate = true
"#;

/// Takes one of the systems, and changes it as the input says: where, and to what.
pub fn changed(bytes: &mut Bytes, place: impl Fn(&[u8], u16) -> usize) -> Vec<u8> {
    let mut file = SYSTEMS[bytes.below(SYSTEMS.len())].clone();
    while !bytes.is_empty() {
        let (at, word) = (place(&file, bytes.half()), bytes.word());
        let width = 1 << bytes.below(4);
        let end = (at + width).min(file.len());
        let at = at.min(end);
        file[at..end].copy_from_slice(&word.to_le_bytes()[..end - at]);
    }
    file
}

/// A file: either any bytes, or a packed system whose headers or anything else is changed.
pub fn unpack(input: &[u8]) {
    let mut bytes = Bytes(input);
    let file = match bytes.byte() {
        0 => bytes.0.to_vec(),
        // The ELF headers are in the first bytes.
        1 => changed(&mut bytes, |_, at| usize::from(at % 512)),
        _ => changed(&mut bytes, |file, at| usize::from(at) * 7 % file.len()),
    };
    if let Ok(unpacked) = system::unpack(&file) {
        believed(&unpacked);
    }
}

/// What EL2 believes is sound by another judgement, too.
pub fn believed(unpacked: &Unpacked<'_>) {
    crate::tables::sound(&unpacked.tables);
    crate::reach::sound(unpacked);
}
