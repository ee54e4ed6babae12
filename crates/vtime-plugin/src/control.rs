//! Another program holds the machine, looks at it, and says how far it may go.

use crate::instrument::Instrument;
use crate::reporter;
use std::fs::File;
use std::io;
use vtime::hold::{Held, Order};
use vtime::options::Pipes;

/// The pipes to that program.
pub struct Control {
    orders: File,
    holds: File,
}

impl Control {
    /// Opens the pipes.
    ///
    /// # Errors
    /// If they cannot be opened.
    pub fn open(pipes: &Pipes) -> io::Result<Self> {
        let orders = File::open(&pipes.orders)?;
        let holds = File::options().write(true).open(&pipes.holds)?;
        Ok(Self { orders, holds })
    }

    /// Tells that the machine is held and does what is ordered. Returns when it
    /// is to run on. If the other program is gone, QEMU ends.
    pub fn hold(&self, instrument: &Instrument, at_rest: bool) {
        let held = Held { at_ns: instrument.lockstep.now_ns(), at_rest };
        let order = held.send(&self.holds).and_then(|()| Order::receive(&self.orders));
        match order {
            Ok(Order::RunTo(at_ns)) => instrument.lockstep.hold_at(Some(at_ns)),
            Ok(Order::RunOn) => instrument.lockstep.hold_at(None),
            Ok(Order::End) | Err(_) => {
                reporter::finish(instrument);
                // What QEMU does at its end would let cores run on.
                // SAFETY: it does not return.
                unsafe { libc::_exit(0) }
            }
        }
    }
}
