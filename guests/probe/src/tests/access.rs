//! Accesses to emulated devices: what the instruction says is what happens.

use crate::arch::forms;
use crate::gic::{FREE_SPIS, offset::IPRIORITYR};
use crate::platform::GICD;
use crate::suite::{Check, Done, Test};
use crate::{ensure_eq, pass};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "access.loads", body: loads },
    Test { name: "access.stores", body: stores },
    Test { name: "access.zero_register", body: zero_register },
];

/// Priorities of four unused SPIs: registers that keep what is
/// written, with signs that differ.
const AT: u64 = IPRIORITYR + (FREE_SPIS.start as u64).next_multiple_of(4);
const BYTES: [u8; 4] = [0x80, 0x28, 0xf8, 0xa0];
const WORD: u64 = u32::from_le_bytes(BYTES) as u64;

fn prepare() {
    GICD.write32(AT, u32::from_le_bytes(BYTES));
}

fn loads() -> Check<Done> {
    prepare();
    for (offset, byte) in (AT..).zip(BYTES) {
        let (zero, sign) = (u64::from(byte), i64::from(byte as i8) as u64);
        ensure_eq!(forms::ldrb(GICD, offset), zero, "LDRB of {byte:#x}");
        ensure_eq!(forms::ldarb(GICD, offset), zero, "LDARB of {byte:#x}");
        ensure_eq!(forms::ldrsb_w(GICD, offset), sign & 0xffff_ffff, "LDRSB W of {byte:#x}");
        ensure_eq!(forms::ldrsb_x(GICD, offset), sign, "LDRSB X of {byte:#x}");
    }
    ensure_eq!(forms::ldr_w(GICD, AT), WORD, "LDR W");
    ensure_eq!(forms::ldur_w(GICD, AT), WORD, "LDUR W");
    ensure_eq!(forms::ldar_w(GICD, AT), WORD, "LDAR W");
    ensure_eq!(forms::ldrsw(GICD, AT), WORD | 0xffff_ffff << 32, "LDRSW");
    pass!("8 forms")
}

fn stores() -> Check<Done> {
    prepare();
    // What lies above the stored bytes in the register must not matter.
    forms::strb(GICD, AT + 1, 0xdead_beef_1234_5640);
    ensure_eq!(forms::ldr_w(GICD, AT), WORD & !0xff00 | 0x4000, "STRB");
    for (name, store) in [("STR", forms::str_w as fn(_, _, _)), ("STLR", forms::stlr_w)] {
        prepare();
        store(GICD, AT, 0xdead_beef_5068_1890);
        ensure_eq!(forms::ldr_w(GICD, AT), 0x5068_1890, "{name} W");
    }
    pass!("3 forms")
}

/// Register number 31 is no register here, neither SP nor X30.
fn zero_register() -> Check<Done> {
    prepare();
    for (before, after) in forms::load_to_zero_register(GICD, AT) {
        ensure_eq!(after, before, "a register after a load to WZR");
    }
    forms::str_wzr(GICD, AT, 0xdead_beef);
    ensure_eq!(forms::ldr_w(GICD, AT), 0, "after a store of WZR");
    pass!("")
}
