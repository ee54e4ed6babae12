//! What boosts a vCPU.

use super::parse::priority;
use super::reader::Reader;
use super::tasks::time;
use super::{At, DraftBoost};
use crate::problem::Problems;
use toml::de::DeValue;

/// What boosts look like, for hints.
pub(crate) const EXAMPLE: &str = "{ priority = 20, budget = \"1ms\", period = \"10ms\" }";

pub(super) fn boost(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<DraftBoost> {
    let mut reader = Reader::open(value, "`boost`", problems)?;
    let r = &mut reader;
    let boost = DraftBoost {
        span: value.span(),
        priority: priority(r.required("priority", "20", problems)),
        budget: time(r.optional("budget", problems)),
        period: time(r.optional("period", problems)),
        window: time(r.optional("window", problems)),
        timer_advance: time(r.optional("timer_advance", problems)),
    };
    reader.finish(problems);
    Some(boost)
}
