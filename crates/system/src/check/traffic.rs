//! What vCPUs that migrate, or stop together, make EL2 do on cores, and what is not declared of it.
//!
//! Bounds count it where it is known how often a vCPU is displaced: by vCPUs with declared tasks.
//! What EL2 does each time is in `crates/el2/src/pcpu`; `docs/src/analysis.md` says how it is
//! counted.

use super::servers::Admitted;
use crate::code::Code;
use crate::draft::DraftVm;
use crate::image::KernelKind;
use crate::model::{Consolidation, Vm};
use crate::problem::Problems;
use crate::time::text;
use crate::topology::{self, Id, may_displace};
use analysis::model::{Cause, System, Traffic, Visits};
use analysis::overheads::DUTY_EVERY_NS;
use sched::CoreSet;
use sched::policy::{Mode, Side};
use sched::topology::Placed;
use std::collections::BTreeMap;

/// vCPUs, where they may be, and those for which bounds are computed.
pub(super) struct Sight<'a> {
    vms: &'a [Vm],
    placed: Vec<(Id, Placed)>,
    timing: &'a System,
    admitted: &'a Admitted,
    consolidation: &'a Consolidation,
    /// pCPUs for which bounds are computed.
    bounded: CoreSet,
}

/// Returns true if a vCPU that is displaced leaves its core until that is free.
fn leaves(vcpu: &Placed) -> bool {
    vcpu.needs().leaves_when_displaced && !vcpu.elsewhere().is_empty()
}

/// Returns true if a vCPU migrates whenever its guest does something, displaced or not.
fn guest_decides(vcpu: &Placed) -> bool {
    let policy = vcpu.policy.policy();
    let mut modes = [Mode::User, Mode::Kernel].into_iter();
    let decides =
        vcpu.needs().moves_on_request || modes.any(|mode| policy.crossed(mode) != Side::Here);
    !vcpu.elsewhere().is_empty() && decides
}

impl<'a> Sight<'a> {
    /// Looks at these vCPUs.
    pub(super) fn new(
        timing: &'a System,
        admitted: &'a Admitted,
        vms: &'a [Vm],
        consolidation: &'a Consolidation,
    ) -> Self {
        let placed = topology::ids(vms).zip(topology::all_placed(vms, &consolidation.targets));
        let bounded = timing.vcpus.iter().map(|vcpu| vcpu.pcpu as usize).collect();
        Self { vms, placed: placed.collect(), timing, admitted, consolidation, bounded }
    }

    /// Returns what EL2 does because vCPUs are displaced, and because cores are powered down.
    pub(super) fn traffic(&self) -> Vec<Traffic> {
        let displaced = self.placed.iter().filter_map(|(id, me)| self.displacement(*id, me));
        let powered = self.consolidation.pairs().filter_map(|(pcpu, target)| {
            let visits = self.moved_together(pcpu, target);
            let cause = Cause::Every(self.consolidation.window_ns);
            (!visits.is_empty()).then_some(Traffic { cause, visits })
        });
        displaced.chain(powered).collect()
    }

    /// Warns of what EL2 does besides, where bounds have to assume that it is rare.
    pub(super) fn warn(&self, drafts: &[DraftVm], problems: &mut Problems) {
        self.warn_of_displacers(drafts, problems);
        self.warn_of_wanderers(drafts, problems);
        self.warn_of_ticks(drafts, problems);
        self.warn_of_doorbells(drafts, problems);
    }

    /// Warns of vCPUs at which a doorbell of a link or of virtio devices may ring, and that declare no handler.
    fn warn_of_doorbells(&self, drafts: &[DraftVm], problems: &mut Problems) {
        for ((vm, index), me) in &self.placed {
            let (vcpu, concerned) = (&drafts[*vm].vcpus[*index], me.places() & self.bounded);
            let Some(doorbell) = doorbell(&self.vms[*vm]) else { continue };
            if concerned.is_empty() || !vcpu.handlers.is_empty() {
                continue;
            }
            let (peer, by) = doorbell;
            let message = format!(
                "how often `{peer}` rings at `{}` by {by} is not declared: {}",
                self.name((*vm, *index)),
                assumed(concerned)
            );
            let hint = "declare `handlers = [{ name = \"doorbell\", period = \"1ms\", wcet = \"20us\" }]`, \
                        and let the guest arm the doorbell no more often";
            problems.add(Code::UncountedVisits, vcpu.span.clone(), message).hint(hint);
        }
    }

    /// Warns of a Linux with tasks that declares no tick. Of other kernels it cannot be told whether
    /// they have one.
    fn warn_of_ticks(&self, drafts: &[DraftVm], problems: &mut Problems) {
        for ((vm, index), me) in &self.placed {
            let vcpu = &drafts[*vm].vcpus[*index];
            let is_linux = matches!(self.vms[*vm].kernel.kind, KernelKind::Image(_));
            if !is_linux || vcpu.tasks.is_empty() || !vcpu.handlers.is_empty() {
                continue;
            }
            let message = format!(
                "`{}` has tasks and no handlers: if its kernel is Linux, its tick is not declared, \
                 and {}",
                self.name((*vm, *index)),
                assumed(CoreSet::of(me.base))
            );
            let hint = "declare what interrupts the guest beside its tasks: \
                        `handlers = [{ name = \"tick\", period = \"4ms\", wcet = \"50us\" }]`";
            problems.add(Code::UncountedVisits, vcpu.span.clone(), message).hint(hint);
        }
    }

    fn placed(&self, id: Id) -> Option<&Placed> {
        self.placed.iter().find(|(other, _)| *other == id).map(|(_, placed)| placed)
    }

    /// Returns the vCPUs that displace one.
    fn displacers(&self, id: Id, me: &Placed) -> Vec<Id> {
        let others = self.placed.iter().filter(|(other, _)| *other != id);
        others.filter(|(_, other)| may_displace(other, me)).map(|(other, _)| *other).collect()
    }

    /// Returns those that do not displace a vCPU but may run above one that does, and so let it
    /// displace that vCPU again.
    fn above(&self, id: Id, me: &Placed, displacers: &[Id]) -> Vec<Id> {
        let priority = |of: &Id| self.placed(*of).map(|placed| placed.priority);
        let Some(lowest) = displacers.iter().filter_map(priority).min() else { return Vec::new() };
        let others = self.placed.iter().filter(|(other, placed)| {
            *other != id
                && !displacers.contains(other)
                && placed.places().has(me.base)
                && placed.priority > lowest
        });
        others.map(|(other, _)| *other).collect()
    }

    /// Returns true if it is declared when the vCPU runs: by tasks and handlers. It can have them on
    /// its base only.
    fn is_declared(&self, (vm, index): Id) -> bool {
        let base = self.vms[vm].vcpus[index].pcpu;
        let own = self.admitted.get(&((vm, index), base));
        own.is_some_and(|own| {
            let has_task = self.timing.tasks.iter().any(|task| task.vcpu == *own);
            has_task || self.timing.handlers_of(*own).next().is_some()
        })
    }

    /// Returns where EL2 does something when a vCPU is displaced.
    fn concerned(&self, me: &Placed) -> CoreSet {
        let leaves = if leaves(me) { me.elsewhere() } else { CoreSet::EMPTY };
        let stops = if me.stops_siblings() { self.places_of_vm(me.vm) } else { CoreSet::EMPTY };
        let others = leaves | stops;
        if others.is_empty() { others } else { others | CoreSet::of(me.base) }
    }

    fn places_of_vm(&self, vm: usize) -> CoreSet {
        let own = self.placed.iter().filter(|(_, placed)| placed.vm == vm);
        let places = own.fold(CoreSet::EMPTY, |all, (_, placed)| all | placed.places());
        if self.vms[vm].vcpus.len() > 1 { places } else { CoreSet::EMPTY }
    }

    /// Returns what EL2 does each time that vCPUs with budgets displace this one.
    fn displacement(&self, id: Id, me: &Placed) -> Option<Traffic> {
        let here = |other: &Id| self.admitted.get(&(*other, me.base)).copied();
        let displacers = self.displacers(id, me);
        let by: Vec<usize> = displacers.iter().filter_map(here).collect();
        // It may wait first, and be asked again by EL2's timer: once in each time that a vCPU has the
        // core. One that preempts another displacer lets that begin such a time, too.
        let asked_again = match (me.needs().observes, displacers.len()) {
            (false, _) => 0,
            (true, ..=1) => 1,
            (true, _) => 2,
        };
        let visits = |pcpu: usize| {
            let none = Visits { pcpu: pcpu as u32, ..Visits::default() };
            match (leaves(me), pcpu == me.base) {
                // It leaves, is recalled in the visit that frees the core, and returns.
                (true, true) => Visits { doorbells: 1, departures: 1, timers: asked_again, ..none },
                // It comes, and is sent back.
                (true, false) => Visits { doorbells: 2, ..none },
                // Siblings stop, and go on. The core that tells them is not rung, but it tells them.
                (false, _) => Visits { doorbells: 2, ..none },
            }
        };
        let all: Vec<_> = (self.concerned(me) & self.bounded).iter().map(visits).collect();
        let cause = Cause::Displacement { by: by.clone() };
        (!by.is_empty() && !all.is_empty()).then_some(Traffic { cause, visits: all })
    }

    /// Returns what EL2 does on a pCPU that is powered down, and on its target: each looks at its
    /// load; each vCPU leaves and comes back once, and may be recalled again.
    fn moved_together(&self, pcpu: usize, target: usize) -> Vec<Visits> {
        let based = self.placed.iter().filter(|(_, placed)| placed.base == pcpu).count() as u64;
        let left = Visits { pcpu: pcpu as u32, doorbells: based, timers: 1, departures: based };
        let target = Visits { pcpu: target as u32, doorbells: 2 * based, timers: 1, departures: 0 };
        let both = [left, target].into_iter();
        both.filter(|visits| self.bounded.has(visits.pcpu as usize)).collect()
    }

    /// Warns of vCPUs of which nothing says how often they displace another one.
    fn warn_of_displacers(&self, drafts: &[DraftVm], problems: &mut Problems) {
        let mut found: BTreeMap<Id, (String, Id, CoreSet)> = BTreeMap::new();
        for (id, me) in &self.placed {
            let concerned = self.concerned(me) & self.bounded;
            if concerned.is_empty() {
                continue;
            }
            let displacers = self.displacers(*id, me);
            let above = self.above(*id, me, &displacers);
            let loser = self.name(*id);
            let displaces = displacers.into_iter().map(|by| (by, format!("displaces `{loser}`")));
            let gives_up = above.into_iter().map(|above| {
                (above, format!("gives pCPU {} up to one that displaces `{loser}`", me.base))
            });
            for (by, what) in displaces.chain(gives_up).filter(|(by, _)| !self.is_declared(*by)) {
                let entry = found.entry(by).or_insert((what, *id, CoreSet::EMPTY));
                entry.2 |= concerned;
            }
        }
        for (by, (what, loser, concerned)) in found {
            let message = format!(
                "how often `{}` {what} is not declared: {}",
                self.name(by),
                assumed(concerned)
            );
            let place = |(vm, index): Id| drafts[vm].vcpus[index].priority_span();
            problems
                .add(Code::UncountedVisits, place(by), message)
                .see(place(loser), "this one makes way")
                .hint("give it a server, and declare its tasks and the handlers of its other interrupts");
        }
    }

    /// Warns of vCPUs that migrate more often than they are displaced.
    fn warn_of_wanderers(&self, drafts: &[DraftVm], problems: &mut Problems) {
        // Cores with visitors are told when another one idles to which some vCPU may go.
        let hosts = self.placed.iter().filter(|(_, placed)| leaves(placed));
        let hosts = hosts.fold(CoreSet::EMPTY, |all, (_, placed)| all | placed.elsewhere());
        for ((vm, index), me) in &self.placed {
            let (concerned, why, hint) = if guest_decides(me) {
                let hint = if me.needs().moves_on_request {
                    "leave `may_run_on` out of a VM that must not decide where it runs"
                } else {
                    "under `on-demand` it migrates when it is displaced, and not when its guest \
                     enters its kernel"
                };
                (me.places(), "its guest decides", hint)
            } else if leaves(me) && me.has_choice() {
                let told = hosts.iter().filter(|host| me.elsewhere() != CoreSet::of(*host));
                let hint = "with one pCPU to go to it stays there until it is recalled";
                (told.collect(), "it goes on to whatever pCPU idles", hint)
            } else {
                continue;
            };
            let concerned = concerned & self.bounded;
            if concerned.is_empty() {
                continue;
            }
            let message = format!(
                "how often `{}` migrates has no bound, as {why}: {}",
                self.name((*vm, *index)),
                assumed(concerned)
            );
            problems
                .add(Code::UncountedVisits, drafts[*vm].vcpus[*index].priority_span(), message)
                .see(self.vms[*vm].spans.migration_policy.clone(), "this lets it migrate")
                .hint(hint);
        }
    }

    /// Returns what the model calls a vCPU.
    fn name(&self, (vm, index): Id) -> String {
        format!("{}.{index}", self.vms[vm].name)
    }
}

/// Says what bounds assume instead.
fn assumed(pcpus: CoreSet) -> String {
    let all: Vec<String> = pcpus.iter().map(|pcpu| pcpu.to_string()).collect();
    let word = if all.len() == 1 { "pCPU" } else { "pCPUs" };
    let apart = text(DUTY_EVERY_NS);
    format!(
        "bounds on {word} {} assume that what EL2 does for that is {apart} apart",
        all.join(" and ")
    )
}

/// Returns a VM that interrupts this one, and by what.
fn doorbell(vm: &Vm) -> Option<(&str, String)> {
    let link = vm.links.first().map(|end| (end.peer.as_str(), format!("link `{}`", end.name)));
    let by_virtio = || "virtio devices".to_owned();
    let front = vm.virtio.as_ref().map(|front| (front.back.as_str(), by_virtio()));
    let back = vm.backs.first().map(|back| (back.name.as_str(), by_virtio()));
    link.or(front).or(back)
}
