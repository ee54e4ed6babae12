//! What is said on standard error, in one style: `cassata: ...`, as the launcher says it.
//!
//! What is wrong with a description is told as compilers do, with file, line and column; a person
//! at a terminal sees the lines in question as well. No message is broken into lines of some
//! width: a terminal does that, and a log is searched line by line.

use console::{Term, style};
use miette::Report;

/// Says something that is no error.
pub fn note(text: &str) {
    eprintln!("cassata: {text}");
}

/// Says what ended the program.
pub fn error(report: &Report) {
    eprintln!("{}", shown(report));
}

/// Says what looks wrong in a description and does not end the program.
pub fn warn(problems: &system::Report) {
    eprintln!("{}", described(problems));
}

/// Returns the message of `report`, each cause behind what it caused, and the hint below.
fn shown(report: &Report) -> String {
    if let Some(problems) = report.downcast_ref::<system::Report>() {
        return described(problems);
    }
    let mut causes: Vec<String> = Vec::new();
    for cause in report.chain().map(ToString::to_string) {
        // A transparent error repeats its cause.
        if causes.last() != Some(&cause) {
            causes.push(cause);
        }
    }
    let word = style("error").for_stderr().red().bold();
    let hint = report.help().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
    format!("cassata: {word}: {}{hint}", causes.join(": "))
}

/// Returns what is wrong with a description: for a person with the lines in question, for a log
/// in a line each.
fn described(problems: &system::Report) -> String {
    if Term::stderr().features().is_attended() {
        format!("{:?}", Report::from(problems.clone()))
    } else {
        format!("{}\ncassata: {problems}", problems.plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use miette::{WrapErr, miette};

    #[test]
    fn a_message_is_a_line_and_its_hint_another() {
        let long = "a name ".repeat(40);
        let report: miette::Result<()> =
            Err(miette!(help = "mend it", "cannot read {}", long.trim_end()));
        let report = report.wrap_err("cannot begin").unwrap_err();
        let text = console::strip_ansi_codes(&shown(&report)).into_owned();
        let first = format!("cassata: error: cannot begin: cannot read {}", long.trim_end());
        assert_eq!(text.lines().collect::<Vec<_>>(), [&first, "  hint: mend it"]);
    }

    #[test]
    fn what_is_wrong_with_a_description_keeps_its_place() {
        let report = system::load(std::path::Path::new("/nonexistent.toml")).unwrap_err();
        let text = shown(&report.into());
        assert!(text.starts_with("/nonexistent.toml: error[unreadable]: "), "{text}");
    }
}
