//! What the FreeRTOS guest says of its work: lines that begin with `freertos: `
//! (`guests/freertos/src`).

use super::calls::TimedCall;
use super::words::{keep, number};

/// What FreeRTOS has said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreertosProgress {
    /// Activations that its measured task counted until its end.
    pub activations: Option<u64>,
    /// What its task that shares a page has counted until its end.
    pub shared: Option<Rounds>,
    /// What each call of vMPCP took.
    pub calls: Vec<TimedCall>,
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
        let Some(said) = line.strip_prefix("freertos: ") else { return };
        if let Some(words) = said.strip_prefix("summary ") {
            self.activations = number(words, "activations");
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
    fn a_sum_that_is_cut_is_none() {
        let mut said = FreertosProgress::default();
        said.hear("freertos: shared rounds=1500 waited=72 owner_died=3");
        said.hear("freertos: summary");
        assert_eq!(said, FreertosProgress::default());
    }
}
