//! The longest paths of EL2, computed from its linked image.
//!
//! A bound on what EL2 takes must hold for the instructions that run, not for the source that
//! they come from: so the control-flow graph is read from the machine code, as was done for the
//! binary of seL4 (Blackham et al., "Timing Analysis of a Protected Operating System Kernel",
//! RTSS 2011). What machine code does not say, how often a loop runs and where a pointer to a
//! function leads, is said beside it ([`notes`], [`facts`]), and whatever is not said is reported.
//!
//! | module | story |
//! | --- | --- |
//! | [`decode`] | what an instruction does to the flow of control |
//! | [`image`] | code, functions and pointers to functions in the ELF file |
//! | [`notes`] | bounds of loops that the source left in the image |
//! | [`facts`] | what neither the image nor the source says |
//! | [`graph`] | basic blocks of one function, and the edges between them |
//! | [`copies`] | copies of blocks that give each cycle a header |
//! | [`loops`] | dominators, natural loops and how they nest |
//! | [`longest`] | the longest path through one function |
//! | [`trail`] | which path that is |
//! | [`program`] | all functions that the entries reach, and their calls |
//! | [`summary`] | functions from callees to callers: longest paths, and those without a look |
//! | [`report`] | one figure for each entry and kind, and what is missing |
//! | [`stack`] | how deep the stack of a core gets |
//! | [`panics`] | where code may panic |
//! | [`record`] | figures that were recorded, which may not rise |
//! | [`sizes`] | how large a system is |
//! | [`lines`] | the source of an instruction |
//!
//! Figures are in instructions. A *look* is a read of ISR_EL1: there EL2 sees whether an
//! interrupt is pending. What lies between two looks keeps an interrupt waiting.

#![forbid(unsafe_code)]

pub mod copies;
pub mod decode;
pub mod facts;
pub mod graph;
pub mod image;
pub mod lines;
pub mod longest;
pub mod loops;
pub mod notes;
pub mod panics;
pub mod program;
pub mod record;
pub mod report;
pub mod sizes;
pub mod stack;
pub mod summary;
pub mod trail;

/// Why an image cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not the hypervisor's ELF file, or lacks a part.
    #[error("the image: {0}")]
    Image(String),
    /// The table beside the source says something that the image does not bear out.
    #[error("the facts about the image: {0}")]
    Facts(String),
}
