//! From a file to a checked system.

use crate::check::{self, Sound};
use crate::code::Code;
use crate::draft;
use crate::inputs;
use crate::model::Checked;
use crate::plan;
use crate::problem::{Problem, Problems, Report};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Reads and checks the system description at `path`, with all files it
/// names.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load(path: &Path) -> Result<Checked, Report> {
    match fs::read_to_string(path) {
        Ok(text) => load_text(path, &text),
        Err(error) => {
            let problem = Problem {
                code: Code::Unreadable,
                message: format!("cannot read the system description: {error}"),
                places: Vec::new(),
                hint: Some("name a TOML file such as systems/demo.toml".to_owned()),
            };
            Err(Report::new(path, Arc::from(""), vec![problem]))
        }
    }
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
    let Sound { machine, priority_separation, off_when_done, vms, timing, consolidation } = sound;
    Ok(Checked {
        path: path.to_owned(),
        machine,
        priority_separation,
        off_when_done,
        vms,
        timing,
        consolidation,
        inputs: inputs::of(&draft, path, directory, &report),
        warnings: report,
        plan,
    })
}
