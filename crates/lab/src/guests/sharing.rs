//! What Linux's tool for shared mutexes says (`guests/linux/vmpcp/tool.c`): lines that begin with
//! `vmpcp `, behind init's `cassata: `.

use super::TimedCall;
use super::words::{field, keep, number};
use serde::{Deserialize, Serialize};

/// What the tool has said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// Mutexes whose tests have passed.
    pub tests: Vec<String>,
    /// The shared page, each time it was said.
    pub pages: Vec<SharedPage>,
    /// How many times the page had been said when a process was killed that held the mutex.
    pub killed_after: Option<usize>,
    /// How often a task of Linux was told that the holder before died.
    pub told: u64,
    /// Tasks of the description that it ran to their ends.
    pub ran: Vec<RanTask>,
    /// What each call took.
    pub calls: Vec<TimedCall>,
}

/// A task of the description that Linux ran, as it tells at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanTask {
    /// The name in the description.
    pub task: String,
    /// Jobs that it completed.
    pub jobs: u64,
    /// From the beginning of a period to the first instruction of the job, the mean, ns.
    pub start_mean_ns: u64,
    /// The longest of these, ns.
    pub start_max_ns: u64,
}

/// The page that VMs share (`guests/vmpcp/include/vmpcp_page.h`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedPage {
    /// Rounds that each participant has finished.
    pub rounds_by: Vec<u64>,
    /// Times a participant found another one inside.
    pub violations: u64,
    /// Times a participant was told that the holder before died.
    pub owner_died: u64,
}

impl Sharing {
    /// Takes what stands behind `vmpcp `.
    pub(super) fn hear(&mut self, said: &str) {
        if let Some(mutex) = field(said, "test").filter(|_| said.trim_end().ends_with("passed")) {
            self.tests.push(mutex.to_owned());
        } else if said.starts_with("page=") {
            self.pages.extend(page(said));
        } else if said.starts_with("task=") {
            let told = number(said, "owner_died").unwrap_or(0);
            self.told = self.told.saturating_add(told);
        } else if said.trim_end() == "killed" {
            self.killed_after = Some(self.pages.len());
        } else if said.starts_with("ran=") {
            self.ran.extend(ran(said));
        } else if let Some(call) = TimedCall::of(said) {
            keep(&mut self.calls, call);
        }
    }
}

fn page(said: &str) -> Option<SharedPage> {
    let rounds_by: Result<_, _> = field(said, "rounds")?.split(',').map(str::parse).collect();
    Some(SharedPage {
        rounds_by: rounds_by.ok()?,
        violations: number(said, "violations")?,
        owner_died: number(said, "owner_died")?,
    })
}

fn ran(said: &str) -> Option<RanTask> {
    Some(RanTask {
        task: field(said, "ran")?.to_owned(),
        jobs: number(said, "jobs")?,
        start_mean_ns: number(said, "start_mean_ns")?,
        start_max_ns: number(said, "start_max_ns")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn understands_the_tool() {
        let mut sharing = Sharing::default();
        for said in [
            "service=1.1 interrupt=1",
            "test=writer passed",
            "task=writer rounds=200 violations=0 owner_died=0 lock_ns mean=3569 max=11266",
            "page=page rounds=200,31,0,0 violations=1 owner_died=2",
            "killed",
            "task=writer rounds=200 violations=0 owner_died=1 lock_ns mean=3463 max=11271",
            "page=page rounds=400,x violations=0 owner_died=0",
            "tasks ready_ms=3120 begin_ms=5000",
            "ran=t2 jobs=10 late=0 response_mean_ns=10999286 response_max_ns=11003094 \
             start_mean_ns=8159 start_max_ns=9788",
            "ran=t4 jobs=ten",
            "intra_lock count=10000 call_ns min=120 mean=123 max=4567",
        ] {
            sharing.hear(said);
        }
        let page = SharedPage { rounds_by: vec![200, 31, 0, 0], violations: 1, owner_died: 2 };
        let expected = Sharing {
            tests: vec!["writer".into()],
            pages: vec![page],
            killed_after: Some(1),
            told: 1,
            ran: vec![RanTask {
                task: "t2".into(),
                jobs: 10,
                start_mean_ns: 8_159,
                start_max_ns: 9_788,
            }],
            calls: vec![TimedCall {
                key: "intra_lock".into(),
                count: 10_000,
                min_ns: 120,
                mean_ns: 123,
                max_ns: 4_567,
            }],
        };
        assert_eq!(sharing, expected);
    }

    #[test]
    fn what_is_told_may_be_any_number() {
        let mut sharing = Sharing::default();
        for _ in 0..2 {
            sharing.hear(&format!("task=writer owner_died={}", u64::MAX));
        }
        assert_eq!(sharing.told, u64::MAX);
    }
}
