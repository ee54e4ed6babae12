//! What the records of a trace mean: which vCPU had which core when, and which held what.
//!
//! Times are in nanoseconds since EL2 began. In virtual time a core may be ahead of another by its
//! turn, so that an arrival may seem to come before its departure: [`AHEAD`]. Of records that were lost nothing is known: what
//! begins among them has no beginning here, and what ends among them ends with the next record
//! that says so.

#[cfg(test)]
mod tests;

use super::file::Trace;
use super::subject::Subject;
use abi::status::vcpu_state;
use abi::trace::{Claim, Kind, Outcome, Record};

/// By how much one core's time may be ahead of another's, ns.
const AHEAD: u64 = 10_000;

/// A vCPU had a pCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Index of the pCPU.
    pub pcpu: usize,
    /// Index of the vCPU.
    pub vcpu: usize,
    /// It had no work, and idled its budget away.
    pub idles: bool,
    /// Beginning, ns.
    pub from: u64,
    /// End, ns.
    pub to: u64,
}

/// Where a vCPU stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has a core.
    Running,
    /// It has a core, without work.
    Idling,
    /// It could run.
    Ready,
    /// It waits for an interrupt.
    Sleeping,
    /// It waits for its next budget.
    Throttled,
    /// It is switched off.
    Off,
}

/// A vCPU stood somewhere for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Index of the vCPU.
    pub vcpu: usize,
    /// Where it stood.
    pub state: State,
    /// Beginning, ns.
    pub from: u64,
    /// End, ns.
    pub to: u64,
}

/// A mutex was held by a vCPU, or a vCPU was raised, or overran its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Index of the mutex; of no meaning where a vCPU was raised, or overran its budget.
    pub mutex: usize,
    /// Index of the vCPU.
    pub vcpu: usize,
    /// Beginning, ns.
    pub from: u64,
    /// End, ns.
    pub to: u64,
}

/// Something went from one place to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The vCPU that migrates, or to which a mutex is granted.
    pub vcpu: usize,
    /// The mutex; none: a migration.
    pub mutex: Option<usize>,
    /// The pCPU that it comes from, and when.
    pub from: (usize, u64),
    /// The pCPU that it has come to, and when; none: not yet.
    pub to: Option<(usize, u64)>,
}

/// A record that is an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Index of the pCPU that recorded it.
    pub pcpu: usize,
    /// When, ns.
    pub at: u64,
    /// What.
    pub kind: Kind,
    /// Index of the vCPU.
    pub vcpu: usize,
    /// See [`Kind`].
    pub argument: u32,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// By pCPU, then by time.
    pub turns: Vec<Turn>,
    /// By end.
    pub phases: Vec<Phase>,
    /// Mutexes and their holders, by end.
    pub holds: Vec<Hold>,
    /// Claimants that waited for a mutex, by end.
    pub waits: Vec<Hold>,
    /// When vCPUs were raised, by end.
    pub raised: Vec<Hold>,
    /// When vCPUs overran their budgets, by end.
    pub overruns: Vec<Hold>,
    /// Migrations and grants, by beginning.
    pub flows: Vec<Flow>,
    /// All other records, by time.
    pub marks: Vec<Mark>,
    /// When the last record was made, ns.
    pub end: u64,
}

/// What is going on with one vCPU.
#[derive(Clone, Copy)]
struct Stand {
    since: u64,
    state: State,
    /// Where it stands when it has lost its core.
    behind: State,
    raised: u32,
    /// Since when that raises it; none: it is not at its ceiling.
    raised_since: Option<u64>,
    /// Since when it overruns its budget.
    overruns_since: Option<u64>,
}

/// Reads the records in order.
struct Reader {
    history: History,
    vcpus: Vec<Stand>,
    turns: Vec<Option<Turn>>,
    holders: Vec<Option<Hold>>,
    waiting: Vec<(Claim, Hold)>,
    /// Arrivals before their departures: of a vCPU, with a mutex or itself, where and when.
    arrived: Vec<(usize, Option<usize>, (usize, u64))>,
    /// Grants before their requests, and when.
    granted: Vec<(Claim, u64)>,
}

impl History {
    /// Reads a trace.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let mut all: Vec<(usize, &Record)> = trace
            .records
            .iter()
            .enumerate()
            .flat_map(|(pcpu, records)| records.iter().map(move |record| (pcpu, record)))
            .collect();
        all.sort_by_key(|(_, record)| record.time);
        let mut reader = Reader::new(&trace.subject);
        for (pcpu, record) in all {
            reader.read(pcpu, record, trace.subject.ns(record.time));
        }
        reader.finish()
    }

    /// Returns when the first vCPU had a core, ns.
    #[must_use]
    pub fn begin(&self) -> u64 {
        self.turns.iter().map(|turn| turn.from).min().unwrap_or(0)
    }

    /// Returns how long a vCPU had cores, ns.
    #[must_use]
    pub fn ran(&self, vcpu: usize) -> u64 {
        self.turns.iter().filter(|turn| turn.vcpu == vcpu).map(|turn| turn.to - turn.from).sum()
    }
}

impl Reader {
    fn new(subject: &Subject) -> Self {
        let begin = Stand {
            since: 0,
            state: State::Off,
            behind: State::Off,
            raised: 0,
            raised_since: None,
            overruns_since: None,
        };
        Self {
            history: History::default(),
            vcpus: vec![begin; subject.vcpus.len()],
            turns: vec![None; subject.pcpus],
            holders: vec![None; abi::system::MAX_MUTEXES],
            waiting: Vec::new(),
            arrived: Vec::new(),
            granted: Vec::new(),
        }
    }

    fn read(&mut self, pcpu: usize, record: &Record, at: u64) {
        let (Some(kind), vcpu) = (record.kind(), record.vcpu()) else { return };
        if vcpu >= self.vcpus.len() {
            return;
        }
        let argument = record.argument();
        self.history.end = self.history.end.max(at);
        match kind {
            Kind::Run => self.run(pcpu, vcpu, argument == 1, at),
            Kind::Stop => self.stop(pcpu, vcpu, argument == 1, at),
            Kind::Sleep if u64::from(argument) == vcpu_state::OFF => {
                self.end_overrun(vcpu, at);
                self.stand(vcpu, State::Off, at)
            }
            Kind::Sleep => self.stand(vcpu, State::Sleeping, at),
            Kind::Wake => self.stand(vcpu, State::Ready, at),
            Kind::Throttle => self.stand(vcpu, State::Throttled, at),
            Kind::Replenish => {
                self.end_overrun(vcpu, at);
                if self.vcpus[vcpu].behind == State::Throttled {
                    self.stand(vcpu, State::Ready, at);
                }
            }
            Kind::Raise => self.raise(vcpu, at),
            Kind::Lower => self.lower(vcpu, at),
            Kind::Lowered => self.leave_ceiling(vcpu, at),
            Kind::Overrun => {
                self.vcpus[vcpu].overruns_since.get_or_insert(at);
            }
            Kind::OverrunStop => self.end_overrun(vcpu, at),
            Kind::Lock => self.lock(vcpu, Claim::of(argument), at),
            Kind::Unlock => self.unlock(vcpu, Claim::of(argument).mutex.into(), at),
            Kind::Grant => self.grant(pcpu, vcpu, Claim::of(argument), at),
            Kind::Granted => self.arrive(pcpu, vcpu, Some(Claim::of(argument).mutex.into()), at),
            Kind::Migrate => self.depart(pcpu, vcpu, None, at),
            Kind::Arrive => self.arrive(pcpu, vcpu, None, at),
            _ => {}
        }
        let told = [Kind::Run, Kind::Stop, Kind::Raise, Kind::Lower];
        if !told.contains(&kind) {
            self.history.marks.push(Mark { pcpu, at, kind, vcpu, argument });
        }
    }

    fn run(&mut self, pcpu: usize, vcpu: usize, idles: bool, at: u64) {
        if let Some(turn) = self.turns[pcpu].take() {
            self.history.turns.push(Turn { to: at, ..turn });
        }
        self.turns[pcpu] = Some(Turn { pcpu, vcpu, idles, from: at, to: at });
        self.change(vcpu, if idles { State::Idling } else { State::Running }, at);
        self.vcpus[vcpu].behind = if idles { State::Sleeping } else { State::Ready };
    }

    fn stop(&mut self, pcpu: usize, vcpu: usize, ready: bool, at: u64) {
        match self.turns[pcpu].take() {
            Some(turn) if turn.vcpu == vcpu => self.history.turns.push(Turn { to: at, ..turn }),
            other => self.turns[pcpu] = other,
        }
        let stand = &mut self.vcpus[vcpu];
        if stand.behind == State::Ready && !ready {
            stand.behind = State::Sleeping;
        }
        let behind = stand.behind;
        self.change(vcpu, behind, at);
    }

    /// A vCPU stands elsewhere, as soon as it has no core.
    fn stand(&mut self, vcpu: usize, state: State, at: u64) {
        self.vcpus[vcpu].behind = state;
        if !matches!(self.vcpus[vcpu].state, State::Running | State::Idling) {
            self.change(vcpu, state, at);
        }
    }

    fn change(&mut self, vcpu: usize, state: State, at: u64) {
        let stand = &mut self.vcpus[vcpu];
        if stand.state == state {
            return;
        }
        let phase = Phase { vcpu, state: stand.state, from: stand.since, to: at };
        (stand.state, stand.since) = (state, at);
        if phase.from < phase.to {
            self.history.phases.push(phase);
        }
    }

    fn raise(&mut self, vcpu: usize, at: u64) {
        let stand = &mut self.vcpus[vcpu];
        if stand.raised == 0 {
            stand.raised_since = Some(at);
        }
        stand.raised += 1;
    }

    fn lower(&mut self, vcpu: usize, at: u64) {
        let stand = &mut self.vcpus[vcpu];
        stand.raised = stand.raised.saturating_sub(1);
        if stand.raised == 0 {
            self.leave_ceiling(vcpu, at);
        }
    }

    /// A vCPU is not at its ceiling any more: without that there is no overrun.
    fn leave_ceiling(&mut self, vcpu: usize, at: u64) {
        if let Some(from) = self.vcpus[vcpu].raised_since.take() {
            self.history.raised.push(Hold { mutex: 0, vcpu, from, to: at });
        }
        self.end_overrun(vcpu, at);
    }

    fn end_overrun(&mut self, vcpu: usize, at: u64) {
        if let Some(from) = self.vcpus[vcpu].overruns_since.take() {
            self.history.overruns.push(Hold { mutex: 0, vcpu, from, to: at });
        }
    }

    fn lock(&mut self, vcpu: usize, claim: Claim, at: u64) {
        let hold = Hold { mutex: claim.mutex.into(), vcpu, from: at, to: at };
        match claim.outcome {
            Outcome::Done | Outcome::OwnerDied => self.hold(hold),
            Outcome::Waits => self.wait(claim, hold),
            Outcome::Busy => {}
        }
    }

    fn hold(&mut self, hold: Hold) {
        let Some(holder) = self.holders.get_mut(hold.mutex) else { return };
        // Its end was not recorded, or is in another core's records, an instant later.
        if let Some(before) = holder.replace(hold) {
            self.history.holds.push(Hold { to: hold.from, ..before });
        }
    }

    fn unlock(&mut self, vcpu: usize, mutex: usize, at: u64) {
        let Some(holder) = self.holders.get_mut(mutex) else { return };
        if let Some(hold) = holder.take_if(|hold| hold.vcpu == vcpu) {
            self.history.holds.push(Hold { to: at, ..hold });
        }
    }

    fn grant(&mut self, pcpu: usize, vcpu: usize, claim: Claim, at: u64) {
        let mutex = usize::from(claim.mutex);
        match self.waiting.iter().position(|(of, _)| same(of, &claim)) {
            Some(place) => {
                let (_, wait) = self.waiting.remove(place);
                self.history.waits.push(Hold { to: at, ..wait });
            }
            None => self.granted.push((claim, at)),
        }
        self.hold(Hold { mutex, vcpu, from: at, to: at });
        self.depart(pcpu, vcpu, Some(mutex), at);
    }

    fn wait(&mut self, claim: Claim, wait: Hold) {
        self.granted.retain(|(_, at)| at.saturating_add(AHEAD) > wait.from);
        match self.granted.iter().position(|(of, _)| same(of, &claim)) {
            // It was granted at once.
            Some(place) => {
                self.granted.remove(place);
                self.history.waits.push(wait);
            }
            None => self.waiting.push((claim, wait)),
        }
    }

    fn depart(&mut self, pcpu: usize, vcpu: usize, mutex: Option<usize>, at: u64) {
        self.arrived.retain(|(_, _, (_, arrived))| arrived.saturating_add(AHEAD) > at);
        let same = |of: &(usize, Option<usize>, _)| (of.0, of.1) == (vcpu, mutex);
        let early = self.arrived.iter().position(same).map(|place| self.arrived.remove(place).2);
        // An arrow does not lead back in time.
        let to = early.map(|(pcpu, arrived)| (pcpu, arrived.max(at)));
        self.history.flows.push(Flow { vcpu, mutex, from: (pcpu, at), to });
    }

    fn arrive(&mut self, pcpu: usize, vcpu: usize, mutex: Option<usize>, at: u64) {
        let open = |flow: &&mut Flow| (flow.vcpu, flow.mutex) == (vcpu, mutex) && flow.to.is_none();
        match self.history.flows.iter_mut().rev().find(open) {
            Some(flow) => flow.to = Some((pcpu, at)),
            None => self.arrived.push((vcpu, mutex, (pcpu, at))),
        }
    }

    /// What goes on at the end ends with the last record.
    fn finish(mut self) -> History {
        let end = self.history.end;
        for turn in self.turns.iter().flatten() {
            self.history.turns.push(Turn { to: end, ..*turn });
        }
        for (vcpu, stand) in self.vcpus.iter().enumerate() {
            self.history.phases.push(Phase {
                vcpu,
                state: stand.state,
                from: stand.since,
                to: end,
            });
            let open =
                |since: Option<u64>| since.map(|from| Hold { mutex: 0, vcpu, from, to: end });
            self.history.raised.extend(open(stand.raised_since));
            self.history.overruns.extend(open(stand.overruns_since));
        }
        self.history.holds.extend(self.holders.iter().flatten().map(|h| Hold { to: end, ..*h }));
        self.history.waits.extend(self.waiting.iter().map(|(_, wait)| Hold { to: end, ..*wait }));
        self.history.turns.sort_by_key(|turn| (turn.pcpu, turn.from));
        self.history
    }
}

/// Returns true if both are of one claimant and mutex.
fn same(one: &Claim, other: &Claim) -> bool {
    (one.mutex, one.rank) == (other.mutex, other.rank)
}
