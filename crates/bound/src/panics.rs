//! Where code may panic: calls that the compiler has left in the image because it could not show
//! that an index is inside, or a slice's range.

use crate::decode::{self, Flow};
use crate::graph::Code;
use crate::image::Image;
use serde::Serialize;
use std::collections::BTreeMap;

/// Call sites of panics in an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Panics {
    /// How many there are.
    pub sites: u64,
    /// How many call each function that panics.
    pub by_function: BTreeMap<String, u64>,
}

/// Counts the call sites in all code, but for those of one function that panics in another.
#[must_use]
pub fn count(image: &Image<'_>) -> Panics {
    let mut panics = Panics::default();
    let mut inside = false;
    for at in (0..image.instructions()).map(|number| image.base() + number * decode::SIZE) {
        if image.begins_other(at, u64::MAX) {
            inside = is_panic(image.name(at));
        }
        let flow = image.word(at).map_or(Flow::Undecoded, |word| decode::flow(at, word));
        let (Flow::Call(to) | Flow::Jump(to) | Flow::Branch(to)) = flow else { continue };
        if !inside && image.begins_other(to, u64::MAX) && is_panic(image.name(to)) {
            panics.sites += 1;
            *panics.by_function.entry(image.name(to).to_owned()).or_default() += 1;
        }
    }
    panics
}

/// Returns true if a function of this name panics: a few of Rust's core library are for that.
fn is_panic(name: &str) -> bool {
    let of_core = name.starts_with("core::");
    name.starts_with("core::panicking::") || of_core && name.contains("_fail")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_panic_are_told_by_their_names() {
        for (name, expected) in [
            ("core::panicking::panic_bounds_check", true),
            ("core::slice::index::slice_index_fail", true),
            ("core::option::unwrap_failed", true),
            ("core::fmt::write", false),
            ("el2::pcpu::take_failed", false),
            ("<el2::core::panicking::X>::new", false),
        ] {
            assert_eq!(is_panic(name), expected, "{name}");
        }
    }
}
