//! Kernels and initramfs files.

use crate::code::Code;
use crate::draft::{At, DraftVm};
use crate::image::{self, Bytes, Kernel, KernelKind};
use crate::input_file;
use crate::problem::Problems;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of one VM.
pub(super) struct Images {
    pub(super) kernel: Kernel,
    pub(super) initramfs: Option<Bytes>,
}

/// Reads every file, each once.
pub(super) fn check(
    vms: &[DraftVm],
    directory: &Path,
    problems: &mut Problems,
) -> Vec<Option<Images>> {
    let mut files = Files { directory, read: BTreeMap::new() };
    vms.iter().map(|vm| images(vm, &mut files, problems)).collect()
}

fn images(vm: &DraftVm, files: &mut Files<'_>, problems: &mut Problems) -> Option<Images> {
    let kernel = vm.kernel.as_ref().and_then(|at| kernel(at, vm, files, problems));
    let initramfs = match &vm.initramfs {
        Some(at) => Some(initramfs(at, vm, kernel.as_ref(), files, problems)?),
        None => None,
    };
    Some(Images { kernel: kernel?, initramfs })
}

fn kernel(
    at: &At<String>,
    vm: &DraftVm,
    files: &mut Files<'_>,
    problems: &mut Problems,
) -> Option<Kernel> {
    let bytes = files.read(at, vm, problems)?;
    match image::identify(&bytes, vm.format.as_ref().map(|at| *at.get_ref())) {
        Ok(kind) => {
            if matches!(kind, KernelKind::Flat) && image::is_elf(&bytes) {
                let span = vm.format.as_ref().map_or(at.span(), At::span);
                problems
                    .add(Code::FlatElf, span, "the file is ELF: as `flat` its header would be run")
                    .hint("leave `format` out, or make it flat with `objcopy -O binary`");
            }
            Some(Kernel { bytes, kind })
        }
        Err(unfit) => {
            problems.add(Code::ImageKind, at.span(), unfit.message).hint(unfit.hint);
            None
        }
    }
}

fn initramfs(
    at: &At<String>,
    vm: &DraftVm,
    kernel: Option<&Kernel>,
    files: &mut Files<'_>,
    problems: &mut Problems,
) -> Option<Bytes> {
    if let Some(kernel) = kernel.filter(|kernel| !matches!(kernel.kind, KernelKind::Image(_))) {
        let message = format!("an initramfs for a kernel of format `{}`", kernel.kind.name());
        problems
            .add(Code::Initramfs, at.span(), message)
            .hint("only a Linux Image unpacks one; leave it out");
    }
    let bytes = files.read(at, vm, problems)?;
    // cpio (newc, with or without checksums), and what Linux can unpack.
    const KINDS: [&[u8]; 8] = [
        b"070701",
        b"070702",
        b"\x1f\x8b",
        b"\xfd7zXZ\0",
        b"\x28\xb5\x2f\xfd",
        b"BZh",
        b"\x02\x21\x4c\x18",
        b"\x5d\0\0",
    ];
    if !KINDS.iter().any(|kind| bytes.starts_with(kind)) {
        problems
            .add(Code::Initramfs, at.span(), "the file is no cpio archive, compressed or not")
            .hint("make one with `cpio -o -H newc`, and perhaps gzip");
        return None;
    }
    Some(bytes)
}

/// Files that have been read.
struct Files<'a> {
    directory: &'a Path,
    read: BTreeMap<PathBuf, Bytes>,
}

/// Why a file was not read.
struct Unread {
    code: Code,
    message: String,
    hint: String,
}

impl Files<'_> {
    /// Reads the file that stands at `at` of `vm`, once for all that name it.
    fn read(&mut self, at: &At<String>, vm: &DraftVm, problems: &mut Problems) -> Option<Bytes> {
        let path = self.directory.join(at.get_ref());
        let result = self.read_once(&path, vm).map_err(|unread| {
            problems.add(unread.code, at.span(), unread.message).hint(unread.hint);
        });
        result.ok()
    }

    fn read_once(&mut self, path: &Path, vm: &DraftVm) -> Result<Bytes, Unread> {
        let mut file = open(path)?;
        check_length(&mut file, path, vm)?;
        if let Some(bytes) = self.read.get(path) {
            return Ok(Arc::clone(bytes));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| unreadable(path, &error.to_string()))?;
        let bytes = Arc::new(bytes);
        self.read.insert(path.into(), Arc::clone(&bytes));
        Ok(bytes)
    }
}

fn open(path: &Path) -> Result<File, Unread> {
    input_file::open(path).map_err(|unread| {
        let refused = unreadable(path, &unread.why);
        Unread { hint: unread.hint.map_or(refused.hint, str::to_owned), ..refused }
    })
}

fn unreadable(path: &Path, why: &str) -> Unread {
    let message = format!("cannot read {}: {why}", path.display());
    let hint = "paths are relative to the description's own directory".into();
    Unread { code: Code::Image, message, hint }
}

/// Bytes that an ELF file may have: symbols and the like need not fit its VM's memory, but
/// more than this is a mistake.
const LONGEST: u64 = 1 << 30;

/// Refuses a file that cannot fit `vm`, before all of it is read.
fn check_length(file: &mut File, path: &Path, vm: &DraftVm) -> Result<(), Unread> {
    let fail = |error: io::Error| unreadable(path, &error.to_string());
    let length = file.metadata().map_err(fail)?.len();
    let mut start = Vec::new();
    file.by_ref().take(HEADER).read_to_end(&mut start).map_err(fail)?;
    file.rewind().map_err(fail)?;
    let elf = image::is_elf(&start);
    let memory = vm.memory.size.as_ref().map(|size| *size.get_ref());
    // A VM without memory is told as that.
    let memory = memory.filter(|&memory| memory > 0 && !elf).unwrap_or(LONGEST);
    if length <= memory {
        return Ok(());
    }
    let (message, hint) = if elf {
        let message = format!("{} has {} MiB", path.display(), length >> 20);
        (message, format!("an ELF file may have {} MiB; `strip` it", LONGEST >> 20))
    } else {
        let message = format!(
            "{} has {} KiB, {} has {} KiB of memory",
            path.display(),
            length.div_ceil(1024),
            vm.title(),
            memory >> 10
        );
        (message, "name another file, or raise `memory`".into())
    };
    Err(Unread { code: Code::ImageTooLarge, message, hint })
}

/// Bytes that tell what kind of file it is.
const HEADER: u64 = 64;
