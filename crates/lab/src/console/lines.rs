//! The lines of all consoles, in the order they were completed.

use std::collections::{BTreeMap, VecDeque};

/// Lines kept; older ones are forgotten (the log files have them).
const KEPT: usize = 1 << 16;
/// A line is cut here, bytes: a guest that never ends one must not fill us.
const LONGEST: usize = 4096;

/// One line of one console, cleaned of control characters and escape sequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The channel ([`abi::console`]).
    pub channel: u8,
    /// The text, without the line end.
    pub text: String,
}

/// How far a reader has read; the default is the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor(u64);

/// All consoles' lines.
#[derive(Default)]
pub struct Lines {
    kept: VecDeque<Line>,
    next: u64,
    open: BTreeMap<u8, Vec<u8>>,
    ended: bool,
}

impl Lines {
    /// Takes a byte of a channel.
    pub fn push(&mut self, channel: u8, byte: u8) {
        let open = self.open.entry(channel).or_default();
        if byte != b'\n' {
            open.push(byte);
        }
        if byte == b'\n' || open.len() == LONGEST {
            let bytes = std::mem::take(open);
            self.complete(channel, &bytes);
        }
    }

    /// No more will come: what stands unfinished counts as lines.
    pub fn end(&mut self) {
        for (channel, bytes) in std::mem::take(&mut self.open) {
            if !bytes.is_empty() {
                self.complete(channel, &bytes);
            }
        }
        self.ended = true;
    }

    pub(super) fn ended(&self) -> bool {
        self.ended
    }

    /// Returns the lines since `cursor`, which moves on.
    pub fn since(&self, cursor: &mut Cursor) -> Vec<Line> {
        let missing = self.next.saturating_sub(cursor.0);
        let skip = self.kept.len().saturating_sub(usize::try_from(missing).unwrap_or(usize::MAX));
        *cursor = Cursor(self.next);
        self.kept.iter().skip(skip).cloned().collect()
    }

    fn complete(&mut self, channel: u8, bytes: &[u8]) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(Line { channel, text: clean(bytes) });
        self.next += 1;
    }
}

/// Text that may be shown on any terminal without moving its cursor.
fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain = console::strip_ansi_codes(&text);
    plain
        .chars()
        .map(|c| if c == '\t' { ' ' } else { c })
        .filter(|c| !c.is_control())
        .collect::<String>()
        .trim_end()
        .to_owned()
}
