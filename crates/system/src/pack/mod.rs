//! From a checked system and a hypervisor to one bootable file, in one of several formats.

mod boot_script;
mod container;
mod digests;
mod error;
mod fit;
mod flat;
mod format;
mod hypervisor;
mod relocate;
mod sections;
mod signature;
mod tables;

pub use boot_script::script;
pub use digests::seal;
pub(crate) use digests::sha256;
pub use error::PackError;
pub use format::ImageFormat;
pub use hypervisor::image_size;
pub use signature::SigningKey;

use crate::model::Checked;
use crate::plan::{self, Piece};
use crate::temporary::without_name;
use abi::system::{Region, System};
use container::{Chunk, Container, Part};
use hypervisor::Hypervisor;
use object::elf::{PF_R, PF_W, ProgramFlags};
use std::io::{self, Write};
use std::path::Path;
use zerocopy::IntoBytes;

/// A system ready to be written. The guests' files are shared with the
/// [`Checked`] it came from, and copied only while writing.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The tables at the beginning of the bundle.
    pub tables: Box<System>,
    hypervisor: Hypervisor,
    /// Contents of the bundle behind the tables, in ascending order.
    pieces: Vec<(u64, Piece)>,
    /// Memory that VMs share, that of links and of virtio devices included, in ascending order.
    shared: Vec<Region>,
}

/// Packs a system with the hypervisor given as an ELF file.
///
/// # Errors
/// When the hypervisor's file is not what it must be.
pub fn pack(checked: &Checked, hypervisor_elf: &[u8]) -> Result<Packed, PackError> {
    pack_with(checked, hypervisor_elf, None)
}

/// Packs a system with the hypervisor given as an ELF file, a build that checks signatures; builds
/// in the public key, and signs.
///
/// # Errors
/// When the hypervisor's file is not what it must be.
pub fn pack_signed(
    checked: &Checked,
    hypervisor_elf: &[u8],
    key: &SigningKey,
) -> Result<Packed, PackError> {
    pack_with(checked, hypervisor_elf, Some(key))
}

fn pack_with(
    checked: &Checked,
    hypervisor_elf: &[u8],
    key: Option<&SigningKey>,
) -> Result<Packed, PackError> {
    let plan = &checked.plan;
    let memory = checked.machine.hypervisor();
    let mut hypervisor = hypervisor::read(hypervisor_elf, memory.start)?;
    hypervisor.build_in(key)?;
    let views = hypervisor.views();
    let (stage1, stage1_roots) =
        plan::stage1(plan.stage1.start, &checked.machine, &plan.layout, &views);
    let size = stage1.as_bytes().len() as u64;
    assert_eq!(
        (size, &stage1_roots),
        (plan.stage1.size, &plan.stage1_roots),
        "planned with the same pages"
    );
    let page_tables = [(plan.stage1.start, &stage1)].into_iter();
    let page_tables =
        page_tables.chain(plan.stage2.iter().flatten().map(|(pa, tables)| (*pa, tables)));
    let page_tables = page_tables.map(|(pa, tables)| (pa, Piece::own(tables.as_bytes().to_vec())));
    let pieces: Vec<_> = page_tables.chain(plan.pieces.iter().cloned()).collect();
    let shared = plan.layout.shared.iter().chain(&plan.layout.links).chain(&plan.layout.virtio);
    let mut shared: Vec<_> = shared.copied().filter(|region| region.size > 0).collect();
    shared.sort_by_key(|region| region.start);
    let mut tables = tables::tables(checked);
    let parts = digests::parts(checked, &tables, &hypervisor, &pieces);
    tables.header.part_count = parts.len() as u32;
    tables.parts[..parts.len()].copy_from_slice(&parts);
    tables.header.tables_sha256 = tables.digest(|bytes| sha256(bytes));
    if let Some(key) = key {
        tables.signature = key.sign(&tables);
    }
    let packed = Packed { tables, hypervisor, pieces, shared };
    packed.tables.validate().map_err(|invalid| {
        let message = format!("the packed system would be refused: {}", invalid.message());
        PackError::new(message, "this is a mistake of cassata's; please report the description")
    })?;
    Ok(packed)
}

impl Packed {
    /// Writes the bootable ELF file.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        self.container().write(to)
    }

    /// Bytes the bootable file has.
    #[must_use]
    pub fn file_size(&self) -> u64 {
        self.container().file_size()
    }

    /// Writes the bootable file of `format` to `path`, whole or not at all.
    ///
    /// # Errors
    /// When the board does not allow that format, or the file cannot be written.
    pub fn write_file(&self, format: ImageFormat, path: &Path) -> Result<(), PackError> {
        self.check_format(format)?;
        let refuse = |error: io::Error| {
            let message = format!("cannot write {}: {}", path.display(), without_name(error));
            PackError::new(message, "is the directory there, writable, and the disk not full?")
        };
        if path.symlink_metadata().is_ok_and(|there| !there.is_file()) {
            let message = format!("cannot write {}: it is there and not a file", path.display());
            return Err(PackError::new(message, "name a file, or what does not exist yet"));
        }
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if !directory.is_dir() {
            let message = format!(
                "cannot write {}: there is no directory {}",
                path.display(),
                directory.display()
            );
            return Err(PackError::new(message, "make it first, or name another one"));
        }
        let mut file = tempfile::Builder::new()
            .permissions(permissions())
            .tempfile_in(directory)
            .map_err(refuse)?;
        let mut to = io::BufWriter::new(file.as_file_mut());
        self.write_as(format, &mut to).map_err(refuse)?;
        drop(to);
        file.persist(path).map_err(|error| refuse(error.error))?;
        Ok(())
    }

    fn container(&self) -> Container<'_> {
        let mut parts = Vec::new();
        for segment in &self.hypervisor.segments {
            let chunks = vec![Chunk::Data(&segment.data)];
            parts.push(Part { region: segment.region, flags: segment.flags, chunks });
        }
        let flags = ProgramFlags(PF_R.0);
        parts.push(Part { region: self.tables.header.bundle(), flags, chunks: self.bundle() });
        // No byte of the file: what loads it clears them, once.
        let flags = ProgramFlags(PF_R.0 | PF_W.0);
        let cleared = |&region: &Region| Part { region, flags, chunks: Vec::new() };
        parts.extend(self.shared.iter().map(cleared));
        Container { entry: self.hypervisor.entry, parts }
    }

    /// The bundle from its first byte to its last; the first chunk is the
    /// tables.
    fn bundle(&self) -> Vec<Chunk<'_>> {
        let Region { start, size } = self.tables.header.bundle();
        let mut chunks = vec![Chunk::Data(self.tables.as_bytes())];
        let mut cursor = start + size_of::<System>() as u64;
        for (pa, piece) in &self.pieces {
            chunks.push(Chunk::Zeros(pa - cursor));
            chunks.push(Chunk::Data(piece.as_slice()));
            cursor = pa + piece.len();
        }
        chunks.push(Chunk::Zeros(start + size - cursor));
        chunks
    }
}

/// What `open` would give a new file; temporary files begin private.
fn permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666)
}
