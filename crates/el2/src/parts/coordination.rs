//! What becomes of the VMs that are started and stopped here.

use super::Job;
use abi::MAX_VMS;
use abi::digest::Hasher;
use abi::status::{VmStatus, vm_state};
use sched::Message;

/// The VMs whose coordinator this core is: it is the base of their first vCPUs.
pub struct Coordination([Option<Coordinated>; MAX_VMS]);

/// A VM as its coordinator knows it: it is stopped for one reason at a time, and ends
/// when all its vCPUs are halted.
pub struct Coordinated {
    state: State,
    /// The digest of the part that is being read; none once all parts of the VM were found sound.
    inspection: Option<Hasher>,
    status: &'static mut VmStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Off,
    Running,
    /// The vCPUs are being halted, for this reason.
    Halting(Message),
    /// All are halted. Its interrupt controller is reset.
    Clearing(Message),
    /// All that its vCPUs share is reset.
    Cleared(Message),
}

/// What has to be done next of a VM whose vCPUs are halted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Resetting its interrupt controller.
    Interrupts,
    /// Resetting what else its vCPUs share.
    Rest,
    /// Ending it or starting it again, after a stop for this reason.
    Conclude(Message),
}

/// What becomes of a VM that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// It starts again.
    pub restart: bool,
    /// It could not go on.
    pub failed: bool,
}

impl Conclusion {
    fn of(reason: Message, restart_on_fault: bool) -> Self {
        let failed = reason == Message::VmsFailed;
        let restart = reason == Message::VmsReset || failed && restart_on_fault;
        Self { restart, failed }
    }

    /// Returns it in words that follow the name of the VM.
    #[must_use]
    pub fn words(self) -> &'static str {
        match (self.restart, self.failed) {
            (true, true) => " failed and is restarted",
            (true, false) => " was reset",
            (false, true) => " failed and is stopped",
            (false, false) => " is off",
        }
    }
}

impl Coordination {
    /// Makes the part of a core that coordinates no VM yet.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { None }; MAX_VMS])
    }

    /// Makes this core the coordinator of a VM, which is off. No other core writes `status`.
    pub fn adopt(&mut self, vm: usize, status: &'static mut VmStatus) {
        self.0[vm] =
            Some(Coordinated { state: State::Off, inspection: Some(Hasher::default()), status });
    }

    /// Asserts that a VM is said to be in the state in which it is.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self) {
        for here in self.0.iter().flatten() {
            let said = here.status.state;
            let is_on = matches!(said, vm_state::LOADING | vm_state::RUNNING);
            assert_eq!(is_on, here.state != State::Off, "{:?}, and said to be {said}", here.state);
        }
    }

    /// Stops if a VM is still being stopped, though all guests sleep.
    #[cfg(test)]
    pub fn check_rest(&self) {
        for (vm, here) in self.0.iter().enumerate() {
            let state = here.as_ref().map_or(State::Off, |here| here.state);
            let is_at_rest = matches!(state, State::Off | State::Running);
            assert!(is_at_rest, "VM {vm} is never halted, or its end is not done");
        }
    }

    /// Returns a VM, if this core coordinates it.
    #[must_use]
    pub fn of(&mut self, vm: usize) -> Option<&mut Coordinated> {
        self.0.get_mut(vm)?.as_mut()
    }
}

impl Default for Coordination {
    fn default() -> Self {
        Self::new()
    }
}

impl Coordinated {
    /// Records that the VM starts: its memory is filled next.
    pub fn starts(&mut self) {
        self.state = State::Running;
        self.status.state = vm_state::LOADING;
        self.status.starts += 1;
    }

    /// Returns the job with which the VM begins to be filled.
    #[inline(always)]
    #[must_use]
    pub fn first_job(&self) -> Job {
        match self.inspection {
            Some(_) => Job::Inspect { part: 0, done: 0 },
            None => Job::Load { piece: 0, done: 0 },
        }
    }

    /// Returns the digest of the part that is being read; none if the VM was found to be sound,
    /// as it is before it starts for the first time.
    #[must_use]
    pub fn inspection(&mut self) -> Option<&mut Hasher> {
        self.inspection.as_mut()
    }

    /// Records that the VM is what was packed.
    pub fn is_sound(&mut self) {
        self.inspection = None;
    }

    /// Returns what becomes of the VM, which was stopped for this, and records it if the VM does not
    /// start again. One that is not what was packed does not.
    #[must_use]
    pub fn concludes(&mut self, reason: Message, restart_on_fault: bool) -> Conclusion {
        let conclusion = Conclusion::of(reason, restart_on_fault && self.inspection.is_none());
        if !conclusion.restart {
            self.status.state = if conclusion.failed { vm_state::FAILED } else { vm_state::OFF };
        }
        conclusion
    }

    /// Records that the VM's memory is filled, and its first vCPU runs.
    pub fn runs(&mut self) {
        self.status.state = vm_state::RUNNING;
    }

    /// Begins to stop the VM. Returns true if its vCPUs have to be halted: false if that has
    /// begun already, or the VM is off.
    #[must_use]
    pub fn stop(&mut self, reason: Message) -> bool {
        let runs = self.state == State::Running;
        if runs {
            self.state = State::Halting(reason);
        }
        runs
    }

    /// Records that all vCPUs of the VM are halted, or that a step after that is done. Returns the
    /// next step, each once.
    #[must_use]
    pub fn next_step(&mut self) -> Option<Step> {
        let (state, step) = match self.state {
            State::Off | State::Running => return None,
            State::Halting(reason) => (State::Clearing(reason), Step::Interrupts),
            State::Clearing(reason) => (State::Cleared(reason), Step::Rest),
            State::Cleared(reason) => (State::Off, Step::Conclude(reason)),
        };
        self.state = state;
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    #[test]
    fn a_vm_is_stopped_for_one_reason_at_a_time() {
        let mut coordination = Coordination::new();
        assert!(coordination.of(0).is_none());
        coordination.adopt(0, Box::leak(Box::new(VmStatus::new_zeroed())));
        let vm = coordination.of(0).unwrap();
        assert!(!vm.stop(Message::VmsOff), "it is off");
        vm.starts();
        assert!(vm.stop(Message::VmsReset));
        assert!(!vm.stop(Message::VmsFailed), "it is being stopped");
        coordination.check();
        let vm = coordination.of(0).unwrap();
        let steps = core::iter::from_fn(|| vm.next_step());
        let all = [Step::Interrupts, Step::Rest, Step::Conclude(Message::VmsReset)];
        assert!(steps.eq(all), "each step is done once");
        assert!(!vm.concludes(Message::VmsFailed, false).restart);
        assert_eq!((vm.status.state, vm.status.starts), (vm_state::FAILED, 1));
    }

    #[test]
    fn a_failed_vm_starts_again_if_its_description_says_so() {
        let restarts = |reason, says_so| Conclusion::of(reason, says_so).restart;
        assert!(restarts(Message::VmsReset, false));
        assert!(restarts(Message::VmsFailed, true));
        assert!(!restarts(Message::VmsFailed, false));
        assert!(!restarts(Message::VmsOff, true));
    }
}
