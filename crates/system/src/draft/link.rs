//! Links between VMs.

use super::parse::list;
use super::reader::Reader;
use super::values::{Read, Wanted, bytes, expect};
use super::{At, DraftLink};
use crate::problem::Problems;
use toml::de::DeValue;

pub(super) const LINKS: Wanted = Wanted("an array of links", "each under a line `[[link]]`");
const BETWEEN: Wanted = Wanted("an array of two VMs", "in brackets: `[\"linux\", \"rtos\"]`");

pub(super) fn link(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<DraftLink> {
    let mut reader = Reader::open(value, "`link`", problems)?;
    let name = reader.required("name", "\"control\"", problems);
    reader.require("between", "[\"linux\", \"rtos\"]", problems);
    let between = reader.get("between");
    let link = DraftLink {
        span: value.span(),
        name,
        between_span: between.map_or(value.span(), At::span),
        between: between.and_then(|value| self::between(value, problems)),
        size: bytes(reader.required("size", "\"64K\"", problems)),
        cached: reader.optional("cached", problems),
    };
    reader.finish(problems);
    Some(link)
}

/// Returns the names, or none if any is no name: how many there are says nothing then.
fn between(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Vec<At<String>>> {
    let names = expect(value, &BETWEEN, problems, DeValue::as_array)?;
    let read = list(Some(value), &BETWEEN, problems, |value, problems| {
        Some(At::new(value.span(), String::read(value, problems)?))
    });
    (read.len() == names.len()).then_some(read)
}
