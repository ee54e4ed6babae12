//! From a file to a checked system.

use crate::check::{self, Sound};
use crate::code::Code;
use crate::draft;
use crate::inputs;
use crate::model::Checked;
use crate::plan;
use crate::problem::{Problem, Problems, Report};
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

/// Reads and checks the system description at `path`, with all files it
/// names.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load(path: &Path) -> Result<Checked, Report> {
    let text = read(path).map_err(|(why, hint)| {
        let message = format!("cannot read the system description: {why}");
        let problem =
            Problem { code: Code::Unreadable, message, places: vec![], hint: Some(hint.into()) };
        Report::new(path, Arc::from(""), vec![problem])
    })?;
    load_text(path, &text)
}

/// Reads a file; answers why it cannot, and a hint. What is no file is refused: a pipe may never
/// end, and can be read only once.
fn read(path: &Path) -> Result<String, (String, &'static str)> {
    let fail = |error: io::Error| (error.to_string(), "name a TOML file such as systems/demo.toml");
    let kind = fs::metadata(path).map_err(fail)?.file_type();
    if kind.is_dir() {
        return Err(("a directory, not a file".into(), "name a TOML file in it"));
    }
    if !kind.is_file() {
        let hint = "paths in it are relative to its directory: write it into a file, and name that";
        return Err(("a device or a pipe, not a file".into(), hint));
    }
    fs::read_to_string(path).map_err(fail)
}

/// Checks a system description that is at hand; `path` is where it stands, or
/// would: files it names are relative to that directory.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_text(path: &Path, text: &str) -> Result<Checked, Report> {
    let mut problems = Problems::default();
    let directory = path.parent().unwrap_or(Path::new(""));
    let draft = draft::parse(text, &mut problems);
    let sound = check::check(&draft, directory, &mut problems);
    let planned = sound.and_then(|sound| Some((plan::plan(&sound, &mut problems)?, sound)));
    let report = Report::new(path, Arc::from(text), problems.into_inner());
    let Some((plan, sound)) = planned else { return Err(report) };
    let Sound {
        machine,
        priority_separation,
        off_when_done,
        reset_on_fault,
        vms,
        timing,
        protocol,
        consolidation,
        trace,
    } = sound;
    let inputs = inputs::of(&draft, &vms, (path, text), directory, &report);
    Ok(Checked {
        path: path.to_owned(),
        machine,
        priority_separation,
        off_when_done,
        reset_on_fault,
        vms,
        timing,
        protocol,
        consolidation,
        trace,
        inputs,
        warnings: report,
        plan,
    })
}
