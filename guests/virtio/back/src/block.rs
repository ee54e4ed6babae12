//! A disk (Virtual I/O Device (VIRTIO) 1.2, 5.2), made of a file or a block device.

use crate::mmio::{Kind, QUEUE_SIZE};
use crate::reach::{Reach, Trouble};
use std::fs::{File, OpenOptions};
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use virtio_queue::{Queue, QueueOwnedT, QueueT};

const SECTOR: u64 = 512;
/// VIRTIO_BLK_F_SEG_MAX, _F_RO and _F_FLUSH.
const SEG_MAX: u64 = 1 << 2;
const READ_ONLY: u64 = 1 << 5;
const FLUSH: u64 = 1 << 9;
/// VIRTIO_BLK_T_OUT.
const WRITE: u32 = 1;
/// Most bytes of one request: a chain may have the same memory in it again and again.
const MOST: usize = 4 << 20;
/// What a device calls itself.
const NAME: &[u8; 20] = b"cassata-virtio\0\0\0\0\0\0";

/// See the module.
pub struct Block {
    file: File,
    sectors: u64,
    is_read_only: bool,
    configuration: [u8; 16],
    buffer: Vec<u8>,
}

impl Block {
    /// Opens `FILE` or `FILE,readonly`.
    pub fn open(from: &str) -> Result<Self> {
        let (path, is_read_only) = match from.strip_suffix(",readonly") {
            Some(path) => (path, true),
            None => (from, false),
        };
        let mut file = OpenOptions::new().read(true).write(!is_read_only).open(path)?;
        // A block device tells its size by this, too.
        let sectors = file.seek(SeekFrom::End(0))? / SECTOR;
        let mut configuration = [0; 16];
        configuration[..8].copy_from_slice(&sectors.to_le_bytes());
        // Two descriptors are the header and the status.
        configuration[12..].copy_from_slice(&(u32::from(QUEUE_SIZE) - 2).to_le_bytes());
        Ok(Self { file, sectors, is_read_only, configuration, buffer: Vec::new() })
    }

    /// Carries a request out. Returns how many bytes the device has written.
    fn serve(
        &mut self,
        reader: &mut impl Read,
        writer: &mut impl Write,
        room: usize,
        front: &Reach<'_>,
    ) -> std::result::Result<u32, Trouble> {
        // The last byte says what came of it.
        let order = self.copy(reader).zip(room.checked_sub(1));
        let status = match order {
            Some(((kind, sector), room)) => {
                if kind == WRITE {
                    front.check()?;
                }
                Some(self.carry_out(kind, sector, room))
            }
            None => None,
        };
        front.check()?;
        let written = status.and_then(|status| {
            writer.write_all(&self.buffer).and_then(|()| writer.write_all(&[status])).ok()
        });
        Ok(written.map_or(0, |()| self.buffer.len() as u32 + 1))
    }

    /// Copies a request to where the front cannot change it: returns its kind and sector, and has in the buffer
    /// what is to be written.
    fn copy(&mut self, reader: &mut impl Read) -> Option<(u32, u64)> {
        self.buffer.clear();
        let mut header = [0; 16];
        reader.read_exact(&mut header).ok()?;
        let kind = u32::from_le_bytes(header[..4].try_into().ok()?);
        let sector = u64::from_le_bytes(header[8..].try_into().ok()?);
        if kind == WRITE && !self.is_read_only {
            reader.take(MOST as u64 + 1).read_to_end(&mut self.buffer).ok()?;
        }
        Some((kind, sector))
    }

    /// Does what a request says. Returns its status, and has in the buffer what the front gets before that.
    fn carry_out(&mut self, kind: u32, sector: u64, room: usize) -> u8 {
        let done = match kind {
            0 => self.read(sector, room),
            WRITE if !self.is_read_only => self.write(sector),
            4 => self.file.sync_data(),
            8 => {
                self.buffer.extend(NAME.iter().take(room));
                Ok(())
            }
            _ => return 2,
        };
        if done.is_err() {
            // The status stands behind all that could have been written.
            self.buffer.clear();
            self.buffer.resize(room, 0);
        }
        done.is_err().into()
    }

    /// Returns where so many bytes are in the file, if the disk has them.
    fn place(&self, sector: u64, bytes: usize) -> Result<u64> {
        let end = (bytes as u64).div_ceil(SECTOR).checked_add(sector);
        let is_good = bytes <= MOST && end.is_some_and(|end| end <= self.sectors);
        if is_good { Ok(sector * SECTOR) } else { Err(std::io::ErrorKind::InvalidInput.into()) }
    }

    fn read(&mut self, sector: u64, bytes: usize) -> Result<()> {
        let at = self.place(sector, bytes)?;
        self.buffer.resize(bytes, 0);
        self.file.read_exact_at(&mut self.buffer, at)
    }

    fn write(&mut self, sector: u64) -> Result<()> {
        let at = self.place(sector, self.buffer.len())?;
        self.file.write_all_at(&self.buffer, at)?;
        self.buffer.clear();
        Ok(())
    }
}

impl Kind for Block {
    fn id(&self) -> u32 {
        2
    }

    fn features(&self) -> u64 {
        SEG_MAX | FLUSH | if self.is_read_only { READ_ONLY } else { 0 }
    }

    fn configuration(&self) -> &[u8] {
        &self.configuration
    }

    fn queues(&self) -> usize {
        1
    }

    fn take(
        &mut self,
        _: usize,
        queue: &mut Queue,
        front: &Reach<'_>,
    ) -> std::result::Result<(), Trouble> {
        let memory = front.memory;
        while let Some(chain) = queue.iter(memory)?.next() {
            let head = chain.head_index();
            let mut reader = chain.clone().reader(memory)?;
            let mut writer = chain.writer(memory)?;
            let room = writer.available_bytes().min(MOST + 1);
            let written = self.serve(&mut reader, &mut writer, room, front)?;
            queue.add_used(memory, head, written)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vm_memory::GuestMemoryMmap;

    fn disk(name: &str) -> Block {
        let path =
            std::env::temp_dir().join(format!("cassata-virtio-{}-{name}", std::process::id()));
        std::fs::write(&path, vec![7; 4 * 512]).unwrap();
        let disk = Block::open(path.to_str().unwrap()).unwrap();
        std::fs::remove_file(path).unwrap();
        disk
    }

    fn request(kind: u32, sector: u64, data: &[u8]) -> Vec<u8> {
        let header = [&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat();
        [&header, data].concat()
    }

    /// Returns what the front gets, and how many bytes that is said to be; `is_stopped` is of the front.
    fn serve(
        disk: &mut Block,
        request: &[u8],
        room: usize,
        is_stopped: &dyn Fn() -> bool,
    ) -> (std::result::Result<u32, Trouble>, Vec<u8>) {
        let (mut out, memory) = (Vec::new(), GuestMemoryMmap::new());
        let front = Reach { memory: &memory, is_stopped };
        (disk.serve(&mut &request[..], &mut out, room, &front), out)
    }

    fn ask(disk: &mut Block, request: &[u8], room: usize) -> Option<(u32, Vec<u8>)> {
        let (written, out) = serve(disk, request, room, &|| false);
        written.ok().filter(|written| *written > 0).map(|written| (written, out))
    }

    /// A request that was copied when another kernel had the memory already would write anything to the disk.
    #[test]
    fn a_front_that_was_stopped_writes_nothing_and_gets_nothing() {
        let mut disk = disk("stopped");
        let looks = std::cell::Cell::new(0);
        for (kind, data, is_stopped_at) in
            [(WRITE, &[9; 512][..], 0), (WRITE, &[9; 512], 1), (0, &[], 0)]
        {
            looks.set(0);
            let is_stopped = || looks.replace(looks.get() + 1) == is_stopped_at;
            let (ended, out) = serve(&mut disk, &request(kind, 0, data), 513, &is_stopped);
            assert!(matches!(ended, Err(Trouble::Stopped)) && out.is_empty());
            let mut byte = [0];
            disk.file.read_exact_at(&mut byte, 0).unwrap();
            // What was copied in time is written.
            assert_eq!(byte[0] == 9, kind == 0 || is_stopped_at == 1);
        }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_beside() {
        let mut disk = disk("rw");
        assert_eq!(ask(&mut disk, &request(1, 1, &[9; 1024]), 1), Some((1, vec![0])));
        let (written, read) = ask(&mut disk, &request(0, 0, &[]), 4 * 512 + 1).unwrap();
        assert_eq!(written, 4 * 512 + 1);
        let expected = [&[7; 512][..], &[9; 1024], &[7; 512], &[0]].concat();
        assert_eq!(read, expected);
        assert_eq!(ask(&mut disk, &request(4, 0, &[]), 1), Some((1, vec![0])), "flush");
    }

    /// A front asks for what it likes; the file must not grow, and the program not end.
    #[test]
    fn what_the_disk_has_not_is_an_error() {
        let mut disk = disk("end");
        for (kind, sector, room) in [(0, 4, 513), (0, 3, 1025), (0, u64::MAX, 513)] {
            let (_, out) = ask(&mut disk, &request(kind, sector, &[]), room).unwrap();
            assert_eq!(out.last(), Some(&1), "{sector}");
        }
        for sector in [4, u64::MAX] {
            assert_eq!(ask(&mut disk, &request(1, sector, &[1; 512]), 1), Some((1, vec![1])));
        }
        assert_eq!(ask(&mut disk, &request(99, 0, &[]), 1), Some((1, vec![2])), "no such request");
        assert_eq!(ask(&mut disk, &[0; 5], 1), None, "no header");
        assert_eq!(ask(&mut disk, &request(0, 0, &[]), 0), None, "no status");
        assert_eq!(disk.file.metadata().unwrap().len(), 4 * 512);
    }
}
