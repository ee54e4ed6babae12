//! The trace: what EL2 decided and when, which the host reads.
//!
//! Each pCPU has a [`Header`] and a ring of [`Record`]s right behind it, and writes them alone. It
//! writes a record first and then [`Header::written`]; the host reads `written` first. Where they
//! are: [`crate::system::System::trace_header`].

use crate::system::PAGE_SIZE;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First word of the header of a ring that EL2 has initialised.
pub const MAGIC: u64 = u64::from_le_bytes(*b"CASTRAC\x02");
/// Smallest ring, bytes.
pub const MIN_SIZE: u64 = 0x1000;
/// Largest ring, bytes.
pub const MAX_SIZE: u64 = 0x400_0000;
/// Bytes before a ring.
pub const HEADER_SIZE: u64 = size_of::<Header>() as u64;
/// Bytes of a record.
pub const RECORD_SIZE: u64 = size_of::<Record>() as u64;

/// Describes the ring of one pCPU.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug)]
#[repr(C)]
pub struct Header {
    /// Records written since the start; the next goes to `written % capacity`.
    pub written: u64,
    /// [`MAGIC`], once EL2 has initialised the ring.
    pub magic: u64,
    /// How many records the ring holds: a power of two.
    pub capacity: u64,
    /// Frequency of the counter that records take their times from.
    pub counter_hz: u64,
    /// 0. Headers of two pCPUs share no cache line.
    pub reserved: [u64; 4],
}

/// One thing that happened.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// When it happened, by the counter. Records of one visit to EL2 may stand in another order
    /// than they happened in.
    pub time: u64,
    /// What happened: a [`Kind`] in bits 0 to 7, the argument in bits 8 to 39, the index of the
    /// vCPU in bits 40 to 47. A kind with a small argument that is a constant is one instruction.
    pub what: u64,
}

const _: () = {
    use core::mem::offset_of;
    assert!(size_of::<Header>() == 64 && offset_of!(Header, written) == 0);
    assert!(size_of::<Record>() == 16 && offset_of!(Record, what) == 8);
    assert!(size_of::<Header>().is_multiple_of(align_of::<Record>()));
    assert!(MIN_SIZE.is_multiple_of(RECORD_SIZE) && MAX_SIZE <= u32::MAX as u64);
};

impl Record {
    /// Makes a record.
    #[must_use]
    #[inline(always)]
    pub const fn new(time: u64, kind: Kind, vcpu: u8, argument: u32) -> Self {
        Self { time, what: kind as u64 | (argument as u64) << 8 | (vcpu as u64) << 40 }
    }

    /// Returns what happened; none if this host does not know it.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        Kind::ALL.get((self.what & 0xff) as usize).copied()
    }

    /// Returns the index of the vCPU in the system.
    #[must_use]
    pub const fn vcpu(&self) -> usize {
        (self.what >> 40 & 0xff) as usize
    }

    /// Returns the argument; see [`Kind`].
    #[must_use]
    pub const fn argument(&self) -> u32 {
        (self.what >> 8) as u32
    }
}

/// Returns the bytes of the whole trace of so many pCPUs, each with a ring of `ring` bytes: whole
/// pages.
#[must_use]
pub const fn size(ring: u64, pcpus: u64) -> u64 {
    if ring == 0 {
        return 0;
    }
    let all = ring.saturating_add(HEADER_SIZE).saturating_mul(pcpus);
    all.saturating_add(PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// What can happen. If nothing else is said, the argument is 0.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All kinds, by number.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Returns the name, as it appears in results.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

// The first is that of every visit: its 0 takes no instruction.
kinds! {
    /// The vCPU came to EL2. Argument: see [`crate::status::Exit`]. The time is that of the visit's
    /// beginning.
    Exit = "exit",
    /// It has the core. Argument: 1 if it has no work and idles its budget away.
    Run = "run",
    /// It has the core no longer. Argument: 1 if it could go on.
    Stop = "stop",
    /// It sleeps, or is switched off. Argument: see [`crate::status::vcpu_state`].
    Sleep = "sleep",
    /// It can run.
    Wake = "wake",
    /// It has used its budget up, and has work.
    Throttle = "throttle",
    /// Periods of its server have begun. Argument: how many, since it was looked at last.
    Replenish = "replenish",
    /// It has one reason more to be at its ceiling.
    Raise = "raise",
    /// It has one reason less.
    Lower = "lower",
    /// A task of it has asked for a mutex. Argument: [`Claim`], with the answer.
    Lock = "lock",
    /// A task of it has given a mutex back, or died with it. Argument: [`Claim`].
    Unlock = "unlock",
    /// A mutex is granted to it. Argument: [`Claim`].
    Grant = "grant",
    /// The core has learnt that a mutex was granted to it. Argument: [`Claim`].
    Granted = "granted",
    /// It leaves for another pCPU. Argument: that pCPU's index.
    Migrate = "migrate",
    /// It has arrived on this pCPU.
    Arrive = "arrive",
    /// Interrupts were put into list registers. Argument: how many.
    Inject = "inject",
    /// The guest cannot go on. Argument: the lower half of ESR_EL2.
    Crash = "crash",
    /// The VM, of which it is the first vCPU, starts, for the first time or again. Argument: the
    /// VM's index.
    Start = "start",
    /// The VM, of which it is the first vCPU, has ended. Argument: the VM's index; 1 in bit 8 if
    /// it starts again, 1 in bit 9 if it failed.
    End = "end",
    /// It goes on in its global critical section without budget, for the first time in a period. The
    /// time is that at which its budget ended. Argument: in how many periods, since
    /// that was looked at last.
    Overrun = "overrun",
    /// It is stopped in its global critical section: it has neither budget nor overrun left.
    /// Argument: how often, since that was looked at last.
    OverrunStop = "overrun_stop",
    /// It is at its ceiling no longer, though its section goes on: that has raised it for too long.
    /// Argument: how often, since that was looked at last.
    Lowered = "lowered",
}

/// The argument of records about mutexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The mutex: an index into [`crate::system::System::mutexes`].
    pub mutex: u8,
    /// The claimant's rank.
    pub rank: u8,
    /// Of [`Kind::Lock`]: what became of it. Of [`Kind::Unlock`]: whether its owner died.
    pub outcome: Outcome,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// The claimant has the mutex, or has given it back.
    Done = 0,
    /// The one before it died as it held the mutex; or it did so itself.
    OwnerDied = 1,
    /// It waits.
    Waits = 2,
    /// It did not want to wait.
    Busy = 3,
}

impl Claim {
    /// Returns it as the argument of a record.
    #[must_use]
    #[inline(always)]
    pub const fn argument(self) -> u32 {
        self.mutex as u32 | (self.rank as u32) << 8 | (self.outcome as u32) << 16
    }

    /// Reads the argument of a record.
    #[must_use]
    pub const fn of(argument: u32) -> Self {
        let outcome = match argument >> 16 & 0xff {
            0 => Outcome::Done,
            1 => Outcome::OwnerDied,
            2 => Outcome::Waits,
            _ => Outcome::Busy,
        };
        Self { mutex: argument as u8, rank: (argument >> 8) as u8, outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_what_was_put_into_it() {
        for (number, &kind) in Kind::ALL.iter().enumerate() {
            let record = Record::new(7, kind, 63, u32::MAX - 1);
            assert_eq!(kind as usize, number);
            assert_eq!(record.kind(), Some(kind));
            assert_eq!((record.vcpu(), record.argument()), (63, u32::MAX - 1));
        }
        assert_eq!(Record { time: 0, what: 0xff }.kind(), None);
    }

    #[test]
    fn a_claim_says_what_was_put_into_it() {
        for outcome in [Outcome::Done, Outcome::Waits, Outcome::Busy, Outcome::OwnerDied] {
            let claim = Claim { mutex: 15, rank: 55, outcome };
            assert_eq!(Claim::of(claim.argument()), claim);
        }
    }
}
