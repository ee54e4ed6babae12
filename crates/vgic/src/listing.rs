//! The long work of a [`CpuInterface`], a word at a time.
//!
//! It may stop after each word that had something, and goes on there when it is called again.

use crate::best::{Best, Choice};
use crate::interface::{CpuInterface, Hardware, ListRegister, MAX_LIST_REGISTERS, Maintenance};
use crate::{Bits, Gic, UNFINISHED, WORDS};
use core::sync::atomic::{Ordering, fence};
use notes::{Bounded, Rounds, each};

/// How far the work has come that may stop in its middle.
pub(crate) struct Work {
    pub(crate) stage: Stage,
    /// Words to look at in this stage.
    pub(crate) words: u32,
    /// Interrupts of the next word that were not looked at yet; if none, it is not begun.
    rest: u32,
    /// EOIs that found no list register, and whose interrupts are still active.
    ends: u32,
    pending: Best,
    active: Best,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing is begun.
    Rest,
    /// Nothing is begun, and something waits for it.
    Wanted,
    /// The vCPU is being switched off: what it has active ends.
    Abandoned,
    /// Looking for the spilled interrupts that the guest has ended. The list registers are as
    /// the guest has left them; in the stages below they are empty.
    Ends,
    /// Looking for the best of what is pending.
    Pending,
    /// Looking for the best of what is active.
    Active,
}

/// What has come of [`CpuInterface::list_one`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tried {
    /// The interrupt is listed.
    Listed,
    /// It is not, and all that is new is to be looked at.
    InVain,
    /// There was no reason to try.
    Not,
}

impl Work {
    pub(crate) const NONE: Self = Self {
        stage: Stage::Rest,
        words: 0,
        rest: 0,
        ends: 0,
        pending: Best::NONE,
        active: Best::NONE,
    };

    /// Begins a stage, in which these words are looked at.
    pub(crate) fn begin(&mut self, stage: Stage, words: u32) {
        (self.stage, self.words, self.rest) = (stage, words, 0);
    }

    /// Takes a few of the interrupts of `word` that were not looked at yet. If some are left, the
    /// word comes again.
    fn next_few(&mut self, word: usize) -> u32 {
        let mut left = self.rest;
        let mut rounds = Rounds::<PIECE>::begin();
        while left != 0 && (self.rest & !left).count_ones() < PIECE as u32 {
            rounds.pass();
            left &= left - 1;
        }
        let few = self.rest & !left;
        self.rest = left;
        self.words |= u32::from(left != 0) << word;
        few
    }

    pub(crate) fn next_word(&mut self) -> Option<usize> {
        if self.words == 0 {
            return None;
        }
        let word = self.words.trailing_zeros();
        self.words &= self.words - 1;
        Some(word as usize)
    }
}

/// EOIs that the hardware counts at most.
const MOST_ENDS: usize = 31;

/// Interrupts that a guest has ended, and of which the short cut takes note.
const RETIRED: usize = 2;

/// Interrupts that are looked at between two looks at what is urgent.
const PIECE: usize = 8;
/// Pieces of that in all words, at most.
const PIECES: usize = WORDS * 32 / PIECE;

pub(crate) const ALL_WORDS: u32 = (1 << WORDS) - 1;

impl CpuInterface {
    /// Takes everything back into the banks. [`Self::list`] or [`Self::sync`] puts it out again.
    /// Answers false if it stops before: what wants to see the banks has to be done anew after a
    /// [`Self::sync`]. It does not stop again unless the guest has run meanwhile.
    #[must_use]
    #[inline(always)]
    pub fn take_back(&mut self, gic: &Gic, hw: &mut impl Hardware) -> bool {
        // Apart from each other: no path leads through both, and then on as if it had stopped.
        let goes_on = self.end_spilled(gic, hw);
        if goes_on {
            self.empty(gic, hw);
        }
        goes_on
    }

    /// Takes everything back for a register access. Answers false if the guest has to execute that
    /// again, after a [`Self::sync`]: an interrupt came before it.
    #[must_use]
    #[inline(always)]
    pub fn take_back_for_access(&mut self, gic: &Gic, hw: &mut impl Hardware) -> bool {
        if !self.take_back(gic, hw) {
            return false;
        }
        if hw.urgent() {
            self.stop(gic);
            return false;
        }
        true
    }

    /// Lists what was posted, if that is one interrupt and the guest has ended all that was listed:
    /// there is nothing to take back, nor to compare. If it is not so simple, nothing is lost.
    pub(crate) fn list_one(&mut self, gic: &Gic, hw: &mut impl Hardware) -> Tried {
        let attention = gic.private(self.vcpu).attention.load(Ordering::Acquire);
        let is_quiet = self.work.stage == Stage::Rest
            && self.backlog == 0
            && self.maintenance == Maintenance::default();
        let is_one = attention.is_power_of_two() && attention != UNFINISHED;
        // A register that tells of an end is not empty.
        let is_free = self.used & !hw.empty() == 0 && self.used.count_ones() as usize <= RETIRED;
        if !is_quiet || !is_one || !is_free {
            return Tried::Not;
        }
        // One that was filled just now may still pass for an empty one, until it is read.
        for index in Bits::of(self.used).at_most::<RETIRED>() {
            let register = hw.read(index as usize);
            if register.is_pending() || register.is_active() {
                return Tried::Not;
            }
        }
        for index in Bits::of(self.used).at_most::<RETIRED>() {
            self.unlist(gic, hw, index as usize, ListRegister(0));
        }
        self.used = 0;
        self.latest = None;
        let word = attention.trailing_zeros() as usize;
        if gic.bank(self.vcpu, word).has_requests() {
            return Tried::InVain;
        }
        let news = self.take_attention(gic);
        if word > 0 {
            // As in `list_with`.
            fence(Ordering::SeqCst);
        }
        let ready = gic.candidates(self.vcpu, word);
        if news == attention && ready.is_power_of_two() {
            let intid = word as u32 * 32 + ready.trailing_zeros();
            if self.list_pending(gic, hw, 0, Choice::new(gic, self.vcpu, intid)) {
                return Tried::Listed;
            }
        }
        self.backlog |= news;
        Tried::InVain
    }

    /// Lists what is active and the best of what is pending in the words that took part in the
    /// latest [`Self::take_back`] or were marked since. Answers how many interrupts are listed
    /// pending; none if it stops.
    #[inline(never)]
    pub fn list(&mut self, gic: &Gic, hw: &mut impl Hardware) -> usize {
        let news = self.take_attention(gic);
        self.list_with(gic, hw, news)
    }

    /// Goes on to list where that has stopped, or begins anew if there are news.
    pub(crate) fn go_on(&mut self, gic: &Gic, hw: &mut impl Hardware) -> usize {
        match self.take_attention(gic) {
            0 => self.list_rest(gic, hw),
            news => self.list_with(gic, hw, news),
        }
    }

    fn list_with(&mut self, gic: &Gic, hw: &mut impl Hardware, news: u32) -> usize {
        self.backlog |= news;
        if self.backlog & !1 != 0 {
            // Pairs with the fence in `release`: either that vCPU sees what we
            // were told of, or we see that it gave the interrupt up.
            fence(Ordering::SeqCst);
        }
        self.work.begin(Stage::Pending, self.backlog);
        self.work.pending.restart(hw.count());
        if hw.urgent() { self.stop(gic) } else { self.list_rest(gic, hw) }
    }

    #[inline(never)]
    fn list_rest(&mut self, gic: &Gic, hw: &mut impl Hardware) -> usize {
        if self.work.stage == Stage::Pending {
            let mut rounds = Rounds::<PIECES>::begin();
            while let Some(word) = self.work.next_word() {
                rounds.pass();
                if self.work.rest == 0 {
                    if self.obey_ends(gic, hw, word) && hw.urgent() {
                        self.work.words |= 1 << word;
                        return self.stop(gic);
                    }
                    self.obey_clears(gic, hw, word);
                    self.work.rest = gic.candidates(self.vcpu, word);
                    if self.work.rest != 0 && hw.urgent() {
                        self.work.words |= 1 << word;
                        return self.stop(gic);
                    }
                }
                for bit in Bits::of(self.work.next_few(word)).at_most::<PIECE>() {
                    self.work.pending.offer(Choice::new(gic, self.vcpu, word as u32 * 32 + bit));
                }
                if hw.urgent() {
                    return self.stop(gic);
                }
            }
            self.work.begin(Stage::Active, ALL_WORDS);
            // One register stays free for whatever pends, or it could never preempt.
            let free = usize::from(!self.work.pending.is_empty());
            self.work.active.restart(hw.count() - free);
        }
        if !self.look_for_active(gic, hw, false) {
            return self.stop(gic);
        }
        self.fill(gic, hw)
    }

    /// Ends as many spilled interrupts as the hardware has counted EOIs, the most urgent first.
    /// Answers false if it stops.
    #[inline(never)]
    fn end_spilled(&mut self, gic: &Gic, hw: &mut impl Hardware) -> bool {
        if self.work.stage == Stage::Wanted {
            self.work.stage = Stage::Rest;
        }
        // Before the list registers are emptied: only what is in none of them
        // can have been ended so.
        if self.maintenance.unlisted_eoi && self.work.stage == Stage::Rest {
            self.work.ends = hw.take_eoi_count();
        }
        if self.maintenance.none_pending {
            // Nothing is listed pending while this goes on, which needs no interrupt to tell.
            self.want(hw, false, self.maintenance.unlisted_eoi);
        }
        let mut passes = Rounds::<{ MOST_ENDS + 1 }>::begin();
        while self.work.ends > 0 {
            passes.pass();
            if self.work.stage == Stage::Rest {
                self.begin_ends(hw);
            }
            if !self.look_for_active(gic, hw, true) {
                self.stop(gic);
                return false;
            }
            let mut ended = 0;
            let mut rounds = Rounds::<MAX_LIST_REGISTERS, { each::LIST_REGISTER }>::begin();
            while let Some(choice) = self.work.active.chosen().get(ended as usize).copied() {
                rounds.pass();
                self.backlog |= 1 << (choice.intid() / 32);
                self.end_one(gic, hw, choice.intid());
                ended += 1;
            }
            // EOIs beyond what was spilled are a guest's mistakes.
            self.work.ends = if self.work.active.is_full() { self.work.ends - ended } else { 0 };
            self.work.stage = Stage::Rest;
            if self.work.ends > 0 && hw.urgent() {
                self.begin_ends(hw);
                self.stop(gic);
                return false;
            }
        }
        true
    }

    /// Begins to look for interrupts that the guest has ended, as many as there are list registers.
    fn begin_ends(&mut self, hw: &impl Hardware) {
        self.work.begin(Stage::Ends, ALL_WORDS);
        self.work.active.restart(hw.count().min(self.work.ends as usize));
    }

    /// Returns which interrupts of a word are in the list registers. Another vCPU that tries to
    /// claim an interrupt changes the bank's word for a moment.
    fn listed_in(&self, word: usize) -> u32 {
        let listed = Bits::of(self.used).one_for::<{ each::LIST_REGISTER }, MAX_LIST_REGISTERS>();
        let intids = listed.map(|index| u32::from(self.intids[index as usize]));
        let here = intids.filter(|intid| intid / 32 == word as u32);
        here.fold(0, |bits, intid| bits | 1 << (intid % 32))
    }

    /// Takes the list registers back.
    #[inline(never)]
    pub(crate) fn empty(&mut self, gic: &Gic, hw: &mut impl Hardware) {
        for index in Bits::of(self.used).one_for::<{ each::LIST_REGISTER }, MAX_LIST_REGISTERS>() {
            let index = index as usize;
            let register = hw.read(index);
            hw.write(index, ListRegister(0));
            self.backlog |= 1 << (self.intids[index] / 32);
            self.unlist(gic, hw, index, register);
        }
        self.used = 0;
        self.latest = None;
    }

    /// Returns the next word in which something is active, and what is. Apart from the loop that
    /// looks after each word: words without are passed over once, not before each piece of others.
    #[inline(always)]
    fn next_active(&mut self, gic: &Gic) -> Option<(usize, u32)> {
        let mut rounds = Rounds::<WORDS>::begin();
        while let Some(word) = self.work.next_word() {
            rounds.pass();
            let active = gic.active(self.vcpu, word);
            if active != 0 || self.work.rest != 0 {
                return Some((word, active));
            }
        }
        None
    }

    /// Looks for the best of what is active, or only of that which is in no list register
    /// (`spilled`). Answers false if it stops.
    fn look_for_active(&mut self, gic: &Gic, hw: &mut impl Hardware, spilled: bool) -> bool {
        let mut rounds = Rounds::<PIECES>::begin();
        while let Some((word, active)) = self.next_active(gic) {
            rounds.pass();
            if self.work.rest == 0 {
                let listed = if spilled { self.listed_in(word) } else { 0 };
                self.work.rest = gic.held(self.vcpu, word, active) & !listed;
            }
            for bit in Bits::of(self.work.next_few(word)).at_most::<PIECE>() {
                self.work.active.offer(Choice::active(gic, self.vcpu, word as u32 * 32 + bit));
            }
            if hw.urgent() {
                return false;
            }
        }
        true
    }

    /// Puts what was chosen into the list registers. Answers how many interrupts are listed
    /// pending.
    fn fill(&mut self, gic: &Gic, hw: &mut impl Hardware) -> usize {
        self.work.stage = Stage::Rest;
        let (slots, mut index) = (hw.count(), 0);
        let mut rounds = Rounds::<MAX_LIST_REGISTERS, { each::LIST_REGISTER }>::begin();
        while let Some(choice) = self.work.active.chosen().get(index).copied() {
            rounds.pass();
            self.list_active(gic, hw, index, choice);
            index += 1;
        }
        self.backlog = self.work.pending.left_out;
        let (mut at, mut listed) = (0, 0);
        let mut rounds = Rounds::<MAX_LIST_REGISTERS, { each::LIST_REGISTER }>::begin();
        while let Some(choice) = self.work.pending.chosen().get(at).copied() {
            rounds.pass();
            if index == slots {
                self.backlog |= 1 << (choice.intid() / 32);
            } else if self.list_pending(gic, hw, index, choice) {
                index += 1;
                listed += 1;
            }
            at += 1;
        }
        self.want(hw, self.backlog != 0, self.work.active.left_out != 0);
        listed
    }

    /// Stops before the work is begun, unless it is.
    pub(crate) fn stop_wanted(&mut self, gic: &Gic) -> usize {
        if self.work.stage == Stage::Rest {
            self.work.stage = Stage::Wanted;
        }
        self.stop(gic)
    }

    /// Stops in the middle of the work, which counts as news from now on.
    pub(crate) fn stop(&mut self, gic: &Gic) -> usize {
        // Nothing goes the short way meanwhile.
        self.backlog |= 1;
        gic.mark_one(self.vcpu, UNFINISHED);
        0
    }

    fn take_attention(&self, gic: &Gic) -> u32 {
        let attention = &gic.private(self.vcpu).attention;
        // Reading first spares the bus a write in the common case.
        if attention.load(Ordering::Acquire) == 0 {
            return 0;
        }
        attention.swap(0, Ordering::AcqRel) & !UNFINISHED
    }

    fn want(&mut self, hw: &mut impl Hardware, none_pending: bool, unlisted_eoi: bool) {
        let wanted = Maintenance { none_pending, unlisted_eoi };
        if wanted != self.maintenance {
            if unlisted_eoi && !self.maintenance.unlisted_eoi {
                // EOIs of nothing, so far: a guest's mistakes.
                hw.take_eoi_count();
            }
            self.maintenance = wanted;
            hw.set_maintenance(wanted);
        }
    }
}
