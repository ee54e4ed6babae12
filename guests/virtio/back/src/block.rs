//! A disk (Virtual I/O Device (VIRTIO) 1.2, 5.2), made of a file or a block device.

use crate::mmio::{Kind, QUEUE_SIZE};
use std::fs::{File, OpenOptions};
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use virtio_queue::{Error, Queue, QueueOwnedT, QueueT};
use vm_memory::GuestMemoryMmap;

const SECTOR: u64 = 512;
/// VIRTIO_BLK_F_SEG_MAX, _F_RO and _F_FLUSH.
const SEG_MAX: u64 = 1 << 2;
const READ_ONLY: u64 = 1 << 5;
const FLUSH: u64 = 1 << 9;
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
    ) -> Option<u32> {
        let mut header = [0; 16];
        reader.read_exact(&mut header).ok()?;
        let kind = u32::from_le_bytes(header[..4].try_into().ok()?);
        let sector = u64::from_le_bytes(header[8..].try_into().ok()?);
        // The last byte says what came of it.
        let room = room.checked_sub(1)?;
        let done = match kind {
            0 => self.read(sector, room, writer),
            1 if !self.is_read_only => self.write(sector, reader),
            4 => self.file.sync_data().map(|()| 0),
            8 => writer.write_all(&NAME[..room.min(NAME.len())]).map(|()| room.min(NAME.len())),
            _ => return writer.write_all(&[2]).ok().map(|()| 1),
        };
        match done {
            Ok(written) => writer.write_all(&[0]).ok().map(|()| written as u32 + 1),
            // The status stands behind all that could have been written.
            Err(_) => {
                let nothing = vec![0; room];
                writer
                    .write_all(&nothing)
                    .and_then(|()| writer.write_all(&[1]))
                    .ok()
                    .map(|()| room as u32 + 1)
            }
        }
    }

    /// Returns where so many bytes are in the file, if the disk has them.
    fn place(&self, sector: u64, bytes: usize) -> Result<u64> {
        let end = (bytes as u64).div_ceil(SECTOR).checked_add(sector);
        let is_good = bytes <= MOST && end.is_some_and(|end| end <= self.sectors);
        if is_good { Ok(sector * SECTOR) } else { Err(std::io::ErrorKind::InvalidInput.into()) }
    }

    fn read(&mut self, sector: u64, bytes: usize, writer: &mut impl Write) -> Result<usize> {
        let at = self.place(sector, bytes)?;
        self.buffer.resize(bytes, 0);
        self.file.read_exact_at(&mut self.buffer, at)?;
        writer.write_all(&self.buffer).map(|()| bytes)
    }

    fn write(&mut self, sector: u64, reader: &mut impl Read) -> Result<usize> {
        self.buffer.clear();
        reader.take(MOST as u64 + 1).read_to_end(&mut self.buffer)?;
        let at = self.place(sector, self.buffer.len())?;
        self.file.write_all_at(&self.buffer, at).map(|()| 0)
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
        memory: &GuestMemoryMmap,
    ) -> std::result::Result<(), Error> {
        while let Some(chain) = queue.iter(memory)?.next() {
            let head = chain.head_index();
            let mut reader = chain.clone().reader(memory)?;
            let mut writer = chain.writer(memory)?;
            let room = writer.available_bytes().min(MOST + 1);
            let written = self.serve(&mut reader, &mut writer, room).unwrap_or(0);
            queue.add_used(memory, head, written)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn ask(disk: &mut Block, request: &[u8], room: usize) -> Option<(u32, Vec<u8>)> {
        let mut out = Vec::new();
        let written = disk.serve(&mut &request[..], &mut out, room)?;
        Some((written, out))
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
