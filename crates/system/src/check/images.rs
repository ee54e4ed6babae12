//! Kernels and initramfs files.

use crate::code::Code;
use crate::draft::{At, DraftVm};
use crate::image::{self, Bytes, Kernel, KernelKind};
use crate::problem::Problems;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

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
        Some(at) => Some(initramfs(at, kernel.as_ref(), files, problems)?),
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
    let bytes = files.read(at, problems)?;
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
    let bytes = files.read(at, problems)?;
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

/// Of a device or a pipe, which need not end, an error.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let kind = fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(io::Error::other("a device or a pipe, not a file"));
    }
    fs::read(path)
}

/// Files that have been read.
struct Files<'a> {
    directory: &'a Path,
    read: BTreeMap<PathBuf, Bytes>,
}

impl Files<'_> {
    fn read(&mut self, at: &At<String>, problems: &mut Problems) -> Option<Bytes> {
        let path = self.directory.join(at.get_ref());
        if let Some(bytes) = self.read.get(&path) {
            return Some(bytes.clone());
        }
        match read_file(&path) {
            Ok(bytes) => {
                let bytes = Arc::new(bytes);
                self.read.insert(path, Arc::clone(&bytes));
                Some(bytes)
            }
            Err(error) => {
                let message = format!("cannot read {}: {error}", path.display());
                problems
                    .add(Code::Image, at.span(), message)
                    .hint("paths are relative to the description's own directory");
                None
            }
        }
    }
}
