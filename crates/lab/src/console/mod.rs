//! One UART taken apart: a log file for each guest, and the lines as they come.
//!
//! A thread reads the machine's UART. The bytes of each channel go unchanged
//! to its log file; complete lines, cleaned of control sequences, are kept for
//! whoever follows or waits for them.

mod lines;
mod logs;

pub use lines::{Cursor, Line};

use abi::console::Mux;
use lines::Lines;
use logs::Logs;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How a machine's UART is to be taken apart.
#[derive(Clone, Debug, Default)]
pub struct ConsoleConfig {
    /// Names of the channels: the hypervisor's, then one for each VM.
    pub names: Vec<String>,
    /// Where the logs go, `console-NAME.log` each; `None` writes none.
    pub directory: Option<PathBuf>,
    /// Whether what we send is framed ([`abi::console`]), as the hypervisor
    /// wants it and a plain guest does not.
    pub framed: bool,
}

/// The consoles of one machine.
pub struct Consoles {
    shared: Arc<Shared>,
    reader: Mutex<Option<JoinHandle<()>>>,
    input: Mutex<(Mux, Box<dyn Write + Send>)>,
    framed: bool,
}

/// What the reading thread tells the others.
#[derive(Default)]
struct Shared {
    lines: Mutex<Lines>,
    news: Condvar,
}

impl ConsoleConfig {
    /// The hypervisor and `vms`, with logs in `directory`.
    #[must_use]
    pub fn hypervisor<'a>(
        vms: impl IntoIterator<Item = &'a str>,
        directory: Option<PathBuf>,
    ) -> Self {
        let names = std::iter::once("hypervisor").chain(vms).map(str::to_owned).collect();
        Self { names, directory, framed: true }
    }

    /// A single guest without a hypervisor, called `name`.
    #[must_use]
    pub fn plain(name: &str, directory: Option<PathBuf>) -> Self {
        Self { names: vec![name.into()], directory, framed: false }
    }
}

impl Consoles {
    /// Takes `output` apart on a thread of its own, until it ends; `input` is
    /// the way to the machine.
    ///
    /// # Errors
    /// When a log file cannot be created.
    pub fn start(
        output: Box<dyn Read + Send>,
        input: Box<dyn Write + Send>,
        config: &ConsoleConfig,
    ) -> io::Result<Self> {
        let mut logs = Logs::create(config)?;
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let reader = thread::Builder::new().name("consoles".into()).spawn(move || {
            read_all(output, &mut logs, &theirs);
        })?;
        let (reader, input) = (Mutex::new(Some(reader)), Mutex::new((Mux::new(), input)));
        Ok(Self { shared, reader, input, framed: config.framed })
    }

    /// The lines since `cursor`, which moves on; waits for at least one at
    /// most `limit`.
    pub fn follow(&self, cursor: &mut Cursor, limit: Duration) -> Vec<Line> {
        let deadline = Instant::now() + limit;
        let mut lines = self.shared.lock();
        loop {
            let new = lines.since(cursor);
            let left = deadline.saturating_duration_since(Instant::now());
            if !new.is_empty() || lines.ended() || left.is_zero() {
                return new;
            }
            lines = self
                .shared
                .news
                .wait_timeout(lines, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Waits at most `limit` for a line of `channel` after `cursor` that
    /// contains `text`, and moves the cursor behind it; `None` when the time
    /// is over or the consoles have ended.
    pub fn expect(
        &self,
        cursor: &mut Cursor,
        channel: u8,
        text: &str,
        limit: Duration,
    ) -> Option<Line> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let start = *cursor;
            let new = self.follow(cursor, left);
            if new.is_empty() {
                return None;
            }
            let found = new.into_iter().find(|l| l.channel == channel && l.text.contains(text));
            if let Some(line) = found {
                *cursor = start.behind(&line);
                return Some(line);
            }
        }
    }

    /// Whether the machine's UART has ended and every line is known.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.shared.lock().ended()
    }

    /// The bytes of `channel` behind its last complete line, cleaned: a prompt,
    /// for instance.
    #[must_use]
    pub fn partial(&self, channel: u8) -> String {
        self.shared.lock().partial(channel)
    }

    /// Types `bytes` on the console of `channel`.
    ///
    /// # Errors
    /// When the machine has gone.
    pub fn send(&self, channel: u8, bytes: &[u8]) -> io::Result<()> {
        let mut guard = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        let (mux, input) = &mut *guard;
        if !self.framed {
            input.write_all(bytes)?;
            return input.flush();
        }
        let mut wire = Vec::with_capacity(bytes.len() + 2);
        for &byte in bytes {
            mux.push(channel, byte, |b| wire.push(b));
        }
        input.write_all(&wire)?;
        input.flush()
    }

    /// Waits until what the machine wrote before its end is in the logs. Call
    /// it when the machine has ended; before that it would wait for the end.
    pub(crate) fn finish(&self) {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reader) = reader {
            drop(reader.join());
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Consoles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consoles").field("framed", &self.framed).finish_non_exhaustive()
    }
}

fn read_all(mut output: Box<dyn Read + Send>, logs: &mut Logs, shared: &Shared) {
    let mut demux = abi::console::Demux::default();
    let mut buffer = [0; 4096];
    loop {
        let count = match output.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let mut lines = shared.lock();
        for (channel, byte) in buffer[..count].iter().filter_map(|&b| demux.push(b)) {
            logs.write(channel, byte);
            lines.push(channel, byte);
        }
        drop(lines);
        logs.flush();
        shared.news.notify_all();
    }
    shared.lock().end();
    shared.news.notify_all();
}

#[cfg(test)]
mod tests;
