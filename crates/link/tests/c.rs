//! A side in Rust and one in C (`side.c`, by the C library that guests have) over one memory: what one sends the other
//! receives, and beside any peer, one that writes what cannot be too, both do the same to the last byte.

use link::{Access, Error, Link, Registers, VALUE_MAX};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;
use vm_memory::{FileOffset, MmapRegion, VolatileMemory};

/// Size of the file's part that has the registers.
const REGISTERS: usize = 4096;
/// Offset of a word of the registers.
const RING: usize = 0;
const ARM: usize = 4;
const PEER: usize = 8;

/// The program of `side.c`, compiled once.
static SIDE: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("side");
    let status = Command::new("cc")
        .args(["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror"])
        .args(["-fsanitize=address,undefined", "-fno-sanitize-recover"])
        .arg("-I")
        .arg(here.join("../../guests/include"))
        .arg(here.join("tests/side.c"))
        .arg("-o")
        .arg(&program)
        .status();
    assert!(status.expect("the C compiler `cc` can be started").success());
    (place, program)
});

/// Registers and halves that two sides have, which may be in two programs.
struct Memory {
    file: tempfile::NamedTempFile,
    half: usize,
    map: MmapRegion,
}

impl Memory {
    fn new(half: usize) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        let size = REGISTERS + 2 * half;
        file.as_file().set_len(size as u64).unwrap();
        let opened: File = OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
        let map = MmapRegion::from_file(FileOffset::new(opened, 0), size).unwrap();
        Self { file, half, map }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        self.map.get_atomic_ref(at).unwrap()
    }

    /// A register of a side.
    fn register(&self, side: usize, offset: usize) -> &AtomicU32 {
        self.word(16 * side + offset)
    }

    /// Everything that both sides have written.
    fn bytes(&self) -> Vec<u32> {
        (0..self.map.len() / 4).map(|number| self.word(4 * number).load(Relaxed)).collect()
    }

    fn side(&self, number: usize) -> Side<'_> {
        Side { memory: self, number }
    }
}

/// A side in this program.
struct Side<'a> {
    memory: &'a Memory,
    number: usize,
}

impl Side<'_> {
    /// Where a byte of the half is that this side, or its peer, writes. Outside of the half is nothing.
    fn place(&self, of: usize, offset: usize, width: usize) -> usize {
        let half = self.memory.half;
        assert!(offset.is_multiple_of(width) && offset + width <= half, "{offset:#x}");
        REGISTERS + of * half + offset
    }
}

impl Registers for Side<'_> {
    fn load(&self, offset: u64) -> u32 {
        self.memory.register(self.number, offset as usize).load(Relaxed)
    }

    fn store(&self, offset: u64, value: u32) {
        self.memory.register(self.number, offset as usize).store(value, Relaxed);
    }
}

impl Access for Side<'_> {
    fn half_size(&self) -> usize {
        self.memory.half
    }

    fn load_own(&self, offset: usize) -> u32 {
        self.memory.word(self.place(self.number, offset, 4)).load(Relaxed)
    }

    fn store_own(&self, offset: usize, value: u32) {
        self.memory.word(self.place(self.number, offset, 4)).store(value, Relaxed);
    }

    fn load_peer(&self, offset: usize) -> u32 {
        self.memory.word(self.place(1 - self.number, offset, 4)).load(Relaxed)
    }

    fn store_own_doubleword(&self, offset: usize, value: u64) {
        let place = self.place(self.number, offset, 8);
        self.memory.map.get_atomic_ref::<AtomicU64>(place).unwrap().store(value, Relaxed);
    }

    fn load_peer_doubleword(&self, offset: usize) -> u64 {
        let place = self.place(1 - self.number, offset, 8);
        self.memory.map.get_atomic_ref::<AtomicU64>(place).unwrap().load(Relaxed)
    }
}

/// A side in a program in C.
struct InC {
    program: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl InC {
    fn start(memory: &Memory, side: usize) -> Self {
        let mut program = Command::new(&SIDE.1)
            .arg(memory.file.path())
            .arg(memory.half.to_string())
            .arg(side.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = program.stdin.take().unwrap();
        let output = BufReader::new(program.stdout.take().unwrap());
        Self { program, input, output }
    }

    fn open(memory: &Memory, side: usize) -> Self {
        let mut this = Self::start(memory, side);
        assert_eq!(this.tell("open"), Answer::Done(1));
        this
    }

    /// Says what is to be done, without waiting for the answer.
    fn order(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn answer(&mut self) -> Answer {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let (result, copy) = line.trim_end_matches('\n').split_once(' ').unwrap_or_else(|| {
            panic!("the program in C ended: {:?}", self.program.wait());
        });
        let digits = copy.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).unwrap());
        let copy: Vec<_> = digits.map(|two| u8::from_str_radix(two, 16).unwrap()).collect();
        match result.parse::<i64>().unwrap() {
            result if result < 0 => Answer::Not(result),
            _ if !copy.is_empty() => Answer::Copied(copy),
            result => Answer::Done(result),
        }
    }

    fn tell(&mut self, line: &str) -> Answer {
        self.order(line);
        self.answer()
    }
}

impl Drop for InC {
    fn drop(&mut self) {
        // It ends with its input; one that waits for its peer for ever is killed.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// What a function answers: an error of C's, bytes, or another number.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Not(i64),
    Copied(Vec<u8>),
    Done(i64),
}

/// The numbers of the C library.
fn error(error: Error) -> Answer {
    Answer::Not(match error {
        Error::Empty => -1,
        Error::Full => -2,
        Error::TooLong => -3,
        Error::Restarted => -4,
        Error::Broken => -5,
        Error::Absent => -6,
    })
}

fn copied(result: Result<&[u8], Error>) -> Answer {
    match result {
        Ok([]) => Answer::Done(0),
        Ok(bytes) => Answer::Copied(bytes.to_vec()),
        Err(why) => error(why),
    }
}

fn done(result: Result<(), Error>) -> Answer {
    result.map_or_else(error, |()| Answer::Done(0))
}

/// What a side can be told.
#[derive(Clone, Debug)]
enum Act {
    Open,
    Send(Vec<u8>),
    Write(Vec<u8>),
    Publish(Vec<u8>),
    Receive(usize),
    Read(usize),
    Latest(usize),
    Skip,
    Arm,
    ArmWithin(u32),
    Disarm,
    ArmForRoom,
    DisarmForRoom,
    Notify,
    Ring,
    Life,
}

impl Act {
    fn line(&self) -> String {
        let with = |word: &str, bytes: &[u8]| {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{word} {digits}")
        };
        match self {
            Self::Open => "open".into(),
            Self::Send(bytes) => with("send", bytes),
            Self::Write(bytes) => with("write", bytes),
            Self::Publish(bytes) => with("publish", bytes),
            Self::Receive(room) => format!("receive {room}"),
            Self::Read(room) => format!("read {room}"),
            Self::Latest(room) => format!("latest {room}"),
            Self::Skip => "skip".into(),
            Self::Arm => "arm".into(),
            Self::ArmWithin(ticks) => format!("arm-within {ticks}"),
            Self::Disarm => "disarm".into(),
            Self::ArmForRoom => "arm-room".into(),
            Self::DisarmForRoom => "disarm-room".into(),
            Self::Notify => "notify".into(),
            Self::Ring => "ring".into(),
            Self::Life => "life".into(),
        }
    }

    fn carry_out<'a>(&self, access: &'a Side<'a>, link: &mut Link<'a, Side<'a>>) -> Answer {
        let mut room = [0; 8192];
        match self {
            Self::Open => *link = Link::open(access).unwrap(),
            Self::Send(bytes) => return done(link.sender.send(bytes)),
            Self::Write(bytes) => {
                let written = link.sender.write(bytes);
                return written.map_or_else(error, |length| Answer::Done(length as i64));
            }
            Self::Publish(bytes) => return done(link.publisher.publish(bytes)),
            Self::Receive(length) => return copied(link.receiver.receive(&mut room[..*length])),
            Self::Read(length) => return copied(link.receiver.read(&mut room[..*length])),
            Self::Latest(length) => return copied(link.peer.latest(&mut room[..*length])),
            Self::Skip => return done(link.receiver.skip()),
            Self::Arm => link.receiver.arm(),
            Self::ArmWithin(ticks) => link.receiver.arm_within(*ticks),
            Self::Disarm => link.receiver.disarm(),
            Self::ArmForRoom => link.sender.arm_for_room(),
            Self::DisarmForRoom => link.sender.disarm_for_room(),
            Self::Notify => link.peer.notify(),
            Self::Ring => link.peer.ring(),
            Self::Life => {
                return Answer::Done(link.peer.life().map_or(0, |life| life.get().into()));
            }
        }
        Answer::Done(matches!(self, Self::Open).into())
    }
}

fn act() -> impl Strategy<Value = Act> {
    let bytes = || prop_oneof![4 => vec(any::<u8>(), 0..80), 1 => vec(any::<u8>(), 0..2100)];
    let room = || prop_oneof![0..64_usize, 0..2100_usize];
    prop_oneof![
        1 => Just(Act::Open),
        6 => bytes().prop_map(Act::Send),
        3 => bytes().prop_map(Act::Write),
        3 => vec(any::<u8>(), 0..VALUE_MAX + 2).prop_map(Act::Publish),
        6 => room().prop_map(Act::Receive),
        3 => room().prop_map(Act::Read),
        3 => room().prop_map(Act::Latest),
        1 => prop_oneof![
            Just(Act::Skip),
            Just(Act::Arm),
            any::<u32>().prop_map(Act::ArmWithin),
            Just(Act::Disarm),
            Just(Act::ArmForRoom),
            Just(Act::DisarmForRoom),
            Just(Act::Notify),
            Just(Act::Ring),
            Just(Act::Life),
        ],
    ]
}

/// What happens: a side does something, or what a hostile peer may do, a word of its half has another value.
#[derive(Clone, Debug)]
enum Event {
    Does(usize, Act),
    Writes { at: usize, value: u32 },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..2_usize, act()).prop_map(|(side, act)| Event::Does(side, act)),
        1 => word().prop_map(|(at, value)| Event::Writes { at, value }),
    ]
}

/// A word, mostly of the header, with a value that could be, or any.
fn word() -> impl Strategy<Value = (usize, u32)> {
    let at = prop_oneof![4 => 0..10_usize, 1 => 0..HALF / 4];
    let value = prop_oneof![
        Just(link::MAGIC),
        Just(u32::MAX),
        0..8_u32,
        (0..300_u32).prop_map(|eighth| 8 * eighth),
        any::<u32>(),
    ];
    (at, value)
}

/// Size of a half, whose ring has 2,048 bytes.
const HALF: usize = 4096;

thread_local! {
    /// Both sides in C, and their memory; and the memory of two in Rust. Programs that are started for each
    /// history would take most of the time.
    static SIDES: RefCell<([InC; 2], [Memory; 2])> = RefCell::new({
        let memories = [(); 2].map(|()| Memory::new(HALF));
        ([0, 1].map(|side| InC::start(&memories[0], side)), memories)
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Two sides in C and two in Rust do the same, one of which is hostile: the same answers, and the same bytes in
    /// memory and registers after each act.
    #[test]
    fn both_do_the_same_to_the_last_byte(
        lives in any::<[u32; 2]>(),
        events in vec(event(), 1..60),
    ) {
        SIDES.with_borrow_mut(|(in_c, memories)| {
            for memory in memories.iter() {
                (0..memory.map.len() / 4).for_each(|at| memory.word(4 * at).store(0, Relaxed));
                (0..2).for_each(|side| memory.register(side, PEER).store(lives[side], Relaxed));
            }
            let [of_c, of_rust] = &memories;
            let sides = [0, 1].map(|side| of_rust.side(side));
            for side in in_c.iter_mut() {
                side.tell("open");
            }
            let mut links = [0, 1].map(|side| Link::open(&sides[side]).unwrap());
            for event in &events {
                match event {
                    Event::Does(side, act) => {
                        let answer = act.carry_out(&sides[*side], &mut links[*side]);
                        prop_assert_eq!(in_c[*side].tell(&act.line()), answer, "{:?}", act);
                    }
                    Event::Writes { at, value } => {
                        for memory in [of_c, of_rust] {
                            memory.word(REGISTERS + 4 * at).store(*value, Relaxed);
                        }
                    }
                }
                prop_assert!(of_c.bytes() == of_rust.bytes(), "memory differs after {:?}", event);
            }
            Ok(())
        })?;
    }

    /// One in Rust and one in C: whatever is sent arrives once, in order and whole, whichever is opened again, and is
    /// published whole.
    #[test]
    fn one_receives_what_the_other_sends(
        rust in 0..2_usize,
        acts in vec((any::<bool>(), act()), 1..60),
    ) {
        let memory = Memory::new(HALF);
        let side = memory.side(rust);
        let mut link = Link::open(&side).unwrap();
        let mut c = InC::open(&memory, 1 - rust);
        // By the sender, in C or not: what was sent and not received, and the latest value.
        let mut sent: [Vec<Vec<u8>>; 2] = Default::default();
        let mut latest: [Option<Vec<u8>>; 2] = Default::default();
        for (is_c, act) in acts {
            let (own, peers) = (usize::from(is_c), usize::from(!is_c));
            let streams = matches!(act, Act::Write(_) | Act::Read(_));
            if streams {
                continue; // messages and a stream exclude each other
            }
            let answer =
                if is_c { c.tell(&act.line()) } else { act.carry_out(&side, &mut link) };
            match (act, answer) {
                (Act::Open, _) => {
                    sent[own].clear();
                    latest[own] = None;
                }
                (Act::Send(bytes), Answer::Done(0)) => sent[own].push(bytes),
                (Act::Publish(bytes), Answer::Done(0)) => latest[own] = Some(bytes),
                (Act::Receive(room), Answer::Not(-3)) => {
                    let dropped = sent[peers].remove(0);
                    prop_assert!(dropped.len() > room);
                }
                (Act::Receive(_), Answer::Not(-1)) => prop_assert!(sent[peers].is_empty()),
                (Act::Receive(_), Answer::Copied(bytes)) => {
                    prop_assert_eq!(&bytes, &sent[peers].remove(0));
                }
                (Act::Receive(_), Answer::Done(0)) => {
                    prop_assert!(sent[peers].remove(0).is_empty());
                }
                (Act::Latest(_), Answer::Copied(bytes)) => {
                    prop_assert_eq!(Some(&bytes), latest[peers].as_ref());
                }
                (Act::Latest(_), Answer::Not(-1)) => prop_assert_eq!(&latest[peers], &None),
                (Act::Skip, Answer::Done(0)) => sent[peers].clear(),
                // Full, too long, told of a restart.
                (_, Answer::Not(why)) => prop_assert!([-2, -3, -4].contains(&why), "{}", why),
                _ => {}
            }
        }
    }
}

/// What both sides of a test send without a pause, as `side.c` has it.
fn message(number: u32) -> Vec<u8> {
    let length = number.wrapping_mul(2_654_435_761) >> 24;
    (0..length).map(|at| number.wrapping_mul(31).wrapping_add(at * 7) as u8).collect()
}

/// How many messages each side sends without a pause.
const MESSAGES: u32 = 30_000;

fn pour(link: &mut Link<impl Access>) {
    for number in 0..MESSAGES {
        let message = message(number);
        loop {
            match link.sender.send(&message) {
                Err(Error::Full) => thread::yield_now(),
                result => break result.unwrap(),
            }
        }
    }
}

fn drain(link: &mut Link<impl Access>) {
    let mut room = [0; 256];
    for number in 0..MESSAGES {
        loop {
            match link.receiver.receive(&mut room) {
                Err(Error::Empty) => thread::yield_now(),
                result => {
                    assert_eq!(result.unwrap(), message(number), "{number}");
                    break;
                }
            }
        }
    }
}

/// Two programs that run at the same time; a small ring, so that each waits for the other.
#[test]
fn messages_cross_in_both_directions_while_both_run() {
    let memory = Memory::new(1024);
    let side = memory.side(1);
    let (mut link, mut c) = (Link::open(&side).unwrap(), InC::open(&memory, 0));
    c.order(&format!("pour {MESSAGES}"));
    drain(&mut link);
    assert_eq!(c.answer(), Answer::Done(0));
    c.order(&format!("drain {MESSAGES}"));
    pour(&mut link);
    assert_eq!(c.answer(), Answer::Done(0));
}

#[test]
fn no_latest_value_is_torn_while_both_publish() {
    let memory = Memory::new(1024);
    let side = memory.side(1);
    let (mut link, mut c) = (Link::open(&side).unwrap(), InC::open(&memory, 0));
    c.order("watch 200000");
    let mut seen = 0;
    for number in 0..200_000_u32 {
        let value = [number as u8; VALUE_MAX];
        link.publisher.publish(&value[..number as usize % VALUE_MAX + 1]).unwrap();
        let mut room = [0; VALUE_MAX];
        match link.peer.latest(&mut room) {
            Ok(value) => {
                assert!(value.iter().all(|byte| *byte == value[0]), "{value:?}");
                seen += 1;
            }
            Err(why) => assert_eq!(why, Error::Empty),
        }
    }
    assert!(seen > 0);
    assert_eq!(c.answer(), Answer::Done(0));
}

/// Either side ends at any moment, without a word, and another program goes on in its place.
#[test]
fn a_program_that_ends_is_followed_by_another_one() {
    for rust in [0, 1] {
        let memory = Memory::new(HALF);
        let side = memory.side(rust);
        let mut link = Link::open(&side).unwrap();
        let mut c = InC::open(&memory, 1 - rust);
        let mut room = [0; 64];
        for text in ["one", "two", "three"] {
            link.sender.send(text.as_bytes()).unwrap();
        }
        assert_eq!(c.tell("receive 64"), Answer::Copied(b"one".to_vec()));
        // The one in C is killed with two messages unread, and its next life reads on behind the first.
        c = InC::open(&memory, 1 - rust);
        assert_eq!(c.tell("receive 64"), Answer::Copied(b"two".to_vec()));
        assert_eq!(link.sender.send(b"four"), Err(Error::Restarted));
        link.sender.send(b"four").unwrap();
        assert_eq!(c.tell("send 616263"), Answer::Done(0));
        assert_eq!(link.receiver.receive(&mut room), Ok(&b"abc"[..]));
        // One that ends while it publishes leaves no value; the next has none.
        assert_eq!(c.tell("publish 01"), Answer::Done(0));
        let version = REGISTERS + (1 - rust) * HALF + 24;
        memory.word(version).store(3, Relaxed);
        assert_eq!(link.peer.latest(&mut room), Err(Error::Empty));
        c = InC::open(&memory, 1 - rust);
        assert_eq!(link.peer.latest(&mut room), Err(Error::Empty));
        assert_eq!(c.tell("publish 02"), Answer::Done(0));
        assert_eq!(link.peer.latest(&mut room), Ok(&[2][..]));
        // The one in Rust is opened again: what was not read is gone, and the other one is told once.
        assert_eq!(c.tell("receive 64"), Answer::Copied(b"three".to_vec()));
        link = Link::open(&side).unwrap();
        link.sender.send(b"five").unwrap();
        assert_eq!(c.tell("receive 64"), Answer::Not(-4));
        assert_eq!(c.tell("receive 64"), Answer::Copied(b"five".to_vec()));
        assert_eq!(c.tell("receive 64"), Answer::Not(-1));
    }
}

/// A side is told only while it waits: for what is sent, or for room.
#[test]
fn a_side_rings_only_if_its_peer_waits() {
    let memory = Memory::new(HALF);
    let side = memory.side(1);
    let (mut link, mut c) = (Link::open(&side).unwrap(), InC::open(&memory, 0));
    let rang = |side: usize| memory.register(side, RING).swap(0, Relaxed) != 0;
    link.peer.notify();
    assert!(!rang(1));
    c.tell("arm");
    assert_eq!(memory.register(0, ARM).load(Relaxed), 1);
    link.peer.notify();
    assert!(rang(1));
    c.tell("disarm");
    link.peer.notify();
    assert!(!rang(1));
    link.sender.arm_for_room();
    assert_eq!(memory.register(1, ARM).load(Relaxed), 1);
    c.tell("notify");
    assert!(rang(0));
    link.sender.disarm_for_room();
    link.receiver.arm();
    c.tell("notify");
    assert!(rang(0));
    link.receiver.disarm();
    c.tell("notify");
    assert!(!rang(0));
    link.peer.ring();
    assert!(rang(1));
    memory.register(1, PEER).store(5, Relaxed);
    assert_eq!(link.peer.life().map(u32::from), Some(5));
    memory.register(1, PEER).store(0, Relaxed);
    assert_eq!(link.peer.life(), None);
}
