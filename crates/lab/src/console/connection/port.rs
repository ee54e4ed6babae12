//! The other end of a console: descriptors to read keys from and to show output on.

use super::{Seat, Where};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The other end of a console.
pub(super) struct Port {
    /// Where keys come from, while a user may type.
    keys: Option<File>,
    /// Where output goes, while a user is there.
    screen: Option<File>,
    /// Where users may come from, one at a time.
    listener: Option<UnixListener>,
    /// The pseudo-terminal or the socket.
    path: Option<PathBuf>,
    /// Held open: without it the pseudo-terminal would end with its first user.
    _other_side: Option<OwnedFd>,
}

/// What can be done without waiting.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ready {
    /// The bell has rung.
    pub(super) bell: bool,
    /// There are keys, or their end.
    pub(super) keys: bool,
    /// Output can be written.
    pub(super) screen: bool,
    /// No user will read output any more.
    pub(super) gone: bool,
    /// A user wants to come.
    pub(super) visitor: bool,
}

/// What to wait for besides the bell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// There is room for keys.
    pub(super) keys: bool,
    /// There is output.
    pub(super) screen: bool,
}

impl Port {
    /// Returns the user's own terminal. Its descriptors are shared with other programs, so they
    /// stay blocking.
    pub(super) fn terminal(seat: Seat) -> Self {
        let (keys, screen) = (Some(seat.keys.into()), Some(seat.screen.into()));
        Self { keys, screen, listener: None, path: None, _other_side: None }
    }

    /// Opens a pseudo-terminal in raw mode: what a guest prints comes out byte for byte.
    pub(super) fn pty() -> io::Result<Self> {
        let (master, other_side, path) = open_pty()?;
        let mut mode = tcgetattr(&other_side)?;
        mode.make_raw();
        tcsetattr(&other_side, OptionalActions::Now, &mode)?;
        fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
        let keys = File::from(master);
        Ok(Self {
            screen: Some(keys.try_clone()?),
            keys: Some(keys),
            listener: None,
            path: Some(path),
            _other_side: Some(other_side),
        })
    }

    /// Listens on a new Unix socket. One that a program has left behind is replaced, another
    /// file is not.
    pub(super) fn socket(path: &Path) -> io::Result<Self> {
        let is_left = |path: &Path| {
            let is_socket = fs::symlink_metadata(path).is_ok_and(|f| f.file_type().is_socket());
            let refuses = |error: io::Error| error.kind() == ErrorKind::ConnectionRefused;
            is_socket && UnixStream::connect(path).is_err_and(refuses)
        };
        if is_left(path) {
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        let (listener, path) = (Some(listener), Some(path.into()));
        Ok(Self { keys: None, screen: None, listener, path, _other_side: None })
    }

    /// Returns the path of the pseudo-terminal or socket.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// Returns true if there is, and will be, no user to read output.
    pub(super) fn is_gone(&self) -> bool {
        self.screen.is_none() && self.listener.is_none()
    }

    /// Returns true if a user reads output now.
    pub(super) fn is_attended(&self) -> bool {
        self.screen.is_some()
    }

    /// Waits until something can be done, or `limit` is over.
    pub(super) fn wait(
        &self,
        bell: BorrowedFd<'_>,
        wanted: Wanted,
        limit: Option<std::time::Duration>,
    ) -> io::Result<Ready> {
        let output = if wanted.screen { PollFlags::OUT } else { PollFlags::empty() };
        let keys = self.keys.as_ref().filter(|_| wanted.keys).map(|fd| (fd.as_fd(), PollFlags::IN));
        let screen = self.screen.as_ref().map(|fd| (fd.as_fd(), output));
        let free = self.keys.is_none() && self.screen.is_none();
        let door = self.listener.as_ref().filter(|_| free).map(|fd| (fd.as_fd(), PollFlags::IN));
        let all = [Some((bell, PollFlags::IN)), keys, screen, door];
        let mut fds: Vec<_> =
            all.iter().flatten().map(|&(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        let limit = limit.map(rustix::event::Timespec::try_from).and_then(Result::ok);
        match rustix::event::poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut seen = fds.iter().map(PollFd::revents);
        let mut seen = all.map(|one| one.and_then(|_| seen.next()).unwrap_or(PollFlags::empty()));
        let over = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        let [bell, keys, screen, door] = &mut seen;
        Ok(Ready {
            bell: !bell.is_empty(),
            keys: !keys.is_empty(),
            screen: screen.contains(PollFlags::OUT),
            gone: screen.intersects(over) && !screen.contains(PollFlags::OUT),
            visitor: !door.is_empty(),
        })
    }

    /// Reads keys. At their end, which may be the end of a file, no user types any more.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> usize {
        let Some(keys) = &mut self.keys else { return 0 };
        match keys.read(buffer) {
            Err(error) if is_transient(&error) => 0,
            Ok(0) | Err(_) => {
                self.keys = None;
                0
            }
            Ok(count) => count,
        }
    }

    /// Writes output; answers how much of it was taken.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        let Some(screen) = &mut self.screen else { return 0 };
        match screen.write(bytes) {
            Ok(count) => count,
            Err(error) if is_transient(&error) => 0,
            Err(_) => {
                self.hang_up();
                0
            }
        }
    }

    /// Lets a user in, and gives the console away until that user hangs up.
    pub(super) fn accept(&mut self) {
        let visitor = self.listener.as_ref().map(UnixListener::accept);
        let Some(Ok((stream, _))) = visitor else { return };
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let screen = File::from(OwnedFd::from(stream));
        self.keys = screen.try_clone().ok();
        self.screen = Some(screen);
    }

    /// The user is gone.
    pub(super) fn hang_up(&mut self) {
        (self.keys, self.screen) = (None, None);
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        if let (Some(_), Some(path)) = (&self.listener, &self.path) {
            // One that is gone already is as well.
            drop(fs::remove_file(path));
        }
    }
}

/// Opens a pseudo-terminal: both its sides, and the path of the second.
pub(crate) fn open_pty() -> io::Result<(OwnedFd, OwnedFd, PathBuf)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let path = PathBuf::from(OsString::from_vec(ptsname(&master, Vec::new())?.into_bytes()));
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok((master, rustix::fs::open(&path, flags, Mode::empty())?, path))
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Returns what to do if `place` cannot be opened because of `cause`.
pub(super) fn hint(place: &Where, cause: &io::Error) -> &'static str {
    match (place, cause.kind()) {
        (Where::Unix(_), ErrorKind::AddrInUse) => {
            "a file of that name is there, or a program listens: name another one, or remove it"
        }
        (Where::Unix(_), ErrorKind::NotFound) => "make its directory first",
        (Where::Unix(_), ErrorKind::InvalidInput) => "a socket's path has 107 bytes at most",
        (Where::Unix(_), _) => "may you write there?",
        (Where::Pty, _) => "is /dev/pts mounted?",
        (Where::Keyboard, _) => "is standard input open?",
    }
}
