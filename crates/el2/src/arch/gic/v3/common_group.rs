//! Registers of the loaded guest's CPU interface that concern both groups of interrupts: what a
//! guest reads and writes of them where they trap (ICH_HCR_EL2.TC; IHI 0069, section 12.4).

use crate::arch::sysreg::{read_sysreg, write_sysreg};

/// ICH_VMCR_EL2.VCBPR and VEOIM, and where ICC_CTLR_EL1 has them: CBPR, EOImode.
const CONTROLS: [(u32, u32); 2] = [(4, 0), (9, 1)];
/// ICH_VMCR_EL2.VPMR.
const MASK_SHIFT: u32 = 24;
const MASK: u64 = 0xff << MASK_SHIFT;
/// What ICC_RPR_EL1 reads while no interrupt is active.
const IDLE_PRIORITY: u64 = 0xff;

/// Returns what a guest reads in ICC_PMR_EL1.
pub fn priority_mask() -> u64 {
    (read_sysreg!("ich_vmcr_el2") & MASK) >> MASK_SHIFT
}

/// Writes what a guest writes into ICC_PMR_EL1.
pub fn set_priority_mask(value: u64) {
    let bits = (read_sysreg!("ich_vtr_el2") >> 29 & 7) + 1;
    let implemented = 0xff << (8 - bits) & 0xff;
    let others = read_sysreg!("ich_vmcr_el2") & !MASK;
    // SAFETY: what the loaded guest takes; EL2 takes no virtual interrupts.
    unsafe { write_sysreg!("ich_vmcr_el2", others | (value & implemented) << MASK_SHIFT) };
}

/// Returns what a guest reads in ICC_CTLR_EL1.
pub fn control() -> u64 {
    let (vmcr, vtr) = (read_sysreg!("ich_vmcr_el2"), read_sysreg!("ich_vtr_el2"));
    // PRIbits; IDbits; SEIS; A3V.
    let fixed = (vtr >> 29 & 7) << 8
        | (vtr >> 23 & 7) << 11
        | (vtr >> 22 & 1) << 14
        | (vtr >> 21 & 1) << 15;
    CONTROLS.iter().fold(fixed, |value, (own, shown)| value | (vmcr >> own & 1) << shown)
}

/// Writes what a guest writes into ICC_CTLR_EL1.
pub fn set_control(value: u64) {
    let vmcr = CONTROLS.iter().fold(read_sysreg!("ich_vmcr_el2"), |vmcr, (own, shown)| {
        vmcr & !(1 << own) | (value >> shown & 1) << own
    });
    // SAFETY: as above.
    unsafe { write_sysreg!("ich_vmcr_el2", vmcr) };
}

/// Returns what a guest reads in ICC_RPR_EL1: the priority of the most urgent interrupt that it
/// has taken and not ended.
pub fn running_priority() -> u64 {
    let bits = (read_sysreg!("ich_vtr_el2") >> 26 & 7) + 1;
    let mut active = [read_sysreg!("ich_ap0r0_el2") | read_sysreg!("ich_ap1r0_el2"), 0, 0, 0];
    if bits > 5 {
        active[1] = read_sysreg!("ich_ap0r1_el2") | read_sysreg!("ich_ap1r1_el2");
    }
    if bits > 6 {
        active[2] = read_sysreg!("ich_ap0r2_el2") | read_sysreg!("ich_ap1r2_el2");
        active[3] = read_sysreg!("ich_ap0r3_el2") | read_sysreg!("ich_ap1r3_el2");
    }
    let mut levels = (0..).zip(active).filter(|(_, active)| *active != 0);
    levels.next().map_or(IDLE_PRIORITY, |(index, active)| {
        (32 * index + u64::from(active.trailing_zeros())) << (8 - bits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::fake::machine;
    use crate::arch::fake::registers::Register;
    use abi::system::Board;
    use zerocopy::FromZeros;

    fn set(name: &str, value: u64) {
        machine::with(|machine| machine.cores[0].registers[Register::named(name).0] = value);
    }

    /// ICH_VTR_EL2 with as many bits of priority, and of preemption.
    fn install(bits: u64) {
        machine::install(Board::new_zeroed());
        set("ich_vtr_el2", (bits - 1) << 29 | (bits - 1) << 26 | 1 << 23 | 1 << 21 | 3);
    }

    #[test]
    fn a_mask_keeps_the_bits_that_there_are() {
        install(5);
        set("ich_vmcr_el2", 0x213);
        set_priority_mask(0xa7);
        assert_eq!(priority_mask(), 0xa0);
        assert_eq!(read_sysreg!("ich_vmcr_el2"), 0xa000_0213, "the rest stays");
    }

    #[test]
    fn controls_are_the_guests_and_the_rest_is_fixed() {
        const FIXED: u64 = 4 << 8 | 1 << 11 | 1 << 15;
        install(5);
        set("ich_vmcr_el2", 0xf800_0003);
        for value in [0b00, 0b01, 0b10, 0b11] {
            set_control(0xffff_fffc | value);
            assert_eq!(control(), FIXED | value);
            let own = (value & 1) << 4 | (value >> 1) << 9;
            assert_eq!(read_sysreg!("ich_vmcr_el2"), 0xf800_0003 | own);
        }
    }

    #[test]
    fn the_most_urgent_priority_of_both_groups_runs() {
        install(5);
        assert_eq!(running_priority(), 0xff);
        set("ich_ap1r0_el2", 1 << 20 | 1 << 30);
        assert_eq!(running_priority(), 0xa0);
        set("ich_ap0r0_el2", 1 << 8);
        assert_eq!(running_priority(), 0x40);

        install(7);
        set("ich_ap1r3_el2", 1 << 31);
        assert_eq!(running_priority(), 0xfe);
        set("ich_ap0r1_el2", 1 << 1);
        assert_eq!(running_priority(), 33 << 1);
        install(6);
        set("ich_ap1r1_el2", 1);
        assert_eq!(running_priority(), 32 << 2);
    }
}
