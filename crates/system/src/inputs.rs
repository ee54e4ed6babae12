//! The files that a system is made of.

use crate::calibration::Calibration;
use crate::draft::Draft;
use crate::image::Bytes;
use crate::model::{Checked, Vm};
use crate::problem::Report;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file that a system is made of.
#[derive(Clone, Debug)]
pub struct Input {
    /// What it is, such as "the kernel of VM `linux`".
    pub title: String,
    /// Where it is.
    pub path: PathBuf,
    /// Where the description names it, as `file:line:column`.
    pub place: String,
    /// The bytes that were read from it, and are packed.
    pub bytes: Bytes,
}

impl Checked {
    /// What this file is of the system's, whatever it is called: see [`is_same_file`].
    #[must_use]
    pub fn input_at(&self, path: &Path) -> Option<&Input> {
        self.inputs.iter().find(|input| is_same_file(&input.path, path))
    }
}

/// Returns true if these are names of one file, which is there: another path, a hard link and a
/// symbolic link are names too.
#[must_use]
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// Returns true if what is written to one of these is in the other: as [`is_same_file`], also where no file
/// is there yet.
#[must_use]
pub fn is_same_place(one: &Path, other: &Path) -> bool {
    is_same_file(one, other) || place(one).is_some_and(|one| place(other) == Some(one))
}

/// Returns where a file of this name is or would be, behind all symbolic links.
fn place(path: &Path) -> Option<PathBuf> {
    /// As many as Linux follows.
    const MOST_LINKS: usize = 40;
    let parent = |path: &Path| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(Path::new(".")).to_owned()
    };
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = parent(&path).join(target);
    }
    Some(fs::canonicalize(parent(&path)).ok()?.join(path.file_name()?))
}

/// The description, which is `text`, and all files that it names relative to `directory`; the VMs
/// are those of the draft, in its order, and the calibration is the one that it names.
pub(crate) fn of(
    draft: &Draft,
    (vms, calibration): (&[Vm], Option<&Calibration>),
    (path, text): (&Path, &str),
    directory: &Path,
    report: &Report,
) -> Vec<Input> {
    let itself = Input {
        title: "the description itself".into(),
        path: path.into(),
        place: report.file().into(),
        bytes: Bytes::new(text.into()),
    };
    let named = draft.vms.iter().zip(vms).flat_map(|(drafted, vm)| {
        let kernel = drafted.kernel.as_ref().zip(Some(&vm.kernel.bytes));
        let initramfs = drafted.initramfs.as_ref().zip(vm.initramfs.as_ref());
        let files = [("kernel", kernel), ("initramfs", initramfs)];
        files.into_iter().filter_map(|(what, file)| {
            let (at, bytes) = file?;
            Some(Input {
                title: format!("the {what} of {}", drafted.title()),
                path: directory.join(at.get_ref()),
                place: report.at(&at.span()),
                bytes: bytes.clone(),
            })
        })
    });
    let calibration = draft.board.calibration.as_ref().zip(calibration);
    let calibration = calibration.map(|(at, calibration)| Input {
        title: "the calibration of the board".into(),
        path: directory.join(at.get_ref()),
        place: report.at(&at.span()),
        bytes: calibration.file.clone(),
    });
    [itself].into_iter().chain(calibration).chain(named).collect()
}

/// What two names of one file share.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}
