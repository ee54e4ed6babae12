//! The oracle: what each vCPU is stands in a struct, equals in a list, and every question
//! is a search.
//!
//! Quanta are charged when the model is asked, as the scheduler does; accounts are kept
//! tick by tick, which the scheduler does not do. A vCPU that may be boosted is two here, of which
//! at most one has anything.

use super::*;
use crate::server::{Server, ServerKind};
use std::collections::BTreeMap;

/// One vCPU.
pub(super) struct Vcpu {
    pub(super) id: u8,
    pub(super) params: Params,
    /// What is left of its quantum.
    pub(super) left: u64,
    pub(super) work: bool,
    pub(super) away: bool,
    pub(super) held_back: bool,
    /// How many global resources it holds.
    pub(super) sections: u8,
    /// The section is a mark, with which it may sleep.
    pub(super) marked: bool,
    pub(super) server: Option<Kept>,
    /// The boosts, if it may be boosted.
    pub(super) boosts: Option<Boosts>,
}

/// The identifier under which a vCPU with this one is at its higher position.
pub(super) const BOOSTED: u8 = 0x80;

/// What boosts a vCPU has, as its entry at its own priority has it.
#[derive(Clone, Copy)]
pub(super) struct Boosts {
    pub(super) is: Boost,
    pub(super) is_boosted: bool,
    next: u64,
    left: u64,
    grant: u64,
    /// An interrupt boosts it when the core decides next.
    rising: bool,
    /// The guest has said that it is urgent, or an interrupt came while its limit was spent.
    urgent: bool,
    owed: bool,
}

impl Boosts {
    /// An interrupt boosts it, or lets it be boosted for longer.
    pub(super) fn rises(&self) -> bool {
        let has_more = self.is_boosted && self.urgent;
        self.is.window.is_some_and(|window| !has_more || self.grant <= window.0)
    }

    /// A new period boosts it at this instant, if it can run.
    fn wants_new_period(&self, now: u64) -> bool {
        !self.is_boosted && now >= self.next && (self.urgent || self.owed)
    }
}

/// A server, kept tick by tick.
pub(super) struct Kept {
    pub(super) server: Server,
    left: u64,
    overrun_left: u64,
    stopped: bool,
}

impl Kept {
    pub(super) fn new(server: Server) -> Self {
        Self { server, left: 0, overrun_left: 0, stopped: false }
    }

    fn may_run(&self, in_gcs: bool) -> bool {
        self.left > 0 || (in_gcs && self.overrun_left > 0 && !self.stopped)
    }
}

impl Vcpu {
    fn is_periodic(&self) -> bool {
        self.server.as_ref().is_some_and(|kept| kept.server.kind == ServerKind::Periodic)
    }

    pub(super) fn has_reason(&self) -> bool {
        self.work || self.is_periodic()
    }

    fn is_blocked(&self) -> bool {
        let spent = self.server.as_ref().is_some_and(|kept| !kept.may_run(self.sections > 0));
        self.away || self.held_back || spent
    }

    pub(super) fn is_able(&self) -> bool {
        self.has_reason() && !self.is_blocked()
    }

    /// Returns the turn waits for it though it may not run.
    fn keeps_turn(&self) -> bool {
        self.has_reason() && self.is_blocked() || self.away
    }

    fn ceiling(&self) -> (bool, Priority) {
        (self.sections > 0, self.params.priority)
    }

    /// A periodic server stops as soon as it may not go on.
    pub(super) fn settle(&mut self) {
        let (in_gcs, periodic) = (self.sections > 0, self.is_periodic());
        if let Some(kept) = &mut self.server {
            kept.stopped |= periodic && !kept.may_run(in_gcs);
        }
    }

    pub(super) fn begin_tick(&mut self, now: u64) {
        if let Some(kept) = &mut self.server
            && now.is_multiple_of(kept.server.period.0)
        {
            (kept.left, kept.overrun_left) = (kept.server.budget.0, kept.server.overrun.0);
            kept.stopped = false;
        }
        self.settle();
    }

    pub(super) fn run_for_one_tick(&mut self) {
        if let Some(kept) = &mut self.server {
            let from = if kept.left > 0 { &mut kept.left } else { &mut kept.overrun_left };
            *from -= 1;
        }
    }
}

/// A core. Its vCPUs stand in the order in which they came.
#[derive(Default)]
pub(super) struct Model {
    pub(super) vcpus: Vec<Vcpu>,
    /// By priority: the vCPU whose turn it is.
    turns: BTreeMap<Priority, u8>,
    pub(super) running: Option<u8>,
    yielded_to: Option<u8>,
    charged: u64,
}

impl Model {
    pub(super) fn get(&mut self, id: u8) -> Option<&mut Vcpu> {
        self.vcpus.iter_mut().find(|vcpu| vcpu.id == id)
    }

    fn find(&self, id: u8) -> Option<&Vcpu> {
        self.vcpus.iter().find(|vcpu| vcpu.id == id)
    }

    /// The equals of this priority that satisfy a condition, from `id` on, and round.
    fn line(&self, priority: Priority, from: u8, which: impl Fn(&Vcpu) -> bool) -> Vec<u8> {
        let equals = || self.vcpus.iter().filter(|vcpu| vcpu.params.priority == priority);
        let before = equals().take_while(|vcpu| vcpu.id != from).count();
        let line = equals().skip(before).chain(equals().take(before));
        line.filter(|vcpu| which(vcpu)).map(|vcpu| vcpu.id).collect()
    }

    /// The one behind `id` among its equals.
    fn behind(&self, id: u8) -> u8 {
        let priority = self.find(id).unwrap().params.priority;
        let line = self.line(priority, id, |_| true);
        line[1 % line.len()]
    }

    pub(super) fn arrive(&mut self, id: u8, params: Params, work: bool) {
        let left = params.quantum.0;
        let (away, held_back) = (false, false);
        self.turns.entry(params.priority).or_insert(id);
        self.vcpus.push(Vcpu {
            id,
            params,
            left,
            work,
            away,
            held_back,
            sections: 0,
            marked: false,
            server: None,
            boosts: None,
        });
    }

    /// Lets a vCPU be boosted: it has a second entry from now on.
    pub(super) fn set_boost(&mut self, id: u8, is: Boost) {
        let params = Params { priority: is.priority, ..self.get(id).unwrap().params };
        self.arrive(id | BOOSTED, params, false);
        self.get(id).unwrap().boosts = Some(Boosts {
            is,
            is_boosted: false,
            next: 0,
            left: 0,
            grant: 0,
            rising: false,
            urgent: false,
            owed: false,
        });
    }

    /// The entry at which a vCPU is.
    pub(super) fn at(&self, id: u8) -> u8 {
        let boosts = self.find(id).and_then(|vcpu| vcpu.boosts);
        if boosts.is_some_and(|boosts| boosts.is_boosted) { id | BOOSTED } else { id }
    }

    pub(super) fn boost(&mut self, id: u8, interrupt: bool, now: u64) -> bool {
        self.charge(now);
        let Some(boosts) = self.get(id).and_then(|vcpu| vcpu.boosts.as_mut()) else { return false };
        boosts.urgent |= !interrupt;
        let window = match boosts.is.window {
            Some(window) if !boosts.urgent => window.0,
            _ => u64::MAX,
        };
        boosts.rising = false;
        if now >= boosts.next {
            (boosts.next, boosts.left) = (now + boosts.is.period.0, boosts.is.budget.0);
        }
        boosts.grant = boosts.left.min(window);
        let was_owed = boosts.owed;
        boosts.owed = interrupt && boosts.grant < window;
        if boosts.grant == 0 {
            boosts.owed |= was_owed;
            return false;
        }
        if !boosts.is_boosted {
            self.change_entry(id, true);
        }
        true
    }

    /// Lets a boost last for as long as its limit allows, or for a window from now on after an interrupt, if it has begun
    /// and its limit is neither spent nor begins anew.
    /// Returns whether. Nothing is charged: what has run until now is charged to both what is left of the limit and of
    /// the boost.
    pub(super) fn lengthen_boost(&mut self, id: u8, interrupt: bool, now: u64) -> bool {
        let taken = if self.running == Some(id | BOOSTED) { now - self.charged } else { 0 };
        let Some(boosts) = self.get(id).and_then(|vcpu| vcpu.boosts.as_mut()) else { return false };
        let stands = boosts.is_boosted && now < boosts.next && boosts.left > taken;
        if stands {
            boosts.urgent |= !interrupt;
            let window = boosts.is.window.filter(|_| !boosts.urgent);
            let time = window.map_or(u64::MAX, |window| window.0 + taken);
            (boosts.rising, boosts.grant) = (false, boosts.left.min(time));
        }
        stands
    }

    pub(super) fn end_boost(&mut self, id: u8) -> bool {
        if let Some(boosts) = self.get(id).and_then(|vcpu| vcpu.boosts.as_mut()) {
            (boosts.grant, boosts.urgent, boosts.owed) = (0, false, false);
        }
        self.at(id) != id
    }

    /// A vCPU sleeps at one entry and wakes at the other.
    fn change_entry(&mut self, id: u8, boosted: bool) {
        let (from, to) = if boosted { (id, id | BOOSTED) } else { (id | BOOSTED, id) };
        let Vcpu { work, away, held_back, .. } = *self.find(from).unwrap();
        self.sleep(from);
        let left = self.get(from).unwrap();
        (left.away, left.held_back) = (false, false);
        let came = self.get(to).unwrap();
        (came.work, came.away, came.held_back) = (work, away, held_back);
        self.get(id).unwrap().boosts.as_mut().unwrap().is_boosted = boosted;
        self.running = self.running.map(|running| if running == from { to } else { running });
    }

    /// Returns true if the core has to decide again because the vCPU had work before.
    pub(super) fn wake(&mut self, base: u8) -> bool {
        let id = self.at(base);
        let had_work = core::mem::replace(&mut self.get(id).unwrap().work, true);
        let boosts = self.get(base).unwrap().boosts.as_mut();
        match boosts.filter(|boosts| boosts.rises()) {
            Some(boosts) => boosts.rising = true,
            None => return false,
        }
        had_work
    }

    /// Boosts end of which nothing is left, and interrupted vCPUs are boosted.
    fn follow_boosts(&mut self, now: u64) {
        let over = |boosts: Boosts| boosts.is_boosted && boosts.grant == 0;
        let over =
            self.vcpus.iter().filter(|vcpu| vcpu.boosts.is_some_and(over)).map(|vcpu| vcpu.id);
        for id in over.collect::<Vec<u8>>() {
            self.change_entry(id, false);
        }
        let rose = |vcpu: &mut Vcpu| {
            let able = vcpu.is_able();
            let boosts = vcpu.boosts.as_mut()?;
            let rising = core::mem::take(&mut boosts.rising);
            (rising || able && boosts.wants_new_period(now)).then_some(vcpu.id)
        };
        for id in self.vcpus.iter_mut().filter_map(rose).collect::<Vec<u8>>() {
            // It may sleep again.
            if self.find(self.at(id)).is_some_and(|vcpu| vcpu.work) {
                self.boost(id, true, now);
            }
        }
    }

    pub(super) fn remove(&mut self, id: u8) {
        let priority = self.find(id).unwrap().params.priority;
        if self.turns[&priority] == id {
            match self.behind(id) {
                next if next == id => self.turns.remove(&priority),
                next => self.turns.insert(priority, next),
            };
        }
        self.vcpus.retain(|vcpu| vcpu.id != id);
        self.running = self.running.filter(|&running| running != id);
        self.yielded_to = self.yielded_to.filter(|&other| other != id);
    }

    pub(super) fn sleep(&mut self, id: u8) {
        let Some(vcpu) = self.get(id) else { return };
        vcpu.work = false;
        if vcpu.is_periodic() {
            return;
        }
        let Params { priority, quantum } = vcpu.params;
        if self.yielded_to == Some(id) {
            self.yielded_to = None;
        }
        if self.turns[&priority] == id {
            // What was used before its turn stays used.
            self.get(id).unwrap().left = quantum.0;
            self.turns.insert(priority, self.behind(id));
        }
    }

    pub(super) fn set_away(&mut self, id: u8) -> bool {
        let Some(vcpu) = self.get(id) else { return false };
        let had_work = vcpu.work && !vcpu.away;
        vcpu.away |= vcpu.has_reason();
        had_work
    }

    pub(super) fn come_back(&mut self, id: u8, ready: bool) {
        let Some(vcpu) = self.get(id) else { return };
        vcpu.work = ready || vcpu.work && !vcpu.away;
        vcpu.away = false;
    }

    pub(super) fn yield_to(&mut self, id: u8) -> bool {
        let Some(running) = self.running.and_then(|id| self.find(id)) else { return false };
        let Some(vcpu) = self.find(id).filter(|vcpu| vcpu.is_able()) else { return false };
        let priority = vcpu.params.priority;
        if running.id == id
            || running.ceiling() != vcpu.ceiling() && running.sections > 0
            || running.params.priority != priority
            || vcpu.left == 0
        {
            return false;
        }
        self.yielded_to = Some(id).filter(|&id| self.turns[&priority] != id);
        true
    }

    pub(super) fn yield_turn(&mut self, id: u8, others: &[u8], now: u64) -> bool {
        let Some(me) = self.find(id).filter(|vcpu| vcpu.is_able()) else { return false };
        let waits = |other: &Vcpu| {
            let reaches = me.sections == 0 || other.ceiling() == me.ceiling();
            let equal = other.params.priority == me.params.priority;
            other.id != id && equal && reaches && other.is_able() && others.contains(&other.id)
        };
        if self.running != Some(id) || !self.vcpus.iter().any(waits) {
            return false;
        }
        let Params { priority, quantum } = me.params;
        self.charge(now);
        self.yielded_to = self.yielded_to.filter(|&other| other != id);
        if self.turns[&priority] == id {
            self.get(id).unwrap().left = quantum.0;
            self.turns.insert(priority, self.behind(id));
        }
        true
    }

    /// Forgets a yield to a vCPU that cannot run now.
    pub(super) fn drop_yield_to_blocked(&mut self) {
        self.yielded_to = self.yielded_to.filter(|&id| self.find(id).unwrap().is_able());
    }

    pub(super) fn charge(&mut self, now: u64) {
        let taken = now - self.charged;
        self.charged = now;
        let Some(id) = self.running else { return };
        if id & BOOSTED != 0
            && let Some(boosts) = &mut self.get(id & !BOOSTED).unwrap().boosts
        {
            for left in [&mut boosts.left, &mut boosts.grant] {
                *left = if *left == u64::MAX { *left } else { left.saturating_sub(taken) };
            }
        }
        let Some(vcpu) = self.get(id).filter(|vcpu| vcpu.has_reason() && !vcpu.away) else {
            return;
        };
        let Params { priority, quantum } = vcpu.params;
        vcpu.left = vcpu.left.saturating_sub(taken);
        if vcpu.left > 0 {
            return;
        }
        self.yielded_to = self.yielded_to.filter(|&other| other != id);
        let turn = self.turns[&priority];
        // Else it ran before its turn, which will pass it over.
        if turn == id || self.find(turn).unwrap().keeps_turn() {
            self.get(id).unwrap().left = quantum.0;
            self.turns.insert(priority, self.behind(id));
        }
    }

    /// Which vCPU runs, and when its quantum ends if it shares the core.
    pub(super) fn decide(&mut self, now: u64) -> (Option<u8>, Option<u64>) {
        self.charge(now);
        self.follow_boosts(now);
        let able = || self.vcpus.iter().filter(|vcpu| vcpu.is_able());
        let Some((in_gcs, priority)) = able().map(Vcpu::ceiling).max() else {
            self.running = None;
            return (None, None);
        };
        let turn = self.turns[&priority];
        let stays = self.find(turn).unwrap().keeps_turn();
        let may = |vcpu: &Vcpu| vcpu.is_able() && (vcpu.sections > 0 || !in_gcs);
        let line = self.line(priority, turn, may);
        let shares = line.len() > 1;
        let mut next = line[0];
        if shares {
            // Those that ran before their turns have had them.
            for &id in line.iter().cycle() {
                next = id;
                let vcpu = self.get(id).unwrap();
                if vcpu.left > 0 {
                    break;
                }
                vcpu.left = vcpu.params.quantum.0;
            }
        }
        if !stays {
            self.turns.insert(priority, next);
        }
        if let Some(id) = self.yielded_to.filter(|id| shares && line.contains(id)) {
            next = id;
        }
        self.running = Some(next);
        (Some(next), shares.then(|| now + self.find(next).unwrap().left))
    }

    /// Returns true if the latest decision still holds: nothing that it did not foresee happened.
    pub(super) fn stands(&self, now: u64) -> bool {
        let able = || self.vcpus.iter().filter(|vcpu| vcpu.is_able());
        let Some(running) = self.running.and_then(|id| self.find(id)) else {
            return able().next().is_none();
        };
        let equals = |vcpu: &&Vcpu| vcpu.id != running.id && vcpu.ceiling() == running.ceiling();
        let shares = able().any(|vcpu| equals(&vcpu));
        let grant = match running.id & BOOSTED {
            0 => u64::MAX,
            _ => self.find(running.id & !BOOSTED).unwrap().boosts.unwrap().grant,
        };
        let rises = |vcpu: &Vcpu| {
            vcpu.boosts.is_some_and(|boosts| {
                vcpu.id != running.id
                    && boosts.wants_new_period(now)
                    && running.sections == 0
                    && boosts.is.priority > running.params.priority
            })
        };
        running.is_able()
            && !able().any(rises)
            && now - self.charged < grant
            && able().all(|vcpu| vcpu.ceiling() <= running.ceiling())
            && (!shares || now - self.charged < running.left)
    }
}
