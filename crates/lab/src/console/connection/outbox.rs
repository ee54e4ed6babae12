//! What a guest has printed and is not delivered yet.
//!
//! The thread that reads the machine's UART never waits for a reader: of one that is slow, or not
//! there yet, the oldest bytes are dropped. The log has them all.

use rustix::fd::{AsFd, BorrowedFd};
use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes kept.
const KEPT: usize = 1 << 18;

/// A channel's output on its way to a user.
#[derive(Clone)]
pub struct Tap {
    channel: u8,
    outbox: Arc<Outbox>,
}

/// Bytes that wait, and a bell that rings when there are some.
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    bell: PipeReader,
    ringer: PipeWriter,
}

#[derive(Default)]
struct Queue {
    bytes: VecDeque<u8>,
    closed: bool,
}

impl Tap {
    pub(super) fn new(channel: u8, outbox: Arc<Outbox>) -> Self {
        Self { channel, outbox }
    }

    /// Takes what belongs to its channel.
    pub(in crate::console) fn take(&self, content: &[(u8, u8)]) {
        let own = content.iter().filter(|(channel, _)| *channel == self.channel);
        let bytes: Vec<u8> = own.map(|(_, byte)| *byte).collect();
        if !bytes.is_empty() {
            self.outbox.push(&bytes);
        }
    }

    /// Nothing more will come.
    pub(in crate::console) fn close(&self) {
        self.outbox.close();
    }
}

impl Outbox {
    pub(super) fn new() -> io::Result<Self> {
        let (bell, ringer) = io::pipe()?;
        Ok(Self { queue: Mutex::default(), bell, ringer })
    }

    pub(super) fn push(&self, bytes: &[u8]) {
        let mut queue = self.lock();
        let was_empty = queue.bytes.is_empty();
        queue.bytes.extend(bytes);
        let surplus = queue.bytes.len().saturating_sub(KEPT);
        queue.bytes.drain(..surplus);
        if was_empty {
            self.ring();
        }
    }

    /// Nothing more will come; what is there may still be taken.
    pub(super) fn close(&self) {
        let mut queue = self.lock();
        if !std::mem::replace(&mut queue.closed, true) {
            self.ring();
        }
    }

    /// One byte for each time that bytes come to an empty queue, and one at the end: the reader
    /// takes it out before it empties the queue again, so the pipe is never full.
    fn ring(&self) {
        // Its reader is ours and open.
        drop((&self.ringer).write_all(b"!"));
    }

    /// Returns what becomes readable when there is something to do.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Hears the bell, which [`Outbox::bell`] said has rung.
    pub(super) fn hear(&self) {
        drop((&self.bell).read(&mut [0; 16]));
    }

    /// Takes the first bytes, at most `most`.
    pub(super) fn take(&self, most: usize) -> Vec<u8> {
        let mut queue = self.lock();
        let count = most.min(queue.bytes.len());
        queue.bytes.drain(..count).collect()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_is_not_there_gets_the_last_of_it() {
        let outbox = Outbox::new().unwrap();
        for n in 0..=KEPT / 64 {
            outbox.push(&[n as u8; 64]);
        }
        let kept = outbox.take(usize::MAX);
        assert_eq!((kept.len(), kept[0]), (KEPT, 1));
        assert!(outbox.take(1).is_empty());
    }

    #[test]
    fn the_bell_never_fills_its_pipe() {
        let outbox = Outbox::new().unwrap();
        for _ in 0..100_000 {
            outbox.push(b"x");
            outbox.hear();
            assert_eq!(outbox.take(2), b"x");
        }
        outbox.close();
        outbox.close();
        outbox.hear();
        assert!(outbox.is_closed());
    }
}
