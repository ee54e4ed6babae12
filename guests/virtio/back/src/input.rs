//! Tests of queues in which a device hands over what has come: none of it may wait while there is room.

use crate::console::Console;
use crate::driver::Driver;
use crate::mmio::{Device, Kind};
use crate::network::Network;
use crate::reach::{Reach, Trouble};
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::os::fd::{OwnedFd, RawFd};
use std::rc::Rc;
use virtio_queue::Queue;

/// Bytes for which a front has room in each chain.
const ROOM: u32 = 40;

/// A device, and how often its front adds room just when the device has looked for it, and by which driver.
struct Late(Box<dyn Kind>, Rc<RefCell<(u32, Option<Driver>)>>);

impl Kind for Late {
    fn id(&self) -> u32 {
        self.0.id()
    }
    fn features(&self) -> u64 {
        self.0.features()
    }
    fn configuration(&self) -> &[u8] {
        self.0.configuration()
    }
    fn queues(&self) -> usize {
        self.0.queues()
    }
    fn input(&self) -> Option<RawFd> {
        self.0.input()
    }
    fn wants_input(&self) -> bool {
        self.0.wants_input()
    }
    fn has_input(&self) -> bool {
        self.0.has_input()
    }
    fn take(&mut self, number: usize, queue: &mut Queue, front: &Reach<'_>) -> Result<(), Trouble> {
        self.0.take(number, queue, front)?;
        if let (left @ 1.., Some(driver)) = &mut *self.1.borrow_mut() {
            *left -= 1;
            driver.add(0, &[], ROOM);
        }
        Ok(())
    }
}

/// What has become of input.
#[derive(Debug, PartialEq)]
struct Became {
    /// How many bytes each chain has got.
    written: Vec<u32>,
    /// Whether the device asks for more input.
    asks: bool,
    /// The count of chains at which it wants to be notified of one more, if it does not ask.
    wanted: Option<u16>,
}

/// Returns what becomes of these bytes, behind which nothing comes, when there is room so many times, each time too
/// late.
fn hand_over(kind: fn(File) -> Box<dyn Kind>, bytes: &[u8], times: u32) -> Became {
    let (from, mut to) = std::io::pipe().unwrap();
    to.write_all(bytes).unwrap();
    drop(to);
    let late = Rc::new(RefCell::new((0, None)));
    let mut device = Device::new(Box::new(Late(kind(OwnedFd::from(from).into()), late.clone())));
    let driver = Driver::new(&mut device, 2);
    let memory = driver.memory.clone();
    *late.borrow_mut() = (times, Some(driver));
    device.take_input(&Reach { memory: &memory, is_stopped: &|| false });
    let late = late.borrow();
    let driver = late.1.as_ref().unwrap();
    let written = driver.used(0).iter().map(|(_, written)| *written).collect();
    let asks = device.wants_input();
    Became { written, asks, wanted: (!asks).then(|| driver.wanted(0)) }
}

fn console(from: File) -> Box<dyn Kind> {
    Box::new(Console::new(from, File::options().write(true).open("/dev/null").unwrap()))
}

fn network(from: File) -> Box<dyn Kind> {
    Box::new(Network::new(from, [2; 6]))
}

/// What is taken from a TAP or a terminal is not waited for there any more, and room that was there already is not
/// notified of: both together would wait for ever.
#[test]
fn room_that_comes_while_it_is_looked_for_is_used() {
    let all = |written: &[u32]| Became { written: written.to_vec(), asks: true, wanted: None };
    assert_eq!(hand_over(network, &[5; 30], 1), all(&[30]));
    assert_eq!(hand_over(console, &[5; 30], 1), all(&[30]));
    assert_eq!(hand_over(console, &[5; 90], 3), all(&[40, 40, 10]));
    // Without enough of it, the device wants to hear of more, and takes nothing meanwhile.
    let stays = |written: &[u32], wanted| Became {
        written: written.to_vec(),
        asks: false,
        wanted: Some(wanted),
    };
    assert_eq!(hand_over(network, &[5; 30], 0), stays(&[], 0));
    assert_eq!(hand_over(console, &[5; 90], 2), stays(&[40, 40], 2));
}

/// Room without input is no work: after the end of a console's input there would be no end of looking at it.
#[test]
fn room_without_input_ends_nothing_and_begins_nothing() {
    let became = hand_over(console, &[], 5);
    assert_eq!(became, Became { written: vec![], asks: false, wanted: Some(0) });
}

/// The kernel that runs then may have anything where there was room.
#[test]
fn a_front_that_was_stopped_gets_no_input() {
    for kind in [console, network] {
        for is_stopped in [true, false] {
            let (from, mut to) = std::io::pipe().unwrap();
            to.write_all(&[5; 30]).unwrap();
            drop(to);
            let mut device = Device::new(kind(OwnedFd::from(from).into()));
            let mut driver = Driver::new(&mut device, 2);
            driver.add(0, &[], ROOM);
            let before = driver.all();
            device.take_input(&Reach { is_stopped: &|| is_stopped, ..driver.front() });
            assert_eq!(driver.all() == before, is_stopped);
            assert_eq!(driver.used(0).is_empty(), is_stopped);
        }
    }
}

/// Input that is there and is not taken would wake the program again and again, without end.
#[test]
fn a_device_asks_for_no_input_that_it_cannot_take() {
    let some = || File::open("/dev/zero").unwrap();
    for kind in [console, network] {
        let mut device = Device::new(kind(some()));
        let driver = Driver::new(&mut device, 2);
        assert!(device.wants_input());
        device.store(0x030, 4, 0, &driver.memory);
        device.store(0x044, 4, 0, &driver.memory);
        assert!(!device.wants_input(), "its queue is not ready");
    }
    // A directory cannot be read, nor a TAP device that was deleted.
    for kind in [console, network] {
        let mut device = Device::new(kind(File::open("/").unwrap()));
        let driver = Driver::new(&mut device, 2);
        device.take_input(&driver.front());
        assert!(!device.wants_input());
    }
}
