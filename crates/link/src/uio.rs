//! A link in Linux, by UIO: the module `cassata_link` of `guests/linux/link`, or Linux's `uio_pdrv_genirq` where the kernel
//! has it (`of_id=generic-uio`), gives registers and halves as the maps 0, 1 and 2 of `/dev/uioN`, and the doorbell as
//! its interrupt.
//!
//! ```no_run
//! use link::{Error, Link, uio::Device};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let device = Device::open("control")?;
//!     let mut link = Link::open(&device).ok_or("the halves are too small")?;
//!     let mut room = [0; 64];
//!     link.sender.send(b"target 1500")?;
//!     link.peer.notify();
//!     loop {
//!         link.receiver.arm();
//!         match link.receiver.receive(&mut room) {
//!             Ok(answer) => println!("{}", String::from_utf8_lossy(answer)),
//!             Err(Error::Empty | Error::Absent) => {
//!                 device.wait(None)?;
//!             }
//!             Err(error) => return Err(error.into()),
//!         }
//!     }
//! }
//! ```
//!
//! Mapping is `vm-memory`'s, which checks each access against the map.

use crate::access::{Access, Registers};
use crate::latest::Peer;
use abi::link::PEER;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::string::String;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::vec::Vec;
use vm_memory::{FileOffset, MmapRegion, VolatileMemory};

/// Where Linux lists its UIO devices.
const CLASS: &str = "/sys/class/uio";
/// Where their nodes are.
const NODES: &str = "/dev";
/// What stands before a link's name in the name of its UIO device.
const PREFIX: &str = "link-";
/// The maps.
const REGISTERS: usize = 0;
const OWN: usize = 1;
const PEERS: usize = 2;

/// Why there is no such link, or it cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// No device of UIO is the link.
    #[error(
        "there is no link `{name}` in {CLASS}, but {known:?}; the modules uio and cassata_link have to be loaded"
    )]
    Missing {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Another program uses this VM's side.
    #[error(
        "{}: another program uses link `{name}`: end that first, or wait until it has ended; a `Watch` works beside it",
        path.display()
    )]
    Used {
        /// The link.
        name: String,
        /// The device.
        path: PathBuf,
    },
    /// A file cannot be opened, locked, read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// A map cannot be used.
    #[error("{}: map {map}: {why}", path.display())]
    Map {
        /// The device.
        path: PathBuf,
        /// The number of the map.
        map: usize,
        /// What is wrong.
        why: String,
    },
}

/// Returns a closure that says that something about a file failed.
fn of(path: &Path) -> impl FnOnce(io::Error) -> Failure {
    |error| Failure::File { path: path.into(), error }
}

/// Lists the names of all links of this VM, in their order.
///
/// # Errors
/// When Linux has no UIO.
pub fn list() -> Result<Vec<String>, Failure> {
    Ok(found(Path::new(CLASS))?.into_iter().map(|(name, _)| name).collect())
}

/// Returns the name of each link, and its directory below `class`.
fn found(class: &Path) -> Result<Vec<(String, PathBuf)>, Failure> {
    let entries = fs::read_dir(class).map_err(of(class))?;
    let mut links: Vec<_> = entries
        .filter_map(|entry| {
            let directory = entry.ok()?.path();
            let name = fs::read_to_string(directory.join("name")).ok()?;
            Some((name.trim_end().strip_prefix(PREFIX)?.into(), directory))
        })
        .collect();
    links.sort();
    Ok(links)
}

/// A link, mapped and locked: no other program has it meanwhile, as one that opened its side again would take from this
/// one what it has not read, and the peer would find what cannot be. The lock ends with the program, however that ends.
#[derive(Debug)]
pub struct Device {
    path: PathBuf,
    file: File,
    registers: MmapRegion,
    own: MmapRegion,
    peer: MmapRegion,
}

impl Device {
    /// Maps the link that the description of the system calls so.
    ///
    /// # Errors
    /// When there is none, another program has it, or it cannot be mapped.
    pub fn open(name: &str) -> Result<Self, Failure> {
        Self::open_in(Path::new(CLASS), Path::new(NODES), name)
    }

    fn open_in(class: &Path, nodes: &Path, name: &str) -> Result<Self, Failure> {
        let device = Self::map_in(class, nodes, name)?;
        flock(&device.file, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            let path = device.path.clone();
            match error {
                Errno::WOULDBLOCK => Failure::Used { name: name.into(), path },
                error => Failure::File { path, error: error.into() },
            }
        })?;
        Ok(device)
    }

    /// Maps a link that is not locked, and whose side must not be opened.
    fn map_in(class: &Path, nodes: &Path, name: &str) -> Result<Self, Failure> {
        let links = found(class)?;
        let Some((_, directory)) = links.iter().find(|(known, _)| known == name) else {
            let known = links.into_iter().map(|(known, _)| known).collect();
            return Err(Failure::Missing { name: name.into(), known });
        };
        let path = nodes.join(directory.file_name().unwrap_or_default());
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(of(&path))?;
        let all = libc::PROT_READ | libc::PROT_WRITE;
        let map = |number, protection| map(directory, &path, &file, number, protection);
        let device = Self {
            registers: map(REGISTERS, all)?,
            own: map(OWN, all)?,
            peer: map(PEERS, libc::PROT_READ)?,
            path: path.clone(),
            file: file.try_clone().map_err(of(&path))?,
        };
        let wrong = |map, why: &str| Failure::Map { path: path.clone(), map, why: why.into() };
        if device.registers.size() < PEER as usize + size_of::<u32>() {
            return Err(wrong(REGISTERS, "it is too small for the registers of a link"));
        }
        if device.own.size() != device.peer.size() {
            return Err(wrong(PEERS, "it is not as large as map 1"));
        }
        Ok(device)
    }

    /// Waits until the doorbell has rung that was armed, or for so long. Returns whether it has rung.
    ///
    /// # Errors
    /// When the device refuses.
    pub fn wait(&self, limit: Option<Duration>) -> Result<bool, Failure> {
        wait(&self.file, limit).map_err(of(&self.path))
    }
}

/// A link, mapped to look at the peer: its latest value and life. This VM's side is not opened, the peer is told nothing,
/// and another program may use the link meanwhile.
#[derive(Debug)]
pub struct Watch(Device);

impl Watch {
    /// Maps the link that the description of the system calls so.
    ///
    /// # Errors
    /// When there is none, or it cannot be mapped.
    pub fn open(name: &str) -> Result<Self, Failure> {
        Self::open_in(Path::new(CLASS), Path::new(NODES), name)
    }

    fn open_in(class: &Path, nodes: &Path, name: &str) -> Result<Self, Failure> {
        Device::map_in(class, nodes, name).map(Self)
    }

    /// Returns how many bytes each half has.
    #[must_use]
    pub fn half_size(&self) -> usize {
        self.0.half_size()
    }

    /// Returns the VM at the other end.
    #[must_use]
    pub const fn peer(&self) -> Peer<'_, Device> {
        Peer::new(&self.0)
    }
}

/// Lets the interrupt of a UIO device come, and waits for it.
fn wait(mut device: &File, limit: Option<Duration>) -> io::Result<bool> {
    const ENABLE: u32 = 1;
    device.write_all(&ENABLE.to_ne_bytes())?;
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        let rest = end.map(|end| end.saturating_duration_since(Instant::now()));
        let rest = rest.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&device, PollFlags::IN)], rest.as_ref()) {
            Ok(0) => return Ok(false),
            Ok(_) => break,
            // A signal.
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut count = [0; size_of::<u32>()];
    device.read_exact(&mut count)?;
    Ok(true)
}

/// Maps one of the maps of a UIO device: by its number times the size of a page.
fn map(
    directory: &Path,
    path: &Path,
    file: &File,
    number: usize,
    protection: i32,
) -> Result<MmapRegion, Failure> {
    let wrong = |why: String| Failure::Map { path: path.into(), map: number, why };
    let of_map = directory.join(std::format!("maps/map{number}/size"));
    let text = fs::read_to_string(&of_map).map_err(of(&of_map))?;
    let text = text.trim();
    let size = text.strip_prefix("0x").and_then(|digits| usize::from_str_radix(digits, 16).ok());
    let size = size.ok_or_else(|| wrong(std::format!("`{text}` is no size")))?;
    let offset = (number * rustix::param::page_size()) as u64;
    let place = FileOffset::new(file.try_clone().map_err(of(path))?, offset);
    MmapRegion::build(Some(place), size, protection, libc::MAP_SHARED)
        .map_err(|error| wrong(std::string::ToString::to_string(&error)))
}

/// Returns a word of a map.
fn word(map: &MmapRegion, offset: usize) -> &AtomicU32 {
    map.get_atomic_ref(offset).expect("a word of the map")
}

/// Returns a doubleword of a map.
fn doubleword(map: &MmapRegion, offset: usize) -> &AtomicU64 {
    map.get_atomic_ref(offset).expect("a doubleword of the map")
}

/// Loads a register; not inlined, so that the instruction is one that the hypervisor can emulate.
#[inline(never)]
fn load(register: &AtomicU32) -> u32 {
    register.load(Relaxed)
}

/// Stores into a register; not inlined, as [`load`].
#[inline(never)]
fn store(register: &AtomicU32, value: u32) {
    register.store(value, Relaxed);
}

impl Registers for Device {
    fn load(&self, offset: u64) -> u32 {
        load(word(&self.registers, offset as usize))
    }

    fn store(&self, offset: u64, value: u32) {
        store(word(&self.registers, offset as usize), value);
    }
}

impl Access for Device {
    fn half_size(&self) -> usize {
        self.own.size()
    }

    fn load_own(&self, offset: usize) -> u32 {
        word(&self.own, offset).load(Relaxed)
    }

    fn store_own(&self, offset: usize, value: u32) {
        word(&self.own, offset).store(value, Relaxed);
    }

    fn load_peer(&self, offset: usize) -> u32 {
        word(&self.peer, offset).load(Relaxed)
    }

    fn store_own_doubleword(&self, offset: usize, value: u64) {
        doubleword(&self.own, offset).store(value, Relaxed);
    }

    fn load_peer_doubleword(&self, offset: usize) -> u64 {
        doubleword(&self.peer, offset).load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Link};
    use std::format;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::FileExt;
    use std::os::unix::net::UnixStream;
    use std::string::ToString;

    /// A directory that looks like Linux's with one UIO device, whose maps are the pages of a file.
    fn device_of(name: &str, sizes: [&str; 3]) -> (tempfile::TempDir, File) {
        let place = tempfile::tempdir().unwrap();
        for (number, size) in sizes.iter().enumerate() {
            let map = place.path().join(format!("class/uio3/maps/map{number}"));
            fs::create_dir_all(&map).unwrap();
            fs::write(map.join("size"), format!("{size}\n")).unwrap();
        }
        fs::write(place.path().join("class/uio3/name"), format!("{name}\n")).unwrap();
        let path = place.path().join("uio3");
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
        file.set_len(3 * rustix::param::page_size() as u64).unwrap();
        (place, file)
    }

    fn open(place: &tempfile::TempDir, name: &str) -> Result<Device, Failure> {
        Device::open_in(&place.path().join("class"), place.path(), name)
    }

    #[test]
    fn maps_are_registers_the_own_half_and_the_peers() {
        let (place, file) = device_of("link-control", ["0x1000", "0x1000", "0x1000"]);
        let device = open(&place, "control").unwrap();
        let mut link = Link::open(&device).unwrap();
        let word = |page: usize, offset: usize| {
            let mut bytes = [0; 4];
            let at = page * rustix::param::page_size() + offset;
            file.read_exact_at(&mut bytes, at as u64).unwrap();
            u32::from_le_bytes(bytes)
        };
        assert_eq!(word(OWN, 0), crate::MAGIC);
        link.peer.ring();
        assert_eq!(word(REGISTERS, 0), 1);
        assert_eq!(link.receiver.receive(&mut []), Err(Error::Absent));
        link.sender.send(b"12345678").unwrap();
        assert_eq!(word(OWN, crate::HEADER_SIZE + 8), u32::from_le_bytes(*b"1234"));
        let peers = 2 * rustix::param::page_size() as u64;
        file.write_all_at(&crate::MAGIC.to_le_bytes(), peers).unwrap();
        file.write_all_at(&7_u32.to_le_bytes(), peers + 4).unwrap();
        assert_eq!(link.peer.latest(&mut []), Err(Error::Empty));
    }

    #[test]
    fn one_program_has_a_link_and_others_look_at_it() {
        let (place, _file) = device_of("link-control", ["0x1000"; 3]);
        let watch =
            || Watch::open_in(&place.path().join("class"), place.path(), "control").unwrap();
        let before = watch();
        let device = open(&place, "control").unwrap();
        let mut link = Link::open(&device).unwrap();
        let refusal = open(&place, "control").unwrap_err().to_string();
        let wanted = format!("{}: another program uses link", place.path().join("uio3").display());
        assert!(refusal.starts_with(&wanted), "{refusal}");
        assert_eq!(link.sender.send(b"1"), Ok(()));
        let epoch = device.load_own(4);
        for watch in [before, watch()] {
            assert_eq!(watch.half_size(), 0x1000);
            assert_eq!(watch.peer().life(), None);
            assert_eq!(watch.peer().latest(&mut []), Err(Error::Absent));
        }
        assert_eq!(device.load_own(4), epoch, "it was not opened again");
        drop(device);
        open(&place, "control").unwrap();
    }

    #[test]
    fn what_is_no_link_is_refused_with_its_name() {
        let refusal =
            |name, sizes, wanted| open(&device_of(name, sizes).0, wanted).unwrap_err().to_string();
        let all = ["0x1000"; 3];
        let missing = refusal("link-a", all, "b");
        assert!(missing.contains("no link `b`") && missing.contains("[\"a\"]"), "{missing}");
        assert!(refusal("serial", all, "serial").contains("but []"));
        assert!(refusal("link-a", ["0x1000", "0x1000", "1000"], "a").contains("`1000` is no size"));
        assert!(
            refusal("link-a", ["0x1000", "0x1000", "0x800"], "a").contains("as large as map 1")
        );
        assert!(
            refusal("link-a", ["0x8", "0x1000", "0x1000"], "a").contains("map 0: it is too small")
        );
        let (place, _) = device_of("link-a", all);
        fs::remove_file(place.path().join("uio3")).unwrap();
        assert!(open(&place, "a").unwrap_err().to_string().contains("uio3: No such file"));
        let (place, _) = device_of("link-a", all);
        fs::remove_dir_all(place.path().join("class")).unwrap();
        assert!(open(&place, "a").unwrap_err().to_string().contains("class: No such file"));
    }

    #[test]
    fn a_wait_enables_the_interrupt_and_ends_with_it_or_in_time() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let ours = File::from(OwnedFd::from(ours));
        assert!(!wait(&ours, Some(Duration::ZERO)).unwrap());
        theirs.write_all(&5_u32.to_ne_bytes()).unwrap();
        assert!(wait(&ours, None).unwrap());
        assert!(!wait(&ours, Some(Duration::from_millis(1))).unwrap());
        let mut enabled = [0; 12];
        theirs.read_exact(&mut enabled).unwrap();
        assert_eq!(enabled, [1_u32; 3].map(u32::to_ne_bytes).concat()[..]);
        drop(theirs);
        assert!(wait(&ours, None).is_err(), "a device that is gone");
    }
}
