//! A link: memory of two VMs, and a doorbell for each of them.
//!
//! The memory has two halves, one for each side: a side writes its own, and may only read its peer's.
//! The registers ([`crate::platform::LINKS_BASE`]) trap. They are words: an access of another width, or
//! to another offset, reads zero and changes nothing.
//!
//! A doorbell rings once, when its owner has armed it ([`ARM`]): that is an interrupt of the owner's
//! ([`crate::platform::LINK_INTID`], an edge), wherever its vCPU is. Whatever the peer does then, there is
//! no second one before the owner arms it again. So a peer that rings all the time costs only itself.
//! The owner arms, and looks into the memory *after* that: what was written before a [`RING`] that found
//! the doorbell not armed is seen then.
//!
//! When a VM is stopped, its doorbells are no longer armed, and the memory stays as it is. Nothing rings
//! then: a side that waits for a peer that may end looks at [`PEER`] now and then.

/// Written, whatever the value: rings the peer's doorbell, if that is armed.
pub const RING: u64 = 0;
/// Written: arms the doorbell of one's own. 0 and 1: until it rings. Another value: for so many ticks of the
/// counter at most; a ring that comes later finds it not armed. So a real-time guest is not interrupted when it
/// has no time for that.
pub const ARM: u64 = 4;
/// Read: 0 while the peer's VM is off, else the number of its life, from 1 on. From when it begins to be
/// stopped that is the next life's.
pub const PEER: u64 = 8;
