//! What a run took of the host: the only part of a result that another run in
//! virtual time does not repeat.

use crate::session::Run;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Returns the host's part in `run`.
pub(super) fn host(run: &Run) -> Map<String, Value> {
    let mut host = Map::new();
    host.insert("real_time_s".into(), run.elapsed.as_secs_f64().into());
    host.insert("host_wait_s".into(), run.host.map(|used| used.waited.as_secs_f64()).into());
    if let Some(counts) = &run.instrument {
        let real_s = Duration::from_nanos(counts.real_ns).as_secs_f64();
        let virtual_time = json!({ "real_s": real_s, "slowdown": counts.slowdown });
        host.insert("virtual_time".into(), virtual_time);
    }
    host
}
