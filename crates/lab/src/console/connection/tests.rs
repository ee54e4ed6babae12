use super::*;
use crate::console::ConsoleConfig;
use abi::console::{Demux, Mux};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

const LINES: [Line; 2] = [Line { name: "linux", channel: 1 }, Line { name: "rtos", channel: 2 }];

/// What a machine's UART is to us: what it sends, and what was typed.
struct Uart {
    output: PipeWriter,
    input: PipeReader,
    mux: Mux,
    demux: Demux,
}

impl Uart {
    fn print(&mut self, channel: u8, text: &str) {
        let mut wire = Vec::new();
        text.bytes().for_each(|byte| self.mux.push(channel, byte, |b| wire.push(b)));
        self.output.write_all(&wire).unwrap();
    }

    /// The next `count` bytes that were typed, and where.
    fn typed(&mut self, count: usize) -> Vec<(u8, u8)> {
        let (mut typed, mut byte) = (Vec::new(), [0]);
        while typed.len() < count {
            self.input.read_exact(&mut byte).unwrap();
            typed.extend(self.demux.push(byte[0]));
        }
        typed
    }
}

/// A machine, and what is connected to its consoles.
struct Bench {
    uart: Uart,
    connected: Connected,
    consoles: Consoles,
    quit: Interrupt,
}

fn connect(requests: &[&str], seat: impl Fn() -> io::Result<Seat>) -> Result<Bench> {
    let requests: Vec<Request> = requests.iter().map(|text| text.parse().unwrap()).collect();
    let connections = Connections::open(&requests, &LINES, seat)?;
    let (from, output) = io::pipe().unwrap();
    let (input, to) = io::pipe().unwrap();
    let config = ConsoleConfig::hypervisor(["linux", "rtos"], None).with_taps(connections.taps());
    let consoles = Consoles::start(from, Box::new(to), &config).unwrap();
    let quit = connections.quit();
    let connected = connections.start(&consoles, Duration::ZERO).unwrap();
    let uart = Uart { output, input, mux: Mux::new(), demux: Demux::default() };
    Ok(Bench { uart, connected, consoles, quit })
}

fn no_seat() -> io::Result<Seat> {
    panic!("no keyboard was asked for")
}

fn exactly(from: &mut impl Read, expected: &str) {
    let mut got = vec![0; expected.len()];
    from.read_exact(&mut got).unwrap();
    assert_eq!(String::from_utf8(got).unwrap(), expected);
}

fn on(channel: u8, text: &str) -> Vec<(u8, u8)> {
    text.bytes().map(|byte| (channel, byte)).collect()
}

#[test]
fn one_program_after_another_has_the_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("linux");
    let mut bench = connect(&[&format!("linux=unix:{}", path.display())], no_seat).unwrap();
    // No user is there yet: what is printed waits.
    bench.uart.print(1, "login: ");
    bench.uart.print(2, "not for you");
    let mut first = UnixStream::connect(&path).unwrap();
    exactly(&mut first, "login: ");
    first.write_all(b"root\x1d\x03\x1f\n").unwrap();
    assert_eq!(bench.uart.typed(8), on(1, "root\x1d\x03\x1f\n"));
    drop(first);
    let mut second = UnixStream::connect(&path).unwrap();
    second.write_all(b"x").unwrap();
    assert_eq!(bench.uart.typed(1), on(1, "x"));
    bench.uart.print(1, "welcome back");
    drop(bench.uart);
    bench.consoles.finish();
    let mut rest = String::new();
    second.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "welcome back");
    drop(bench.connected);
    assert!(!path.exists());
}

#[test]
fn a_program_that_has_no_more_to_type_still_reads() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("linux");
    let mut bench = connect(&[&format!("linux=unix:{}", path.display())], no_seat).unwrap();
    let mut program = UnixStream::connect(&path).unwrap();
    program.write_all(b"ls\n").unwrap();
    program.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(bench.uart.typed(3), on(1, "ls\n"));
    bench.uart.print(1, "bin dev\n");
    exactly(&mut program, "bin dev\n");
}

#[test]
fn a_socket_is_made_where_nothing_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("linux");
    let request = format!("linux=unix:{}", path.display());
    // Left behind by a program that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let bench = connect(&[&request], no_seat).unwrap();
    let refused = |request: &str| connect(&[request], no_seat).err().unwrap();
    assert!(refused(&request).help().unwrap().to_string().contains("is there"));
    drop(bench);
    std::fs::write(&path, "a thesis").unwrap();
    assert!(refused(&request).to_string().contains("`linux`"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a thesis");
    let nowhere = refused("linux=unix:/nonexistent/socket");
    assert!(nowhere.help().unwrap().to_string().contains("make its directory"));
}

#[test]
fn a_pseudo_terminal_is_raw_and_outlives_its_users() {
    let requests = ["linux=pty", "rtos=pty"].map(|text| text.parse().unwrap());
    let connections = Connections::open(&requests, &LINES, no_seat).unwrap();
    let paths: Vec<_> = connections.all.iter().map(|one| one.port.path().unwrap()).collect();
    assert!(connections.about()[1].contains(paths[1].to_str().unwrap()));
    let (from, output) = io::pipe().unwrap();
    let (input, to) = io::pipe().unwrap();
    let config = ConsoleConfig::hypervisor(["linux", "rtos"], None).with_taps(connections.taps());
    let consoles = Consoles::start(from, Box::new(to), &config).unwrap();
    let _connected = connections.start(&consoles, Duration::ZERO).unwrap();
    let mut uart = Uart { output, input, mux: Mux::new(), demux: Demux::default() };
    for user in ["a", "b"] {
        let mut terminal = open_terminal(&paths[1]);
        uart.print(2, "one\ntwo\r\n");
        exactly(&mut terminal, "one\ntwo\r\n");
        terminal.write_all(format!("{user}\r\x03").as_bytes()).unwrap();
        assert_eq!(uart.typed(3), on(2, &format!("{user}\r\x03")));
    }
}

fn open_terminal(path: &Path) -> File {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).unwrap().into()
}

/// A terminal: the side where a person sits, and the other.
fn terminal() -> (File, File) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let path = ptsname(&person, Vec::new()).unwrap();
    (person.into(), open_terminal(Path::new(path.to_str().unwrap())))
}

fn is_raw(terminal: &File) -> bool {
    let modes = tcgetattr(terminal).unwrap().local_modes;
    !modes.intersects(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
}

#[test]
fn the_keyboard_is_raw_while_a_guest_has_it() {
    let (mut person, own) = terminal();
    assert!(!is_raw(&own));
    let seat = || Ok(Seat { keys: own.try_clone()?.into(), screen: own.try_clone()?.into() });
    let mut bench = connect(&["linux"], seat).unwrap();
    assert!(is_raw(&own));
    bench.uart.print(1, "# ");
    exactly(&mut person, "# ");
    person.write_all(b"\x1dls\x03\r\x1d\x1d").unwrap();
    // The first key behind Ctrl-] is ours: it means nothing, and shows the help.
    assert_eq!(bench.uart.typed(4), on(1, "s\x03\r\x1d"));
    assert!(!bench.quit.requested());
    person.write_all(b"\x1dqx").unwrap();
    assert_eq!(bench.uart.typed(1), on(1, "x"));
    assert!(bench.quit.requested());
    drop(bench.connected);
    assert!(!is_raw(&own));
}

#[test]
fn a_mode_that_another_program_has_set_since_is_not_touched_by_the_guard() {
    let (_person, own) = terminal();
    let raw = RawMode::enter(own.try_clone().unwrap().into()).unwrap();
    assert!(is_raw(&own));
    let mut later = tcgetattr(&own).unwrap();
    later.local_modes |= LocalModes::ECHO;
    // As after SIGKILL: the guard alone is left.
    let mut mode = std::mem::ManuallyDrop::new(raw);
    rustix::termios::tcsetattr(&own, rustix::termios::OptionalActions::Now, &later).unwrap();
    mode.end_guard();
    assert_eq!(tcgetattr(&own).unwrap().local_modes, later.local_modes);
}

#[test]
fn the_guard_alone_brings_the_mode_back() {
    let (_person, own) = terminal();
    let before = tcgetattr(&own).unwrap().local_modes;
    let mut mode =
        std::mem::ManuallyDrop::new(RawMode::enter(own.try_clone().unwrap().into()).unwrap());
    assert!(is_raw(&own));
    mode.end_guard();
    assert_eq!(tcgetattr(&own).unwrap().local_modes, before);
}

#[test]
fn input_from_a_file_needs_no_terminal() {
    let mut keys = tempfile::tempfile().unwrap();
    keys.write_all(b"ls\x1dq\n").unwrap();
    std::io::Seek::rewind(&mut keys).unwrap();
    let (mut shown, screen) = io::pipe().unwrap();
    let seat = || Ok(Seat { keys: keys.try_clone()?.into(), screen: screen.try_clone()?.into() });
    let mut bench = connect(&["rtos"], seat).unwrap();
    assert_eq!(bench.uart.typed(5), on(2, "ls\x1dq\n"), "no key is ours there");
    bench.uart.print(2, "bin\n");
    exactly(&mut shown, "bin\n");
    assert!(!bench.quit.requested());
}

#[test]
fn what_cannot_be_connected_is_told() {
    let message = |requests: &[&str]| connect(requests, no_seat).err().unwrap().to_string();
    assert_eq!(message(&["linus=pty"]), "no VM with a console is called `linus`");
    let twice = "the console of `linux` can be connected once only";
    assert_eq!(message(&["linux=pty", "linux=pty"]), twice);
    let null = || File::open("/dev/null").map(OwnedFd::from);
    let seat = || Ok(Seat { keys: null()?, screen: null()? });
    let two = connect(&["linux", "rtos"], seat).err().unwrap();
    assert_eq!(two.to_string(), "the keyboard can be connected once only");
}
