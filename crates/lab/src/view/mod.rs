//! What a running system looks like, while it runs.
//!
//! Everything goes to standard error: standard output is for results.

mod live;
mod plain;
mod scene;

pub use live::Live;
pub use plain::Plain;
pub use scene::Scene;

use console::{Color, Style, Term};

/// Shows a running system.
pub trait View {
    /// May show the scene; called many times a second, it decides how often.
    fn show(&mut self, scene: &Scene);

    /// Leaves the terminal in good order; the last scene stays.
    fn finish(&mut self) {}
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl View for Silent {
    fn show(&mut self, _: &Scene) {}
}

/// A view that is redrawn in place when standard error is a terminal, else
/// one plain line now and then.
#[must_use]
pub fn choose(title: &str) -> Box<dyn View> {
    let term = Term::buffered_stderr();
    if term.features().is_attended() {
        Box::new(Live::new(title, term))
    } else {
        Box::new(Plain::new(std::io::stderr()))
    }
}

/// The colour of VM `vm`; none where colours are not wanted (`NO_COLOR`).
#[must_use]
pub fn vm_style(vm: usize) -> Style {
    const COLORS: [Color; 6] =
        [Color::Cyan, Color::Yellow, Color::Green, Color::Magenta, Color::Blue, Color::Red];
    Style::new().for_stderr().fg(COLORS[vm % COLORS.len()])
}

#[cfg(test)]
mod tests;
