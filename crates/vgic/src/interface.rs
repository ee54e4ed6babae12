//! List registers: what the owner of a vCPU keeps in them and why.
//!
//! [`CpuInterface::sync`] is the whole policy. It takes everything back from
//! the list registers into the banks, then lists the interrupts this vCPU has
//! active (so that the guest's EOI finds them) and the best of those pending.
//! Slow but always right, and bounded: it looks only at words marked for
//! attention and keeps the best few in one pass. How a single interrupt changes
//! over between bank and list register is in `exchange`.
//!
//! A hostile guest may have hundreds of interrupts active and pending, so the long parts are
//! done a word at a time, and after each [`Hardware::urgent`] is asked. If something urgent has
//! come, the work stops there; [`CpuInterface::sync`] goes on with it. Until that is done the
//! guest must not run ([`CpuInterface::is_unfinished`]), so nothing that the work has seen
//! changes behind its back: what other cores change is news, for which it begins anew.
//!
//! There are two short cuts. [`CpuInterface::inject`] is for what happens a thousand times a
//! second: one private interrupt that has just arrived, one free list register. For a single
//! interrupt that was posted, [`CpuInterface::sync`] has another one (`list_one`).
//!
//! When there are more active interrupts than list registers, those of the
//! lowest priority stay out ("spilled"): they will be the last to be ended, and
//! then the hardware counts an EOI without a list register
//! (ICH_HCR_EL2.EOIcount), which raises a maintenance interrupt. When there are
//! more pending ones, a maintenance interrupt comes as soon as no listed one is
//! pending any more (ICH_HCR_EL2.NPIE). IHI 0069H, sections 4.8 and 12.4.

pub use crate::list_register::ListRegister;

use crate::listing::{ALL_WORDS, Stage, Tried, Work};
use crate::{Bits, Gic, WORDS};
use core::sync::atomic::Ordering;
use notes::Rounds;

/// Most list registers an implementation can have.
pub const MAX_LIST_REGISTERS: usize = 16;

/// The list registers of the core, loaded with this vCPU's.
pub trait Hardware {
    /// How many there are, 1 to 16.
    fn count(&self) -> usize;
    /// Reads one.
    fn read(&self, index: usize) -> ListRegister;
    /// Writes one.
    fn write(&mut self, index: usize, value: ListRegister);
    /// Those that hold neither a pending nor an active interrupt, nor an EOI to
    /// tell of (ICH_ELRSR_EL2).
    fn empty(&self) -> u32;
    /// Takes the count of EOIs that found no list register.
    fn take_eoi_count(&mut self) -> u32;
    /// Which maintenance interrupts are wanted. The count of EOIs is zero then.
    fn set_maintenance(&mut self, wanted: Maintenance);
    /// Deactivates a physical interrupt.
    fn deactivate(&mut self, physical: u32);
    /// Rings the cores of these vCPUs of the VM (bit set by index): they have
    /// to look at their attention set.
    fn notify(&mut self, vcpus: u8);
    /// Returns true if an interrupt waits that must not wait for long. The caller stops at the next
    /// opportunity, and the work has to be resumed.
    fn urgent(&mut self) -> bool;
}

/// Reasons for a maintenance interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maintenance {
    /// No listed interrupt is pending: there are more to list.
    pub none_pending: bool,
    /// An EOI of an interrupt that is not listed. ICC_DIR_EL1 has to trap while
    /// this is set, since the count does not say which interrupt it named: see
    /// [`CpuInterface::deactivate`].
    pub unlisted_eoi: bool,
}

/// A vCPU's side of the interrupt controller; belongs to its owner.
pub struct CpuInterface {
    /// Index of the vCPU in its VM.
    pub(crate) vcpu: usize,
    /// List registers in use, and by which interrupt.
    pub(crate) used: u32,
    pub(crate) intids: [u16; MAX_LIST_REGISTERS],
    /// Those that took the latch of their interrupt along; others are pending
    /// because a line is high.
    pub(crate) latched: u32,
    /// Those listed as active.
    pub(crate) active: u32,
    /// Those whose physical interrupt the list register does not know, because
    /// EL2 has to hear of the end: it deactivates both.
    pub(crate) by_hand: u32,
    /// Words to look at in the next [`Self::list`]: they held more than could
    /// be listed, or were taken back.
    pub(crate) backlog: u32,
    pub(crate) maintenance: Maintenance,
    /// What [`Self::inject`] wrote last and where, as long as nothing was taken
    /// back since.
    pub(crate) latest: Option<(usize, ListRegister)>,
    pub(crate) work: Work,
}

impl CpuInterface {
    /// As after reset.
    #[must_use]
    pub const fn new(vcpu: usize) -> Self {
        Self {
            vcpu,
            used: 0,
            intids: [0; MAX_LIST_REGISTERS],
            latched: 0,
            active: 0,
            by_hand: 0,
            backlog: 0,
            maintenance: Maintenance { none_pending: false, unlisted_eoi: false },
            latest: None,
            work: Work::NONE,
        }
    }

    /// Of a vCPU that is switched on: what was pending before, it finds.
    #[must_use]
    pub const fn starting(vcpu: usize) -> Self {
        Self { backlog: ALL_WORDS, ..Self::new(vcpu) }
    }

    /// Returns true if anything was posted since the last [`Self::sync`], or that has stopped in its
    /// middle.
    #[must_use]
    pub fn has_news(&self, gic: &Gic) -> bool {
        gic.private(self.vcpu).attention.load(Ordering::Acquire) != 0
    }

    /// Returns true if [`Self::sync`] may have something to list: what was posted, or what found
    /// no place before.
    #[must_use]
    pub fn has_unlisted(&self, gic: &Gic) -> bool {
        gic.private(self.vcpu).attention.load(Ordering::Acquire) | self.backlog != 0
    }

    /// Returns true if this private interrupt came and the guest has not yet ended it.
    #[must_use]
    fn holds(&self, gic: &Gic, intid: u32) -> bool {
        let bank = &gic.private(self.vcpu).bank;
        let held = bank.listed.load(Ordering::Relaxed)
            | bank.pending.load(Ordering::Relaxed)
            | bank.active.load(Ordering::Relaxed);
        held >> intid & 1 == 1
    }

    /// Returns true if work has stopped in its middle: [`Self::sync`] has to go on before the guest runs.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.work.stage != Stage::Rest
    }

    /// Asserts that each list register in use has an interrupt of its own, which its bank
    /// says is this vCPU's.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self, gic: &Gic) {
        for index in Bits::of(self.used) {
            let intid = u32::from(self.intids[index as usize]);
            let same = |other: &u32| u32::from(self.intids[*other as usize]) == intid;
            assert_eq!(
                Bits::of(self.used).filter(same).count(),
                1,
                "interrupt {intid} is listed twice"
            );
            let listed = gic.bank(self.vcpu, intid as usize / 32).listed.load(Ordering::Relaxed);
            assert!(listed >> (intid % 32) & 1 == 1, "interrupt {intid} is listed unclaimed");
            assert!(gic.is_held(self.vcpu, intid), "interrupt {intid} is another vCPU's");
        }
        let by_hand = self.used & self.by_hand;
        assert_eq!(by_hand & !self.active, 0, "EL2 ends what the guest has not begun");
    }

    /// List registers in use, as a bit set.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Lists one private interrupt that has a physical counterpart, which just
    /// arrived. Answers how many interrupts were listed.
    pub fn inject(
        &mut self,
        gic: &Gic,
        hw: &mut impl Hardware,
        intid: u32,
        physical: u32,
    ) -> usize {
        if self.repeat(gic, hw, intid) {
            return 1;
        }
        let bit = 1u32 << intid;
        self.retire(gic, hw);
        let index = (!self.used).trailing_zeros() as usize;
        let bank = &gic.private(self.vcpu).bank;
        let acceptable = bank.acceptable(gic.ctlr.load(Ordering::Relaxed)) & bit != 0;
        if index >= hw.count() || !acceptable || self.backlog != 0 {
            // The slow way handles every exception to the common case.
            bank.pending.fetch_or(bit, Ordering::AcqRel);
            gic.mark_one(self.vcpu, 1);
            // Something is done, so it may stop here.
            if !hw.urgent() {
                return self.sync(gic, hw);
            }
            return self.stop_wanted(gic);
        }
        self.list_arrived(gic, hw, index, intid, physical);
        self.latest = Some((index, hw.read(index)));
        1
    }

    /// Lists once more what [`Self::inject`] listed last, if its register is
    /// the only one that has become empty since. A change of its configuration
    /// would have taken it back or left news, so what was true then is true now:
    /// there is no backlog either.
    fn repeat(&mut self, gic: &Gic, hw: &mut impl Hardware, intid: u32) -> bool {
        let Some((index, register)) = self.latest else { return false };
        let quiet = self.used & hw.empty() == 1 << index;
        let again = quiet && register.intid() == intid && !self.has_news(gic);
        if again {
            hw.write(index, register);
        }
        again
    }

    /// Before its vCPU leaves the hardware, or sleeps there: takes note of what the guest has
    /// ended. Answers whether it still deals with this private interrupt.
    pub fn park(&mut self, gic: &Gic, hw: &mut impl Hardware, intid: u32) -> bool {
        let ended = self.used & hw.empty();
        if let Some((index, register)) = self.latest
            && ended == 1 << index
            && self.used == ended
            && register.intid() == intid
        {
            // As a rule: one interrupt, ended. It stays noted as listed, for
            // `repeat`.
            return false;
        }
        self.retire(gic, hw);
        self.holds(gic, intid)
    }

    /// Brings list registers and banks in step, or goes on where that has stopped. Answers how
    /// many interrupts are listed pending; none if it stops, see [`Self::is_unfinished`].
    pub fn sync(&mut self, gic: &Gic, hw: &mut impl Hardware) -> usize {
        if matches!(self.work.stage, Stage::Pending | Stage::Active) {
            // All is taken back already.
            return self.go_on(gic, hw);
        }
        match self.list_one(gic, hw) {
            Tried::Listed => return 1,
            // Something is done, so it may stop here.
            Tried::InVain if hw.urgent() => return self.stop_wanted(gic),
            Tried::InVain | Tried::Not => {}
        }
        if self.take_back(gic, hw) { self.list(gic, hw) } else { 0 }
    }

    /// The guest wrote ICC_DIR_EL1, and it trapped. Answers false if the guest has to execute
    /// that again, after a [`Self::sync`].
    #[must_use]
    pub fn deactivate(&mut self, gic: &Gic, hw: &mut impl Hardware, intid: u32) -> bool {
        if !self.take_back_for_access(gic, hw) {
            return false;
        }
        let word = intid as usize / 32;
        if word >= WORDS {
            // Not one of ours.
        } else if !gic.is_held(self.vcpu, intid) {
            hw.notify(gic.request_deactivation(self.vcpu, word, 1 << (intid % 32)));
        } else if gic.bank(self.vcpu, word).is_active(intid) {
            self.end_one(gic, hw, intid);
            self.backlog |= 1 << word;
        }
        self.list(gic, hw);
        true
    }

    /// Begins to forget what the vCPU deals with, which stops. What follows is [`Self::abandon`],
    /// and nothing else before that is done.
    pub fn begin_to_abandon(&mut self) {
        self.work.begin(Stage::Abandoned, ALL_WORDS);
    }

    /// Forgets what the vCPU had active, for one that stops. Physical interrupts
    /// behind that, and behind what was pending for this vCPU, are deactivated
    /// and no longer pending here: a line still high makes them come again. Answers false if it
    /// stops before; then it has to be called again.
    #[must_use]
    pub fn abandon(&mut self, gic: &Gic, hw: &mut impl Hardware) -> bool {
        if self.used != 0 {
            self.empty(gic, hw);
            if hw.urgent() {
                return false;
            }
        }
        // All that is active ends, so it does not matter what the guest has ended.
        hw.take_eoi_count();
        let mut rounds = Rounds::<WORDS>::begin();
        while let Some(word) = self.work.next_word() {
            rounds.pass();
            let active = gic.held(self.vcpu, word, gic.active(self.vcpu, word));
            self.end(gic, hw, word, active);
            if active != 0 && hw.urgent() {
                self.work.words |= 1 << word;
                return false;
            }
            let bank = gic.bank(self.vcpu, word);
            let linked = gic.linked(word, bank.pending.load(Ordering::Acquire));
            let mine = Bits::of(linked)
                .filter(|bit| word == 0 || gic.target(word as u32 * 32 + bit) == Some(self.vcpu));
            let mine = mine.fold(0, |mine, bit| mine | 1 << bit);
            if mine != 0 {
                let pending = bank.pending.fetch_and(!mine, Ordering::AcqRel) & mine;
                gic.deactivate_linked(hw, word, pending);
            }
            if hw.urgent() {
                return false;
            }
        }
        *self = Self { backlog: self.backlog, ..Self::new(self.vcpu) };
        hw.set_maintenance(self.maintenance);
        true
    }

    /// Returns true if [`Self::abandon`] has begun, and is not done.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.work.stage == Stage::Abandoned
    }
}
