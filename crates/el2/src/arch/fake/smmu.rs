//! An SMMU that takes what is written and answers, as far as it can do what it is asked for, and the
//! configuration space of PCI functions.

use abi::system::SMMU_SIZE;
use std::collections::BTreeMap;

const CR0: u64 = 0x20;
const CR0ACK: u64 = 0x24;
const GBPA: u64 = 0x44;
const UPDATE: u64 = 1 << 31;
const CMDQ_PROD: u64 = 0x98;
const CMDQ_CONS: u64 = 0x9c;

/// See the module.
pub struct Smmu {
    base: u64,
    /// The registers, by their offsets.
    pub registers: BTreeMap<u64, u64>,
    /// A register that never changes.
    pub stuck: Option<u64>,
    /// What was written, in order: addresses of registers and of what else is no interrupt controller's.
    pub written: Vec<(u64, u64)>,
}

impl Smmu {
    /// Makes an SMMU that can do all that is asked for, as firmware leaves it: it lets everything through.
    pub fn new(base: u64) -> Self {
        let identification = [
            // S2P, TTF, COHACC.
            (0x00, 1 | 1 << 3 | 1 << 4),
            // 2^19 commands and faults, 16 bits of a stream.
            (0x04, 19 << 21 | 19 << 16 | 16),
            // Pages of 4 KiB, 44 bits.
            (0x14, 1 << 4 | 4),
        ];
        let firmware = [(CR0, 1), (CR0ACK, 1)];
        let registers = identification.into_iter().chain(firmware).collect();
        Self { base, registers, stuck: None, written: Vec::new() }
    }

    /// Reads a register.
    pub fn read(&self, address: u64) -> u32 {
        let offset = address.wrapping_sub(self.base);
        self.registers.get(&offset).map_or(0, |&value| value as u32)
    }

    /// Writes a register, or something else.
    pub fn write(&mut self, address: u64, value: u64) {
        self.written.push((address, value));
        let offset = address.wrapping_sub(self.base);
        if offset >= SMMU_SIZE {
            return;
        }
        let follows = match offset {
            CR0 => CR0ACK,
            CMDQ_PROD => CMDQ_CONS,
            _ => offset,
        };
        let is_new = offset != GBPA || value & UPDATE != 0;
        self.registers.insert(offset, value);
        if is_new && self.stuck != Some(follows) {
            self.registers.insert(follows, value & !if offset == GBPA { UPDATE } else { 0 });
        }
    }
}
