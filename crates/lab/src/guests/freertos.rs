//! What the FreeRTOS guest says of its work: lines that begin with `freertos: `
//! (`guests/freertos/src`). Xen prints other words before them.

use super::calls::TimedCall;
use super::words::{keep, number};
use serde::{Deserialize, Serialize};

/// What FreeRTOS has said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreertosProgress {
    /// It has understood what it is told.
    pub is_ready: bool,
    /// Activations that its measured task counted until its end.
    pub activations: Option<u64>,
    /// What that task measured.
    pub lateness: Option<Lateness>,
    /// Why it gave up.
    pub failed: Option<String>,
    /// What its task that shares a page has counted until its end.
    pub shared: Option<Rounds>,
    /// What each call of vMPCP took.
    pub calls: Vec<TimedCall>,
}

/// How late its measured task was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Activations that began after their period.
    pub missed: u64,
    /// From when a tick was due until the vector.
    pub response: Spread,
    /// From then until the task.
    pub dispatch: Spread,
}

/// The extremes and the mean of times, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The shortest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Lateness {
    fn of(words: &str) -> Option<Self> {
        let missed = number(words, "missed")?;
        let (response, dispatch) = (Spread::of(words, "response")?, Spread::of(words, "dispatch")?);
        Some(Self { missed, response, dispatch })
    }
}

impl Spread {
    /// Reads what stands behind `NAME_ns`.
    fn of(words: &str, name: &str) -> Option<Self> {
        let (_, figures) = words.split_once(&format!("{name}_ns "))?;
        let (min_ns, mean_ns) = (number(figures, "min")?, number(figures, "mean")?);
        Some(Self { min_ns, mean_ns, max_ns: number(figures, "max")? })
    }
}

/// What a task that shares a page under a mutex has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    /// The rounds.
    pub rounds: u64,
    /// Rounds in which it waited for the mutex.
    pub waited: u64,
    /// Times it was told that the holder before died.
    pub owner_died: u64,
    /// Times it found another participant inside.
    pub violations: u64,
    /// All of it in the guest's words, with how long it took.
    pub words: String,
}

impl FreertosProgress {
    /// Takes one line of its console.
    pub fn hear(&mut self, line: &str) {
        let Some((_, said)) = line.split_once("freertos: ") else { return };
        if said.starts_with("period ") {
            self.is_ready = true;
        } else if let Some(why) = ["error: ", "fault: "].iter().find_map(|of| said.strip_prefix(of))
        {
            self.failed = Some(why.trim_end().to_owned());
        } else if let Some(words) = said.strip_prefix("summary ") {
            self.activations = number(words, "activations");
            self.lateness = Lateness::of(words);
        } else if let Some(words) = said.strip_prefix("shared ") {
            self.shared = rounds(words);
        } else if let Some(call) = said.strip_prefix("vmpcp ").and_then(TimedCall::of) {
            keep(&mut self.calls, call);
        }
    }
}

fn rounds(words: &str) -> Option<Rounds> {
    Some(Rounds {
        rounds: number(words, "rounds")?,
        waited: number(words, "waited")?,
        owner_died: number(words, "owner_died")?,
        violations: number(words, "violations")?,
        words: words.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn understands_what_its_tasks_say() {
        let shared = "rounds=1500 waited=72 owner_died=3 violations=0 lock_ns mean=3569 max=11266";
        let mut said = FreertosProgress::default();
        for line in [
            "freertos: period 1000 us, load 0 per mille, activations 9",
            "freertos: summary activations=3000 missed=0 dispatch_ns mean=5",
            "freertos: shares memory \"page\" under mutex \"m\", participant 1",
            &format!("freertos: shared {shared}"),
            "freertos: vmpcp inter_lock count=10 call_ns min=1 mean=2 max=3",
            "freertos: vmpcp x",
            "cassata: vmpcp inter_lock count=10 call_ns min=1 mean=2 max=3",
        ] {
            said.hear(line);
        }
        let words = shared.to_owned();
        let shared = Rounds { rounds: 1_500, waited: 72, owner_died: 3, violations: 0, words };
        assert_eq!((said.activations, said.shared), (Some(3_000), Some(shared)));
        let keys: Vec<_> = said.calls.iter().map(|call| call.key.as_str()).collect();
        assert_eq!(keys, ["inter_lock"]);
    }

    #[test]
    fn reads_how_late_its_task_was_whatever_xen_prints_before_it() {
        let mut said = FreertosProgress::default();
        said.hear("(XEN) DOM1: freertos: period 1000 us, load 0 per mille, activations 200\r");
        assert!(said.is_ready && said.failed.is_none());
        said.hear(
            "(XEN) DOM1: freertos: summary activations=200 missed=1 response_ns min=4073 mean=4665 \
             max=21454 dispatch_ns min=4421 mean=5013 max=21802\r",
        );
        let response = Spread { min_ns: 4_073, mean_ns: 4_665, max_ns: 21_454 };
        let dispatch = Spread { min_ns: 4_421, mean_ns: 5_013, max_ns: 21_802 };
        assert_eq!(said.lateness, Some(Lateness { missed: 1, response, dispatch }));
        said.hear("freertos: fault: stack overflow in task measure");
        assert_eq!(said.failed.as_deref(), Some("stack overflow in task measure"));
    }

    #[test]
    fn a_sum_that_is_cut_is_none() {
        let mut said = FreertosProgress::default();
        said.hear("freertos: shared rounds=1500 waited=72 owner_died=3");
        said.hear("freertos: summary");
        assert_eq!(said, FreertosProgress::default());
    }
}
