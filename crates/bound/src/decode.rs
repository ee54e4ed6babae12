//! What an instruction does to the flow of control.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Opcode, Operand};

/// Bytes of an instruction (Arm DDI 0487, section C2.1: A64 instructions have a fixed length).
pub const SIZE: u64 = 4;

/// What comes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next instruction.
    Next,
    /// The next instruction; this one reads ISR_EL1, so EL2 sees whether an interrupt is pending.
    Look,
    /// The next instruction; this one is a load that begins an exclusive access.
    LoadExclusive,
    /// The next instruction; this one is a store that ends an exclusive access.
    StoreExclusive,
    /// An address.
    Jump(u64),
    /// An address or the next instruction.
    Branch(u64),
    /// A function, then the next instruction.
    Call(u64),
    /// A function whose address is in a register, then the next instruction.
    CallRegister,
    /// An address that is in a register.
    JumpRegister,
    /// The caller.
    Return,
    /// The guest.
    ExceptionReturn,
    /// Nothing: the instruction is one that stops.
    Stop,
    /// Not known: this is no instruction.
    Undecoded,
}

/// ISR_EL1 as op0:op1:CRn:CRm:op2 without the upper bit of op0, which is always set (DDI 0487,
/// D19.2: 3, 0, 12, 1, 0).
const ISR_EL1: u16 = 1 << 14 | 12 << 7 | 1 << 3;

/// Decodes the instruction `word` that stands at `address`.
#[must_use]
pub fn flow(address: u64, word: u32) -> Flow {
    let bytes = word.to_le_bytes();
    let Ok(instruction) = InstDecoder::default().decode(&mut U8Reader::new(&bytes)) else {
        return Flow::Undecoded;
    };
    let target = || {
        let offset = instruction.operands.iter().find_map(|operand| match operand {
            Operand::PCOffset(offset) => Some(*offset),
            _ => None,
        });
        offset.map(|offset| address.wrapping_add_signed(offset))
    };
    let to = |flow: fn(u64) -> Flow| target().map_or(Flow::Undecoded, flow);
    match instruction.opcode {
        Opcode::B => to(Flow::Jump),
        Opcode::Bcc(_) | Opcode::CBZ | Opcode::CBNZ | Opcode::TBZ | Opcode::TBNZ => {
            to(Flow::Branch)
        }
        Opcode::BL => to(Flow::Call),
        Opcode::BLR => Flow::CallRegister,
        Opcode::BR => Flow::JumpRegister,
        Opcode::RET => Flow::Return,
        Opcode::ERET => Flow::ExceptionReturn,
        Opcode::UDF | Opcode::BRK | Opcode::HLT | Opcode::Invalid => Flow::Stop,
        Opcode::LDXR | Opcode::LDXRB | Opcode::LDXRH | Opcode::LDXP => Flow::LoadExclusive,
        Opcode::LDAXR | Opcode::LDAXRB | Opcode::LDAXRH | Opcode::LDAXP => Flow::LoadExclusive,
        Opcode::STXR | Opcode::STXRB | Opcode::STXRH | Opcode::STXP => Flow::StoreExclusive,
        Opcode::STLXR | Opcode::STLXRB | Opcode::STLXRH | Opcode::STLXP => Flow::StoreExclusive,
        Opcode::MRS if instruction.operands.contains(&Operand::SystemReg(ISR_EL1)) => Flow::Look,
        Opcode::SMC => Flow::Next,
        _ if may_branch(word) => Flow::Undecoded,
        _ => Flow::Next,
    }
}

/// What an instruction leaves in X2, the third argument of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Third {
    /// What was there.
    Kept,
    /// A constant.
    Constant(u64),
    /// Something else, maybe.
    Unknown,
}

/// Returns what an instruction other than a call leaves in X2.
#[must_use]
pub fn third_argument(word: u32) -> Third {
    const X2: u32 = 2;
    let field = |lowest: u32| word >> lowest & 31;
    let is_move = word & 0x7f80_0000 == 0x5280_0000;
    if is_move && field(0) == X2 {
        return Third::Constant(u64::from(word >> 5 & 0xffff) << (16 * (word >> 21 & 0b11)));
    }
    // Wherever a register that is written may stand: the destination; a second one that is loaded;
    // a base that is written back (DDI 0487, C4.1).
    let accesses_memory = word & 0x0a00_0000 == 0x0800_0000;
    let by_pairs = word & 0x3a00_0000 == 0x2800_0000 || word & 0x3f00_0000 == 0x0800_0000;
    let names = field(0) == X2 || accesses_memory && field(5) == X2 || by_pairs && field(10) == X2;
    if names { Third::Unknown } else { Third::Kept }
}

/// What an instruction does to the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Nothing.
    None,
    /// The stack gets so many bytes larger.
    Down(u64),
    /// It gets so many bytes smaller.
    Up(u64),
    /// The stack pointer is set to what the instruction does not say.
    Unknown,
}

/// Decodes what the instruction `word` does to the stack pointer.
#[must_use]
pub fn stack(word: u32) -> Move {
    const SP: u16 = 31;
    let bytes = word.to_le_bytes();
    // That this is no instruction is what `flow` says.
    let Ok(instruction) = InstDecoder::default().decode(&mut U8Reader::new(&bytes)) else {
        return Move::None;
    };
    let up = |offset: i64| match offset {
        0 => Move::None,
        1.. => Move::Up(offset.unsigned_abs()),
        _ => Move::Down(offset.unsigned_abs()),
    };
    let [first, second, third, _] = instruction.operands;
    // Accesses that write their base back.
    for operand in instruction.operands {
        match operand {
            Operand::RegPreIndex(SP, offset, true) | Operand::RegPostIndex(SP, offset) => {
                return up(offset.into());
            }
            Operand::RegPostIndexReg(SP, _) => return Move::Unknown,
            _ => {}
        }
    }
    if !matches!(first, Operand::RegisterOrSP(_, SP)) {
        return Move::None;
    }
    let constant = match third {
        Operand::Immediate(value) => Some(i64::from(value)),
        Operand::Imm64(value) => i64::try_from(value).ok(),
        Operand::ImmShift(value, shift) => Some(i64::from(value) << shift),
        _ => None,
    };
    let is_own = matches!(second, Operand::RegisterOrSP(_, SP));
    match (instruction.opcode, constant.filter(|_| is_own)) {
        (Opcode::ADD, Some(bytes)) => up(bytes),
        (Opcode::SUB, Some(bytes)) => up(-bytes),
        _ => Move::Unknown,
    }
}

/// Returns true for branches and what generates exceptions, but not for system instructions
/// (DDI 0487, C4.1.93): of those, only the ones that [`flow`] names are known to do what it says.
fn may_branch(word: u32) -> bool {
    const SYSTEM: u32 = 0b11_0101_0100;
    word >> 26 & 0b111 == 0b101 && word >> 22 != SYSTEM
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_third_argument_is_found() {
        for (word, left, text) in [
            (0x5280_8002, Third::Constant(0x400), "mov w2, #0x400"),
            (0xd2a0_0022, Third::Constant(0x1_0000), "mov x2, #0x10000"),
            (0xf280_0022, Third::Unknown, "movk x2, #1"),
            (0x9100_0402, Third::Unknown, "add x2, x0, #1"),
            (0xa940_0801, Third::Unknown, "ldp x1, x2, [x0]"),
            (0xf800_8441, Third::Unknown, "str x1, [x2], #8"),
            (0x9100_0441, Third::Kept, "add x1, x2, #1"),
            (0xf940_0001, Third::Kept, "ldr x1, [x0]"),
            (0xb900_0be8, Third::Kept, "str w8, [sp, #8]"),
        ] {
            assert_eq!(third_argument(word), left, "{text}");
        }
    }

    #[test]
    fn the_stack_pointer_is_followed() {
        for (word, expected, text) in [
            (0xd503_201f, Move::None, "nop"),
            (0xd100_83ff, Move::Down(32), "sub sp, sp, #32"),
            (0xd140_07ff, Move::Down(4096), "sub sp, sp, #1, lsl #12"),
            (0x9100_83ff, Move::Up(32), "add sp, sp, #32"),
            (0x9140_0fff, Move::Up(3 * 4096), "add sp, sp, #3, lsl #12"),
            (0xa9bf_7bfd, Move::Down(16), "stp x29, x30, [sp, #-16]!"),
            (0xa8c1_7bfd, Move::Up(16), "ldp x29, x30, [sp], #16"),
            (0xf81f_0ffe, Move::Down(16), "str x30, [sp, #-16]!"),
            (0xf841_07fe, Move::Up(16), "ldr x30, [sp], #16"),
            (0x6dbf_27e8, Move::Down(16), "stp d8, d9, [sp, #-16]!"),
            (0xa901_7bfd, Move::None, "stp x29, x30, [sp, #16]"),
            (0xf940_03e0, Move::None, "ldr x0, [sp]"),
            (0xf841_0c20, Move::None, "ldr x0, [x1, #16]!"),
            (0x9100_43e0, Move::None, "add x0, sp, #16"),
            (0xeb3f_63ff, Move::None, "cmp sp, xzr"),
            (0x9100_003f, Move::Unknown, "mov sp, x1"),
            (0xd100_401f, Move::Unknown, "sub sp, x0, #16"),
            (0xcb20_63ff, Move::Unknown, "sub sp, sp, x0"),
            (0x927c_ec1f, Move::Unknown, "and sp, x0, #-16"),
        ] {
            assert_eq!(stack(word), expected, "{text}");
        }
    }

    /// Each word as GNU as assembles it.
    #[test]
    fn the_flow_of_control_is_the_architecture_s() {
        for (word, flow_at_0x100, text) in [
            (0xd503_201f, Flow::Next, "nop"),
            (0xd538_c100, Flow::Look, "mrs x0, isr_el1"),
            (0xd538_c003, Flow::Next, "mrs x3, vbar_el1"),
            (0x1400_0002, Flow::Jump(0x108), "b .+8"),
            (0x17ff_ffff, Flow::Jump(0xfc), "b .-4"),
            (0x5400_0040, Flow::Branch(0x108), "b.eq .+8"),
            (0xb400_0040, Flow::Branch(0x108), "cbz x0, .+8"),
            (0x35ff_ffe0, Flow::Branch(0xfc), "cbnz w0, .-4"),
            (0x3610_0060, Flow::Branch(0x10c), "tbz w0, #2, .+12"),
            (0xb710_0060, Flow::Branch(0x10c), "tbnz x0, #34, .+12"),
            (0x9400_0004, Flow::Call(0x110), "bl .+16"),
            (0xd63f_0100, Flow::CallRegister, "blr x8"),
            (0xd61f_0060, Flow::JumpRegister, "br x3"),
            (0xd65f_03c0, Flow::Return, "ret"),
            (0xd69f_03e0, Flow::ExceptionReturn, "eret"),
            (0xd420_0020, Flow::Stop, "brk #1"),
            (0xd400_0003, Flow::Next, "smc #0"),
            (0xc85f_fc01, Flow::LoadExclusive, "ldaxr x1, [x0]"),
            (0xc802_fc01, Flow::StoreExclusive, "stlxr w2, x1, [x0]"),
            (0xd400_0002, Flow::Undecoded, "hvc #0"),
            (0x0000_0000, Flow::Stop, "udf #0"),
            (0xd63f_0bff, Flow::Undecoded, "blraaz xzr"),
        ] {
            assert_eq!(flow(0x100, word), flow_at_0x100, "{text}");
        }
    }
}
