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

/// What an operator asks EL2 for, on the hypervisor's channel: two bytes each. The first one has bit 7
/// clear and says of which vCPU or VM it is, by its index; the second one says the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A vCPU goes to a pCPU, if it may: [`crate::service::MIGRATE`] from outside.
    Move {
        /// Index of the vCPU in the system, below 128.
        vcpu: u8,
        /// Index of the pCPU, below 64.
        pcpu: u8,
    },
    /// A VM has another migration policy from now on, if it may.
    Policy {
        /// Index of the VM, below 128.
        vm: u8,
        /// Number of the policy, below 64.
        policy: u8,
    },
}

/// In the second byte of an [`Order`].
mod order {
    pub const SECOND: u8 = 1 << 7;
    pub const POLICY: u8 = 1 << 6;
}

impl Order {
    /// Returns the bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; 2] {
        let (of, what, operand) = match self {
            Self::Move { vcpu, pcpu } => (vcpu, 0, pcpu),
            Self::Policy { vm, policy } => (vm, order::POLICY, policy),
        };
        [of & !order::SECOND, order::SECOND | what | operand & (order::POLICY - 1)]
    }
}

/// Puts orders together.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    of: u8,
}

impl Orders {
    /// Consumes one byte of the hypervisor's channel; returns the order that it completes.
    pub fn push(&mut self, byte: u8) -> Option<Order> {
        if byte & order::SECOND == 0 {
            self.of = byte;
            return None;
        }
        let (of, operand) = (self.of, byte & (order::POLICY - 1));
        Some(if byte & order::POLICY == 0 {
            Order::Move { vcpu: of, pcpu: operand }
        } else {
            Order::Policy { vm: of, policy: operand }
        })
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
    fn an_order_comes_out_as_it_went_in() {
        let mut orders = Orders::default();
        // A lost byte spoils no later order.
        assert_eq!(orders.push(b'x'), None);
        for order in [Order::Move { vcpu: 31, pcpu: 15 }, Order::Policy { vm: 7, policy: 63 }] {
            let [first, second] = order.bytes();
            assert_eq!((orders.push(first), orders.push(second)), (None, Some(order)));
        }
    }

    #[test]
    fn an_unknown_channel_changes_nothing() {
        let mut demux = Demux::default();
        let wire = [SWITCH, CHANNEL_BASE + 2, b'a', SWITCH, 0xff, b'b'];
        let got: Vec<_> = wire.into_iter().filter_map(|b| demux.push(b)).collect();
        assert_eq!(got, [(2, b'a'), (2, b'b')]);
    }
}
