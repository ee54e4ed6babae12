//! How each vCPU's share of its core developed.

use super::status::Snapshot;

/// Most snapshots kept: more than a figure has pixels for.
const KEPT: usize = 1024;
/// Snapshots closer than this (milliseconds of the machine's time) are not kept.
const FINEST_MS: u64 = 20;

/// Snapshots of a run, evenly spaced and thinned out as the run grows. They
/// hold sums since the boot, so leaving some out falsifies nothing.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    kept: Vec<Snapshot>,
    doublings: u32,
}

/// What happened between two snapshots.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Begin, seconds since EL2 was entered.
    pub begin_s: f64,
    /// End, seconds since EL2 was entered.
    pub end_s: f64,
    /// For each vCPU: the pCPU that owned it at the end, and its share of it
    /// (0.0 to 1.0).
    pub shares: Vec<(usize, f64)>,
}

impl Timeline {
    /// Adds a snapshot, unless it is too close to the last one.
    pub(super) fn push(&mut self, snapshot: &Snapshot) {
        let finest = (snapshot.counter_hz / 1000 * FINEST_MS) << self.doublings;
        if self.kept.last().is_some_and(|last| snapshot.now.saturating_sub(last.now) < finest) {
            return;
        }
        if self.kept.len() == KEPT {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.doublings += 1;
        }
        self.kept.push(snapshot.clone());
    }

    /// The spans between the snapshots, in order.
    pub fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        self.kept.windows(2).map(|pair| Span::between(&pair[0], &pair[1]))
    }
}

impl Span {
    fn between(before: &Snapshot, after: &Snapshot) -> Self {
        let share =
            |index: usize| (after.vcpus[index].pcpu as usize, after.share(index, Some(before)));
        Self {
            begin_s: before.time(before.now).as_secs_f64(),
            end_s: after.time(after.now).as_secs_f64(),
            shares: (0..after.vcpus.len()).map(share).collect(),
        }
    }
}
