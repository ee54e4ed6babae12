//! Holds a machine in virtual time, to look at it while nothing moves.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::time::Duration;
use vtime::hold::{Held, Order};
use vtime::options::Pipes;

/// The pipes to the instrument of virtual time.
///
/// Pipes without a name, as the machine's memory is a file without one: QEMU
/// opens them through `/proc`, and nothing is to be removed afterwards.
#[derive(Debug)]
pub(super) struct Control {
    orders: PipeWriter,
    holds: PipeReader,
    /// QEMU's ends, until it has opened them.
    theirs: Option<(PipeReader, PipeWriter)>,
    /// Where the machine is held, waiting for an order.
    held: Option<Held>,
}

/// What a machine did when it was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// It is held.
    Held(Held),
    /// It has no more to tell, since QEMU ends.
    Ended,
    /// It still runs.
    Runs,
}

impl Control {
    pub(super) fn create() -> io::Result<Self> {
        let ((their_orders, orders), (holds, their_holds)) = (io::pipe()?, io::pipe()?);
        let theirs = Some((their_orders, their_holds));
        Ok(Self { orders, holds, theirs, held: None })
    }

    /// Where QEMU opens its ends, until the machine is held for the first time.
    pub(super) fn pipes(&self) -> Option<Pipes> {
        let path = |fd: i32| PathBuf::from(format!("/proc/{}/fd/{fd}", std::process::id()));
        let (orders, holds) = self.theirs.as_ref()?;
        Some(Pipes { orders: path(orders.as_raw_fd()), holds: path(holds.as_raw_fd()) })
    }

    /// Waits until the machine is held, at most `limit`.
    pub(super) fn wait(&mut self, limit: Duration) -> io::Result<Waited> {
        let timeout = Timespec::try_from(limit).map_err(io::Error::other)?;
        let mut fds = [PollFd::from_borrowed_fd(self.holds.as_fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            // A signal: after Ctrl-C the session ends, and keeps what was seen.
            Ok(0) | Err(Errno::INTR) => return Ok(Waited::Runs),
            polled => polled?,
        };
        match Held::receive(&self.holds) {
            Ok(held) => {
                // It has opened them: from now on their end is seen here.
                self.theirs = None;
                self.held = Some(held);
                Ok(Waited::Held(held))
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Waited::Ended),
            Err(error) => Err(error),
        }
    }

    /// Tells a machine that is held what to do. One that has ended meanwhile
    /// does not mind.
    pub(super) fn order(&mut self, order: Order) -> io::Result<()> {
        self.held = None;
        match order.send(&self.orders) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => sent,
        }
    }

    /// Where the machine is held, if it waits for an order.
    pub(super) fn held(&self) -> Option<Held> {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn holds_and_orders_go_through_the_pipes_until_their_end() {
        let mut control = Control::create().unwrap();
        assert_eq!(control.wait(Duration::ZERO).unwrap(), Waited::Runs);
        let pipes = control.pipes().unwrap();
        let orders = File::open(pipes.orders).unwrap();
        let holds = File::options().write(true).open(pipes.holds).unwrap();
        let held = Held { at_ns: 1_000, at_rest: false };
        held.send(&holds).unwrap();
        assert_eq!(control.wait(SOON).unwrap(), Waited::Held(held));
        assert_eq!(control.held(), Some(held));
        control.order(Order::RunTo(2_000)).unwrap();
        assert_eq!(control.held(), None);
        assert_eq!(Order::receive(&orders).unwrap(), Order::RunTo(2_000));
        drop((orders, holds));
        assert_eq!(control.wait(SOON).unwrap(), Waited::Ended);
        control.order(Order::End).unwrap();
    }
}
