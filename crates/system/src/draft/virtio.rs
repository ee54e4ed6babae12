//! Virtio devices that one VM gets from another one.

use super::parse::list;
use super::reader::Reader;
use super::values::{Read, Wanted, bytes, expect};
use super::{At, DraftVirtio};
use crate::problem::Problems;
use toml::de::DeValue;

pub(super) const VIRTIO: Wanted =
    Wanted("an array of virtio devices", "each VM's under a line `[[virtio]]`");
const DEVICES: Wanted =
    Wanted("an array of kinds of devices", "in brackets: `[\"console\", \"block\"]`");

pub(super) fn virtio(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<DraftVirtio> {
    let mut reader = Reader::open(value, "`virtio`", problems)?;
    let front = reader.required("front", "\"app\"", problems);
    let back = reader.required("back", "\"linux\"", problems);
    reader.require("devices", "[\"console\", \"block\"]", problems);
    let kind = |value: &At<DeValue<'_>>, problems: &mut Problems| {
        Some(At::new(value.span(), String::read(value, problems)?))
    };
    let devices = reader.get("devices");
    let virtio = DraftVirtio {
        span: value.span(),
        front,
        back,
        memory: bytes(reader.required("memory", "\"8M\"", problems)),
        devices_span: devices.map_or(value.span(), At::span),
        devices: devices
            .filter(|value| expect(value, &DEVICES, problems, DeValue::as_array).is_some())
            .map(|value| list(Some(value), &DEVICES, problems, kind)),
    };
    reader.finish(problems);
    Some(virtio)
}
