//! The keys that are for us and not for the guest: Ctrl-], and one behind it.
//!
//! Ctrl-C must reach the guest, whose shell needs it; Ctrl-] is what telnet and virsh use.

/// What the prefix key sends (ASCII group separator).
const PREFIX: u8 = 0x1d;

/// Takes our keys out of what is typed.
#[derive(Clone, Debug)]
pub(super) struct Escape {
    guest: String,
    /// The prefix was the last key.
    pending: bool,
}

/// What is asked of us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// The end.
    Quit,
    /// To be told the keys.
    Help,
}

impl Escape {
    pub(super) fn new(guest: &str) -> Self {
        Self { guest: guest.into(), pending: false }
    }

    /// Returns what to know before one types.
    pub(super) fn help(&self) -> String {
        format!(
            "this terminal is the console of {}; Ctrl-] q ends the run, Ctrl-] Ctrl-] types one \
             Ctrl-], Ctrl-] ? shows this; Ctrl-C goes to the guest",
            self.guest
        )
    }

    /// Takes one key: what it types, or what it asks of us. A key that means nothing behind the
    /// prefix shows the help, and types nothing.
    pub(super) fn key(&mut self, key: u8) -> (Option<u8>, Option<Wish>) {
        if !std::mem::take(&mut self.pending) {
            self.pending = key == PREFIX;
            return ((key != PREFIX).then_some(key), None);
        }
        match key {
            PREFIX => (Some(PREFIX), None),
            b'q' | b'Q' => (None, Some(Wish::Quit)),
            _ => (None, Some(Wish::Help)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `keys` type, and what they ask.
    fn typed(keys: &[u8]) -> (Vec<u8>, Vec<Wish>) {
        let mut escape = Escape::new("linux");
        let all: Vec<_> = keys.iter().map(|&key| escape.key(key)).collect();
        (all.iter().filter_map(|one| one.0).collect(), all.iter().filter_map(|one| one.1).collect())
    }

    #[test]
    fn everything_but_the_prefix_is_typed() {
        let all: Vec<u8> = (0..=255).filter(|&key| key != PREFIX).collect();
        assert_eq!(typed(&all), (all.clone(), vec![]));
    }

    #[test]
    fn the_prefix_makes_one_key_ours() {
        assert_eq!(typed(b"a\x1dqb"), (b"ab".to_vec(), vec![Wish::Quit]));
        assert_eq!(typed(b"\x1d\x1dq"), (b"\x1dq".to_vec(), vec![]));
        assert_eq!(typed(b"\x1d?\x1dx"), (vec![], vec![Wish::Help, Wish::Help]));
    }
}
