//! The tool of Linux, `guests/linux/link/tool.c`, over files that stand for UIO devices: what its commands send and take
//! crosses to a peer in this program, and one program has a link at a time.

use link::{Access, Error, Link, Registers};
use rustix::param::page_size;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::thread;
use vm_memory::{FileOffset, MmapRegion, VolatileMemory};

/// Maps of a device, in pages of its file.
const REGISTERS: usize = 0;
const TOOLS: usize = 1;
const PEERS: usize = 2;
/// Offset of a word of the registers; behind them is that of `doorbell.c`.
const ARM: usize = 4;
const LIFE: usize = 8;
const RANG: usize = 12;
/// Offset of a word of a half: its side waits for data.
const WANTS_DATA: usize = 32;

/// The directory in which the tool finds devices, and the tool, compiled once.
static TOOL: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("cassata-link");
    let directory = |name: &str, path: &Path| format!("-D{name}=\"{}\"", path.display());
    let status = Command::new("cc")
        .args(["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-U_FORTIFY_SOURCE"])
        .args(["-fsanitize=address,undefined", "-fno-sanitize-recover", "-D_GNU_SOURCE"])
        .arg(directory("UIO", &place.path().join("class")))
        .arg(directory("NODES", place.path()))
        .args(["-Wl,--wrap=read", "-Wl,--wrap=write", "-Wl,--wrap=poll"])
        .arg("-I")
        .arg(here.join("../../guests/include"))
        .arg(here.join("../../guests/linux/link/tool.c"))
        .arg(here.join("tests/doorbell.c"))
        .arg("-o")
        .arg(&program)
        .status();
    assert!(status.expect("the C compiler `cc` can be started").success());
    (place, program)
});

/// The peer of the tool, by a device.
struct Peer {
    map: MmapRegion,
    node: PathBuf,
}

impl Peer {
    /// Makes a device of this number for a link.
    fn new(number: u32, name: &str) -> Self {
        let place = TOOL.0.path();
        let class = place.join(format!("class/uio{number}"));
        for map in 0..3 {
            let map = class.join(format!("maps/map{map}"));
            fs::create_dir_all(&map).unwrap();
            fs::write(map.join("size"), format!("{:#x}\n", page_size())).unwrap();
        }
        fs::write(class.join("name"), format!("link-{name}\n")).unwrap();
        let node = place.join(format!("uio{number}"));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&node).unwrap();
        let size = 3 * page_size();
        file.set_len(size as u64).unwrap();
        Self { map: MmapRegion::from_file(FileOffset::new(file, 0), size).unwrap(), node }
    }

    fn word(&self, page: usize, offset: usize) -> &AtomicU32 {
        self.map.get_atomic_ref(page * page_size() + offset).unwrap()
    }

    fn doubleword(&self, page: usize, offset: usize) -> &AtomicU64 {
        self.map.get_atomic_ref(page * page_size() + offset).unwrap()
    }

    /// The tool's half.
    fn tools(&self) -> Vec<u32> {
        (0..page_size()).step_by(4).map(|at| self.word(TOOLS, at).load(SeqCst)).collect()
    }

    /// Waits until the tool has armed its doorbell for data.
    fn let_wait(&self, tool: &mut Tool) {
        while self.word(TOOLS, WANTS_DATA).load(SeqCst) == 0 {
            assert_eq!(tool.0.as_mut().unwrap().try_wait().unwrap(), None);
            thread::yield_now();
        }
    }
}

impl Registers for Peer {
    fn load(&self, _: u64) -> u32 {
        1
    }

    /// Rings at the tool's doorbell, if that is armed; this program looks without a pause.
    fn store(&self, offset: u64, _: u32) {
        if offset == 0 && self.word(REGISTERS, ARM).swap(0, SeqCst) != 0 {
            self.word(REGISTERS, RANG).store(1, SeqCst);
        }
    }
}

impl Access for Peer {
    fn half_size(&self) -> usize {
        page_size()
    }

    fn load_own(&self, offset: usize) -> u32 {
        self.word(PEERS, offset).load(SeqCst)
    }

    fn store_own(&self, offset: usize, value: u32) {
        self.word(PEERS, offset).store(value, SeqCst);
    }

    fn load_peer(&self, offset: usize) -> u32 {
        self.word(TOOLS, offset).load(SeqCst)
    }

    fn store_own_doubleword(&self, offset: usize, value: u64) {
        self.doubleword(PEERS, offset).store(value, SeqCst);
    }

    fn load_peer_doubleword(&self, offset: usize) -> u64 {
        self.doubleword(TOOLS, offset).load(SeqCst)
    }
}

/// The tool while it runs. One that waits for ever is killed when the test fails.
struct Tool(Option<Child>);

impl Tool {
    fn start(words: &[&str]) -> Self {
        let mut command = Command::new(&TOOL.1);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(Some(command.spawn().unwrap()))
    }

    /// Waits until it has ended.
    fn end(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }

    /// Waits until it has ended, and returns what it has printed.
    fn good(self) -> Vec<u8> {
        let output = self.end();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Runs one that has to fail, and returns what it says.
    fn bad(words: &[&str]) -> String {
        let output = Self::start(words).end();
        assert!(!output.status.success(), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        if let Some(program) = &mut self.0 {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// Bytes of a stream: several rings, and at the end no whole word.
fn stream() -> Vec<u8> {
    (0..25 * page_size() as u32 + 3)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

#[test]
fn messages_cross_by_send_and_receive() {
    let peer = Peer::new(0, "messages");
    let mut link = Link::open(&peer).unwrap();
    let mut room = [0; 64];
    Tool::start(&["send", "messages", "one", "two"]).good();
    for text in ["one", "two"] {
        assert_eq!(link.receiver.receive(&mut room), Ok(text.as_bytes()));
    }
    assert_eq!(link.receiver.receive(&mut room), Err(Error::Empty));
    let mut tool = Tool::start(&["receive", "messages", "2"]);
    peer.let_wait(&mut tool);
    assert_eq!(link.sender.send(b"three"), Ok(()));
    assert_eq!(link.sender.send(b"four"), Ok(()));
    link.peer.notify();
    assert_eq!(tool.good(), b"three\nfour\n");
    assert_eq!(link.receiver.receive(&mut room), Err(Error::Restarted));
}

#[test]
fn a_stream_crosses_by_write_and_read() {
    let peer = Peer::new(1, "stream");
    let mut link = Link::open(&peer).unwrap();
    let all = stream();
    let mut tool = Tool::start(&["write", "stream"]);
    let mut input = tool.0.as_mut().unwrap().stdin.take().unwrap();
    let mut taken = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            input.write_all(&all).unwrap();
            drop(input);
        });
        let mut room = [0; 777];
        while taken.len() < all.len() {
            match link.receiver.read(&mut room) {
                Ok(bytes) => taken.extend_from_slice(bytes),
                Err(why) => {
                    assert!([Error::Empty, Error::Absent].contains(&why), "{why:?}");
                    let ended = tool.0.as_mut().unwrap().try_wait().unwrap();
                    assert!(ended.is_none_or(|status| status.success()));
                }
            }
            link.peer.notify();
        }
    });
    tool.good();
    assert!(taken.len() == all.len().next_multiple_of(8) && taken.starts_with(&all));
    let tool = Tool::start(&["read", "stream", &all.len().to_string()]);
    thread::scope(|scope| {
        let printed = scope.spawn(|| tool.good());
        let mut rest = &all[..];
        while !rest.is_empty() && !printed.is_finished() {
            match link.sender.write(rest) {
                Ok(length) => rest = &rest[length..],
                Err(why) => assert!([Error::Full, Error::Restarted].contains(&why), "{why:?}"),
            }
            link.peer.notify();
        }
        assert!(printed.join().unwrap() == all);
    });
}

#[test]
fn a_program_that_uses_a_link_has_it_alone() {
    let peer = Peer::new(2, "alone");
    let mut link = Link::open(&peer).unwrap();
    peer.word(REGISTERS, LIFE).store(7, SeqCst);
    assert_eq!(link.publisher.publish(b"t=1"), Ok(()));
    let mut tool = Tool::start(&["receive", "alone", "1"]);
    peer.let_wait(&mut tool);
    let before = peer.tools();
    for words in [&["send", "alone", "x"][..], &["read", "alone", "8"], &["drain", "alone", "1"]] {
        let refusal = Tool::bad(words);
        let wanted = format!("{}: another program uses link alone: end that", peer.node.display());
        assert!(refusal.contains(&wanted) && refusal.lines().count() == 1, "{refusal}");
    }
    assert_eq!(Tool::start(&["peer", "alone"]).good(), b"7\n");
    assert_eq!(Tool::start(&["latest", "alone", "2", "0"]).good(), b"t=1\nt=1\n");
    assert_eq!(peer.tools(), before);
    assert_eq!(link.sender.send(b"still there"), Ok(()));
    link.peer.notify();
    assert_eq!(tool.good(), b"still there\n");
    assert_eq!(link.receiver.receive(&mut []), Err(Error::Empty), "one program, one epoch");
}

#[test]
fn what_makes_no_sense_opens_nothing() {
    let peer = Peer::new(3, "wrong");
    let usage = "usage: cassata-link";
    for (words, wanted) in [
        (&["frobnicate", "wrong"][..], usage),
        (&["send", "wrong"], usage),
        (&["latest", "wrong", "1"], usage),
        (&["peer", "wrong", "1"], usage),
        (&["flood", "wrong", "1", "a", "b"], usage),
        (&["receive", "wrong", "nine"], "\"nine\" is no number"),
        (&["receive", "wrong", "-1"], "\"-1\" is no number"),
        (&["drain", "wrong", "99999999999999999999"], "too large"),
        (&["flood", "wrong", "", "a"], "\"\" is no number"),
        (&["receive", "other", "1"], "there is no link other"),
    ] {
        let refusal = Tool::bad(words);
        assert!(refusal.contains(wanted), "{words:?}: {refusal}");
    }
    assert_eq!(Tool::start(&["peer", "wrong"]).good(), b"0\n");
    assert_eq!(Tool::start(&["latest", "wrong", "1", "0"]).good(), b"nothing yet\n");
    assert!(peer.tools().iter().all(|word| *word == 0));
}
