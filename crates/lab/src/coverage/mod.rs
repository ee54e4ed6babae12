//! Which lines of EL2 the machine tests execute.
//!
//! | module | story |
//! | --- | --- |
//! | [`image`] | the source lines of an image's instructions |
//! | [`lines`] | lines that have code in a build that ships, and which of them were reached |
//! | [`report`] | shares by crate and file, and every line that was never executed |
//!
//! [`crate::executed`] has what machines recorded. Every image is compiled anew, and so has other instructions: they meet in the lines that they
//! come from. An instruction belongs to the line on which it stands and, where that was inlined, to
//! each line that called it.

pub mod image;
pub mod lines;
pub mod report;
