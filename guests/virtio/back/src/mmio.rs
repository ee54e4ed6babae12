//! The registers of a device, as virtio-mmio has them (Virtual I/O Device (VIRTIO) 1.2, 4.2.2). Notifications and
//! interrupts are EL2's.

use crate::reach::{Reach, Trouble};
use std::os::fd::RawFd;
use virtio_queue::{Queue, QueueT};
use vm_memory::GuestMemoryMmap;

/// Most descriptors of a queue.
pub const QUEUE_SIZE: u16 = 128;
/// VIRTIO_F_VERSION_1, VIRTIO_F_ACCESS_PLATFORM, VIRTIO_F_RING_EVENT_IDX, VIRTIO_F_RING_INDIRECT_DESC: the device
/// reaches only what its bus lets it reach, so the front has to use its DMA interface.
const FEATURES: u64 = VERSION_1 | ACCESS_PLATFORM | EVENT_IDX | 1 << 28;
const VERSION_1: u64 = 1 << 32;
const ACCESS_PLATFORM: u64 = 1 << 33;
const EVENT_IDX: u64 = 1 << 29;
/// Bits of the register Status.
const DRIVER_OK: u32 = 4;
const FEATURES_OK: u32 = 8;
const NEEDS_RESET: u32 = 64;
/// Bits of the register InterruptStatus.
const USED: u8 = 1;
const CONFIGURATION: u8 = 2;
/// Where a device's own configuration begins.
const OWN: u64 = 0x100;

/// What one kind of device does.
pub trait Kind {
    /// The number of the kind (5, Device Types).
    fn id(&self) -> u32;
    /// The features of the kind.
    fn features(&self) -> u64;
    /// What the configuration has.
    fn configuration(&self) -> &[u8];
    /// How many queues there are.
    fn queues(&self) -> usize;
    /// Takes what is in a queue.
    ///
    /// # Errors
    /// The queue is not what it must be, or the front was stopped.
    fn take(&mut self, number: usize, queue: &mut Queue, front: &Reach<'_>) -> Result<(), Trouble>;
    /// What is waited for besides the front.
    fn input(&self) -> Option<RawFd> {
        None
    }
    /// The queue in which that is handed over.
    fn input_queue(&self) -> Option<usize> {
        self.input().map(|_| 0)
    }
    /// Returns true if nothing has to happen before input can be taken.
    fn wants_input(&self) -> bool {
        true
    }
    /// Returns true if it has input for which the front has had no room yet.
    fn has_input(&self) -> bool {
        false
    }
}

/// A device.
pub struct Device {
    kind: Box<dyn Kind>,
    queues: Vec<Queue>,
    selected: usize,
    offered_word: u32,
    accepted_word: u32,
    accepted: u64,
    status: u32,
    interrupt: u8,
}

impl Device {
    /// Makes one, as after a reset.
    pub fn new(kind: Box<dyn Kind>) -> Self {
        let queue = |_| Queue::new(QUEUE_SIZE).expect("a power of two");
        let queues = (0..kind.queues()).map(queue).collect();
        Self {
            kind,
            queues,
            selected: 0,
            offered_word: 0,
            accepted_word: 0,
            accepted: 0,
            status: 0,
            interrupt: 0,
        }
    }

    /// Makes it forget its driver.
    pub fn reset(&mut self) {
        self.queues.iter_mut().for_each(QueueT::reset);
        (self.selected, self.offered_word, self.accepted_word) = (0, 0, 0);
        (self.accepted, self.status, self.interrupt) = (0, 0, 0);
    }

    /// What is waited for besides the front.
    pub fn input(&self) -> Option<RawFd> {
        self.kind.input()
    }

    /// Returns true if input can be handed to the front.
    pub fn wants_input(&self) -> bool {
        // What cannot be taken must not be waited for: it is there again at once.
        let queue = self.kind.input_queue().and_then(|number| self.queues.get(number));
        self.is_alive() && queue.is_some_and(QueueT::ready) && self.kind.wants_input()
    }

    /// Returns what the front is to be interrupted for, once.
    pub fn take_interrupt(&mut self) -> u8 {
        std::mem::take(&mut self.interrupt)
    }

    /// Takes what is in a queue of which the front has notified.
    pub fn notified(&mut self, number: usize, front: &Reach<'_>) {
        if !self.is_alive() {
            return;
        }
        let Some(queue) = self.queues.get_mut(number).filter(|queue| queue.ready()) else { return };
        let taken = drain(self.kind.as_mut(), number, queue, front);
        match taken {
            Ok(true) => self.interrupt |= USED,
            // It will be reset.
            Ok(false) | Err(Trouble::Stopped) => {}
            Err(Trouble::Queue(error)) => {
                // Nothing can be done for this driver until it resets the device.
                eprintln!(
                    "cassata-virtio: queue {number} of a device of kind {}: {error}",
                    self.kind.id()
                );
                self.status |= NEEDS_RESET;
                self.interrupt |= CONFIGURATION;
            }
        }
    }

    /// Hands over what has come, if the front has room for it.
    pub fn take_input(&mut self, front: &Reach<'_>) {
        if let Some(number) = self.kind.input_queue() {
            self.notified(number, front);
        }
    }

    fn is_alive(&self) -> bool {
        self.status & (DRIVER_OK | NEEDS_RESET) == DRIVER_OK
    }

    fn offered(&self) -> u64 {
        FEATURES | self.kind.features()
    }

    /// Returns what a load reads.
    pub fn load(&self, offset: u64, size: u8) -> u32 {
        if offset >= OWN {
            let own = self.kind.configuration();
            let byte = |at: u64| own.get((offset - OWN + at) as usize).copied().unwrap_or(0);
            return (0..size.into()).rev().fold(0, |value, at| value << 8 | u32::from(byte(at)));
        }
        let half = |word: u32, value: u64| if word < 2 { (value >> (32 * word)) as u32 } else { 0 };
        let queue = self.queues.get(self.selected);
        match (size, offset) {
            (4, 0x000) => u32::from_le_bytes(*b"virt"),
            (4, 0x004) => 2,
            (4, 0x008) => self.kind.id(),
            (4, 0x00c) => u32::from_le_bytes(*b"CSTA"),
            (4, 0x010) => half(self.offered_word, self.offered()),
            (4, 0x034) => queue.map_or(0, |queue| queue.max_size().into()),
            (4, 0x044) => queue.map_or(0, |queue| queue.ready().into()),
            (4, 0x070) => self.status,
            // There is no shared memory region: its length is -1.
            (4, 0x0b0 | 0x0b4) => u32::MAX,
            _ => 0,
        }
    }

    /// Carries a store out.
    pub fn store(&mut self, offset: u64, size: u8, value: u32, memory: &GuestMemoryMmap) {
        if size != 4 || offset >= OWN {
            return;
        }
        match offset {
            0x014 => self.offered_word = value,
            0x020 if self.accepted_word < 2 && self.status & FEATURES_OK == 0 => {
                let shift = 32 * self.accepted_word;
                self.accepted = self.accepted & !(0xffff_ffff << shift) | u64::from(value) << shift;
            }
            0x024 => self.accepted_word = value,
            0x030 => self.selected = value as usize,
            0x070 => self.set_status(value),
            _ => self.configure_queue(offset, value, memory),
        }
    }

    fn set_status(&mut self, value: u32) {
        if value == 0 {
            return self.reset();
        }
        let wanted = VERSION_1 | ACCESS_PLATFORM;
        let is_good = self.accepted & !self.offered() == 0 && self.accepted & wanted == wanted;
        // A driver that reads this bit as 0 gives up.
        let refused = if is_good { 0 } else { FEATURES_OK };
        self.status = self.status & NEEDS_RESET | value & !refused;
    }

    fn configure_queue(&mut self, offset: u64, value: u32, memory: &GuestMemoryMmap) {
        let has_index = self.accepted & EVENT_IDX != 0;
        let Some(queue) = self.queues.get_mut(self.selected) else { return };
        match offset {
            0x044 if value == 0 => queue.set_ready(false),
            0x044 => {
                queue.set_event_idx(has_index);
                queue.set_ready(true);
                // One that is not within the memory is not ready.
                let is_valid = queue.is_valid(memory);
                queue.set_ready(is_valid);
            }
            // Changed while it is in use, its indices would be nonsense.
            _ if queue.ready() => {}
            0x038 => queue.set_size(u16::try_from(value).unwrap_or(0)),
            0x080 => queue.set_desc_table_address(Some(value), None),
            0x084 => queue.set_desc_table_address(None, Some(value)),
            0x090 => queue.set_avail_ring_address(Some(value), None),
            0x094 => queue.set_avail_ring_address(None, Some(value)),
            0x0a0 => queue.set_used_ring_address(Some(value), None),
            0x0a4 => queue.set_used_ring_address(None, Some(value)),
            _ => {}
        }
    }
}

/// Takes what is in a queue, and what comes meanwhile. Returns true if the front wants to be told.
fn drain(
    kind: &mut dyn Kind,
    number: usize,
    queue: &mut Queue,
    front: &Reach<'_>,
) -> Result<bool, Trouble> {
    let memory = front.memory;
    loop {
        // With the feature, nothing is written.
        if !queue.event_idx_enabled() {
            front.check()?;
            queue.disable_notification(memory)?;
        }
        let before = queue.next_avail();
        kind.take(number, queue, front)?;
        // Without input, room in an input queue is no work, and more of it no news.
        let is_idle = kind.input_queue() == Some(number) && !kind.has_input();
        if !is_idle && queue.next_avail() == before {
            // Otherwise it was looked for just now.
            front.check()?;
        }
        if is_idle || !queue.enable_notification(memory)? {
            return Ok(queue.needs_notification(memory)?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Block;
    use crate::console::Console;
    use crate::driver::Driver;
    use crate::network::Network;
    use std::fs::File;
    use vm_memory::GuestAddress;

    struct Nothing;

    impl Kind for Nothing {
        fn id(&self) -> u32 {
            2
        }
        fn features(&self) -> u64 {
            1 << 9
        }
        fn configuration(&self) -> &[u8] {
            &[1, 2, 3, 4, 5]
        }
        fn queues(&self) -> usize {
            1
        }
        fn take(&mut self, _: usize, _: &mut Queue, _: &Reach<'_>) -> Result<(), Trouble> {
            Ok(())
        }
    }

    fn memory() -> GuestMemoryMmap {
        GuestMemoryMmap::from_ranges(&[(GuestAddress(0x2000_0000), 0x20_0000)]).unwrap()
    }

    fn accept(device: &mut Device, features: u64) -> u32 {
        for word in 0..2 {
            device.store(0x024, 4, word, &memory());
            device.store(0x020, 4, (features >> (32 * word)) as u32, &memory());
        }
        device.store(0x070, 4, 1 | 2 | FEATURES_OK, &memory());
        device.load(0x070, 4) & FEATURES_OK
    }

    /// A driver that takes addresses of its own for the device's would write where nothing is shared.
    #[test]
    fn a_driver_has_to_accept_that_not_all_memory_is_reached() {
        let mut device = Device::new(Box::new(Nothing));
        assert_eq!((device.load(0, 4), device.load(4, 4), device.load(8, 4)), (0x7472_6976, 2, 2));
        assert_eq!(accept(&mut device, VERSION_1), 0);
        device.store(0x070, 4, 0, &memory());
        assert_eq!(accept(&mut device, VERSION_1 | ACCESS_PLATFORM | 1 << 5), 0, "not offered");
        device.store(0x070, 4, 0, &memory());
        assert_eq!(accept(&mut device, VERSION_1 | ACCESS_PLATFORM | 1 << 9), FEATURES_OK);
    }

    #[test]
    fn a_queue_outside_of_the_memory_is_never_ready() {
        let mut device = Device::new(Box::new(Nothing));
        let configure = |device: &mut Device, at: u32| {
            device.store(0x038, 4, 16, &memory());
            for (register, offset) in [(0x080, 0), (0x090, 0x1000), (0x0a0, 0x2000)] {
                device.store(register, 4, at + offset, &memory());
            }
            device.store(0x044, 4, 1, &memory());
            device.load(0x044, 4)
        };
        assert_eq!(configure(&mut device, 0x4000_0000), 0);
        assert_eq!(configure(&mut device, 0x201f_f000), 0, "its end is outside");
        assert_eq!(configure(&mut device, 0x2000_0000), 1);
        device.store(0x030, 4, 7, &memory());
        assert_eq!(device.load(0x034, 4), 0, "there is no such queue");
    }

    type Open = fn() -> Box<dyn Kind>;

    /// Opens a device for each queue that takes what a front wants done, and says which of its queues that is.
    fn workers() -> [(Open, usize); 3] {
        [
            (|| Box::new(Block::open("/dev/null").unwrap()), 0),
            (|| Box::new(Console::open("/dev/null").unwrap()), 1),
            (|| Box::new(Network::new(null(), [2; 6])), 1),
        ]
    }

    fn null() -> File {
        File::options().read(true).write(true).open("/dev/null").unwrap()
    }

    /// An index that is too large never becomes equal to the count of chains that were taken.
    #[test]
    fn a_queue_with_more_than_it_can_have_needs_a_reset() {
        for (kind, queue) in workers() {
            // A device is not for several threads, and a test that never ends says nothing.
            let (tell, told) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let mut device = Device::new(kind());
                let mut driver = Driver::new(&mut device, 2);
                driver.add(queue, b"x", 0);
                device.notified(queue, &driver.front());
                assert_eq!((driver.used(queue).len(), device.load(0x070, 4)), (1, 0xf));
                driver.set_index(queue, 2 + QUEUE_SIZE);
                device.notified(queue, &driver.front());
                tell.send((device.load(0x070, 4), device.take_interrupt() & CONFIGURATION))
            });
            let status = told.recv_timeout(std::time::Duration::from_secs(60));
            assert_eq!(status, Ok((0xf | NEEDS_RESET, CONFIGURATION)));
        }
    }

    /// The kernel that runs then may have anything there.
    #[test]
    fn nothing_is_written_to_the_memory_of_a_front_that_was_stopped() {
        for (kind, queue) in workers() {
            for is_stopped in [true, false] {
                let mut device = Device::new(kind());
                let mut driver = Driver::new(&mut device, 2);
                driver.add(queue, &[0; 100], 513);
                let before = driver.all();
                device.notified(queue, &Reach { is_stopped: &|| is_stopped, ..driver.front() });
                let id = device.load(8, 4);
                assert_eq!(driver.used(queue).is_empty(), is_stopped, "{id}");
                assert_eq!(driver.all() == before, is_stopped, "{id}");
                assert_eq!(device.load(0x070, 4), 0xf, "{id}");
            }
        }
    }

    #[test]
    fn the_configuration_is_read_in_any_width_and_ends() {
        let device = Device::new(Box::new(Nothing));
        assert_eq!((device.load(0x100, 4), device.load(0x101, 2)), (0x0403_0201, 0x0302));
        assert_eq!(
            (device.load(0x104, 1), device.load(0x104, 4), device.load(0xffc, 4)),
            (5, 5, 0)
        );
    }
}
