//! What comes over the one UART: taken apart, made lines of, understood.

use abi::MAX_VMS;
use abi::console::{Demux, Mux};
use lab::console::{Cursor, Lines};
use lab::guests::Transcript;

/// The first byte says how many VMs there are; the others are what the UART carried.
pub fn hear(input: &[u8]) {
    let (vms, wire) = input.split_first().unwrap_or((&0, &[]));
    let (mut demux, mut lines, mut content) = (Demux::default(), Lines::default(), Vec::new());
    for (channel, byte) in wire.iter().filter_map(|&byte| demux.push(byte)) {
        assert!(usize::from(channel) <= MAX_VMS, "channel {channel}");
        lines.push(channel, byte);
        content.push((channel, byte));
    }
    lines.end();
    again(&content);
    let lines = lines.since(&mut Cursor::default());
    assert!(lines.iter().all(|line| !line.text.contains(char::is_control)));
    let mut said = Transcript::new(usize::from(*vms) % (MAX_VMS + 1));
    said.hear(&lines);
    for guest in &said.guests {
        drop(guest.probe.objection(&[]));
        assert!(guest.linux.wake_ups_us.percentile(1_000) <= guest.linux.wake_ups_us.max());
    }
}

/// What is framed anew comes out as it went in.
fn again(content: &[(u8, u8)]) {
    let (mut mux, mut wire) = (Mux::new(), Vec::new());
    content.iter().for_each(|&(channel, byte)| mux.push(channel, byte, |b| wire.push(b)));
    let mut demux = Demux::default();
    let out: Vec<_> = wire.into_iter().filter_map(|byte| demux.push(byte)).collect();
    assert_eq!(out, content);
}
