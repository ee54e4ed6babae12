//! A network card (Virtual I/O Device (VIRTIO) 1.2, 5.1), made of a TAP device. Each packet has the header that
//! Linux's TAP has, too.

use crate::mmio::Kind;
use crate::reach::{Reach, Trouble};
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::fd::{AsRawFd, RawFd};
use virtio_queue::{Queue, QueueOwnedT, QueueT};

/// The header in front of each packet, bytes.
pub const HEADER: usize = 12;
/// Most bytes of a packet, with its header.
const MOST: usize = 65_562;
/// VIRTIO_NET_F_MAC.
const MAC: u64 = 1 << 5;

/// See the module.
pub struct Network {
    tap: File,
    address: [u8; 6],
    /// A packet that has come and is not handed over.
    packet: Vec<u8>,
    buffer: Vec<u8>,
    /// The TAP device was deleted.
    has_ended: bool,
}

impl Network {
    /// Opens `TAP` or `TAP,MAC`: a TAP device, which is made if there is none, and the card's address.
    pub fn open(from: &str) -> Result<Self> {
        let (name, address) = match from.split_once(',') {
            Some((name, address)) => (name, parse_address(address)?),
            None => (from, address_of(from)),
        };
        Ok(Self::new(crate::uio::open_tap(name, HEADER)?, address))
    }

    /// Makes one of what a packet can be read from and written to.
    pub fn new(tap: File, address: [u8; 6]) -> Self {
        Self { tap, address, packet: Vec::new(), buffer: vec![0; MOST], has_ended: false }
    }
}

/// Returns the address of a card for which none is given: it is administered locally, and the TAP device has
/// another one.
fn address_of(name: &str) -> [u8; 6] {
    let sum = name.bytes().fold(0_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let [high, low] = sum.to_be_bytes();
    [0x52, 0x54, 0x00, 0xca, high, low]
}

/// Returns the address of a single card that this is.
fn parse_address(text: &str) -> Result<[u8; 6]> {
    let byte = |part: &str| {
        let is_hex = part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_hex.then(|| u8::from_str_radix(part, 16).ok()).flatten()
    };
    let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
    // The lowest bit of the first byte is that of a group.
    bytes
        .and_then(|bytes| <[u8; 6]>::try_from(bytes).ok())
        .filter(|address| address[0] & 1 == 0 && *address != [0; 6])
        .ok_or_else(|| {
            let why = format!(
                "`{text}` is no MAC address of a card; give six bytes of which the first one is even, as in \
                 52:54:00:12:34:56"
            );
            Error::new(ErrorKind::InvalidInput, why)
        })
}

impl Kind for Network {
    fn id(&self) -> u32 {
        1
    }

    fn features(&self) -> u64 {
        MAC
    }

    fn configuration(&self) -> &[u8] {
        &self.address
    }

    fn queues(&self) -> usize {
        2
    }

    fn input(&self) -> Option<RawFd> {
        Some(self.tap.as_raw_fd())
    }

    fn wants_input(&self) -> bool {
        !self.has_ended && self.packet.is_empty()
    }

    fn has_input(&self) -> bool {
        !self.packet.is_empty()
    }

    fn take(
        &mut self,
        number: usize,
        queue: &mut Queue,
        front: &Reach<'_>,
    ) -> std::result::Result<(), Trouble> {
        let memory = front.memory;
        if number == 1 {
            while let Some(chain) = queue.iter(memory)?.next() {
                let head = chain.head_index();
                self.packet_out(chain.reader(memory)?, front)?;
                queue.add_used(memory, head, 0)?;
            }
            return Ok(());
        }
        loop {
            if self.packet.is_empty() {
                match self.tap.read(&mut self.buffer) {
                    Ok(count) if count > HEADER => self.packet.extend(&self.buffer[..count]),
                    Err(error) => {
                        let again = [ErrorKind::WouldBlock, ErrorKind::Interrupted];
                        self.has_ended = !again.contains(&error.kind());
                        return Ok(());
                    }
                    Ok(_) => return Ok(()),
                }
            }
            let Some(chain) = queue.iter(memory)?.next() else { return Ok(()) };
            // One buffer for each packet.
            self.packet[HEADER - 2..HEADER].copy_from_slice(&1_u16.to_le_bytes());
            let head = chain.head_index();
            front.check()?;
            // A packet that does not fit is lost.
            let written =
                chain.writer(memory)?.write_all(&self.packet).map_or(0, |()| self.packet.len());
            self.packet.clear();
            queue.add_used(memory, head, written as u32)?;
        }
    }
}

impl Network {
    /// Sends a packet; one that is none, or for which there is no room, is lost.
    fn packet_out(
        &mut self,
        reader: impl Read,
        front: &Reach<'_>,
    ) -> std::result::Result<(), Trouble> {
        let mut packet = Vec::new();
        let read = reader.take(MOST as u64).read_to_end(&mut packet);
        front.check()?;
        if read.is_ok_and(|count| count > HEADER) {
            let _ = self.tap.write(&packet);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_that_of_one_card() {
        assert_eq!(parse_address("52:54:00:aB:34:56").unwrap(), [0x52, 0x54, 0, 0xab, 0x34, 0x56]);
        let none = [
            "",
            "52:54:00:12:34",
            "52:54:00:12:34:56:78",
            "52:54:00:12:34:5",
            "52:54:00:12:34:+5",
            "52-54-00-12-34-56",
            "53:54:00:12:34:56",
            "00:00:00:00:00:00",
            "52:54:00:12:34:56,",
        ];
        for text in none {
            // Before the TAP device is made.
            let error = Network::open(&format!("tap0,{text}")).err().unwrap().to_string();
            assert!(error.starts_with(&format!("`{text}` is no MAC address")), "{text}: {error}");
        }
    }
}
