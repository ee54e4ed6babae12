//! What a device reaches of its front, and whether that is still the front that has asked it for something.

use virtio_queue::Error;
use vm_memory::GuestMemoryMmap;

/// See the module.
pub struct Reach<'a> {
    /// Queues and buffers.
    pub memory: &'a GuestMemoryMmap,
    /// Returns true if the front was stopped since its devices were reset last.
    pub is_stopped: &'a dyn Fn() -> bool,
}

/// Why a device ends what it does.
#[derive(Debug)]
pub enum Trouble {
    /// The queue is not what it must be.
    Queue(Error),
    /// The front was stopped: its memory may have another kernel, and nothing may be written there.
    Stopped,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Queue(error)
    }
}

impl Reach<'_> {
    /// Has the device end if the front was stopped. To be called as late as possible before something is written
    /// to memory; and when something was copied from there, before it is believed: EL2 tells first, and starts the
    /// front then, so that what was copied before is what the front had there before it was stopped.
    ///
    /// # Errors
    /// The front was stopped.
    pub fn check(&self) -> Result<(), Trouble> {
        if (self.is_stopped)() { Err(Trouble::Stopped) } else { Ok(()) }
    }
}
