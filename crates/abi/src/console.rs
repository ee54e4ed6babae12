//! Many consoles over one UART.
//!
//! A stream of bytes in which [`SWITCH`] and a channel byte say whose bytes
//! follow; a [`SWITCH`] that is meant is sent twice. Channel 0 is the
//! hypervisor's own log, channel n + 1 the console of VM n. The same framing
//! serves both directions. Text passes unchanged, so a plain terminal still
//! shows something readable.

/// Introduces a channel byte (ASCII unit separator).
pub const SWITCH: u8 = 0x1f;
/// Channel byte of channel 0; channel n is `CHANNEL_BASE + n`.
pub const CHANNEL_BASE: u8 = b'0';
/// The hypervisor's own channel.
pub const HYPERVISOR: u8 = 0;

/// Takes a framed stream apart.
#[derive(Clone, Debug, Default)]
pub struct Demux {
    channel: u8,
    after_switch: bool,
}

impl Demux {
    /// Consumes one byte; answers the byte of content it completes and its
    /// channel. A channel byte that is none leaves the channel as it was.
    pub fn push(&mut self, byte: u8) -> Option<(u8, u8)> {
        if !self.after_switch {
            self.after_switch = byte == SWITCH;
            return (byte != SWITCH).then_some((self.channel, byte));
        }
        self.after_switch = false;
        if byte == SWITCH {
            return Some((self.channel, byte));
        }
        let channel = byte.wrapping_sub(CHANNEL_BASE);
        if usize::from(channel) <= crate::MAX_VMS {
            self.channel = channel;
        }
        None
    }
}

/// Frames bytes for one stream; remembers which channel is open.
#[derive(Clone, Debug, Default)]
pub struct Mux {
    open: Option<u8>,
}

impl Mux {
    /// Nothing sent yet: the first byte will name its channel.
    #[must_use]
    pub const fn new() -> Self {
        Self { open: None }
    }

    /// Sends one byte of `channel`: calls `put` one to four times.
    pub fn push(&mut self, channel: u8, byte: u8, mut put: impl FnMut(u8)) {
        if self.open != Some(channel) {
            put(SWITCH);
            put(CHANNEL_BASE + channel);
            self.open = Some(channel);
        }
        if byte == SWITCH {
            put(SWITCH);
        }
        put(byte);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn what_goes_in_comes_out_whatever_the_bytes() {
        let sent: Vec<(u8, u8)> =
            (0..4000u32).map(|i| ((i / 7 % 9) as u8, (i * 31 % 256) as u8)).collect();
        let mut wire = Vec::new();
        let mut mux = Mux::new();
        for &(channel, byte) in &sent {
            mux.push(channel, byte, |b| wire.push(b));
        }
        let mut demux = Demux::default();
        let got: Vec<_> = wire.into_iter().filter_map(|b| demux.push(b)).collect();
        assert_eq!(got, sent);
    }

    #[test]
    fn an_unknown_channel_changes_nothing() {
        let mut demux = Demux::default();
        let wire = [SWITCH, CHANNEL_BASE + 2, b'a', SWITCH, 0xff, b'b'];
        let got: Vec<_> = wire.into_iter().filter_map(|b| demux.push(b)).collect();
        assert_eq!(got, [(2, b'a'), (2, b'b')]);
    }
}
