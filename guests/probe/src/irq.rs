//! Interrupts as they arrive: counted, noted in order, shown to the test.

use crate::arch::{cpu, sysreg::read, sysreg::write};
use crate::gic;
use abi::{MAX_VCPUS_PER_VM, platform::INTID_END};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst};
use spin::Mutex;

/// Interrupts that are noted in order, for each vCPU.
const ORDER_MAX: usize = 512;

/// What one vCPU has seen since [`reset`].
pub struct Seen {
    count: [AtomicU32; INTID_END as usize],
    order: [AtomicU32; ORDER_MAX],
    total: AtomicUsize,
    spurious: AtomicU32,
    keep_active: AtomicBool,
    hook: Mutex<Option<fn(u32)>>,
}

static SEEN: [Seen; MAX_VCPUS_PER_VM] = [const {
    Seen {
        count: [const { AtomicU32::new(0) }; INTID_END as usize],
        order: [const { AtomicU32::new(0) }; ORDER_MAX],
        total: AtomicUsize::new(0),
        spurious: AtomicU32::new(0),
        keep_active: AtomicBool::new(false),
        hook: Mutex::new(None),
    }
}; MAX_VCPUS_PER_VM];

/// What vCPU `index` has seen.
pub fn seen(index: usize) -> &'static Seen {
    &SEEN[index]
}

impl Seen {
    /// How often `intid` was acknowledged.
    pub fn count(&self, intid: u32) -> u32 {
        self.count[intid as usize].load(SeqCst)
    }

    /// How many interrupts were acknowledged.
    pub fn total(&self) -> usize {
        self.total.load(SeqCst)
    }

    /// The interrupts in the order in which they were acknowledged.
    pub fn order(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter().take(self.total()).map(|intid| intid.load(SeqCst))
    }

    /// How often an IRQ was taken and nothing was there to acknowledge.
    pub fn spurious(&self) -> u32 {
        self.spurious.load(SeqCst)
    }

    fn note(&self, intid: u32) {
        if let Some(count) = self.count.get(intid as usize) {
            count.fetch_add(1, SeqCst);
        }
        let position = self.total.fetch_add(1, SeqCst);
        if let Some(slot) = self.order.get(position) {
            slot.store(intid, SeqCst);
        }
    }
}

/// Forgets what vCPU `index` has seen, and its hook.
pub fn reset(index: usize) {
    let seen = &SEEN[index];
    seen.count.iter().for_each(|count| count.store(0, SeqCst));
    seen.total.store(0, SeqCst);
    seen.spurious.store(0, SeqCst);
    seen.keep_active.store(false, SeqCst);
    cpu::without_irq(|| *seen.hook.lock() = None);
}

/// Has `hook` called with each INTID on this vCPU, between acknowledge and end
/// of interrupt.
pub fn hook(hook: fn(u32)) {
    cpu::without_irq(|| *SEEN[cpu::index()].hook.lock() = Some(hook));
}

/// With EOImode 1: leave interrupts active, the test deactivates them.
pub fn keep_active(keep: bool) {
    SEEN[cpu::index()].keep_active.store(keep, SeqCst);
}

/// Serves one interrupt; called by the vector table with IRQ masked.
pub fn serve() {
    let seen = &SEEN[cpu::index()];
    let intid = gic::acknowledge();
    if intid == gic::NONE {
        seen.spurious.fetch_add(1, SeqCst);
        return;
    }
    seen.note(intid);
    let hook = *seen.hook.lock();
    if let Some(hook) = hook {
        hook(intid);
        // A hook that let others in left the mask open.
        cpu::mask_irq();
    }
    write::icc_eoir1_el1(intid.into());
    let split = read::icc_ctlr_el1() & gic::CTLR_EOIMODE != 0;
    if split && !seen.keep_active.load(SeqCst) {
        write::icc_dir_el1(intid.into());
    }
}
