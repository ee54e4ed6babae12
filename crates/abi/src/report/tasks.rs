//! What a guest reports of its tasks: the other format of a report area.
//!
//! A guest that runs the tasks that the description declares for it writes a [`Header`], a
//! [`Task`] for each, and for each the first of its global critical sections, [`Section`]s. It
//! writes a section first and then `sections`; what belongs to one task is written by one vCPU.
//!
//! The second half of the area belongs to the guest's [events](super::events): a guest that may record
//! some has room for tasks up to [`offset`](super::events::offset) only.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First word of an area with this format that the guest has initialised.
pub const MAGIC: u64 = u64::from_le_bytes(*b"CASTASK\x01");

/// Beginning of the area.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: u64,
    /// Frequency of the counter all times are in.
    pub counter_hz: u64,
    /// How many tasks follow.
    pub tasks: u64,
    /// How many sections each task has room for, behind all tasks.
    pub capacity: u64,
}

/// What became of one task.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Task {
    /// [`hash`](crate::service::hash) of its name.
    pub name: u64,
    /// Jobs that are complete.
    pub jobs: u64,
    /// The longest response of them: from the beginning of its period to its end, ticks.
    pub longest: u64,
    /// The sum of all responses, ticks.
    pub sum: u64,
    /// Jobs that ended after their period.
    pub late: u64,
    /// Counter at the beginning of the period of the job that is not complete; 0: there is none.
    pub unfinished: u64,
    /// Global critical sections that have ended.
    pub sections: u64,
}

/// A global critical section. All times are what the counter showed.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Section {
    /// [`hash`](crate::service::hash) of the mutex's name.
    pub mutex: u64,
    /// Before [`MUTEX_LOCK`](crate::service::MUTEX_LOCK) was called.
    pub asked: u64,
    /// When that had answered that the task has to wait, or, where the guest does not see that, any
    /// later time up to `had`; 0: the task had the mutex at once.
    pub queued: u64,
    /// When the task had it.
    pub had: u64,
    /// Before [`MUTEX_UNLOCK`](crate::service::MUTEX_UNLOCK) was called.
    pub gives: u64,
    /// After that.
    pub gave: u64,
}

/// Returns how many sections each of so many tasks has room for in an area of `size` bytes;
/// none: it is too small for the tasks, or there are none.
#[must_use]
pub const fn capacity(size: u64, tasks: u64) -> Option<u64> {
    if tasks > size {
        return None;
    }
    let Some(room) = size.checked_sub(task(tasks)) else { return None };
    room.checked_div(tasks * size_of::<Section>() as u64)
}

/// Returns the offset of task `number`.
#[must_use]
pub const fn task(number: u64) -> u64 {
    size_of::<Header>() as u64 + number * size_of::<Task>() as u64
}

/// Returns the offset of section `number` of a task, with so many tasks in all, and room for
/// `capacity` sections of each.
#[must_use]
pub const fn section(of: u64, number: u64, tasks: u64, capacity: u64) -> u64 {
    task(tasks) + (of * capacity + number) * size_of::<Section>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_and_sections_have_places_of_their_own() {
        let (size, tasks) = (4096, 3);
        let capacity = capacity(size, tasks).unwrap();
        assert_eq!(task(0), size_of::<Header>() as u64);
        assert_eq!(section(0, 0, tasks, capacity), task(3));
        assert_eq!(section(1, 0, tasks, capacity), section(0, capacity, tasks, capacity));
        let end = section(2, capacity, tasks, capacity);
        assert!(end <= size && end + 3 * size_of::<Section>() as u64 > size);
        assert_eq!(super::capacity(100, 3), None);
        assert_eq!(super::capacity(4096, 0), None);
        assert_eq!(super::capacity(4096, u64::MAX), None);
    }
}
