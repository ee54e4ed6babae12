//! Gives another VM virtio devices, from a Linux that has them: `docs/src/virtio.md`.
//!
//! EL2 hands over each access to the configuration of a device, and says which queues have something
//! (`abi::virtio`). The queues and all buffers are in memory that both VMs have, and of which nothing is believed:
//! `virtio-queue` and `vm-memory` check each address and length against it.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`uio`] | registers, memory and doorbell, by Linux's UIO: all that is `unsafe` |
//! | [`mmio`] | the registers of a device, as virtio-mmio has them |
//! | [`reach`] | what a device reaches of its front, and whether that was stopped |
//! | [`block`], [`console`], [`network`] | what a device does with its queues |

mod block;
mod console;
#[cfg(test)]
mod driver;
#[cfg(test)]
mod input;
mod mmio;
mod network;
mod reach;
mod uio;

use abi::virtio::{ANSWER, ARM, NOTIFIED, RAISE, REQUEST, REQUESTED, RESTARTED, Request};
use mmio::{Device, Kind};
use reach::Reach;
use std::cell::Cell;
use std::process::ExitCode;
use uio::Front;

const USAGE: &str = "usage: cassata-virtio VM [block=FILE[,readonly]] [console=-|FILE] [network=TAP[,MAC]]
Gives the VM the devices that its description lists, from: a file or a block device; standard input and
output, or a terminal; a TAP device, and the card's address, which is made of the TAP's name otherwise.
One argument for each device, those of a kind in their order.
`cassata-virtio` alone lists the VMs that wait for devices.";

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cassata-virtio: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let Some((name, sources)) = arguments.split_first() else {
        let fronts = uio::list()?;
        for front in &fronts {
            println!("{}: {}", front.name, front.devices.join(", "));
        }
        return if fronts.is_empty() {
            Err(format!("no VM waits for devices\n{USAGE}"))
        } else {
            Ok(())
        };
    };
    let node = uio::list()?.into_iter().find(|node| node.name == *name);
    let node = node.ok_or_else(|| format!("no VM `{name}` waits for devices\n{USAGE}"))?;
    // First: what another program gives is not opened a second time.
    let front = Front::open(&node)?;
    let devices = devices(&node.devices, sources)?;
    println!("cassata-virtio: {} for {name}", node.devices.join(", "));
    serve(name, &front, devices)
}

/// Opens what each device is made of.
fn devices(kinds: &[String], sources: &[String]) -> Result<Vec<Device>, String> {
    let mut left: Vec<_> = sources.iter().map(|source| source.split_once('=')).collect();
    let devices = kinds.iter().map(|kind| {
        let is_for = |source: &Option<(&str, &str)>| source.is_some_and(|(of, _)| of == kind);
        let at = left.iter().position(is_for);
        let (_, from) =
            at.and_then(|at| left.remove(at)).ok_or_else(|| format!("no {kind}=…\n{USAGE}"))?;
        open(kind, from).map(Device::new)
    });
    let devices = devices.collect::<Result<_, _>>()?;
    if left.is_empty() {
        Ok(devices)
    } else {
        Err(format!("more devices than the description lists\n{USAGE}"))
    }
}

fn open(kind: &str, from: &str) -> Result<Box<dyn Kind>, String> {
    let opened: std::io::Result<Box<dyn Kind>> = match kind {
        "block" => block::Block::open(from).map(|disk| Box::new(disk) as _),
        "console" => console::Console::open(from).map(|console| Box::new(console) as _),
        "network" => network::Network::open(from).map(|network| Box::new(network) as _),
        _ => return Err(format!("this program has no device of the kind {kind}")),
    };
    opened.map_err(|error| format!("{kind}={from}: {error}"))
}

/// What NOTIFIED has said and was not taken: a load clears it there.
struct News<F> {
    load: F,
    left: Cell<u64>,
}

impl<F: Fn() -> u64> News<F> {
    fn new(load: F) -> Self {
        Self { load, left: Cell::new(0) }
    }

    /// Returns true if the front was stopped, and that was not taken.
    fn is_stopped(&self) -> bool {
        self.left.set(self.left.get() | (self.load)());
        self.left.get() & RESTARTED != 0
    }

    /// Takes all.
    fn take(&self) -> u64 {
        (self.load)() | self.left.take()
    }
}

/// Serves a VM for ever.
fn serve(name: &str, front: &Front, mut devices: Vec<Device>) -> Result<(), String> {
    let fds: Vec<_> = devices.iter().map(Device::input).collect();
    let all = News::new(|| front.load(NOTIFIED));
    let is_stopped = || all.is_stopped();
    let reach = Reach { memory: front.memory(), is_stopped: &is_stopped };
    loop {
        front.store(ARM, 1);
        let news = all.take();
        if news & RESTARTED != 0 {
            devices.iter_mut().for_each(Device::reset);
            println!("cassata-virtio: {name} was stopped");
        }
        if news & REQUESTED != 0 {
            answer(front, &reach, &mut devices);
        }
        for (number, device) in devices.iter_mut().enumerate() {
            let notified = (news >> (8 * number)) as u8;
            for queue in (0..8).filter(|queue| notified >> queue & 1 != 0) {
                device.notified(queue, &reach);
            }
            device.take_input(&reach);
            let bits = device.take_interrupt();
            if bits != 0 {
                front.store(RAISE, (number as u64) << 8 | u64::from(bits));
            }
        }
        // What comes since the doorbell was armed rings it, also if it was seen meanwhile.
        let wanted =
            devices.iter().zip(&fds).map(|(device, fd)| fd.filter(|_| device.wants_input()));
        front.wait(wanted)?;
    }
}

/// Carries out the access that waits, if there is one.
fn answer(front: &Front, reach: &Reach<'_>, devices: &mut [Device]) {
    let request = Request(front.load(REQUEST));
    if !request.waits() || reach.check().is_err() {
        // The front was stopped just now. What waits then is for devices that are reset.
        return;
    }
    let mut value = 0;
    if let Some(device) = devices.get_mut(request.device()) {
        if request.is_write() {
            device.store(request.offset(), request.size(), request.value() as u32, reach.memory);
        } else {
            value = device.load(request.offset(), request.size());
        }
    }
    front.store(ANSWER, request.answer(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look whether the front was stopped must not lose what else is said at once.
    #[test]
    fn what_is_seen_is_there_until_it_is_taken() {
        let said = Cell::new(0);
        let news = News::new(|| said.take());
        said.set(1);
        assert!(!news.is_stopped());
        said.set(2 | RESTARTED);
        assert!(news.is_stopped());
        said.set(4);
        assert!(news.is_stopped());
        said.set(8);
        assert_eq!((news.take(), news.take()), (15 | RESTARTED, 0));
        assert!(!news.is_stopped());
    }
}
