//! A console (Virtual I/O Device (VIRTIO) 1.2, 5.3) with one port: standard input and output, or a terminal.

use crate::mmio::Kind;
use crate::reach::{Reach, Trouble};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Result, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use virtio_queue::{Queue, QueueOwnedT, QueueT};

/// Most bytes that are taken at once, either way.
const MOST: usize = 4096;

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
        let mut bytes = [0; MOST];
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
        front: &Reach<'_>,
    ) -> std::result::Result<(), Trouble> {
        let memory = front.memory;
        if number == 0 {
            if self.wants_input() {
                self.receive();
            }
            while !self.input.is_empty()
                && let Some(chain) = queue.iter(memory)?.next()
            {
                let head = chain.head_index();
                front.check()?;
                let written = chain.writer(memory)?.write(&self.input).unwrap_or(0);
                self.input.drain(..written);
                queue.add_used(memory, head, written as u32)?;
            }
            return Ok(());
        }
        while let Some(chain) = queue.iter(memory)?.next() {
            let head = chain.head_index();
            let mut reader = chain.reader(memory)?;
            let mut piece = [0; MOST];
            // What cannot be written is lost, as on a line that is not plugged in.
            loop {
                let count = reader.read(&mut piece).unwrap_or(0);
                front.check()?;
                if count == 0 {
                    break;
                }
                let _ = self.to.write_all(&piece[..count]);
            }
            queue.add_used(memory, head, 0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Driver;
    use crate::mmio::Device;
    use std::os::fd::OwnedFd;

    /// A chain may have more than is taken at once.
    #[test]
    fn all_of_a_long_output_is_written() {
        let (mut read, to) = std::io::pipe().unwrap();
        let nothing = File::open("/dev/null").unwrap();
        let mut device = Device::new(Box::new(Console::new(nothing, OwnedFd::from(to).into())));
        let mut driver = Driver::new(&mut device, 2);
        let long = Vec::from_iter((0..3 * MOST + 5).map(|at| (at % 251) as u8));
        driver.add(1, &long, 0);
        driver.add(1, b"behind", 0);
        device.notified(1, &driver.front());
        drop(device);
        let mut said = Vec::new();
        read.read_to_end(&mut said).unwrap();
        assert_eq!(driver.used(1), [(0, 0), (1, 0)]);
        assert!(said == [&long[..], b"behind"].concat(), "{} bytes", said.len());
    }
}
