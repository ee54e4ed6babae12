//! What is wrong with a system description, where, and how to mend it.

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};
use std::fmt::{self, Display};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub use crate::code::Code;

/// Bytes of the description's text.
pub type Span = Range<usize>;

/// One thing that is wrong, or looks wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind.
    pub code: Code,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Where: the first place is the one to mend, the others explain. Empty
    /// when the file could not be read at all.
    pub places: Vec<(Span, String)>,
    /// How to mend it.
    pub hint: Option<String>,
}

impl Problem {
    /// Returns true if it keeps the system from being built.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.code.severity() == Severity::Error
    }

    /// Says how to mend it.
    pub(crate) fn hint(&mut self, hint: impl Into<String>) -> &mut Self {
        self.hint = Some(hint.into());
        self
    }

    /// Points to a further place that explains the problem.
    pub(crate) fn see(&mut self, span: Span, text: impl Into<String>) -> &mut Self {
        self.places.push((span, text.into()));
        self
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn code<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        Some(Box::new(self.code.name()))
    }

    fn severity(&self) -> Option<Severity> {
        Some(self.code.severity())
    }

    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        self.hint.as_ref().map(|hint| Box::new(hint) as Box<dyn Display>)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let spans = self.places.iter().enumerate().map(|(i, (span, text))| {
            let text = (!text.is_empty()).then(|| text.clone());
            if i == 0 {
                LabeledSpan::new_primary_with_span(text, span.clone())
            } else {
                LabeledSpan::new_with_span(text, span.clone())
            }
        });
        (!self.places.is_empty()).then(|| Box::new(spans) as Box<dyn Iterator<Item = LabeledSpan>>)
    }
}

/// Everything that was found in one description, in the order of the text.
///
/// As a [`miette::Diagnostic`] it shows each problem with the lines it is
/// about; [`Report::plain`] needs no terminal, and [`Display`] only counts.
#[derive(Clone, Debug)]
pub struct Report {
    source: NamedSource<Arc<str>>,
    problems: Vec<Problem>,
}

/// Where in the text a problem begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The offending text.
    pub text: String,
}

impl Report {
    pub(crate) fn new(path: &Path, text: Arc<str>, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.places.first().map_or(0, |(span, _)| span.start));
        let source = NamedSource::new(path.display().to_string(), text).with_language("TOML");
        Self { source, problems }
    }

    /// The problems, in the order of the text.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Path of the description, as it was given.
    #[must_use]
    pub fn file(&self) -> &str {
        self.source.name()
    }

    /// Returns true if nothing at all was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// How many problems keep the system from being built.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.problems.iter().filter(|problem| problem.is_error()).count()
    }

    /// For each problem a line `file:line:column: error[code]: message`, one
    /// for each further place, and one for the hint.
    #[must_use]
    pub fn plain(&self) -> String {
        let lines: Vec<_> = self.problems.iter().flat_map(|problem| self.lines(problem)).collect();
        lines.join("\n")
    }

    fn lines(&self, problem: &Problem) -> Vec<String> {
        let first = problem.places.first();
        let place = first.map_or_else(|| self.file().to_owned(), |(span, _)| self.at(span));
        let severity = if problem.is_error() { "error" } else { "warning" };
        let code = problem.code.name();
        let mut lines = vec![format!("{place}: {severity}[{code}]: {problem}")];
        for (span, text) in problem.places.iter().skip(1) {
            lines.push(format!("  see {}: {text}", self.at(span)));
        }
        lines.extend(problem.hint.iter().map(|hint| format!("  hint: {hint}")));
        lines
    }

    /// Where a span begins: `file:line:column`.
    pub(crate) fn at(&self, span: &Span) -> String {
        let place = self.place_of(span);
        let place = place.map(|at| format!(":{}:{}", at.line, at.column));
        self.file().to_owned() + &place.unwrap_or_default()
    }

    /// Where a problem of this report begins.
    #[must_use]
    pub fn place(&self, problem: &Problem) -> Option<Place> {
        self.place_of(&problem.places.first()?.0)
    }

    fn place_of(&self, span: &Span) -> Option<Place> {
        let text = self.source.inner();
        let before = text.get(..span.start)?;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Some(Place {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            text: text.get(span.clone())?.to_owned(),
        })
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self.errors();
        let warnings = self.problems.len() - errors;
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        write!(f, "{}: {errors} error{}", self.file(), plural(errors))?;
        write!(f, ", {warnings} warning{}", plural(warnings))
    }
}

impl std::error::Error for Report {}

impl Diagnostic for Report {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.problems.iter().map(|problem| problem as &dyn Diagnostic)))
    }
}

/// Collects problems while a description is being read and checked.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    /// Notes a problem at `span`; the answer takes a hint and further places.
    pub(crate) fn add(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Problem {
        self.push(Problem {
            code,
            message: message.into(),
            places: vec![(span, String::new())],
            hint: None,
        })
    }

    pub(crate) fn push(&mut self, problem: Problem) -> &mut Problem {
        let index = self.0.len();
        self.0.push(problem);
        &mut self.0[index]
    }

    pub(crate) fn any_error(&self) -> bool {
        self.0.iter().any(Problem::is_error)
    }

    pub(crate) fn into_inner(self) -> Vec<Problem> {
        self.0
    }
}
