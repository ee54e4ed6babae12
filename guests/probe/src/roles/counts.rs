//! A guest whose kernel counts what it holds, as an unmodified Linux does, and says nothing of it.

use super::preemption::{SECTIONS, counted, spin_us};
use crate::arch::memory::set_upper;
use crate::arch::sysreg::write;
use crate::suite::{Check, Done};
use crate::{ensure, ensure_eq, needs_cassata, pass, platform};
use abi::status::VcpuStatus;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

const STOLEN: usize = offset_of!(VcpuStatus, stolen);
/// TCR_EL1: 48-bit addresses, and a granule of 4 KiB.
const T1SZ: u64 = 16;
const GRANULE_4K: u64 = 2;
/// Descriptors.
const TABLE: u64 = 3;
const PAGE: u64 = 0x703;
/// Where a thread is, as its kernel sees it, and as a program would.
const THREAD: u64 = 0xffff_8000_0000_0040;
const PROGRAM: u64 = 0x0000_8000_0000_0040;
/// Which words of its page are a thread's count, as many bytes behind its beginning as the description
/// says by default.
const COUNT: usize = (0x40 + 8) / 8;
/// In which entry of the root its address is.
const TOP: usize = 256;

#[repr(C, align(4096))]
struct Frame([AtomicU64; 512]);

impl Frame {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 512])
    }

    /// Its memory is mapped where it is.
    fn address(&'static self) -> u64 {
        self as *const Self as u64
    }
}

static ROOT: Frame = Frame::new();
static LEVELS: [Frame; 3] = [const { Frame::new() }; 3];
static THREADS: Frame = Frame::new();

/// Has the kernel's addresses translated to [`THREADS`], and the first thread run.
fn set_up() {
    ROOT.0[TOP].store(LEVELS[0].address() | TABLE, SeqCst);
    LEVELS[0].0[0].store(LEVELS[1].address() | TABLE, SeqCst);
    LEVELS[1].0[0].store(LEVELS[2].address() | TABLE, SeqCst);
    LEVELS[2].0[0].store(THREADS.address() | PAGE, SeqCst);
    set_upper(T1SZ, GRANULE_4K);
    write::ttbr1_el1(ROOT.address());
    write::sp_el0(THREAD);
}

fn hold(holds: bool) {
    // The half of the word that is no count is all ones.
    THREADS.0[COUNT].store(0xffff_ffff_0000_0000 | u64::from(holds), SeqCst);
}

/// A real-time VM takes this pCPU all the time: never while the count is not 0 for `probe.hold_us` (60),
/// which is shorter than `probe.grace_us`; but it does when that is over, and whenever the count cannot
/// be read.
pub fn counts() -> Check<Done> {
    needs_cassata!();
    let platform = platform::get();
    let hold_us = platform.number("hold_us", 60);
    let grace_us = platform.number("grace_us", 200);
    let long_us = 20 * grace_us;
    let mut gave_way = 0;
    set_up();
    for section in 0..SECTIONS {
        hold(true);
        let before = counted(STOLEN)?;
        spin_us(hold_us);
        let after = counted(STOLEN)?;
        ensure_eq!(after, before, "time was stolen in section {section}");
        hold(false);
        // It looks again in time.
        spin_us(4);
        gave_way += u64::from(counted(STOLEN)? > after);
        spin_us(7);
    }
    let least = SECTIONS / 4;
    ensure!(gave_way >= least, "{gave_way} of {SECTIONS} sections ended with another vCPU waiting");
    hold(true);
    let before = counted(STOLEN)?;
    spin_us(long_us);
    ensure!(counted(STOLEN)? > before, "nothing was stolen in {long_us} us");
    let unread = hostile(grace_us)?;
    pass!("{gave_way} of {SECTIONS} sections were waited for, {unread} counts were not read")
}

/// What is set, by what, and to what.
type Hostile = (&'static str, fn(u64), u64);

/// What cannot be read counts nothing, and does no harm. Each is set up, and then all is as before.
/// Returns how many there were.
fn hostile(grace_us: u64) -> Check<usize> {
    let outside = 0x0900_0000 | TABLE;
    let beyond = 0xffff_ffff_f000 | TABLE;
    let itself = ROOT.address() | TABLE;
    let all: [Hostile; 12] = [
        ("a program's address", write::sp_el0, PROGRAM),
        ("an address that is not aligned", write::sp_el0, THREAD + 1),
        ("the last address", write::sp_el0, u64::MAX),
        ("an address that is not mapped", write::sp_el0, THREAD + (1 << 21)),
        ("a root that is a device", write::ttbr1_el1, outside),
        ("a root beyond all memory", write::ttbr1_el1, beyond),
        ("a table that is a device", |entry| ROOT.0[TOP].store(entry, SeqCst), outside),
        ("a table beyond all memory", |entry| LEVELS[1].0[0].store(entry, SeqCst), beyond),
        ("a page that is a device", |entry| LEVELS[2].0[0].store(entry, SeqCst), outside),
        ("a page that is a table", |entry| LEVELS[2].0[0].store(entry, SeqCst), itself),
        ("another granule", |granule| set_upper(T1SZ, granule), 1),
        ("no room for addresses", |t1sz| set_upper(t1sz, GRANULE_4K), 63),
    ];
    for (what, set, value) in all {
        hold(true);
        set(value);
        // Nothing that another vCPU has waited for before is left.
        spin_us(grace_us);
        let before = counted(STOLEN)?;
        // Longer than it takes until the other VM wakes, and shorter than that would wait.
        spin_us(grace_us * 3 / 4);
        let after = counted(STOLEN)?;
        set_up();
        ensure!(after > before, "{what}: another vCPU waited");
    }
    Ok(all.len())
}
