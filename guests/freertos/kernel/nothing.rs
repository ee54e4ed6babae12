//! Cargo wants a target; this package only names a dependency.
#![no_std]
