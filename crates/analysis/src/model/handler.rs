//! Interrupts of guests that release no task, such as a tick.

use super::check::{check_id, unique, zero};
use super::{Ns, Problem, System};

/// The handler of an interrupt that comes at least so often. It executes on one vCPU before all
/// tasks there, those in critical sections included, and has no deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// The name, which no other handler has.
    pub id: String,
    /// Index of its vCPU in [`System::vcpus`].
    pub vcpu: usize,
    /// The least time from one interrupt to the next.
    pub period_ns: Ns,
    /// How long it executes at most for one interrupt: from 1 ns to less than the period.
    pub wcet_ns: Ns,
}

impl System {
    /// Returns the handlers of a vCPU, given its index.
    pub fn handlers_of(&self, vcpu: usize) -> impl Iterator<Item = &Handler> {
        self.handlers.iter().filter(move |handler| handler.vcpu == vcpu)
    }

    /// Checks that each handler is of a vCPU, and leaves time for something else.
    pub(super) fn check_handlers(&self) -> Result<(), Problem> {
        let ids = self.handlers.iter().map(|handler| handler.id.as_str());
        unique(ids, "handlers", "id", |id| format!("handler `{id}` is described twice"))?;
        self.handlers.iter().enumerate().try_for_each(|(index, handler)| {
            let place = |key: &str| format!("handlers[{index}].{key}");
            check_id(&place("id"), &handler.id)?;
            if handler.vcpu >= self.vcpus.len() {
                let what = format!("there is no vCPU with index {}", handler.vcpu);
                return Err(Problem::new(place("vcpu"), what, "indices begin with 0"));
            }
            if handler.period_ns == 0 {
                return Err(zero(&place("period")));
            }
            if handler.wcet_ns == 0 {
                return Err(zero(&place("wcet")));
            }
            if handler.wcet_ns >= handler.period_ns {
                let (wcet, period) = (handler.wcet_ns, handler.period_ns);
                let what = format!(
                    "handler `{}` executes for {wcet} ns, which is not less than its period, \
                     {period} ns",
                    handler.id
                );
                return Err(Problem::new(place("wcet"), what, "it would leave no time for tasks"));
            }
            Ok(())
        })
    }
}
