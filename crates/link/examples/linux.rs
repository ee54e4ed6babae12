//! Talks to another VM by a link, from Linux: the orders that are given one after the other, each with its answer, and
//! how long an answer takes.
//!
//! `guests/link` builds it for a Linux guest of Cassata, where the machine test `link-linux-rust` runs it.

use link::{Error, Link, uio};
use std::env;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "\
usage: linux list                   the links of this VM
       linux ask NAME MESSAGE...    send all messages, and print an answer to each
       linux bench NAME COUNT       send so many messages, each when the one before is answered, and print how
                                    long that took
       linux peer NAME              how often the other VM has started; 0: it is off";
/// The longest answer that is taken, bytes.
const LONGEST: usize = 4096;
/// How long the doorbell may be silent until the program looks whether the other VM is off.
const PATIENCE: Duration = Duration::from_secs(1);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<()> {
    match words {
        ["list"] => list(),
        ["ask", name, messages @ ..] if !messages.is_empty() => Talk::with(name, |talk| {
            messages.iter().try_for_each(|message| talk.send(message))?;
            talk.link.peer.notify();
            for _ in messages {
                println!("{}", talk.answer()?);
            }
            Ok(())
        }),
        ["bench", name, count] => {
            let count = count.parse()?;
            Talk::with(name, |talk| bench(talk, count))
        }
        ["peer", name] => {
            println!("{}", uio::Watch::open(name)?.peer().life().map_or(0, Into::into));
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

fn list() -> Result<()> {
    for name in uio::list()? {
        println!("{name}: {} bytes for each side", uio::Watch::open(&name)?.half_size());
    }
    Ok(())
}

/// Measures from before a message is sent until its answer is there.
fn bench(talk: &mut Talk, count: u32) -> Result<()> {
    let mut times = Vec::new();
    for number in 0..count {
        let message = format!("ping {number}");
        let begin = Instant::now();
        talk.send(&message)?;
        talk.link.peer.notify();
        let answer = talk.answer()?;
        times.push(begin.elapsed());
        if answer != message {
            return Err(format!("the answer to `{message}` is `{answer}`").into());
        }
    }
    let (least, most) = (times.iter().min(), times.iter().max());
    let (Some(least), Some(most)) = (least, most) else { return Ok(()) };
    let mean = times.iter().sum::<Duration>() / count;
    let [least, mean, most] = [*least, mean, *most].map(|time| time.as_nanos());
    println!("round trips={count} min_ns={least} mean_ns={mean} max_ns={most}");
    Ok(())
}

/// A link that is open.
struct Talk<'a> {
    device: &'a uio::Device,
    link: Link<'a, uio::Device>,
    room: [u8; LONGEST],
}

impl Talk<'_> {
    /// Opens the link called `name`, and does something with it.
    fn with(name: &str, act: impl FnOnce(&mut Talk) -> Result<()>) -> Result<()> {
        let device = uio::Device::open(name)?;
        let link = Link::open(&device).ok_or("the halves are too small")?;
        act(&mut Talk { device: &device, link, room: [0; LONGEST] })
    }

    /// Sends a message, when there is room; the peer is not told yet.
    fn send(&mut self, message: &str) -> Result<()> {
        loop {
            // First arm, then look: room that comes between the two is not missed.
            self.link.sender.arm_for_room();
            match self.link.sender.send(message.as_bytes()) {
                Ok(()) => break,
                Err(Error::Full) => {
                    self.link.peer.notify();
                    self.wait()?;
                }
                Err(Error::Restarted) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.link.sender.disarm_for_room();
        Ok(())
    }

    /// Waits for a message, and returns it.
    fn answer(&mut self) -> Result<String> {
        let text = loop {
            self.link.receiver.arm();
            match self.link.receiver.receive(&mut self.room) {
                Ok(message) => break String::from_utf8_lossy(message).into_owned(),
                Err(Error::Empty | Error::Absent) => self.wait()?,
                Err(Error::Restarted) => {}
                Err(error) => return Err(error.into()),
            }
        };
        self.link.receiver.disarm();
        // There is room again.
        self.link.peer.notify();
        Ok(text)
    }

    /// Waits for the doorbell.
    fn wait(&self) -> Result<()> {
        let has_rung = self.device.wait(Some(PATIENCE))?;
        if !has_rung && self.link.peer.life().is_none() {
            return Err("the other VM is off".into());
        }
        Ok(())
    }
}
