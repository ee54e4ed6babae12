//! `cassata bound`.

use super::{description, say};
use crate::cli::Bound as Arguments;
use crate::messages::note;
use crate::place;
use bound::Error;
use bound::record::Record;
use bound::report::{Figure, Instructions, Report};
use bound::stack::{Frame, Stack};
use lab::paths::{self, FACTS};
use lab::results::{Directory, write_file};
use lab::table::Table;
use miette::{IntoDiagnostic, Result, miette};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use system::input_file;

/// Bytes that an image may have.
const LONGEST_IMAGE: u64 = 1 << 30;
/// The figures that were recorded.
const RECORD: &str = "crates/el2/bounds-recorded.toml";

/// Computes the figures, and compares them with those that were recorded.
pub fn bound(arguments: &Arguments) -> Result<u8> {
    let root = place::root()?;
    let read_image = |path: &PathBuf| {
        input_file::read(path, LONGEST_IMAGE)
            .map_err(|unread| description::unreadable(path, unread))
    };
    let other = arguments.image.as_ref().map(read_image).transpose()?;
    let system = arguments.file.as_deref().map(description::load).transpose()?;
    let any = crate::HYPERVISOR.with_parts;
    let own = system.as_ref().map_or(any, |checked| crate::HYPERVISOR.of(checked));
    let image = other.as_deref().unwrap_or(own);
    let report = paths::analyse(image, &read(&root.join(FACTS))?, system.as_ref())?;
    let now = Record::of(&report);
    if arguments.write {
        let text = now.text().map_err(wrong(RECORD))?;
        write_file(&root.join(RECORD), text.as_bytes())?;
    }
    let recorded =
        read(&root.join(RECORD)).and_then(|text| Record::parse(&text).map_err(wrong(RECORD)));
    let mut objections = match (&other, &system) {
        (None, None) => recorded?.objections(&now),
        _ => Vec::new(),
    };
    objections.extend(report.stack.objections());
    let json =
        json!({ "report": report, "objections": objections, "holds": objections.is_empty() });
    let json = serde_json::to_string_pretty(&json).into_diagnostic()?;
    let file =
        Directory::create(&place::results(), "bound")?.write("result.json", json.as_bytes())?;
    if arguments.json {
        say(&json);
    } else {
        show(&report, arguments.path.as_deref())?;
        say(&file.display().to_string());
    }
    objections.iter().for_each(|objection| note(objection));
    Ok(u8::from(!objections.is_empty()))
}

fn wrong(what: &str) -> impl FnOnce(Error) -> miette::Report {
    let what = what.to_owned();
    move |error| miette!("{what}: {error}")
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| miette!("cannot read {}: {error}", path.display()))
}

fn show(report: &Report, path: Option<&str>) -> Result<()> {
    if let Some(wanted) = path {
        let mut found =
            report.figures.iter().filter(|figure| figure.name.contains(wanted)).peekable();
        if found.peek().is_none() {
            return Err(miette!("no figure's name has `{wanted}` in it"));
        }
        found.for_each(|figure| say(&shares(figure).to_string()));
        return Ok(());
    }
    say(&figures(report).to_string());
    let Report { instructions, functions, reached, loops, notes, .. } = report;
    say(&format!(
        "{instructions} instructions in {functions} functions, of which guests' exceptions reach \
         {reached}, with {loops} loops; {notes} notes in the image"
    ));
    say(&stack(report));
    say(&format!("{} call sites of panics", report.panics.sites));
    if !report.missing.is_empty() {
        say("\nMissing; what depends on it has no bound, and `>` says that it takes more:");
        report.missing.iter().for_each(|gap| say(&format!("  {}: {}", gap.place, gap.what)));
    }
    Ok(())
}

fn stack(report: &Report) -> String {
    let Stack { bytes, reserved, frames, .. } = &report.stack;
    let frame = |frame: &Frame| format!("{} {}", frame.function, frame.bytes);
    let frames: Vec<_> = frames.iter().filter(|frame| frame.bytes > 0).map(frame).collect();
    format!("stack: {bytes} bytes of {reserved}, deepest in {}", frames.join(", "))
}

fn figures(report: &Report) -> Table {
    let head = ["", "stay", "to a look", "between looks", "from a look", "without a look"];
    let mut table = Table::new("Longest paths of EL2, instructions", head);
    for figure in &report.figures {
        let lengths =
            [figure.stay, figure.before_look, figure.between_looks, figure.after_look, figure.deaf];
        table.row([figure.name.clone()].into_iter().chain(lengths.map(length)));
    }
    table
}

fn length(found: Option<Instructions>) -> String {
    match found {
        None => "-".into(),
        Some(Instructions { instructions, bounded: true }) => instructions.to_string(),
        Some(Instructions { instructions, bounded: false }) => format!("> {instructions}"),
    }
}

fn shares(figure: &Figure) -> Table {
    let title = format!("{}: {} instructions without a look", figure.name, length(figure.deaf));
    let mut table = Table::new(&title, ["function", "instructions", "calls", "most at"]);
    for share in &figure.path {
        let most = share.lines.first().map_or_else(String::new, |(line, _)| line.clone());
        let row = [share.function.clone(), share.instructions.to_string(), share.calls.to_string()];
        table.row(row.into_iter().chain([most]));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::paths::Paths;

    /// The longest paths of what ships, in the system of `systems/NAME` or in any.
    fn carried(name: Option<&str>) -> Report {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let system = name.map(|name| description::load(&root.join("systems").join(name)).unwrap());
        let image = system
            .as_ref()
            .map_or(crate::HYPERVISOR.with_parts, |system| crate::HYPERVISOR.of(system));
        Paths::of(image, system.as_ref()).report().unwrap()
    }

    /// The gate itself: what ships is no longer than recorded, and every fact is used.
    #[test]
    fn no_figure_is_larger_than_recorded() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let recorded = Record::parse(&read(&root.join(RECORD)).unwrap()).unwrap();
        let without_parts = Paths::of(crate::HYPERVISOR.silent, None).report().unwrap();
        for (image, report) in [("all", carried(None)), ("no", without_parts)] {
            let objections = recorded.objections(&Record::of(&report));
            let objections = objections.join("\n");
            assert!(objections.is_empty(), "`cassata bound`, with {image} parts:\n{objections}");
        }
    }

    /// No core's stack overflows, and some of it is left for what the figure leaves out.
    #[test]
    fn no_stack_overflows() {
        let Report { stack, panics, .. } = carried(None);
        assert!(stack.objections().is_empty(), "{:?}", stack.objections());
        // A figure that sees nothing would be small.
        assert!(stack.bytes > 2_048 && stack.reserved == 0x7000, "{stack:?}");
        assert!(panics.sites > 50, "{panics:?}");
    }

    /// What has no loop and no call through a pointer must have a bound, whatever else is missing.
    #[test]
    fn the_shortest_visits_have_bounds() {
        let report = carried(None);
        let of = |name: &str| {
            let figure = report.figures.iter().find(|figure| figure.name.ends_with(name)).unwrap();
            figure.stay.unwrap()
        };
        assert!(of("null call").bounded && of("floating point").bounded);
        // No more than `cassata bench el2` may see, but for the count of a bug.
        assert!((80..=150).contains(&of("null call").instructions));
    }

    /// A system of few vCPUs on two cores has hundredths of what any system may have.
    #[test]
    fn a_small_system_has_smaller_figures() {
        let deaf = |name| {
            let figures = carried(name).figures;
            figures.into_iter().find(|figure| figure.name == "interrupt").unwrap().deaf.unwrap()
        };
        let (small, any) = (deaf(Some("demo.toml")), deaf(None));
        assert!(small.bounded && any.bounded, "{small:?}, {any:?}");
        assert!(small.instructions * 10 < any.instructions, "{small:?}, {any:?}");
    }

    #[test]
    fn a_bound_that_is_none_is_marked() {
        let found = |bounded| Some(Instructions { instructions: 7, bounded });
        assert_eq!([length(None), length(found(true)), length(found(false))], ["-", "7", "> 7"]);
    }
}
