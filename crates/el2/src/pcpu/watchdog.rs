//! Cores tell each other that they still take interrupts, and report one that does not.
//!
//! A core that hangs at EL2 has interrupts masked, so no timer interrupts it any more. Each core
//! sets the EL1 physical timer, which no guest has, and writes down when it takes that interrupt:
//! in a guest, in the middle of long work, which looks for interrupts, and where it idles. No visit
//! of a guest has to write anything down for that.

use super::Pcpu;
use super::console::{self, Piece, write_line};
use crate::arch::atomic::AtomicU64;
use crate::arch::timer;
use crate::parts::UNWATCHED;
use crate::shared::SIGNS;
use crate::status;
use abi::MAX_PCPUS;
use abi::system::flags;
use core::sync::atomic::Ordering;
use notes::each;
use sched::{CoreSet, Instant};

// No core is watched before it says so.
const _: () = assert!(UNWATCHED.0 == 0);

/// Returns where a core gives its signs of life.
fn sign_of(core: usize) -> &'static AtomicU64 {
    // The remainder changes no core's number, and saves code that would stop at one too large.
    &SIGNS[core % MAX_PCPUS]
}

impl Pcpu {
    /// Has this core watched from now on, if the system has a watchdog.
    #[inline(never)]
    pub fn begin_to_watch(&mut self) {
        if self.watchdog.is_on() {
            self.redistributor.enable_watch();
            let _ = self.give_sign(timer::now());
        }
    }

    /// Has no core watch this one, which is about to be switched off.
    pub(super) fn end_watch(&mut self) {
        self.watchdog.ends();
        sign_of(self.index).store(UNWATCHED.0, Ordering::Relaxed);
    }

    /// Gives a sign of life, and sets the timer for the next one. Returns true if this core may
    /// judge others.
    fn give_sign(&mut self, now: Instant) -> bool {
        let (next, judges) = self.watchdog.lives(now);
        sign_of(self.index).store(now.0, Ordering::Relaxed);
        timer::arm_watch(next);
        judges
    }

    /// Handles the watchdog's timer: gives a sign of life, and looks when other cores gave theirs.
    pub(super) fn watch(&mut self) {
        notes::needs::<{ each::WATCHED }>();
        let now = timer::now();
        let judges = self.give_sign(now);
        let uart_core_hangs = sign_of(self.uart_core).load(Ordering::Relaxed) == UNWATCHED.0;
        if self.watchdog.writes_log(uart_core_hangs) {
            console::carry_log(self.system);
        }
        if !judges {
            return;
        }
        // A set: of a range the compiler would write out each round.
        for core in CoreSet::of_first(self.system.board.pcpu_count as usize) {
            let seen = sign_of(core).load(Ordering::Relaxed);
            // One core reports it, once.
            let order = Ordering::Relaxed;
            if self.watchdog.hangs(Instant(seen), now)
                && sign_of(core).compare_exchange(seen, UNWATCHED.0, order, order).is_ok()
            {
                self.report_hang(core, seen, now);
                // Others hang that long until the next look, or another core reports them.
                return;
            }
        }
    }

    /// Reports that a core hangs, whose latest sign of life is `seen`. In a checked build, and where
    /// the description has the machine reset for a bug of EL2, that is the end.
    #[inline(never)]
    fn report_hang(&mut self, core: usize, seen: u64, now: Instant) {
        status::note_hang(self.system, core, seen);
        let resets = self.system.header.flags & flags::RESET_ON_FAULT != 0;
        if cfg!(feature = "checked") || resets {
            console::stop(format_args!("pCPU {core} hangs since {seen}"));
        }
        let ms = timer::ticks_to_ns(now.since(Instant(seen)).0) / 1_000_000;
        let [tenths, hundredths, thousandths] = [100, 10, 1].map(|part| (ms / part % 10) as usize);
        let vcpu = match status::current(self.system, core) {
            u64::MAX => Piece::Label("none"),
            vcpu => Piece::Decimal(vcpu as u8),
        };
        write_line!(
            "hypervisor fault: pCPU ",
            core,
            " hangs: no interrupt for ",
            (ms / 1_000) as usize,
            ".",
            tenths,
            hundredths,
            thousandths,
            " s; vCPU ",
            vcpu,
        );
        if core == self.uart_core {
            self.watchdog.write_log();
        }
        self.log_has_output();
    }
}
