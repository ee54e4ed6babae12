//! One side of a link to another VM (`docs/src/links.md`), for guests in Rust: messages, a stream of bytes, the latest
//! value, and doorbells. Memory and protocol are those of the C library, `guests/include/cassata_link.h`: a side in Rust
//! talks to one in C.
//!
//! ```
//! use link::{Access, Error, Link};
//!
//! /// Answers each message with itself, until nothing has come.
//! fn answer(link: &mut Link<impl Access>) -> Result<(), Error> {
//!     let mut room = [0; 64];
//!     // First arm, then look: a ring that comes between the two is not lost.
//!     link.receiver.arm();
//!     loop {
//!         match link.receiver.receive(&mut room) {
//!             Ok(message) => link.sender.send(message)?,
//!             Err(Error::Empty) => break,
//!             Err(Error::Restarted) => {}
//!             Err(error) => return Err(error),
//!         }
//!     }
//!     // Once for as many messages as there were.
//!     link.peer.notify();
//!     Ok(())
//! }
//! ```
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`Access`], [`Words`] | how a program reaches memory and registers: it says so, as only it can |
//! | [`Link`] | a side, which is opened |
//! | [`Sender`], [`Receiver`] | messages and streams |
//! | [`Publisher`], [`Peer`] | the latest value; the peer's doorbell and life |
//! | `uio`, with the feature of that name | a link in Linux |
//!
//! Each side writes its own half only. In its half are its ring, from which the peer reads, and how far it has read the
//! peer's: so there is one writer of each word, and no lock. Sending and receiving makes no call to the hypervisor,
//! arming does, and [`Peer::notify`] if the peer wants to be told. In each direction a program uses messages or a
//! stream, not both.
//!
//! A side that is opened has a new *epoch*, and its ring is empty. The peer is told so once ([`Error::Restarted`]), by
//! what it calls next to send or to receive. What a side has read stays read: one that is started again goes on behind
//! that. The peer may be opened in the midst of a call: nothing of its new epoch is returned before that error, all of it
//! behind that, and never a piece of either.
//!
//! Nothing of the peer's half is believed: whatever it holds, nothing outside the halves is accessed, nothing panics,
//! and no loop depends on it. At worst there is [`Error::Broken`].
//!
//! The crate has no `unsafe` code and, without features, no standard library and no allocation.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "uio")]
extern crate std;

mod access;
mod error;
mod half;
mod latest;
mod receiver;
mod sender;
mod side;
#[cfg(feature = "uio")]
pub mod uio;

pub use access::{Access, Registers, Words};
pub use error::Error;
pub use half::{HEADER_SIZE, MAGIC, VALUE_MAX, ring_size};
pub use latest::{Peer, Publisher};
pub use receiver::Receiver;
pub use sender::Sender;
pub use side::Link;
