//! The files that a system is made of.

use crate::draft::Draft;
use crate::model::Checked;
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
}

impl Checked {
    /// What this file is of the system's, whatever it is called: another path,
    /// a hard link and a symbolic link lead to it too.
    #[must_use]
    pub fn input_at(&self, path: &Path) -> Option<&Input> {
        let file = identity(path)?;
        self.inputs.iter().find(|input| identity(&input.path) == Some(file))
    }
}

/// The description and all files it names relative to `directory`.
pub(crate) fn of(draft: &Draft, path: &Path, directory: &Path, report: &Report) -> Vec<Input> {
    let itself = Input {
        title: "the description itself".into(),
        path: path.into(),
        place: report.file().into(),
    };
    let named = draft.vms.iter().flat_map(|vm| {
        let files = [("kernel", &vm.kernel), ("initramfs", &vm.initramfs)];
        files.into_iter().filter_map(|(what, at)| {
            let at = at.as_ref()?;
            Some(Input {
                title: format!("the {what} of {}", vm.title()),
                path: directory.join(at.get_ref()),
                place: report.at(&at.span()),
            })
        })
    });
    [itself].into_iter().chain(named).collect()
}

/// What two names of one file share.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}
