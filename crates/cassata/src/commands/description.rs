//! Reading a system description, and telling what is wrong with it.

use crate::{messages, place};
use lab::bundle::Bundle;
use lab::progress::Progress;
use miette::{MietteDiagnostic, Result, miette};
use std::path::Path;
use system::input_file::{self, Unreadable};
use system::{Checked, Input};

/// Reads and checks `path`; warnings are shown, errors end it.
pub fn load(path: &Path) -> Result<Checked> {
    warned(system::load(path)?)
}

/// Does so with a text that is to stand at `path`.
pub fn load_text(path: &Path, text: &str) -> Result<Checked> {
    warned(system::load_text(path, text)?)
}

fn warned(checked: Checked) -> Result<Checked> {
    if !checked.warnings.is_empty() {
        messages::warn(&checked.warnings);
    }
    Ok(checked)
}

/// Reads a text that is named on the command line.
pub fn source(path: &Path) -> Result<String> {
    input_file::read_text(path).map_err(|unread| unreadable(path, unread))
}

/// Says that a file which is named on the command line cannot be read.
pub fn unreadable(path: &Path, unread: Unreadable) -> miette::Report {
    let error = MietteDiagnostic::new(format!("cannot read {}: {unread}", path.display()));
    match unread.hint {
        Some(hint) => error.with_help(hint).into(),
        None => error.into(),
    }
}

/// Packs what was checked into `image`.
pub fn pack(checked: &Checked, image: &Path) -> Result<Bundle> {
    packing(image, || Bundle::pack(checked, &crate::HYPERVISOR, image))
}

/// Says that `image` is written while `pack` does so.
pub fn packing<T>(image: &Path, pack: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut progress = Progress::new("pack");
    progress.now(&format!("writing {}", image.display()));
    pack()
}

/// Returns what a file is that the project has built, and none of any other one.
pub fn of_project(file: &Path) -> Option<String> {
    let title = "what the project has built, and needs";
    place::is_product(file).then(|| format!("{} is {title}", file.display()))
}

/// A slip of the hand must not cost a file that systems are made of.
/// `option` is the one behind which the file is named.
pub fn spare_inputs(checked: &Checked, file: &Path, option: &str) -> Result<()> {
    let of_system =
        |input: &Input| format!("{}: {} is {}", input.place, file.display(), input.title);
    let of_board = || {
        let mut disks = checked.plugged.disks.iter();
        let disk = disks.find(|disk| system::is_same_file(&disk.file, file))?;
        Some(format!("{} is a disk of the system", disk.file.display()))
    };
    match checked.input_at(file).map(of_system).or_else(of_board).or_else(|| of_project(file)) {
        Some(message) => {
            Err(miette!(help = format!("name another file behind `{option}`"), "{message}"))
        }
        None => Ok(()),
    }
}
