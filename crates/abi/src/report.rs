//! The report area: a guest writes its measurements, the host reads them.
//!
//! The memory is shared with no other guest, and measuring takes no calls, so that
//! recording a figure does not change it. A [`Header`], then a ring of
//! [`Sample`]s. The guest writes a sample first and then `written`; the host
//! reads `written` first. `guests/freertos/include/report.h` says the same in C.
//!
//! A guest that runs declared tasks has another format for them, [`tasks`]. What a guest records of
//! its task switches lies in the second half of the area, [`events`].

pub mod events;
pub mod tasks;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First word of a report area that the guest has initialised.
pub const MAGIC: u64 = u64::from_le_bytes(*b"CASREPT\x01");

/// Beginning of the area.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: u64,
    /// Frequency of the counter all times are in.
    pub counter_hz: u64,
    /// How many samples the ring holds.
    pub capacity: u64,
    /// Samples written since the start; the next goes to `written % capacity`.
    pub written: u64,
    /// Activations that began after their period was over, or never.
    pub missed: u64,
    /// Period of the measured task, ticks.
    pub period: u64,
    /// What the load task burns of the core, in per mille.
    pub load_permille: u64,
    /// Work units the load task has finished.
    pub load_units: u64,
}

// `report.h` asserts the same of its side.
const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Header>() == 64 && offset_of!(Header, written) == 24);
    assert!(offset_of!(Header, load_units) == 56);
    assert!(size_of::<Sample>() == 16 && offset_of!(Sample, response) == 8);
    assert!(offset_of!(Sample, dispatch) == 12);
};

/// One activation.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub struct Sample {
    /// When the interrupt was due: the timer's compare value.
    pub raised: u64,
    /// Ticks from then to the first instruction of the guest's handler
    /// (interrupt response time).
    pub response: u32,
    /// Ticks from then to the first instruction of the task it wakes
    /// (dispatch latency).
    pub dispatch: u32,
}
