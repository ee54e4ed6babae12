//! One target under libFuzzer: the one that `CASSATA_TARGET` names.

#![no_main]
#![forbid(unsafe_code)]

use fuzz::Target;
use std::sync::LazyLock;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("CASSATA_TARGET").expect("CASSATA_TARGET names a target");
    Target::named(&name).unwrap_or_else(|| panic!("there is no target {name}"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.feed)(bytes));
