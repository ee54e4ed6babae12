//! Consoles that people and programs type to.
//!
//! | module | story |
//! | --- | --- |
//! | [`request`] | what is asked for: `linux`, `linux=pty`, `linux=unix:PATH` |
//! | [`outbox`] | what a guest has printed and is not delivered yet |
//! | [`port`] | the other end: a terminal, a pseudo-terminal, a socket |
//! | [`terminal`] | raw mode, and the way back from it however the program ends |
//! | [`escape`] | the keys that are for us and not for the guest |
//! | [`pump`] | carries bytes both ways |
//!
//! The other ends are opened before the machine starts, so that what cannot be opened is told at
//! once and nothing that a guest prints is missed.

mod escape;
mod outbox;
mod port;
mod pump;
mod request;
mod terminal;

#[cfg(test)]
mod tests;

pub use outbox::Tap;
pub(crate) use port::open_pty;
pub use request::{Request, Where};

use super::Consoles;
use crate::interrupt::Interrupt;
use escape::Escape;
use miette::{Result, miette};
use outbox::Outbox;
use port::Port;
use pump::Pump;
use rustix::fd::OwnedFd;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use terminal::RawMode;

/// A VM's console, as [`Connections::open`] needs to know it.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The VM's name.
    pub name: &'a str,
    /// The channel ([`abi::console`]).
    pub channel: u8,
}

/// The user's terminal, or what stands in for it: descriptors to read keys from and to show on.
#[derive(Debug)]
pub struct Seat {
    /// Where keys come from.
    pub keys: OwnedFd,
    /// Where the guest's output goes.
    pub screen: OwnedFd,
}

/// One console and its other end, before the machine starts.
struct Connection {
    name: String,
    channel: u8,
    place: Where,
    port: Port,
    outbox: Arc<Outbox>,
    /// The keys that are for us; `None` where every byte is for the guest.
    escape: Option<Escape>,
    /// The terminal that must be in raw mode.
    terminal: Option<OwnedFd>,
}

/// Other ends that are open, for a machine that has not started.
#[derive(Default)]
pub struct Connections {
    all: Vec<Connection>,
    /// The end, which the user at the keyboard may ask for.
    quit: Interrupt,
}

/// Bytes flow until this is dropped, which also leaves the terminal as it was.
#[derive(Default)]
pub struct Connected {
    pumps: Vec<(Arc<Outbox>, Option<JoinHandle<()>>)>,
    // Dropped last: the guest's last words are still written in raw mode.
    _terminal: Option<RawMode>,
}

impl Seat {
    /// Returns the process's own standard input and output.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn own() -> io::Result<Self> {
        use std::os::fd::AsFd;
        let keys = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Self { keys, screen: io::stdout().as_fd().try_clone_to_owned()? })
    }
}

impl Connections {
    /// Opens what `requests` ask for, of the consoles `lines`; the keyboard is that of `seat`.
    ///
    /// # Errors
    /// When a console does not exist or is asked for twice, or its other end cannot be opened.
    pub fn open(
        requests: &[Request],
        lines: &[Line<'_>],
        seat: impl Fn() -> io::Result<Seat>,
    ) -> Result<Self> {
        let mut connections = Self::default();
        for request in requests {
            let line = lines.iter().find(|line| line.name == request.vm).ok_or_else(|| {
                let known: Vec<_> = lines.iter().map(|line| line.name).collect();
                let help = format!("those with a console: {}", known.join(", "));
                miette!(help = help, "no VM with a console is called `{}`", request.vm)
            })?;
            connections.refuse_twice(request)?;
            connections.all.push(Connection::open(line, request, &seat)?);
        }
        Ok(connections)
    }

    fn refuse_twice(&self, request: &Request) -> Result<()> {
        let same = |other: &&Connection| {
            other.name == request.vm || other.is_keyboard() && request.place == Where::Keyboard
        };
        let Some(other) = self.all.iter().find(same) else { return Ok(()) };
        let what = match other.name == request.vm {
            true => format!("the console of `{}`", request.vm),
            false => "the keyboard".into(),
        };
        Err(miette!(help = "leave one `--console` out", "{what} can be connected once only"))
    }

    /// Returns true if a console is connected to the keyboard.
    #[must_use]
    pub fn has_keyboard(&self) -> bool {
        self.all.iter().any(Connection::is_keyboard)
    }

    /// Returns true if nothing is connected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns what tells that the user at the keyboard has asked for the end.
    #[must_use]
    pub fn quit(&self) -> Interrupt {
        self.quit.clone()
    }

    /// Returns a line for each connection: where it is, and how to use it.
    #[must_use]
    pub fn about(&self) -> Vec<String> {
        self.all.iter().map(Connection::about).collect()
    }

    /// Returns the taps through which the consoles' output comes.
    #[must_use]
    pub fn taps(&self) -> Vec<Tap> {
        self.all.iter().map(|one| Tap::new(one.channel, Arc::clone(&one.outbox))).collect()
    }

    /// Carries bytes from and to `consoles`, whose output comes through [`Connections::taps`].
    /// What is typed goes in pieces with `rest` between them, which leaves guests time to read.
    ///
    /// # Errors
    /// When a thread cannot be started or the terminal refuses raw mode.
    pub fn start(self, consoles: &Consoles, rest: Duration) -> io::Result<Connected> {
        let mut connected = Connected::default();
        for connection in self.all {
            let keys = consoles.keyboard(connection.channel);
            if let Some(terminal) = connection.terminal {
                connected._terminal = Some(RawMode::enter(terminal)?);
            }
            let quit = self.quit.clone();
            let outbox = Arc::clone(&connection.outbox);
            let pump = Pump::new(connection.port, connection.outbox, keys, rest);
            let mut pump = match connection.escape {
                Some(escape) => pump.with_escape(escape, quit),
                None => pump,
            };
            let thread = thread::Builder::new().name("console".into()).spawn(move || pump.run())?;
            connected.pumps.push((outbox, Some(thread)));
        }
        Ok(connected)
    }
}

impl Connection {
    fn open(
        line: &Line<'_>,
        request: &Request,
        seat: &impl Fn() -> io::Result<Seat>,
    ) -> Result<Self> {
        let place = request.place.clone();
        let fail = |cause: io::Error| {
            let hint = port::hint(&place, &cause);
            miette!(
                help = hint,
                "cannot connect the console of `{}` to {place}: {cause}",
                line.name
            )
        };
        let (mut escape, mut terminal) = (None, None);
        let (port, outbox) = match &place {
            Where::Pty => Port::pty(),
            Where::Unix(path) => Port::socket(path),
            Where::Keyboard => seat().and_then(|seat| {
                if rustix::termios::isatty(&seat.keys) {
                    escape = Some(Escape::new(line.name));
                    terminal = Some(seat.keys.try_clone()?);
                }
                Ok(Port::terminal(seat))
            }),
        }
        .and_then(|port| Ok((port, Outbox::new()?)))
        .map_err(fail)?;
        let (name, outbox) = (line.name.into(), Arc::new(outbox));
        Ok(Self { name, channel: line.channel, place, port, outbox, escape, terminal })
    }

    fn is_keyboard(&self) -> bool {
        self.place == Where::Keyboard
    }

    fn about(&self) -> String {
        match (&self.place, &self.escape) {
            (Where::Keyboard, Some(escape)) => escape.help(),
            (Where::Keyboard, None) => {
                format!("what comes from standard input is typed to {}", self.name)
            }
            (Where::Pty, _) => {
                let path = self.port.path().unwrap_or_default();
                format!("the console of {} is {}", self.name, path.display())
            }
            (Where::Unix(path), _) => {
                format!("the console of {} is the socket {}", self.name, path.display())
            }
        }
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        for (outbox, thread) in &mut self.pumps {
            outbox.close();
            if let Some(thread) = thread.take() {
                drop(thread.join());
            }
        }
    }
}
