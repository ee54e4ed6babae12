//! Sections that exclude emulated code on all other cores, as QEMU has them: a core
//! that wants one waits until the others have left their code, and they wait for its end.

use super::*;

/// The cores that are in emulated code, and those that wait.
#[derive(Default)]
struct State {
    /// Cores that the section waits for, and the one that wants it; 0 without a section.
    pending: usize,
    running: Vec<bool>,
    /// Cores that the section waits for.
    awaited: Vec<bool>,
    /// The core that waits for the others to leave.
    owner_waits: Option<usize>,
    /// The cores that wait for the section's end.
    waiting: Vec<usize>,
    /// The cores that had a section, and when.
    taken: Vec<(usize, u64)>,
}

/// The sections of a board.
pub struct Sections {
    /// True if cores want any.
    pub happen: bool,
    state: Mutex<State>,
    others_left: Condvar,
    is_over: Condvar,
}

impl Sections {
    pub fn new(cores: usize) -> Self {
        let none = vec![false; cores];
        let state = State { running: none.clone(), awaited: none, ..State::default() };
        let (others_left, is_over) = (Condvar::new(), Condvar::new());
        Self { happen: false, state: Mutex::new(state), others_left, is_over }
    }

    pub fn taken(&self) -> Vec<(usize, u64)> {
        self.lock().taken.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Board {
    /// As `cpu_exec_start`.
    pub fn enter_code(&self, core: usize) {
        let mut state = self.sections.lock();
        // A core that the section waits for passes, and comes back at once.
        if !state.awaited[core] {
            state = self.wait_for_the_end(core, state);
        }
        state.running[core] = true;
    }

    /// As `cpu_exec_end`.
    pub fn leave_code(&self, core: usize) {
        let mut state = self.sections.lock();
        state.running[core] = false;
        if std::mem::take(&mut state.awaited[core]) {
            state.pending -= 1;
            if state.pending == 1 {
                state.owner_waits.iter().for_each(|&owner| self.lockstep.release(owner));
                self.sections.others_left.notify_one();
            }
        }
    }

    /// A core in emulated code tells all others of something, and has a section then: as
    /// with a TLB invalidation on all cores.
    pub fn section(&self, core: usize) {
        let others = || (0..self.exit_request.len()).filter(move |&other| other != core);
        others().for_each(|other| self.kick_alone(other, core));
        self.leave_code(core);

        let mut state = self.wait_for_the_end(core, self.sections.lock());
        state.pending = 1;
        for other in others() {
            if state.running[other] {
                state.awaited[other] = true;
                state.pending += 1;
                self.kick_alone(other, core);
            }
        }
        while state.pending > 1 {
            self.lockstep.set_blocked(core, true);
            state.owner_waits = Some(core);
            state = self.sections.others_left.wait(state).unwrap();
            state = self.go_on(core, &self.sections.state, state);
            state.owner_waits = None;
            self.lockstep.set_blocked(core, false);
        }
        state.taken.push((core, self.lockstep.vcpu_time_ns(core)));
        drop(state);
        thread::yield_now();

        let mut state = self.sections.lock();
        state.pending = 0;
        state.waiting.iter().for_each(|&other| self.lockstep.release(other));
        self.sections.is_over.notify_all();
        drop(state);
        self.enter_code(core);
    }

    /// Kicks a core that may be about to sleep. QEMU does without the lock, and the
    /// instrument repairs what that loses; here nothing would.
    fn kick_alone(&self, other: usize, by: usize) {
        let _shared = self.shared.lock().unwrap();
        self.kick(other, Some(by));
    }

    fn wait_for_the_end<'a>(
        &'a self,
        core: usize,
        mut state: MutexGuard<'a, State>,
    ) -> MutexGuard<'a, State> {
        while state.pending > 0 {
            self.lockstep.set_blocked(core, true);
            state.waiting.push(core);
            state = self.sections.is_over.wait(state).unwrap();
            state = self.go_on(core, &self.sections.state, state);
            state.waiting.retain(|&other| other != core);
            self.lockstep.set_blocked(core, false);
        }
        state
    }
}
