//! How another program holds the machine: what goes through two pipes.
//!
//! The instrument tells where the machine is held, the first time before it
//! runs, and waits for an order each time. While it waits, virtual time stands
//! still: no core executes an instruction and no timer fires. So what the
//! other program reads of the machine, and what it decides, is a function of
//! virtual time alone.

use std::io::{self, Read, Write};

/// The machine is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Virtual time in ns: no core is behind it.
    pub at_ns: u64,
    /// Nothing happens before input arrives.
    pub at_rest: bool,
}

/// What the instrument is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Run on, and hold the machine when all that happens up to this virtual
    /// time in ns has happened, or when it comes to rest before.
    RunTo(u64),
    /// Run on, and do not hold the machine again.
    RunOn,
    /// Write the statistics and end QEMU.
    End,
}

/// [`Order::RunOn`] on the wire: a time that is never reached.
const RUN_ON: u64 = u64::MAX;
/// [`Order::End`] on the wire.
const END: u64 = u64::MAX - 1;

impl Order {
    /// Sends it.
    ///
    /// # Errors
    /// If the other end is gone.
    pub fn send(self, mut to: impl Write) -> io::Result<()> {
        let word = match self {
            Self::RunTo(ns) => ns.min(END - 1),
            Self::RunOn => RUN_ON,
            Self::End => END,
        };
        to.write_all(&word.to_le_bytes())
    }

    /// Waits for one.
    ///
    /// # Errors
    /// If the other end is gone.
    pub fn receive(mut from: impl Read) -> io::Result<Self> {
        let mut word = [0; 8];
        from.read_exact(&mut word)?;
        Ok(match u64::from_le_bytes(word) {
            RUN_ON => Self::RunOn,
            END => Self::End,
            ns => Self::RunTo(ns),
        })
    }
}

impl Held {
    /// Sends it.
    ///
    /// # Errors
    /// If the other end is gone.
    pub fn send(self, mut to: impl Write) -> io::Result<()> {
        let mut message = [u8::from(self.at_rest); 9];
        message[..8].copy_from_slice(&self.at_ns.to_le_bytes());
        to.write_all(&message)
    }

    /// Waits for one.
    ///
    /// # Errors
    /// If the other end is gone.
    pub fn receive(mut from: impl Read) -> io::Result<Self> {
        let (mut time, mut at_rest) = ([0; 8], [0]);
        from.read_exact(&mut time)?;
        from.read_exact(&mut at_rest)?;
        Ok(Self { at_ns: u64::from_le_bytes(time), at_rest: at_rest != [0] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_received() {
        for order in [Order::RunTo(0), Order::RunTo(1 << 40), Order::RunOn, Order::End] {
            let mut wire = Vec::new();
            order.send(&mut wire).unwrap();
            assert_eq!(Order::receive(&wire[..]).unwrap(), order);
        }
        for held in [(0, true), (u64::MAX, false)] {
            let held = Held { at_ns: held.0, at_rest: held.1 };
            let mut wire = Vec::new();
            held.send(&mut wire).unwrap();
            assert_eq!(Held::receive(&wire[..]).unwrap(), held);
        }
    }

    #[test]
    fn the_other_ends_end_is_an_error() {
        assert!(Order::receive(&[1, 2, 3][..]).is_err());
        assert!(Held::receive(&[0; 8][..]).is_err());
    }
}
