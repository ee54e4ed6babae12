//! A network card (Virtual I/O Device (VIRTIO) 1.2, 5.1), made of a TAP device. Each packet has the header that
//! Linux's TAP has, too.

use crate::mmio::Kind;
use std::fs::File;
use std::io::{Read, Result, Write};
use std::os::fd::{AsRawFd, RawFd};
use virtio_queue::{Error, Queue, QueueOwnedT, QueueT};
use vm_memory::GuestMemoryMmap;

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
}

impl Network {
    /// Opens a TAP device, which is made if there is none.
    pub fn open(name: &str) -> Result<Self> {
        let tap = crate::uio::open_tap(name, HEADER)?;
        // Administered locally; the TAP device has another one.
        let sum =
            name.bytes().fold(0_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let [high, low] = sum.to_be_bytes();
        let address = [0x52, 0x54, 0x00, 0xca, high, low];
        Ok(Self::new(tap, address))
    }

    /// Makes one of what a packet can be read from and written to.
    pub fn new(tap: File, address: [u8; 6]) -> Self {
        Self { tap, address, packet: Vec::new(), buffer: vec![0; MOST] }
    }
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
        self.packet.is_empty()
    }

    fn has_input(&self) -> bool {
        !self.packet.is_empty()
    }

    fn take(
        &mut self,
        number: usize,
        queue: &mut Queue,
        memory: &GuestMemoryMmap,
    ) -> std::result::Result<(), Error> {
        if number == 1 {
            while let Some(chain) = queue.iter(memory)?.next() {
                let head = chain.head_index();
                self.packet_out(chain.reader(memory)?);
                queue.add_used(memory, head, 0)?;
            }
            return Ok(());
        }
        loop {
            if self.packet.is_empty() {
                match self.tap.read(&mut self.buffer) {
                    Ok(count) if count > HEADER => self.packet.extend(&self.buffer[..count]),
                    _ => return Ok(()),
                }
            }
            let Some(chain) = queue.iter(memory)?.next() else { return Ok(()) };
            // One buffer for each packet.
            self.packet[HEADER - 2..HEADER].copy_from_slice(&1_u16.to_le_bytes());
            let head = chain.head_index();
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
    fn packet_out(&mut self, reader: impl Read) {
        let mut packet = Vec::new();
        let read = reader.take(MOST as u64).read_to_end(&mut packet);
        if read.is_ok_and(|count| count > HEADER) {
            let _ = self.tap.write(&packet);
        }
    }
}
