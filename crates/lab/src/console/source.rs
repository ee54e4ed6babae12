//! What a machine writes: read, taken apart, logged.

use super::Shared;
use super::connection::Tap;
use super::logs::Logs;
use abi::console::Demux;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// The output of one machine. A thread reads it as it comes; a reader that wants to be
/// sure that all which has been written is read, reads it himself.
pub(super) struct Source {
    output: File,
    apart: Mutex<(Demux, Logs)>,
    taps: Vec<Tap>,
    shared: Arc<Shared>,
}

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

impl Source {
    pub(super) fn new(output: OwnedFd, logs: Logs, taps: Vec<Tap>, shared: Arc<Shared>) -> Self {
        Self { output: output.into(), apart: Mutex::new((Demux::default(), logs)), taps, shared }
    }

    /// Reads until the output ends.
    pub(super) fn read_all(&self) {
        while self.is_readable(None) && self.read_what_is_there() {}
        self.shared.end();
        self.taps.iter().for_each(Tap::close);
    }

    /// Reads what has been written, and does not wait for more. Returns whether
    /// there can be more.
    pub(super) fn read_what_is_there(&self) -> bool {
        let mut apart = self.apart.lock().unwrap_or_else(PoisonError::into_inner);
        let (demux, logs) = &mut *apart;
        let mut buffer = [0; 4096];
        while self.is_readable(Some(AT_ONCE)) {
            let count = match (&self.output).read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return false,
            };
            let content: Vec<_> = buffer[..count].iter().filter_map(|&b| demux.push(b)).collect();
            let mut lines = self.shared.lock();
            for &(channel, byte) in &content {
                logs.write(channel, byte);
                lines.push(channel, byte);
            }
            drop(lines);
            self.taps.iter().for_each(|tap| tap.take(&content));
            logs.flush();
            self.shared.news.notify_all();
        }
        true
    }

    /// Returns true if there is something to read, or the end, within `limit`.
    fn is_readable(&self, limit: Option<Timespec>) -> bool {
        loop {
            let mut fds = [PollFd::new(&self.output, PollFlags::IN)];
            match poll(&mut fds, limit.as_ref()) {
                Err(Errno::INTR) => {}
                // What cannot be waited for is read, which tells what is wrong.
                answer => return answer != Ok(0),
            }
        }
    }
}
