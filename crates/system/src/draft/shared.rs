//! Memory that VMs share.

use super::reader::Reader;
use super::values::{Read, Wanted, bytes, expect};
use super::{Access, At, DraftShare, DraftSharedMemory};
use crate::problem::Problems;
use toml::de::DeValue;

pub(super) const SHARED_MEMORY: Wanted =
    Wanted("an array of shared memories", "each under a line `[[shared_memory]]`");
pub(super) const SHARES: Wanted =
    Wanted("an array of shared memories", "names in brackets: `[\"page\"]`");
const SHARE: Wanted =
    Wanted("shared memory", "a name, or `{ name = \"page\", access = \"read-only\" }`");

pub(super) fn shared_memory(
    value: &At<DeValue<'_>>,
    problems: &mut Problems,
) -> Option<DraftSharedMemory> {
    let mut reader = Reader::open(value, "`shared_memory`", problems)?;
    let memory = DraftSharedMemory {
        span: value.span(),
        name: reader.required("name", "\"page\"", problems),
        size: bytes(reader.required("size", "\"4K\"", problems)),
    };
    reader.finish(problems);
    Some(memory)
}

/// `"page"`, or `{ name = "page", access = "read-only" }`.
pub(super) fn share(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<DraftShare> {
    if value.get_ref().is_str() {
        let name = At::new(value.span(), String::read(value, problems)?);
        return Some(DraftShare { name, access: Access::ReadWrite });
    }
    expect(value, &SHARE, problems, DeValue::as_table)?;
    let mut reader = Reader::open(value, "shared memory of a VM", problems)?;
    let name = reader.required("name", "\"page\"", problems);
    let access = match reader.get("access") {
        Some(_) => reader.optional("access", problems).map(At::into_inner),
        None => Some(Access::ReadWrite),
    };
    reader.finish(problems);
    Some(DraftShare { name: name?, access: access? })
}
