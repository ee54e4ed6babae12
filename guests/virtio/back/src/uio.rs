//! Registers, memory and doorbell of a VM that waits for devices, by Linux's UIO and the module of
//! `guests/linux/link`; and a TAP device. All that is `unsafe` is here.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::ptr;
use vm_memory::{GuestAddress, GuestMemoryMmap, GuestRegionMmap, MmapRegion};

/// A VM that waits for devices.
pub struct Node {
    /// What the description calls it.
    pub name: String,
    /// The kinds of its devices, in their order.
    pub devices: Vec<String>,
    directory: PathBuf,
}

/// Lists the VMs that wait for devices of this one.
pub fn list() -> Result<Vec<Node>, String> {
    let class = PathBuf::from("/sys/class/uio");
    let entries = fs::read_dir(&class).map_err(|error| {
        format!("{}: {error}; are the modules uio and cassata_link loaded?", class.display())
    })?;
    let mut nodes: Vec<_> = entries.filter_map(|entry| node(entry.ok()?.path())).collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(nodes)
}

fn node(directory: PathBuf) -> Option<Node> {
    let name = fs::read_to_string(directory.join("name")).ok()?;
    let name = name.trim_end().strip_prefix("virtio-")?.to_owned();
    let kinds = fs::read(directory.join("device/of_node/cassata,devices")).ok()?;
    let kinds = String::from_utf8(kinds).ok()?;
    let devices = kinds.split_terminator('\0').map(str::to_owned).collect();
    Some(Node { name, devices, directory })
}

/// What this VM has of one that it serves.
pub struct Front {
    device: File,
    registers: *mut u8,
    memory: GuestMemoryMmap,
}

impl Front {
    /// Maps the registers and the memory.
    pub fn open(node: &Node) -> Result<Self, String> {
        let number = node.directory.file_name().ok_or("no name")?;
        let path = PathBuf::from("/dev").join(number);
        let device = open_alone(&path)?;
        let map = |index: usize| -> Result<(*mut u8, u64, usize), String> {
            let of_map = |what: &str| {
                let path = node.directory.join(format!("maps/map{index}/{what}"));
                let text = fs::read_to_string(&path)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                u64::from_str_radix(text.trim().trim_start_matches("0x"), 16)
                    .map_err(|error| error.to_string())
            };
            let (address, size) = (of_map("addr")?, of_map("size")? as usize);
            let at = map_device(&device, index, size)
                .map_err(|error| format!("map {index}: {error}"))?;
            Ok((at, address, size))
        };
        let (registers, ..) = map(0)?;
        let (at, address, size) = map(1)?;
        // SAFETY: it was mapped so just now, and stays so as long as the program runs. The other VM writes it
        // meanwhile, which `vm-memory` expects of all memory.
        let region = unsafe { MmapRegion::build_raw(at, size, PROTECTION, libc::MAP_SHARED) };
        let region = region.map_err(|error| error.to_string())?;
        let region =
            GuestRegionMmap::new(region, GuestAddress(address)).ok_or("an impossible address")?;
        let memory =
            GuestMemoryMmap::from_regions(vec![region]).map_err(|error| error.to_string())?;
        Ok(Self { device, registers, memory })
    }

    /// The memory that both VMs have.
    pub fn memory(&self) -> &GuestMemoryMmap {
        &self.memory
    }

    /// Loads a register.
    pub fn load(&self, offset: u64) -> u64 {
        assert!(offset < 0x1000 && offset.is_multiple_of(8));
        // SAFETY: the registers are mapped, and are more than these. A trap carries the load out.
        unsafe { ptr::read_volatile(self.registers.add(offset as usize).cast()) }
    }

    /// Stores into a register, after all that was stored into memory.
    pub fn store(&self, offset: u64, value: u64) {
        assert!(offset < 0x1000 && offset.is_multiple_of(8));
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { ptr::write_volatile(self.registers.add(offset as usize).cast(), value) }
    }

    /// Waits for the doorbell, or for one of these.
    pub fn wait(&self, others: impl Iterator<Item = Option<RawFd>>) -> Result<(), String> {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut all = vec![entry(self.device.as_raw_fd())];
        all.extend(others.flatten().map(entry));
        // SAFETY: that many entries are there.
        let count = unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, -1) };
        let error = io::Error::last_os_error();
        if count < 0 && error.kind() != io::ErrorKind::Interrupted {
            return Err(format!("poll: {error}"));
        }
        if all[0].revents != 0 {
            let mut count = [0; 4];
            (&self.device)
                .read_exact(&mut count)
                .map_err(|error| format!("the doorbell: {error}"))?;
        }
        Ok(())
    }
}

/// Opens a UIO device for this program only, as long as that runs: two of them would write one disk, and take each
/// other's requests.
fn open_alone(path: &Path) -> Result<File, String> {
    let because = |error: io::Error| format!("{}: {error}", path.display());
    let device = OpenOptions::new().read(true).write(true).open(path).map_err(because)?;
    // SAFETY: has no condition.
    if unsafe { libc::flock(device.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(device);
    }
    let error = io::Error::last_os_error();
    if error.kind() != io::ErrorKind::WouldBlock {
        return Err(because(error));
    }
    Err(format!(
        "{}: another cassata-virtio gives this VM its devices already; end that one first",
        path.display()
    ))
}

const PROTECTION: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Maps what UIO has as the map with this index.
fn map_device(device: &File, index: usize, size: usize) -> io::Result<*mut u8> {
    // SAFETY: has no condition.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let offset = index as libc::off_t * libc::off_t::from(page);
    // SAFETY: the kernel chooses where, so nothing is there.
    let at = unsafe {
        libc::mmap(ptr::null_mut(), size, PROTECTION, libc::MAP_SHARED, device.as_raw_fd(), offset)
    };
    if at == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(at.cast()) }
}

/// Returns true if something can be read without waiting.
pub fn is_readable(fd: RawFd) -> bool {
    let mut entry = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry is there.
    unsafe { libc::poll(&raw mut entry, 1, 0) > 0 }
}

/// Opens a TAP device whose packets have a virtio header of so many bytes.
pub fn open_tap(name: &str, header: usize) -> io::Result<File> {
    let tap = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    // SAFETY: zeros are a value of it.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no name of a network device"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags =
        (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    let size = header as libc::c_int;
    // SAFETY: both are what these requests take.
    let failed = unsafe {
        libc::ioctl(tap.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) < 0
            || libc::ioctl(tap.as_raw_fd(), libc::TUNSETVNETHDRSZ as _, &raw const size) < 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(tap) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_is_served_by_one_program_at_a_time() {
        let path = std::env::temp_dir().join(format!("cassata-virtio-{}-uio", std::process::id()));
        fs::write(&path, "").unwrap();
        let first = open_alone(&path).unwrap();
        let refused = open_alone(&path).err();
        drop(first);
        let next = open_alone(&path).err();
        fs::remove_file(&path).unwrap();
        let expected =
            "another cassata-virtio gives this VM its devices already; end that one first";
        assert_eq!(refused, Some(format!("{}: {expected}", path.display())));
        assert_eq!(next, None, "the first one has ended");
        let none = open_alone(&path).unwrap_err();
        assert!(none.starts_with(&format!("{}: ", path.display())), "{none}");
    }
}
