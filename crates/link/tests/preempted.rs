//! A side that is preempted in a call, before any of its accesses, while its peer is opened again, which has come to any
//! of its stores meanwhile: it is told so once, and what comes before and behind that is whole, in order and of one epoch.

use link::{Access, Error, Link, Receiver, Registers, Sender, VALUE_MAX};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Words of a half, and bytes of its ring.
const WORDS: usize = 1024 / 4;
const RING: usize = 512;
/// Messages that the peer has sent before it is opened again.
const OLD: u32 = 3;
/// Bytes of a message.
const LENGTH: usize = 96;
/// Calls after which a test gives up: more than there are answers.
const CALLS: usize = 40;

type Half = [AtomicU32; WORDS];

/// The half of the peer, which is opened again, and of the side that is preempted.
struct Halves([Half; 2]);

impl Halves {
    fn new() -> Self {
        Self([(); 2].map(|()| [(); WORDS].map(|()| AtomicU32::new(0))))
    }

    fn copy(&self) -> Self {
        let copy = Self::new();
        for (to, from) in copy.0.as_flattened().iter().zip(self.0.as_flattened()) {
            to.store(from.load(Relaxed), Relaxed);
        }
        copy
    }
}

/// What the peer does to its half.
#[derive(Clone, Copy)]
enum Act {
    Store(usize, u32),
    Barrier,
}

/// The peer: what it does to its half is recorded.
struct Recorded<'a> {
    halves: &'a Halves,
    acts: RefCell<Vec<Act>>,
}

impl Registers for Recorded<'_> {
    fn load(&self, _: u64) -> u32 {
        0
    }

    fn store(&self, _: u64, _: u32) {}
}

impl Access for Recorded<'_> {
    fn half_size(&self) -> usize {
        size_of::<Half>()
    }

    fn load_own(&self, offset: usize) -> u32 {
        self.halves.0[0][offset / 4].load(Relaxed)
    }

    fn store_own(&self, offset: usize, value: u32) {
        self.acts.borrow_mut().push(Act::Store(offset, value));
        self.halves.0[0][offset / 4].store(value, Relaxed);
    }

    fn load_peer(&self, offset: usize) -> u32 {
        self.halves.0[1][offset / 4].load(Relaxed)
    }

    fn barrier(&self) {
        self.acts.borrow_mut().push(Act::Barrier);
    }
}

/// The side that is preempted.
struct Preempted<'a> {
    halves: &'a Halves,
    /// Accesses until then, counted down; 0: it is not.
    left: Cell<usize>,
    /// Stores of the peer that have not come yet, and how many come when this side is preempted.
    stores: RefCell<VecDeque<(usize, u32)>>,
    come: Cell<usize>,
}

impl Preempted<'_> {
    fn step(&self) {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        if left == 1 {
            self.let_come(self.come.get());
        }
    }

    fn let_come(&self, count: usize) {
        for (offset, value) in self.stores.borrow_mut().drain(..count) {
            self.halves.0[0][offset / 4].store(value, Relaxed);
        }
    }
}

impl Registers for Preempted<'_> {
    fn load(&self, _: u64) -> u32 {
        0
    }

    fn store(&self, _: u64, _: u32) {}
}

impl Access for Preempted<'_> {
    fn half_size(&self) -> usize {
        size_of::<Half>()
    }

    fn load_own(&self, offset: usize) -> u32 {
        self.step();
        self.halves.0[1][offset / 4].load(Relaxed)
    }

    fn store_own(&self, offset: usize, value: u32) {
        self.step();
        self.halves.0[1][offset / 4].store(value, Relaxed);
    }

    fn load_peer(&self, offset: usize) -> u32 {
        self.step();
        self.halves.0[0][offset / 4].load(Relaxed)
    }

    fn barrier(&self) {}
}

/// In which order the other side sees what is stored between two barriers.
#[derive(Clone, Copy, Debug)]
enum Order {
    Same,
    Reversed,
}

/// Returns the peer's stores when it is opened again and does this.
fn stores_of(
    halves: &Halves,
    order: Order,
    act: impl FnOnce(&mut Link<Recorded>),
) -> VecDeque<(usize, u32)> {
    let peer = Recorded { halves: &halves.copy(), acts: RefCell::default() };
    act(&mut Link::open(&peer).unwrap());
    let acts = peer.acts.into_inner();
    let mut stores = VecDeque::new();
    for group in acts.split(|act| matches!(act, Act::Barrier)) {
        let group = group.iter().filter_map(|act| match *act {
            Act::Store(offset, value) => Some((offset, value)),
            Act::Barrier => None,
        });
        match order {
            Order::Same => stores.extend(group),
            Order::Reversed => stores.extend(group.rev()),
        }
    }
    stores
}

/// When the side is preempted, and what the peer does.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Messages that the side has received before.
    taken: u32,
    /// Messages that the peer sends when it is open again.
    sent: u32,
    order: Order,
    /// Before which access of the call, from 1 on.
    at: usize,
    /// Stores of the peer that come then; the others come when the call is over.
    come: usize,
}

type Receiving = for<'m> fn(&mut Receiver<Preempted>, &'m mut [u8]) -> Result<&'m [u8], Error>;

/// How a test sends and receives.
#[derive(Clone, Copy)]
struct Way {
    send: fn(&mut Sender<Recorded>, &[u8]),
    receive: Receiving,
    /// What is preempted, if it is not `receive`.
    first: Receiving,
}

/// Returns a message of the old epoch, 0, or of the new one.
fn message(epoch: u32, number: u32) -> [u8; LENGTH] {
    [(0x10 * (epoch + 1) + number) as u8; LENGTH]
}

/// Returns how many stores the peer makes; nothing if the call has not so many accesses.
fn preempt(way: Way, case: Case) -> Option<usize> {
    let halves = Halves::new();
    let peer = Recorded { halves: &halves, acts: RefCell::default() };
    let mut sender = Link::open(&peer).unwrap().sender;
    let side = Preempted {
        halves: &halves,
        left: Cell::new(0),
        stores: RefCell::default(),
        come: Cell::new(case.come),
    };
    let mut receiver = Link::open(&side).unwrap().receiver;
    let mut room = [0; LENGTH];
    assert_eq!((way.receive)(&mut receiver, &mut room), Err(Error::Empty));
    (0..OLD).for_each(|number| (way.send)(&mut sender, &message(0, number)));
    for number in 0..case.taken {
        assert_eq!((way.receive)(&mut receiver, &mut room), Ok(&message(0, number)[..]));
    }
    let stores = stores_of(&halves, case.order, |link| {
        (0..case.sent).for_each(|number| (way.send)(&mut link.sender, &message(1, number)));
    });
    let count = stores.len();
    side.stores.replace(stores);
    side.left.set(case.at);
    let (mut is_told, mut next) = (false, 0);
    match (way.first)(&mut receiver, &mut room) {
        _ if side.left.get() > 0 => return None,
        Ok([]) => {}
        Ok(bytes) => assert_eq!(bytes, message(0, case.taken), "{case:?}"),
        Err(Error::Restarted) => is_told = true,
        Err(why) => assert!([Error::Empty, Error::Absent].contains(&why), "{why:?}: {case:?}"),
    }
    side.let_come(count - case.come);
    for _ in 0..CALLS {
        match (way.receive)(&mut receiver, &mut room) {
            Err(Error::Restarted) if !is_told => is_told = true,
            Ok(bytes) if is_told => {
                assert_eq!(bytes, message(1, next), "{case:?}");
                next += 1;
            }
            Err(Error::Empty) => break,
            other => panic!("{other:?}, told {is_told}: {case:?}"),
        }
    }
    assert_eq!((is_told, next), (true, case.sent), "{case:?}");
    Some(count)
}

/// Lets the side be preempted everywhere. `taken` is what a message takes of the ring, bytes.
fn preempt_everywhere(way: Way, taken: usize) {
    for order in [Order::Same, Order::Reversed] {
        for (sent, taken) in
            (0..=RING / taken).flat_map(|sent| (0..=OLD).map(move |old| (sent, old)))
        {
            let mut accesses = 0;
            let case = |at, come| Case { taken, sent: sent as u32, order, at, come };
            while let Some(stores) = preempt(way, case(accesses + 1, 0)) {
                accesses += 1;
                for come in 1..=stores {
                    preempt(way, case(accesses, come)).unwrap();
                }
            }
            assert!(accesses > 5);
        }
    }
}

fn receive<'m>(receiver: &mut Receiver<Preempted>, room: &'m mut [u8]) -> Result<&'m [u8], Error> {
    receiver.receive(room)
}

fn read<'m>(receiver: &mut Receiver<Preempted>, room: &'m mut [u8]) -> Result<&'m [u8], Error> {
    receiver.read(room)
}

fn skip<'m>(receiver: &mut Receiver<Preempted>, room: &'m mut [u8]) -> Result<&'m [u8], Error> {
    receiver.skip().map(|()| &room[..0])
}

fn send(sender: &mut Sender<Recorded>, message: &[u8]) {
    sender.send(message).unwrap();
}

fn write(sender: &mut Sender<Recorded>, bytes: &[u8]) {
    assert_eq!(sender.write(bytes), Ok(LENGTH));
}

#[test]
fn each_message_comes_once_behind_a_restart_in_the_midst_of_a_call() {
    preempt_everywhere(Way { send, receive, first: receive }, 8 + LENGTH);
}

#[test]
fn no_new_message_is_left_out_with_the_old_ones() {
    preempt_everywhere(Way { send, receive, first: skip }, 8 + LENGTH);
}

#[test]
fn a_stream_goes_on_at_its_beginning_behind_a_restart_in_the_midst_of_a_call() {
    preempt_everywhere(Way { send: write, receive: read, first: read }, LENGTH);
}

/// Returns how many stores the peer makes that is opened again while the side copies its latest value, and publishes one
/// if `is_published`; nothing if the call has not so many accesses.
fn preempt_latest(is_published: bool, order: Order, at: usize, come: usize) -> Option<usize> {
    const OLD: [u8; 200] = [1; 200];
    const NEW: [u8; 96] = [2; 96];
    let halves = Halves::new();
    let peer = Recorded { halves: &halves, acts: RefCell::default() };
    Link::open(&peer).unwrap().publisher.publish(&OLD).unwrap();
    // The version is then what it was before.
    let stores = stores_of(&halves, order, |link| {
        if is_published {
            link.publisher.publish(&NEW).unwrap();
        }
    });
    let count = stores.len();
    let side = Preempted {
        halves: &halves,
        left: Cell::new(0),
        stores: RefCell::new(stores),
        come: Cell::new(come),
    };
    let link = Link::open(&side).unwrap();
    side.left.set(at);
    let mut room = [0; VALUE_MAX];
    let seen = link.peer.latest(&mut room);
    if side.left.get() > 0 {
        return None;
    }
    let is_whole = match seen {
        Ok(value) => value == OLD || is_published && value == NEW,
        Err(why) => [Error::Empty, Error::Absent].contains(&why),
    };
    assert!(is_whole, "{seen:?}: {order:?}, before access {at}, {come} stores");
    side.let_come(count - come);
    let wanted = if is_published { Ok(&NEW[..]) } else { Err(Error::Empty) };
    assert_eq!(link.peer.latest(&mut [0; VALUE_MAX]), wanted);
    Some(count)
}

#[test]
fn a_latest_value_is_of_one_epoch() {
    for (is_published, order) in
        [false, true].into_iter().flat_map(|is| [(is, Order::Same), (is, Order::Reversed)])
    {
        let mut at = 1;
        while let Some(stores) = preempt_latest(is_published, order, at, 0) {
            for come in 1..=stores {
                preempt_latest(is_published, order, at, come).unwrap();
            }
            at += 1;
        }
        assert!(at > 50);
    }
}
