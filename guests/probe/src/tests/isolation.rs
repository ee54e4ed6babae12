//! Stage 2: what a guest has not, it cannot read, write or execute.

use crate::arch::boot::BEYOND_IPA_VA;
use crate::arch::fault::{self, EXTERNAL_ABORT, Fault, class};
use crate::calls;
use crate::gic;
use crate::suite::{Check, Done, Test};
use crate::{ensure, ensure_eq, fail, needs_cassata, pass, platform};
use abi::platform as p;
use arrayvec::ArrayVec;
use core::sync::atomic::Ordering::SeqCst;

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "isolation.edges", body: edges },
    Test { name: "isolation.sweep", body: sweep },
    Test { name: "isolation.beyond", body: beyond },
    Test { name: "isolation.read_only", body: read_only },
    Test { name: "isolation.no_syndrome", body: no_syndrome },
    Test { name: "isolation.own_memory", body: own_memory },
];

const PAGE: u64 = 0x1000;
const STEP: u64 = 0x20_0000;
/// End of the identity map; behind it see [`BEYOND_IPA_VA`].
const END: u64 = BEYOND_IPA_VA;

/// A range of guest-physical addresses: beginning and end.
type Range = (u64, u64);

/// What the guest has, in ascending order.
fn granted() -> ArrayVec<Range, { 6 + p::MAX_SHARED + 3 * p::MAX_LINKS }> {
    let platform = platform::get();
    let redistributors = p::GICR_STRIDE * platform.vcpus.len() as u64;
    let mut ranges = ArrayVec::new();
    if gic::IS_V2 {
        ranges.push((p::GICD_BASE, p::GICD_BASE + p::GICD_V2_SIZE));
        ranges.push((p::GICC_BASE, p::GICC_BASE + 2 * p::GICC_PAGE));
    } else {
        ranges.push((p::GICD_BASE, p::GICD_BASE + p::GICD_SIZE));
        ranges.push((p::GICR_BASE, p::GICR_BASE + redistributors));
    }
    ranges.push((p::UART_BASE, p::UART_BASE + p::UART_SIZE));
    ranges.push((p::STOLEN_BASE, p::STOLEN_BASE + p::STOLEN_SIZE));
    for link in &platform.links {
        ranges.push((link.registers, link.registers + p::LINK_STRIDE));
    }
    if let Some((base, size)) = calls::report_area() {
        ranges.push((base, base + size));
    }
    ranges.extend(platform.shared.iter().map(|shared| (shared.base, shared.base + shared.size)));
    for link in &platform.links {
        let [first, second] = if link.own.base < link.peer.base {
            [link.own, link.peer]
        } else {
            [link.peer, link.own]
        };
        ranges.push((first.base, first.base + first.size));
        ranges.push((second.base, second.base + second.size));
    }
    ranges.push((platform.ram_base, platform.ram_end()));
    ranges
}

fn is_granted(address: u64) -> bool {
    granted().iter().any(|&(begin, end)| (begin..end).contains(&address))
}

fn check_abort(outcome: Result<(), Fault>, class: u8, address: u64, how: &str) -> Check {
    let Err(fault) = outcome else { fail!("{how} {address:#x}: no fault") };
    ensure_eq!(fault.class, class, "{how} {address:#x}: exception class");
    ensure_eq!(fault.far, address, "{how} {address:#x}: FAR_EL1");
    ensure_eq!(fault.iss & 0x3f, EXTERNAL_ABORT, "{how} {address:#x}: fault status code");
    Ok(())
}

/// Reads, writes and executes at `address`: three aborts.
fn forbidden(address: u64) -> Check {
    let read = fault::read(address).map(drop);
    check_abort(read, class::DATA_ABORT, address, "reading")?;
    check_abort(fault::write(address), class::DATA_ABORT, address, "writing")?;
    let executed = fault::execute(address);
    check_abort(executed, class::INSTRUCTION_ABORT, address, "executing")
}

/// The first and the last word of every gap between what is granted.
fn edges() -> Check<Done> {
    needs_cassata!();
    let mut count = 0;
    let mut gap = 0;
    for (begin, end) in granted() {
        ensure!(begin >= gap, "ranges are not in order at {begin:#x}");
        if begin > gap {
            for address in [gap, gap + PAGE - 8, begin - PAGE, begin - 8] {
                forbidden(address)?;
                count += 1;
            }
        }
        gap = end;
    }
    for address in [gap, END - 8] {
        forbidden(address)?;
        count += 1;
    }
    pass!("{count} places")
}

/// All of the address space, one word in each 2 MiB, and finer near memory.
fn sweep() -> Check<Done> {
    needs_cassata!();
    let mut count = 0_u64;
    let coarse = (0..END / STEP).map(|step| step * STEP + 0x40);
    // Each page of the devices' neighbourhood up to 16 MiB above them.
    let fine = (p::GICD_BASE / PAGE..(p::UART_BASE + 0x100_0000) / PAGE).map(|page| page * PAGE);
    for address in coarse.chain(fine).filter(|&address| !is_granted(address)) {
        forbidden(address)?;
        count += 1;
    }
    pass!("{count} places")
}

/// Guest-physical addresses of more bits than stage 2 translates.
fn beyond() -> Check<Done> {
    needs_cassata!();
    for offset in [0, STEP, 0x3fff_fff8] {
        forbidden(BEYOND_IPA_VA + offset)?;
    }
    pass!("")
}

/// The stolen-time structures, and shared memory that is read-only, can be read and not written.
fn read_only() -> Check<Done> {
    needs_cassata!();
    let shared = platform::get().shared.iter().filter(|shared| shared.read_only);
    let shared = shared.flat_map(|shared| [shared.base, shared.base + shared.size - 8]);
    for address in [p::STOLEN_BASE, p::STOLEN_BASE + PAGE - 8].into_iter().chain(shared) {
        ensure!(fault::read(address).is_ok(), "reading {address:#x} faults");
        let written = fault::write(address);
        let Err(fault) = written else { fail!("writing {address:#x}: no fault") };
        ensure_eq!(fault.class, class::DATA_ABORT, "writing {address:#x}: exception class");
        ensure_eq!(fault.far, address, "writing {address:#x}: FAR_EL1");
        ensure!(fault.iss & 1 << 6 != 0, "writing {address:#x}: ESR_EL1.WnR is clear");
    }
    pass!("")
}

/// Accesses to an emulated device that cannot be emulated for want of a
/// syndrome: a pair. An abort or an answer, and the guest goes on.
fn no_syndrome() -> Check<Done> {
    needs_cassata!();
    let mut aborts = 0;
    let frame = if gic::IS_V2 { p::GICC_BASE + p::GICC_PAGE } else { p::GICR_BASE };
    for address in [p::GICD_BASE, frame, p::UART_BASE] {
        if let Err(fault) = fault::read_pair(address) {
            ensure_eq!(fault.class, class::DATA_ABORT, "LDP at {address:#x}: exception class");
            aborts += 1;
        }
        if let Err(fault) = fault::execute(address) {
            ensure_eq!(fault.class, class::INSTRUCTION_ABORT, "executing {address:#x}");
        }
    }
    pass!("{aborts} of 3 pairs abort")
}

/// All the memory that is granted is there: a word in every page keeps its own
/// value while the others get theirs.
fn own_memory() -> Check<Done> {
    let platform = platform::get();
    let first = platform::free_memory();
    let pages = (platform.ram_end() - first) / PAGE;
    let memory = crate::arch::memory::words(first, platform.ram_end());
    let stride = PAGE as usize / 8;
    for page in 0..pages {
        memory[page as usize * stride].store(page.wrapping_mul(0x9e37_79b9_7f4a_7c15), SeqCst);
    }
    for page in 0..pages {
        let expected = page.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ensure_eq!(memory[page as usize * stride].load(SeqCst), expected, "page {page} of memory");
    }
    pass!("{pages} pages")
}
