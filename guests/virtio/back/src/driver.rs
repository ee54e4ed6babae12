//! For tests: a driver, which has set a device up and has queues in memory of the front.

use crate::mmio::{Device, QUEUE_SIZE};
use crate::reach::Reach;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// Where the memory begins, and how large it is, bytes.
const MEMORY: (u64, usize) = (0x2000_0000, 0x20_0000);
/// How far one queue is from the next one, and its rings are from its descriptors, bytes.
const QUEUE: u64 = 0x4000;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
/// Flags of a descriptor: another one follows, the device writes.
const NEXT: u16 = 1;
const WRITE: u16 = 2;

/// See the module.
pub struct Driver {
    /// What the device reaches.
    pub memory: GuestMemoryMmap,
    /// Where the next buffer will be.
    free: u64,
    /// For each queue, the next descriptor and how many chains were added.
    queues: Vec<(u16, u16)>,
}

impl Driver {
    /// Sets a device up that has so many queues.
    pub fn new(device: &mut Device, queues: u32) -> Self {
        let memory = GuestMemoryMmap::from_ranges(&[(GuestAddress(MEMORY.0), MEMORY.1)]).unwrap();
        let mut set = |register, value| device.store(register, 4, value, &memory);
        // VIRTIO_F_RING_EVENT_IDX, then VIRTIO_F_VERSION_1 and VIRTIO_F_ACCESS_PLATFORM.
        for (word, features) in [(0, 1 << 29), (1, 3)] {
            set(0x024, word);
            set(0x020, features);
        }
        set(0x070, 0xb);
        for number in 0..queues {
            let at = Self::at(number as usize);
            set(0x030, number);
            set(0x038, QUEUE_SIZE.into());
            for (register, offset) in [(0x080, 0), (0x090, AVAILABLE), (0x0a0, USED)] {
                set(register, (at + offset) as u32);
            }
            set(0x044, 1);
        }
        set(0x070, 0xf);
        let free = Self::at(queues as usize);
        Self { memory, free, queues: vec![(0, 0); queues as usize] }
    }

    /// Returns what a device reaches of a front that was not stopped.
    pub fn front(&self) -> Reach<'_> {
        Reach { memory: &self.memory, is_stopped: &|| false }
    }

    /// Returns all that is in the memory.
    pub fn all(&self) -> Vec<u8> {
        let mut all = vec![0; MEMORY.1];
        self.memory.read_slice(&mut all, GuestAddress(MEMORY.0)).unwrap();
        all
    }

    fn at(number: usize) -> u64 {
        MEMORY.0 + number as u64 * QUEUE
    }

    /// Adds a chain: what the device reads, and how many bytes it may write then. Returns its head, and where
    /// it writes.
    pub fn add(&mut self, number: usize, reads: &[u8], writes: u32) -> (u16, GuestAddress) {
        let (head, count) = self.queues[number];
        let (from, to) = (GuestAddress(self.free), GuestAddress(self.free + reads.len() as u64));
        self.free = to.0 + u64::from(writes);
        self.memory.write_slice(reads, from).unwrap();
        let lengths = [(from, reads.len() as u32, 0), (to, writes, WRITE)];
        let parts = Vec::from_iter(lengths.into_iter().filter(|(_, length, _)| *length > 0));
        for (part, (at, length, flags)) in parts.iter().enumerate() {
            let index = head + part as u16;
            let flags = if part + 1 < parts.len() { flags | NEXT } else { *flags };
            let word = u64::from(*length) | u64::from(flags) << 32 | u64::from(index + 1) << 48;
            let descriptor = GuestAddress(Self::at(number) + 16 * u64::from(index));
            self.memory.write_obj([at.0.to_le(), word.to_le()], descriptor).unwrap();
        }
        let entry = Self::at(number) + AVAILABLE + 4 + 2 * u64::from(count % QUEUE_SIZE);
        self.memory.write_obj(head.to_le(), GuestAddress(entry)).unwrap();
        self.queues[number] = ((head + parts.len() as u16) % QUEUE_SIZE, count.wrapping_add(1));
        self.set_index(number, count.wrapping_add(1));
        (head, to)
    }

    /// Says how many chains were added to a queue.
    pub fn set_index(&self, number: usize, index: u16) {
        let at = GuestAddress(Self::at(number) + AVAILABLE + 2);
        self.memory.write_obj(index.to_le(), at).unwrap();
    }

    /// Returns the head of each chain that the device has used, and how many bytes it has written there.
    pub fn used(&self, number: usize) -> Vec<(u32, u32)> {
        let at = Self::at(number) + USED;
        let count: u16 = self.memory.read_obj(GuestAddress(at + 2)).unwrap();
        let entry = |index: u16| {
            let at = at + 4 + 8 * u64::from(index % QUEUE_SIZE);
            let [head, written]: [u32; 2] = self.memory.read_obj(GuestAddress(at)).unwrap();
            (u32::from_le(head), u32::from_le(written))
        };
        (0..u16::from_le(count)).map(entry).collect()
    }
    /// Returns the count of chains at which the device wants to be notified of one more.
    pub fn wanted(&self, number: usize) -> u16 {
        let at = Self::at(number) + USED + 4 + 8 * u64::from(QUEUE_SIZE);
        u16::from_le(self.memory.read_obj(GuestAddress(at)).unwrap())
    }
}
