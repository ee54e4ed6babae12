//! Reading a system description, and telling what is wrong with it.

use console::Term;
use lab::bundle::Bundle;
use lab::progress::Progress;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::fs;
use std::path::Path;
use system::{Checked, Report};

/// Reads and checks `path`; warnings are shown, errors end it.
pub fn load(path: &Path) -> Result<Checked> {
    let checked = system::load(path)?;
    if !checked.warnings.is_empty() {
        eprintln!("{}", shown(&checked.warnings.clone().into()));
    }
    Ok(checked)
}

/// The description's own text, for the record.
pub fn source(path: &Path) -> Result<String> {
    let read = fs::read_to_string(path).into_diagnostic();
    read.wrap_err_with(|| format!("cannot read {}", path.display()))
}

/// Checks `path` and packs it into `image`.
pub fn pack(path: &Path, image: &Path) -> Result<Bundle> {
    let mut progress = Progress::new("pack");
    progress.now(&format!("reading {}", path.display()));
    let checked = load(path)?;
    spare_inputs(&checked, image)?;
    progress.now(&format!("writing {}", image.display()));
    Ok(Bundle::pack(&checked, crate::HYPERVISOR, image)?)
}

/// A slip of the hand must not cost anybody a file that the system is made of.
fn spare_inputs(checked: &Checked, image: &Path) -> Result<()> {
    let Some(input) = checked.input_at(image) else { return Ok(()) };
    Err(miette!(
        help = "name another file behind `-o`",
        "{}: {} is {}",
        input.place,
        image.display(),
        input.title
    ))
}

/// What is shown of a report: to a person with a terminal the lines in
/// question, to a log one line for each problem of a description.
pub fn shown(report: &miette::Report) -> String {
    let problems = report.downcast_ref::<Report>();
    match problems.filter(|_| !Term::stderr().features().is_attended()) {
        Some(problems) => format!("{}\n{problems}", problems.plain()),
        None => format!("{report:?}"),
    }
}
