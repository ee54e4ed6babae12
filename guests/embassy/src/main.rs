//! Embassy as a guest: an executor that the interrupt handler polls, with a task that has a deadline, above one that
//! runs where nothing else is to do. It is bare metal, at EL1, on one core; `README.md` says more.

#![no_std]
#![no_main]

#[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
compile_error!("this guest is bare-metal: build it with --target aarch64-unknown-none-softfloat");

mod console;
mod cpu;
mod orders;
mod peer;
mod report;
mod tasks;
mod time;

use aarch64_rt::{
    ExceptionHandlers, InitialPagetable, RegisterStateRef, entry, exception_handlers,
    initial_pagetable,
};
use abi::platform::{GICD_BASE, GICR_BASE, SPI_FIRST, ppi};
use arm_gic::gicv3::registers::Gicd;
use arm_gic::gicv3::{GicCpuInterface, GicV3, SgiTarget, SgiTargetGroup};
use arm_gic::{IntId, InterruptGroup, Trigger, UniqueMmioPointer};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::Relaxed};
use embassy_executor::raw::Executor;
use link::Link;
use peer::End;

/// All virtual addresses of 39 bits lead to the same guest-physical ones: guest memory (the second gigabyte) is
/// Normal and may be executed, all else Device.
const fn identity() -> InitialPagetable {
    /// Block descriptor: valid, access flag, inner shareable.
    const BLOCK: usize = 0b01 | 1 << 10 | 0b11 << 8;
    /// Index into the MAIR value of `aarch64-rt`: Normal, write-back.
    const NORMAL: usize = 1 << 2;
    const NEVER_EXECUTED: usize = 1 << 54 | 1 << 53;
    const GIB: usize = 1 << 30;
    let mut table = [0; 512];
    let mut gigabyte = 0;
    while gigabyte < 512 {
        let kind = if gigabyte == 1 { NORMAL } else { NEVER_EXECUTED };
        table[gigabyte] = (gigabyte * GIB) | BLOCK | kind;
        gigabyte += 1;
    }
    InitialPagetable(table)
}

initial_pagetable!(identity());
entry!(main);

/// Whether an executor has something to do: what its pender sets.
static URGENT_PENDS: AtomicBool = AtomicBool::new(false);
static IDLE_PENDS: AtomicBool = AtomicBool::new(false);
/// The executor that the interrupt handler polls; null until there is one.
static URGENT: AtomicPtr<Executor> = AtomicPtr::new(ptr::null_mut());
/// The handler runs: it looks at the urgent executor before it returns.
static HANDLES: AtomicBool = AtomicBool::new(false);

/// The interrupt that is the doorbell of the link to another VM; 0: there is none.
static DOORBELL: AtomicU32 = AtomicU32::new(0);

/// By this interrupt the urgent executor is polled when something else than an interrupt wakes its tasks.
fn poll_urgent() -> IntId {
    IntId::sgi(0)
}

/// What Embassy calls when an executor has something to do: `context` is one of the two above.
#[unsafe(export_name = "__pender")]
fn pend(context: *mut ()) {
    let pends = context.cast_const().cast::<AtomicBool>();
    // SAFETY: each executor was made with one of the statics as its context.
    unsafe { &*pends }.store(true, Relaxed);
    if ptr::eq(pends, &URGENT_PENDS) && !HANDLES.load(Relaxed) {
        let itself = SgiTarget::List { affinity3: 0, affinity2: 0, affinity1: 0, target_list: 1 };
        let sent = GicCpuInterface::send_sgi(poll_urgent(), itself, SgiTargetGroup::CurrentGroup1);
        sent.expect("an SGI can be sent");
    }
}

fn main(device_tree: u64, _x1: u64, _x2: u64, _x3: u64) -> ! {
    let found = peer::find(device_tree);
    set_up_interrupts(found.as_ref().map(|(_, doorbell)| *doorbell));
    // SAFETY: as this function never returns, what is in it is there for ever, and nothing moves it.
    let end = found.as_ref().map(|(end, _)| unsafe { &*ptr::from_ref::<End>(end) });
    let (mut publisher, mut orders) = (None, None);
    if let Some(Link { sender, receiver, publisher: of_link, peer }) = end.and_then(Link::open) {
        peer.ring();
        publisher = Some(of_link);
        orders = Some((sender, receiver, peer));
        println!("embassy: takes orders by a link");
    }
    let executor =
        |pends: &'static AtomicBool| Executor::new((&raw const *pends).cast_mut().cast());
    let (urgent, idle) = (executor(&URGENT_PENDS), executor(&IDLE_PENDS));
    // SAFETY: this function never returns, so what is in it is there for ever, and nothing moves it.
    let [urgent, idle]: [&'static Executor; 2] =
        [&urgent, &idle].map(|executor| unsafe { &*ptr::from_ref::<Executor>(executor) });
    urgent.spawner().spawn(tasks::control(publisher).expect("it is spawned once"));
    idle.spawner().spawn(tasks::load().expect("it is spawned once"));
    idle.spawner().spawn(tasks::tell().expect("it is spawned once"));
    if let Some((sender, receiver, peer)) = orders {
        let obey = orders::obey(sender, receiver, peer).expect("it is spawned once");
        idle.spawner().spawn(obey);
    }
    URGENT.store((&raw const *urgent).cast_mut(), Relaxed);
    cpu::take_interrupts(true);
    loop {
        if IDLE_PENDS.swap(false, Relaxed) {
            // SAFETY: only this loop polls it.
            unsafe { idle.poll() };
        }
        // What is woken from here on is seen, or ends the sleep.
        cpu::take_interrupts(false);
        if !IDLE_PENDS.load(Relaxed) {
            cpu::wait();
        }
        cpu::take_interrupts(true);
    }
}

/// Lets the timer's interrupt, that of [`poll_urgent`] and the doorbell's come.
fn set_up_interrupts(doorbell: Option<u32>) {
    let distributor = NonNull::new(GICD_BASE as *mut Gicd).expect("not null");
    let redistributor = NonNull::new(GICR_BASE as *mut _).expect("not null");
    // SAFETY: the virtual platform has a GICv3 there, mapped as Device for ever, and nothing else touches it.
    let gic = unsafe { GicV3::new(UniqueMmioPointer::new(distributor), redistributor, 1) };
    let mut gic = gic.expect("the virtual platform has a redistributor");
    gic.setup(0);
    GicCpuInterface::set_priority_mask(0xff);
    for intid in [IntId::ppi(ppi::VIRTUAL_TIMER - FIRST_PPI), poll_urgent()] {
        let set = gic.set_interrupt_priority(intid, Some(0), 0x80);
        set.and_then(|()| gic.enable_interrupt(intid, Some(0), true)).expect("the core is there");
    }
    if let Some(doorbell) = doorbell {
        DOORBELL.store(doorbell, Relaxed);
        let intid = IntId::spi(doorbell - SPI_FIRST);
        let set = gic.set_trigger(intid, None, Trigger::Edge);
        let set = set.and_then(|()| gic.set_interrupt_priority(intid, None, 0xa0));
        set.and_then(|()| gic.enable_interrupt(intid, None, true)).expect("the doorbell is there");
    }
}

/// The INTID of PPI 0.
const FIRST_PPI: u32 = 16;

struct Handlers;
exception_handlers!(Handlers);

impl ExceptionHandlers for Handlers {
    extern "C" fn irq_current(_state: RegisterStateRef) {
        tasks::ARRIVED.store(cpu::counter(), Relaxed);
        HANDLES.store(true, Relaxed);
        GicCpuInterface::handle_interrupt(InterruptGroup::Group1, |intid| {
            if u32::from(intid) == DOORBELL.load(Relaxed) {
                orders::doorbell();
            } else if intid != poll_urgent() {
                time::alarm();
            }
        });
        // SAFETY: it is null or the executor of `main`, and only this handler polls that, which nothing interrupts.
        if let Some(urgent) = unsafe { URGENT.load(Relaxed).as_ref() } {
            while URGENT_PENDS.swap(false, Relaxed) {
                // SAFETY: as above.
                unsafe { urgent.poll() };
            }
        }
        HANDLES.store(false, Relaxed);
    }

    extern "C" fn sync_current(state: RegisterStateRef) {
        panic!("exception at {:#x}", state.elr);
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    println!("embassy: {info}");
    let answer = smccc::psci::system_off::<smccc::Hvc>();
    println!("embassy: still on: {answer:?}");
    loop {
        cpu::take_interrupts(false);
        cpu::wait();
    }
}
