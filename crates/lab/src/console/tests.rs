use super::*;
use std::io::Read;

const SOON: Duration = Duration::from_secs(20);

fn wire(sent: &[(u8, &str)]) -> Vec<u8> {
    let (mut mux, mut wire) = (Mux::new(), Vec::new());
    for (channel, text) in sent {
        for byte in text.bytes() {
            mux.push(*channel, byte, |b| wire.push(b));
        }
    }
    wire
}

/// Consoles of a machine that has written that much, and ended.
fn consoles(sent: &[(u8, &str)], config: &ConsoleConfig) -> Consoles {
    let (output, mut machine) = io::pipe().unwrap();
    machine.write_all(&wire(sent)).unwrap();
    Consoles::start(output, Box::new(io::sink()), config).unwrap()
}

#[test]
fn each_channel_has_its_log_to_the_byte() {
    let directory = tempfile::tempdir().unwrap();
    let config = ConsoleConfig::hypervisor(["linux", "rtos"], Some(directory.path().into()));
    let sent = [(1, "Booting\r\nLin"), (2, "tick\x1f\n"), (1, "ux\n"), (0, "two VMs\n")];
    consoles(&sent, &config).finish();
    let log = |name: &str| fs_read(directory.path().join(format!("console-{name}.log")));
    assert_eq!(log("hypervisor"), "two VMs\n");
    assert_eq!(log("linux"), "Booting\r\nLinux\n");
    assert_eq!(log("rtos"), "tick\x1f\n");
}

fn fs_read(path: PathBuf) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn lines_come_clean_and_in_order_of_completion() {
    let sent = [(1, "\x1b[1mbold\x1b[0m te"), (2, "a\tb\n"), (1, "xt\x07\r\nlast")];
    let consoles = consoles(&sent, &ConsoleConfig::default());
    consoles.finish();
    let lines = consoles.follow(&mut Cursor::default(), Duration::ZERO);
    let seen: Vec<_> = lines.iter().map(|l| (l.channel, l.text.as_str())).collect();
    assert_eq!(seen, [(2, "a b"), (1, "bold text"), (1, "last")]);
}

#[test]
fn a_follower_sees_each_line_once_and_does_not_wait_after_the_end() {
    let (output, mut machine) = io::pipe().unwrap();
    let consoles =
        Consoles::start(output, Box::new(io::sink()), &ConsoleConfig::default()).unwrap();
    let mut cursor = Cursor::default();
    let mut texts = |limit| -> Vec<String> {
        consoles.follow(&mut cursor, limit).into_iter().map(|line| line.text).collect()
    };
    machine.write_all(&wire(&[(1, "one\n"), (2, "two\n")])).unwrap();
    consoles.catch_up();
    assert_eq!(texts(SOON), ["one", "two"]);
    machine.write_all(&wire(&[(1, "three\n")])).unwrap();
    drop(machine);
    consoles.finish();
    assert_eq!(texts(SOON), ["three"]);
    assert_eq!(texts(Duration::from_secs(3_600)), [""; 0]);
}

#[test]
fn a_follower_is_woken_by_a_line_that_comes_later() {
    let (output, mut machine) = io::pipe().unwrap();
    let config = ConsoleConfig::plain("machine", None);
    let consoles = Consoles::start(output, Box::new(io::sink()), &config).unwrap();
    let mut cursor = Cursor::default();
    assert!(consoles.follow(&mut cursor, Duration::ZERO).is_empty());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| consoles.follow(&mut Cursor::default(), SOON));
        machine.write_all(b"login: ready\n").unwrap();
        assert_eq!(waiting.join().unwrap()[0].text, "login: ready");
    });
    drop(machine);
    consoles.finish();
    assert!(consoles.ended());
}

#[test]
fn a_reader_that_catches_up_misses_nothing_that_was_written() {
    let (output, mut machine) = io::pipe().unwrap();
    let config = ConsoleConfig::plain("machine", None);
    let consoles = Consoles::start(output, Box::new(io::sink()), &config).unwrap();
    let mut cursor = Cursor::default();
    for number in 0..2_000 {
        writeln!(machine, "line {number}").unwrap();
        consoles.catch_up();
        let lines = consoles.follow(&mut cursor, Duration::ZERO);
        let said: Vec<_> = lines.iter().map(|line| line.text.clone()).collect();
        assert_eq!(said, [format!("line {number}")]);
    }
}

#[test]
fn input_is_framed_for_the_hypervisor_and_plain_for_a_plain_guest() {
    for framed in [true, false] {
        let (mut machine, input) = io::pipe().unwrap();
        let config = ConsoleConfig { framed, ..ConsoleConfig::default() };
        let (output, _) = io::pipe().unwrap();
        let consoles = Consoles::start(output, Box::new(input), &config).unwrap();
        consoles.send(2, b"ls\n").unwrap();
        drop(consoles);
        let mut got = Vec::new();
        machine.read_to_end(&mut got).unwrap();
        assert_eq!(got, if framed { wire(&[(2, "ls\n")]) } else { b"ls\n".to_vec() });
    }
}

#[test]
fn a_line_without_end_is_cut_and_a_flood_is_forgotten_from_the_front() {
    let mut lines = Lines::default();
    for i in 0..10_000_u32 {
        lines.push(1, b'a' + (i % 26) as u8);
    }
    let long = lines.since(&mut Cursor::default());
    assert_eq!(long.iter().map(|l| l.text.len()).collect::<Vec<_>>(), [4096, 4096]);
    for _ in 0..100_000 {
        lines.push(2, b'x');
        lines.push(2, b'\n');
    }
    let kept = lines.since(&mut Cursor::default());
    assert_eq!(kept.len(), 1 << 16);
    assert!(kept.iter().all(|l| l.channel == 2));
}
