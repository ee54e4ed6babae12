//! A QEMU under the instrument, with the metronome in it.

use crate::protocols::{Gdb, Qmp};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use vtime::options::Options;
use vtime::stats::Statistics;
use vtime::wrap::Instrument;

/// Longer than anything here takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().into()
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The shared object and the guest, built as the launcher would. The object is in the target
/// directory of these tests, where the launcher has built it too: it is compiled once.
fn products() -> &'static (Instrument, PathBuf) {
    static PRODUCTS: OnceLock<(Instrument, PathBuf)> = OnceLock::new();
    PRODUCTS.get_or_init(|| {
        let own = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let target = own.parent().unwrap();
        let cargo = std::env::var_os("CASSATA_CARGO").unwrap_or_else(|| env!("CARGO").into());
        let mut build = Command::new(cargo);
        build.args(["build", "--release", "--locked", "--package", "cassata-vtime-plugin"]);
        run(build.arg("--target-dir").arg(target).current_dir(root()));
        let guest = own.join("metronome.elf");
        run(Command::new(root().join("guests/metronome/build")).arg(&guest));
        (Instrument::at(&target.join("release").join(vtime::wrap::FILE_NAME)).unwrap(), guest)
    })
}

/// Why `program` cannot be wrapped.
pub fn refusal(program: &Path) -> String {
    let wrapped = products().0.command(program, ["-M", "virt"], &Options::default());
    wrapped.expect_err("it was let through").to_string()
}

/// What QEMU says on standard error and how it ends, with `arguments` for itself
/// and `option` behind the plugin's file; preloaded or not.
pub fn attempt(arguments: &[&str], option: &str, preloaded: bool) -> (ExitStatus, String) {
    let (instrument, _) = products();
    let mut command = Command::new("qemu-system-aarch64");
    command.args("-M virt,gic-version=3 -nic none -display none -S".split_whitespace());
    command.args(arguments).arg("-plugin");
    command.arg(format!("file={}{option}", instrument.path().display()));
    if preloaded {
        command.env("LD_PRELOAD", instrument.preload());
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    (output.status, String::from_utf8(output.stderr).unwrap())
}

/// The guest that reads a disk, built as its source says.
fn disk_reader() -> &'static Path {
    static GUEST: OnceLock<PathBuf> = OnceLock::new();
    GUEST.get_or_init(|| {
        let guest = Path::new(env!("CARGO_TARGET_TMPDIR")).join("disk.elf");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/qemu/disk.S");
        let mut build = Command::new("aarch64-linux-gnu-gcc");
        build.args("-nostdlib -static -Wl,--build-id=none -Wl,-N".split_whitespace());
        run(build.arg("-Wl,-Ttext=0x40400000").arg("-o").arg(&guest).arg(source));
        guest
    })
}

/// The metronome, taking `interrupts` interrupts on each core and in each phase.
fn metronome(interrupts: u64) -> Vec<String> {
    let guest = products().1.display().to_string();
    let count = format!("loader,addr=0x48000000,data={interrupts},data-len=8");
    ["-kernel", &guest, "-device", &count].map(Into::into).into()
}

/// Instructions at their addresses, the first of which the first core begins with.
fn program(pieces: &[(u64, &[u32])]) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut load = |what: String| arguments.extend(["-device".into(), format!("loader,{what}")]);
    for (address, words) in pieces {
        for (address, word) in (*address..).step_by(4).zip(*words) {
            load(format!("addr={address:#x},data={word:#x},data-len=4"));
        }
    }
    load(format!("addr={:#x},cpu-num=0", pieces[0].0));
    arguments
}

/// A guest on `cores` cores, its console on standard output and all other files
/// in `directory`.
fn command(
    directory: &TempDir,
    cores: u32,
    guest: Vec<String>,
    mut options: Options,
    more: &[&str],
) -> Command {
    options.period = Duration::from_millis(50);
    options.statistics = Some(directory.path().join("statistics.json"));
    let mut arguments: Vec<String> =
        "-M virt,gic-version=3 -cpu cortex-a76,cntfrq=1000000000 -m 256M \
         -nic none -display none -serial stdio -monitor none"
            .split_whitespace()
            .map(Into::into)
            .collect();
    let socket =
        |name| format!("unix:{},server=on,wait=off", directory.path().join(name).display());
    arguments.extend(["-qmp".into(), socket("qmp"), "-gdb".into(), socket("gdb")]);
    arguments.extend(["-smp".into(), cores.to_string()]);
    arguments.extend(guest);
    arguments.extend(more.iter().map(|a| (*a).into()));
    let program = Path::new("qemu-system-aarch64");
    let mut command = products().0.command(program, arguments, &options).unwrap();
    command.stdin(Stdio::null());
    command
}

/// The metronome with a console that takes nothing in until it is drained: the
/// core that writes to it holds up all of QEMU.
pub struct Mute {
    child: Child,
    console: UnixStream,
    errors: BufReader<ChildStderr>,
    _directory: TempDir,
}

impl Mute {
    /// Starts `cores` cores.
    pub fn start(cores: u32, options: Options) -> Self {
        let (console, mut end) = UnixStream::pair().unwrap();
        console.set_read_timeout(Some(DEADLINE)).unwrap();
        end.set_nonblocking(true).unwrap();
        while end.write(&[b'.'; 4096]).is_ok() {}
        let directory = tempfile::tempdir().unwrap();
        let mut command = command(&directory, cores, metronome(10), options, &[]);
        command.stdout(OwnedFd::from(end)).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(command); // and with it this side's copy of the console's other end
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self { child, console, errors, _directory: directory }
    }

    /// The next line that QEMU writes to standard error.
    pub fn error_line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.errors.read_line(&mut line).unwrap() > 0, "QEMU has ended");
        line.trim_end().into()
    }

    /// Reads the console to its end, so that QEMU comes to its own. Returns it,
    /// and what more was written to standard error.
    pub fn drain(mut self) -> (String, String) {
        let (mut console, mut errors) = (String::new(), String::new());
        self.console.read_to_string(&mut console).unwrap();
        self.errors.read_to_string(&mut errors).unwrap();
        assert!(self.child.wait().unwrap().success(), "{errors}");
        (console, errors)
    }
}

/// A running QEMU, killed when dropped.
pub struct Board {
    child: Child,
    lines: BufReader<ChildStdout>,
    directory: TempDir,
}

impl Board {
    /// Starts `cores` cores that take `interrupts` interrupts each per phase.
    pub fn start(cores: u32, interrupts: u64, options: Options, more: &[&str]) -> Self {
        Self::start_with(cores, metronome(interrupts), options, more)
    }

    /// Starts a core that does nothing but branch to itself.
    pub fn spin(options: Options) -> Self {
        Self::program(&[(0x4100_0000, &[0x1400_0000])], options)
    }

    /// Starts a core with these instructions at their addresses, the first one first.
    pub fn program(pieces: &[(u64, &[u32])], options: Options) -> Self {
        Self::start_with(1, program(pieces), options, &[])
    }

    /// Starts a core that reads a disk of which each request takes `latency_ns`; `waits` says
    /// how it waits for one.
    pub fn disk(waits: u64, latency_ns: u64, options: Options) -> Self {
        let waits = format!("loader,addr=0x48000000,data={waits},data-len=8");
        let disk = format!("node-name=disk,driver=null-co,size=1048576,latency-ns={latency_ns}");
        let guest = ["-kernel", &disk_reader().display().to_string(), "-device", &waits];
        let more = "-M gic-version=2 -global virtio-mmio.force-legacy=false \
                    -global virtio-mmio.ioeventfd=off \
                    -device virtio-blk-device,drive=disk,bus=virtio-mmio-bus.31,cyls=2,heads=16,secs=63";
        let mut arguments: Vec<&str> = more.split_whitespace().collect();
        arguments.extend(["-blockdev", &disk]);
        Self::start_with(1, guest.map(Into::into).into(), options, &arguments)
    }

    fn start_with(cores: u32, guest: Vec<String>, options: Options, more: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = command(&directory, cores, guest, options, more);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines, directory }
    }

    /// The next line of the guest's console.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "QEMU has ended");
        line.trim_end().into()
    }

    /// Lines up to and including the one that begins with `start`.
    pub fn lines_to(&mut self, start: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            lines.push(self.line());
            if lines.last().is_some_and(|l| l.starts_with(start)) {
                return lines;
            }
        }
    }

    /// Sends a signal by the name that kill(1) knows.
    pub fn signal(&self, name: &str) {
        run(Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()));
    }

    /// Waits for QEMU to end by itself.
    pub fn wait(&mut self) -> (ExitStatus, Statistics) {
        let from = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(from.elapsed() < DEADLINE, "QEMU does not end");
            thread::sleep(Duration::from_millis(5));
        };
        (status, self.statistics())
    }

    /// The statistics file as it is now.
    pub fn statistics(&self) -> Statistics {
        Statistics::read(&self.statistics_file()).unwrap()
    }

    /// Returns true if there is a statistics file yet.
    pub fn has_statistics(&self) -> bool {
        self.statistics_file().exists()
    }

    fn statistics_file(&self) -> PathBuf {
        self.directory.path().join("statistics.json")
    }

    fn connect(&self, name: &str) -> UnixStream {
        let (path, from) = (self.directory.path().join(name), Instant::now());
        loop {
            match UnixStream::connect(&path) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(DEADLINE)).unwrap();
                    return stream;
                }
                Err(e) => assert!(from.elapsed() < DEADLINE, "{}: {e}", path.display()),
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// A QMP session, ready for commands.
    pub fn qmp(&self) -> Qmp {
        Qmp::on(self.connect("qmp"))
    }

    /// A session with the GDB stub.
    pub fn gdb(&self) -> Gdb {
        Gdb::on(self.connect("gdb"))
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `holds`.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let from = Instant::now();
    while !holds() {
        assert!(from.elapsed() < DEADLINE, "never: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
