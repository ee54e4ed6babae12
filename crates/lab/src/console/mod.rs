//! One UART taken apart: a log file for each guest, and the lines as they come.
//!
//! A thread reads the machine's UART. The bytes of each channel go unchanged
//! to its log file; complete lines, cleaned of control sequences, are kept for
//! readers that follow or wait for them.

pub mod connection;
mod lines;
mod logs;
mod source;

pub use lines::{Cursor, Line, Lines};

use abi::console::Mux;
use connection::Tap;
use logs::Logs;
use source::Source;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How a machine's UART is to be taken apart.
#[derive(Clone, Default)]
pub struct ConsoleConfig {
    /// Names of the channels: the hypervisor's, then one for each VM.
    pub names: Vec<String>,
    /// Where the logs go, `console-NAME.log` each; `None` writes none.
    pub directory: Option<PathBuf>,
    /// True if what we send is framed ([`abi::console`]), as the hypervisor
    /// wants it and a plain guest does not.
    pub framed: bool,
    /// What takes output as it comes, to the byte.
    pub taps: Vec<Tap>,
}

/// The consoles of one machine.
pub struct Consoles {
    shared: Arc<Shared>,
    source: Arc<Source>,
    reader: Mutex<Option<JoinHandle<()>>>,
    input: Arc<Mutex<Input>>,
}

/// The way to the machine, which all consoles share.
struct Input {
    mux: Mux,
    wire: Box<dyn Write + Send>,
    framed: bool,
}

/// The way to type on one console. It may outlive the machine, and then leads nowhere.
#[derive(Clone)]
pub struct Keyboard {
    channel: u8,
    input: Arc<Mutex<Input>>,
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
        Self { names, directory, framed: true, taps: Vec::new() }
    }

    /// A single guest without a hypervisor, called `name`.
    #[must_use]
    pub fn plain(name: &str, directory: Option<PathBuf>) -> Self {
        Self { names: vec![name.into()], directory, framed: false, taps: Vec::new() }
    }

    /// Lets `taps` take output.
    #[must_use]
    pub fn with_taps(self, taps: Vec<Tap>) -> Self {
        Self { taps, ..self }
    }
}

impl Consoles {
    /// Takes `output` apart on a thread of its own, until it ends; `input` is
    /// the way to the machine.
    ///
    /// # Errors
    /// When a log file cannot be created.
    pub fn start(
        output: impl Into<OwnedFd>,
        input: Box<dyn Write + Send>,
        config: &ConsoleConfig,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (logs, taps) = (Logs::create(config)?, config.taps.clone());
        let source = Arc::new(Source::new(output.into(), logs, taps, Arc::clone(&shared)));
        let theirs = Arc::clone(&source);
        let reader = thread::Builder::new().name("consoles".into());
        let reader = reader.spawn(move || theirs.read_all())?;
        let input = Input { mux: Mux::new(), wire: input, framed: config.framed };
        let (reader, input) = (Mutex::new(Some(reader)), Arc::new(Mutex::new(input)));
        Ok(Self { shared, source, reader, input })
    }

    /// Reads all that the machine has written until now: the lines of a machine
    /// that is held are complete then.
    pub(crate) fn catch_up(&self) {
        self.source.read_what_is_there();
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

    /// Returns true if the machine's UART has ended and every line is known.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.shared.lock().ended()
    }

    /// Types `bytes` on the console of `channel`.
    ///
    /// # Errors
    /// When the machine has gone.
    pub fn send(&self, channel: u8, bytes: &[u8]) -> io::Result<()> {
        self.keyboard(channel).send(bytes)
    }

    /// Returns the way to type on the console of `channel`.
    #[must_use]
    pub fn keyboard(&self, channel: u8) -> Keyboard {
        Keyboard { channel, input: Arc::clone(&self.input) }
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

impl Keyboard {
    /// Types `bytes`.
    ///
    /// # Errors
    /// When the machine has gone.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        let Input { mux, wire, framed } = &mut *input;
        let mut sent = Vec::with_capacity(bytes.len() + 2);
        for &byte in bytes {
            if *framed { mux.push(self.channel, byte, |b| sent.push(b)) } else { sent.push(byte) }
        }
        wire.write_all(&sent)?;
        wire.flush()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No more lines will come.
    fn end(&self) {
        self.lock().end();
        self.news.notify_all();
    }
}

#[cfg(test)]
mod tests;
