//! A console (Virtual I/O Device (VIRTIO) 1.2, 5.3) with one port: standard input and output, or a terminal.

use crate::mmio::Kind;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Result, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use virtio_queue::{Error, Queue, QueueOwnedT, QueueT};
use vm_memory::GuestMemoryMmap;

/// Most bytes that are taken at once, either way.
const MOST: u64 = 4096;

/// See the module.
pub struct Console {
    from: File,
    to: File,
    /// What has come and is not handed over.
    input: Vec<u8>,
    has_ended: bool,
}

impl Console {
    /// Opens `-`, for standard input and output, or a file that is read and written.
    pub fn open(from: &str) -> Result<Self> {
        let (from, to) = if from == "-" {
            let own = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from);
            (own(std::io::stdin().as_fd())?, own(std::io::stdout().as_fd())?)
        } else {
            let file = OpenOptions::new().read(true).write(true).open(from)?;
            (file.try_clone()?, file)
        };
        Ok(Self::new(from, to))
    }

    /// Makes one of what is read and what is written.
    pub fn new(from: File, to: File) -> Self {
        Self { from, to, input: Vec::new(), has_ended: false }
    }

    fn receive(&mut self) {
        if !crate::uio::is_readable(self.from.as_raw_fd()) {
            return;
        }
        let mut bytes = [0; MOST as usize];
        match self.from.read(&mut bytes) {
            Ok(0) => self.has_ended = true,
            Ok(count) => self.input.extend(&bytes[..count]),
            Err(error) => self.has_ended = error.kind() != ErrorKind::Interrupted,
        }
    }
}

impl Kind for Console {
    fn id(&self) -> u32 {
        3
    }

    fn features(&self) -> u64 {
        0
    }

    fn configuration(&self) -> &[u8] {
        &[0; 12]
    }

    fn queues(&self) -> usize {
        2
    }

    fn input(&self) -> Option<RawFd> {
        Some(self.from.as_raw_fd())
    }

    fn wants_input(&self) -> bool {
        !self.has_ended && self.input.is_empty()
    }

    fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    fn take(
        &mut self,
        number: usize,
        queue: &mut Queue,
        memory: &GuestMemoryMmap,
    ) -> std::result::Result<(), Error> {
        if number == 0 {
            if self.wants_input() {
                self.receive();
            }
            while !self.input.is_empty()
                && let Some(chain) = queue.iter(memory)?.next()
            {
                let head = chain.head_index();
                let written = chain.writer(memory)?.write(&self.input).unwrap_or(0);
                self.input.drain(..written);
                queue.add_used(memory, head, written as u32)?;
            }
            return Ok(());
        }
        while let Some(chain) = queue.iter(memory)?.next() {
            let head = chain.head_index();
            let mut bytes = Vec::new();
            // What cannot be written is lost, as on a line that is not plugged in.
            let _ = chain.reader(memory)?.take(MOST).read_to_end(&mut bytes);
            let _ = self.to.write_all(&bytes);
            queue.add_used(memory, head, 0)?;
        }
        Ok(())
    }
}
