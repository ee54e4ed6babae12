//! A system description: read, checked, laid out, packed.
//!
//! ```text
//! demo.toml --load--> Checked --pack(hypervisor)--> Packed --write_file--> one bootable ELF
//! ```
//!
//! Everything that could go wrong at EL2 is found here, where there is a
//! file, a line and a person to read about it. EL2 gets flat tables
//! ([`abi::system`]), finished translation tables and finished device trees.

#![forbid(unsafe_code)]

pub mod board;
pub mod calibration;
mod check;
mod code;
mod draft;
pub mod image;
pub mod input_file;
mod inputs;
mod load;
pub mod model;
mod nearest;
pub mod outline;
pub mod pack;
mod paging;
mod plan;
pub mod problem;
pub mod sbom;
pub mod size;
pub mod temporary;
pub mod time;
mod topology;
pub mod unpack;

pub use inputs::{Input, is_same_file, is_same_place};
pub use load::{load, load_text};
pub use model::{Checked, Disk, Plugged, Slot};
pub use pack::{ImageFormat, PackError, Packed, SigningKey, pack, pack_signed};
pub use problem::{Code, Problem, Report};
pub use unpack::{UnpackError, Unpacked, unpack};
