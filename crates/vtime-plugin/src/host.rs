//! The lockstep's view of QEMU: instruction counters and the main loop's poll.

use qemu_plugin_sys::{qemu_plugin_scoreboard, qemu_plugin_scoreboard_new, qemu_plugin_u64};
use qemu_plugin_sys::{qemu_plugin_u64_get, qemu_plugin_u64_set, qemu_plugin_u64_sum};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::mem::{offset_of, size_of};
use vtime::lockstep::Host;

/// What translated code keeps for each core, one cache line each.
#[repr(C, align(64))]
struct Board {
    /// Rises with every instruction; see [`vtime::lockstep::TRIP`].
    counter: u64,
    /// Instructions in the address range.
    in_range: u64,
    /// 1 while the core is inside the range.
    inside: u64,
}

/// One member of every core's board.
#[derive(Clone, Copy)]
pub struct Cell(qemu_plugin_u64);

// SAFETY: the scoreboard lives as long as the process, and QEMU's accessors
// may be called on any thread.
unsafe impl Send for Cell {}
// SAFETY: as above.
unsafe impl Sync for Cell {}

impl Cell {
    /// What the plugin interface wants to see.
    pub fn entry(self) -> qemu_plugin_u64 {
        self.0
    }

    /// True if it is not 0 for some core.
    pub fn is_set(self) -> bool {
        // SAFETY: the board lives as long as the process.
        unsafe { qemu_plugin_u64_sum(self.0) != 0 }
    }

    /// Returns the value for a core.
    pub fn get(self, vcpu: usize) -> u64 {
        // SAFETY: QEMU sizes the board before a core of that index can run.
        unsafe { qemu_plugin_u64_get(self.0, index(vcpu)) }
    }

    /// Sets it for a core.
    pub fn set(self, vcpu: usize, value: u64) {
        // SAFETY: as above; and only the core's own thread writes its board.
        unsafe { qemu_plugin_u64_set(self.0, index(vcpu), value) }
    }
}

fn index(vcpu: usize) -> u32 {
    u32::try_from(vcpu).expect("QEMU numbers its cores with 32 bits")
}

/// One member for each instruction of a range, on every core's board.
#[derive(Clone, Copy)]
pub struct Cells {
    first: Cell,
    count: usize,
}

impl Cells {
    /// Allocates the boards, whose members are 0.
    pub fn new(count: usize) -> Self {
        // SAFETY: called while the plugin is being installed, as the plugin interface demands.
        let score = unsafe { qemu_plugin_scoreboard_new(count * size_of::<u64>()) };
        Self { first: Cell(qemu_plugin_u64 { score, offset: 0 }), count }
    }

    /// The member of the instruction with this index.
    ///
    /// # Panics
    /// If there is none: translated code would write beside the board.
    pub fn cell(self, index: usize) -> Cell {
        assert!(index < self.count, "instruction {index} of {}", self.count);
        Cell(qemu_plugin_u64 { offset: index * size_of::<u64>(), ..self.first.0 })
    }
}

/// The counters of every core, and a way to wake the main loop.
pub struct Qemu {
    pub counter: Cell,
    pub in_range: Cell,
    pub inside: Cell,
    pub wake: OwnedFd,
}

impl Qemu {
    /// Allocates the boards.
    ///
    /// # Errors
    /// If the process is out of file descriptors.
    pub fn new() -> rustix::io::Result<Self> {
        // SAFETY: called while the plugin is being installed, as the plugin
        // interface demands.
        let score: *mut qemu_plugin_scoreboard =
            unsafe { qemu_plugin_scoreboard_new(size_of::<Board>()) };
        let cell = |offset| Cell(qemu_plugin_u64 { score, offset });
        Ok(Self {
            counter: cell(offset_of!(Board, counter)),
            in_range: cell(offset_of!(Board, in_range)),
            inside: cell(offset_of!(Board, inside)),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }
}

impl Host for Qemu {
    fn counter(&self, vcpu: usize) -> u64 {
        self.counter.get(vcpu)
    }

    fn set_counter(&self, vcpu: usize, value: u64) {
        self.counter.set(vcpu, value);
    }

    fn poke_main_loop(&self) {
        // Full means that the main loop has not even seen the last one.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}
