//! What the values of a description may be.

use super::{Access, At, Format};
use crate::board::Trigger;
use crate::code::Code;
use crate::model::{DevicetreePlace, Protocol};
use crate::nearest::did_you_mean;
use crate::problem::Problems;
use crate::size;
use crate::time;
use abi::system::{MAX_PRIORITY, NO_DELAY_LIMIT};
use analysis::model::ServerKind;
use sched::policy::MigrationPolicy;
use toml::de::DeValue;

/// A type that can be read from a TOML value. Answers `None` after having
/// complained.
pub(crate) trait Read: Sized {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self>;
}

/// What a value is wanted to be, and how that is written.
pub(crate) struct Wanted(pub(crate) &'static str, pub(crate) &'static str);

pub(crate) const TABLE: Wanted = Wanted("a table", "in braces: `{ key = value }`");
const BOOLEAN: Wanted = Wanted("`true` or `false`", "without quotes");
const STRING: Wanted = Wanted("a string", "in quotes: `\"...\"`");
const NUMBER: Wanted = Wanted("a whole number", "digits without quotes, such as 10 or 0x4000_0000");
const TIME: Wanted = Wanted("a time", "in quotes, with a unit: \"3ms\", \"250us\", \"1.1ms\"");
const SIZE: Wanted = Wanted("a size", "such as \"64K\", \"512M\", \"1G\", or a number of bytes");

/// What `pick` finds in the value, or a complaint that it is not `wanted`.
pub(crate) fn expect<'a, 'i, T>(
    value: &'a At<DeValue<'i>>,
    wanted: &Wanted,
    problems: &mut Problems,
    pick: impl FnOnce(&'a DeValue<'i>) -> Option<T>,
) -> Option<T> {
    let picked = pick(value.get_ref());
    if picked.is_none() {
        let found = value.get_ref().type_str();
        let article = if found.starts_with(['a', 'i']) { "an" } else { "a" };
        let message = format!("{} is wanted, not {article} {found}", wanted.0);
        problems.add(Code::WrongType, value.span(), message).hint(wanted.1);
    }
    picked
}

impl Read for bool {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self> {
        expect(value, &BOOLEAN, problems, DeValue::as_bool)
    }
}

impl Read for String {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self> {
        expect(value, &STRING, problems, DeValue::as_str).map(str::to_owned)
    }
}

/// A whole number, zero or more.
impl Read for u64 {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self> {
        let integer = expect(value, &NUMBER, problems, DeValue::as_integer)?;
        let number = Self::from_str_radix(integer.as_str(), integer.radix()).ok();
        if number.is_none() {
            problems
                .add(Code::BadValue, value.span(), format!("{integer} is out of range"))
                .hint("a number from 0 to 2^63 - 1 is wanted");
        }
        number
    }
}

/// A priority of a vCPU or of a task: one range for both, and one message for
/// every number outside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Priority(pub(crate) u64);

impl Read for Priority {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self> {
        let integer = expect(value, &NUMBER, problems, DeValue::as_integer)?;
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let priority = number.filter(|&number| number <= MAX_PRIORITY.into());
        if priority.is_none() {
            problems
                .add(
                    Code::Priority,
                    value.span(),
                    format!("priority {} is out of range", integer.as_str()),
                )
                .hint(format!("0 to {MAX_PRIORITY}; larger is higher"));
        }
        priority.map(Self)
    }
}

/// Bytes: a string with a unit, or a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes(pub(crate) u64);

impl Read for Bytes {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self> {
        if value.get_ref().is_integer() {
            return u64::read(value, problems).map(Self);
        }
        let text = expect(value, &SIZE, problems, DeValue::as_str)?;
        match size::parse(text) {
            Ok(bytes) => Some(Self(bytes)),
            Err(why) => {
                problems
                    .add(Code::BadValue, value.span(), why)
                    .hint("write a size as \"64K\", \"512M\", \"1G\", or a number of bytes");
                None
            }
        }
    }
}

/// The number of bytes without its type.
pub(super) fn bytes(at: Option<At<Bytes>>) -> Option<At<u64>> {
    at.map(|at| At::new(at.span(), at.get_ref().0))
}

/// A length of time, nanoseconds: a string with a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nanoseconds(pub(crate) u64);

impl Read for Nanoseconds {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self> {
        let text = expect(value, &TIME, problems, DeValue::as_str)?;
        match time::parse(text) {
            Ok(ns) => Some(Self(ns)),
            Err(why) => {
                problems
                    .add(Code::BadValue, value.span(), why)
                    .hint("write a time as \"3ms\", \"250us\", \"1.1ms\"");
                None
            }
        }
    }
}

/// A time that limits something, or `"none"`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit(pub(crate) u64);

impl Read for Limit {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self> {
        if value.get_ref().as_str() == Some("none") {
            return Some(Self(NO_DELAY_LIMIT));
        }
        Nanoseconds::read(value, problems).map(|Nanoseconds(ns)| Self(ns))
    }
}

/// The limit without its type: nanoseconds, or [`NO_DELAY_LIMIT`].
pub(super) fn limit(at: Option<At<Limit>>) -> Option<At<u64>> {
    at.map(|at| At::new(at.span(), at.get_ref().0))
}

impl Read for ServerKind {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self> {
        let servers = Self::ALL.map(|kind| (kind.name(), kind));
        one_of("server", &servers, value, problems)
    }
}

impl Read for Format {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self> {
        let formats = [("image", Self::Image), ("elf", Self::Elf), ("flat", Self::Flat)];
        one_of("kernel format", &formats, value, problems)
    }
}

impl Read for DevicetreePlace {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self> {
        let places = [("start", Self::Start), ("end", Self::End)];
        one_of("place for a device tree", &places, value, problems)
    }
}

impl Read for Trigger {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self> {
        one_of("trigger", &[("level", Self::Level), ("edge", Self::Edge)], value, problems)
    }
}

impl Read for Protocol {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self> {
        let protocols = [("vmpcp", Self::Vmpcp), ("mpcp", Self::Mpcp)];
        one_of("protocol", &protocols, value, problems)
    }
}

impl Read for Access {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self> {
        let kinds = [("read-write", Self::ReadWrite), ("read-only", Self::ReadOnly)];
        one_of("access", &kinds, value, problems)
    }
}

impl Read for MigrationPolicy {
    fn read(value: &At<DeValue<'_>>, problems: &mut Problems) -> Option<Self> {
        let policies: Vec<_> = Self::ALL.iter().map(|&kind| (kind.name(), kind)).collect();
        one_of("migration policy", &policies, value, problems)
    }
}

/// The meaning of a word that must be one of these.
fn one_of<T: Copy>(
    what: &str,
    words: &[(&str, T)],
    value: &At<DeValue<'_>>,
    problems: &mut Problems,
) -> Option<T> {
    let text = expect(value, &STRING, problems, DeValue::as_str)?;
    let known = words.iter().find(|(word, _)| *word == text);
    if known.is_none() {
        problems
            .add(Code::BadValue, value.span(), format!("there is no {what} `{text}`"))
            .hint(did_you_mean(text, words.iter().map(|(word, _)| *word)));
    }
    known.map(|&(_, meaning)| meaning)
}
