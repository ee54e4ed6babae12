//! From a file to a checked system.

use crate::check::{self, Sound};
use crate::code::Code;
use crate::draft;
use crate::model::Checked;
use crate::plan;
use crate::problem::{Problem, Problems, Report};
use crate::{input_file, inputs};
use std::path::Path;
use std::sync::Arc;

/// Reads and checks the system description at `path`, with all files it
/// names.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load(path: &Path) -> Result<Checked, Report> {
    let text = input_file::read_text(path).map_err(|unread| {
        let message = format!("cannot read the system description: {unread}");
        let hint = unread.hint.unwrap_or("name a TOML file such as systems/demo.toml");
        let problem =
            Problem { code: Code::Unreadable, message, places: vec![], hint: Some(hint.into()) };
        Report::new(path, Arc::from(""), vec![problem])
    })?;
    load_text(path, &text)
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
        watchdog_ns,
        sibling_grace_ns,
        directed_yield,
        vms,
        timing,
        protocol,
        consolidation,
        trace,
        plugged,
        calibration,
    } = sound;
    let inputs = inputs::of(&draft, (&vms, calibration.as_ref()), (path, text), directory, &report);
    Ok(Checked {
        path: path.to_owned(),
        machine,
        priority_separation,
        off_when_done,
        reset_on_fault,
        watchdog_ns,
        sibling_grace_ns,
        directed_yield,
        vms,
        timing,
        protocol,
        consolidation,
        trace,
        plugged,
        calibration,
        inputs,
        warnings: report,
        plan,
    })
}
