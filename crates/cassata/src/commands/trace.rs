//! `cassata trace`.

use super::say;
use crate::cli::Trace as Arguments;
use crate::place;
use lab::quantity::ns;
use lab::report::file;
use lab::results::write_file;
use lab::trace::{Guests, History, Trace};
use miette::Result;

/// Writes a run's trace for Perfetto and as a drawing, and says what is in it.
pub fn trace(arguments: &Arguments) -> Result<u8> {
    let directory = place::of_run(&arguments.run);
    let trace = Trace::read(&directory)?;
    let history = History::of(&trace);
    let guests = Guests::of(&trace, &history);
    let export = directory.join("trace.perfetto-trace");
    write_file(&export, &trace.perfetto(&history))?;
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let drawing = directory.join("trace.svg");
    write_file(&drawing, draw(arguments, &trace, &history, &name).as_bytes())?;
    if arguments.json {
        say(&format!("{:#}", trace.json(&guests)));
        return Ok(0);
    }
    trace.data(&guests).iter().for_each(|data| say(&data.table().to_string()));
    if let Some(lost) = trace.loss(&guests) {
        say(&lost);
    }
    say(&format!("{}\n{}", export.display(), drawing.display()));
    Ok(0)
}

/// Draws the stretch that is asked for; the beginning, if none is.
fn draw(arguments: &Arguments, trace: &Trace, history: &History, name: &str) -> String {
    let drawing = if arguments.from.is_none() && arguments.length.is_none() {
        trace.draw_beginning(history, name)
    } else {
        let from = arguments.from.map_or_else(|| history.begin(), ns);
        let to = arguments.length.map_or(history.end, |length| from.saturating_add(ns(length)));
        trace.draw(history, name, from, to)
    };
    file(&drawing).unwrap_or_default()
}
