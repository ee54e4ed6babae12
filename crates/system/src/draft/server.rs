//! What limits a vCPU: its server.

use super::reader::Reader;
use super::tasks::time;
use super::{At, DraftServer};
use crate::problem::Problems;
use toml::de::DeValue;

/// What a server looks like, for hints.
pub(crate) const EXAMPLE: &str = "{ kind = \"deferrable\", budget = \"3ms\", period = \"10ms\" }";

pub(super) fn server(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<DraftServer> {
    let mut reader = Reader::open(value, "`server`", problems)?;
    let r = &mut reader;
    let server = DraftServer {
        span: value.span(),
        kind: r.required("kind", "\"deferrable\"", problems),
        budget: time(r.required("budget", "\"3ms\"", problems)),
        period: time(r.required("period", "\"10ms\"", problems)),
        overrun: r.optional("overrun", problems),
        offset: time(r.optional("offset", problems)),
    };
    reader.finish(problems);
    Some(server)
}
