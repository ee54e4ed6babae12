//! One line that says what is going on, for whatever takes over two seconds.

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How often a plain line appears where there is no terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(2);

/// A line on standard error: redrawn in place on a terminal, else written anew
/// every two seconds.
pub struct Progress {
    bar: ProgressBar,
    title: String,
    /// Where plain lines go; `None` when the bar is drawn instead.
    plain: Option<Box<dyn Write>>,
    out: Box<dyn Write>,
    next: Instant,
}

impl Progress {
    /// Begins to tell of `title`.
    #[must_use]
    pub fn new(title: &str) -> Self {
        let attended = Term::stderr().features().is_attended();
        let plain = (!attended).then(|| Box::new(io::stderr()) as Box<dyn Write>);
        Self::to(title, plain, Box::new(io::stdout()))
    }

    /// Returns a progress view that shows nothing.
    #[must_use]
    pub fn silent() -> Self {
        Self::to("", Some(Box::new(io::sink())), Box::new(io::sink()))
    }

    fn to(title: &str, plain: Option<Box<dyn Write>>, out: Box<dyn Write>) -> Self {
        let bar = ProgressBar::new_spinner().with_style(style()).with_prefix(title.to_owned());
        let hidden = plain.is_some();
        bar.set_draw_target(if hidden {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        });
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar, title: title.into(), plain, out, next: Instant::now() + PLAIN_INTERVAL }
    }

    /// Says what is being done now.
    pub fn now(&mut self, what: &str) {
        self.bar.set_message(what.to_owned());
        if let Some(plain) = self.plain.as_mut().filter(|_| Instant::now() >= self.next) {
            self.next = Instant::now() + PLAIN_INTERVAL;
            drop(writeln!(plain, "cassata: {}: {what}", self.title));
        }
    }

    /// Writes a line that stays, on standard output.
    pub fn line(&mut self, text: &str) {
        let out = &mut self.out;
        // A reader that closed the pipe has read enough.
        self.bar.suspend(|| drop(writeln!(out, "{text}")));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {prefix}  {elapsed}  {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}
