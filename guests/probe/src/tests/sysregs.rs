//! System registers and instructions: what is there works, what is not is
//! undefined, and nothing a guest can encode takes it or its host down.

use crate::arch::encodings::Encoding;
use crate::arch::fault::{self, class};
use crate::arch::{cpu, sysreg::read};
use crate::suite::{Check, Done, Test};
use crate::{ensure, ensure_eq, fail, gic, irq, needs_cassata, pass};

/// The tests of this file.
pub const TESTS: &[Test] = &[
    Test { name: "sysregs.identification", body: identification },
    Test { name: "sysregs.every_read", body: every_read },
    Test { name: "sysregs.higher_levels", body: higher_levels },
    Test { name: "sysregs.higher_instructions", body: higher_instructions },
    Test { name: "sysregs.hidden", body: hidden },
    Test { name: "sysregs.debug", body: debug },
    Test { name: "sysregs.pmu", body: pmu },
    Test { name: "sysregs.own_exceptions", body: own_exceptions },
    Test { name: "sysregs.cache_by_set_way", body: cache_by_set_way },
    Test { name: "sysregs.translation", body: translation },
];

/// The identification space may be read throughout; reserved ones read as zero.
fn identification() -> Check<Done> {
    let space = (1..8).flat_map(|crm| (0..8).map(move |op2| Encoding::new(3, 0, 0, crm, op2)));
    for register in space {
        // AArch32 identification registers are UNKNOWN without AArch32.
        if let Err(fault) = register.read() {
            fail!("{register} gives exception class {:#x}", fault.class);
        }
    }
    ensure!(
        [1, 2].contains(&(read::id_aa64pfr0_el1() & 0xf)),
        "ID_AA64PFR0_EL1.EL0 is neither 1 nor 2"
    );
    let interface = u64::from(!gic::IS_V2);
    ensure_eq!(read::id_aa64pfr0_el1() >> 24 & 0xf, interface, "ID_AA64PFR0_EL1.GIC");
    ensure!(read::midr_el1() != 0, "MIDR_EL1 is 0");
    pass!("MIDR_EL1 {:#x}", read::midr_el1())
}

/// Every register of EL1 and EL0 is read: a value, or an exception at EL1 of
/// the class that the architecture has for it. Nothing else, whatever it is.
fn every_read() -> Check<Done> {
    cpu::mask_irq();
    let (mut values, mut undefined) = (0, 0);
    for (op0, op1) in [(3, 0), (3, 1), (3, 2), (3, 3), (2, 0), (2, 1), (2, 3)] {
        for register in Encoding::all(op0, op1) {
            match register.read() {
                Ok(_) => values += 1,
                Err(fault) if fault.class == class::UNKNOWN => undefined += 1,
                Err(fault) => fail!("{register} gives exception class {:#x}", fault.class),
            }
        }
    }
    cpu::unmask_irq();
    pass!("{values} read, {undefined} undefined")
}

/// EL2's and EL3's registers are undefined at EL1: read and written.
fn higher_levels() -> Check<Done> {
    let mut count = 0;
    for register in [4, 5, 6].into_iter().flat_map(|op1| Encoding::all(3, op1)) {
        match register.read() {
            Err(fault) if fault.class == class::UNKNOWN => count += 1,
            Err(fault) => fail!("{register} gives exception class {:#x}", fault.class),
            Ok(value) => fail!("{register} can be read: {value:#x}"),
        }
        match register.write(0) {
            Err(fault) if fault.class == class::UNKNOWN => {}
            Err(fault) => fail!("{register} gives exception class {:#x}", fault.class),
            Ok(_) => fail!("{register} can be written"),
        }
    }
    pass!("{count} registers")
}

/// So are EL2's and EL3's translation and TLB instructions.
fn higher_instructions() -> Check<Done> {
    let mut count = 0;
    for op1 in [4, 6] {
        for (crn, crm) in [(7, 8), (8, 0), (8, 3), (8, 4), (8, 7)] {
            for op2 in 0..8 {
                let instruction = Encoding::new(1, op1, crn, crm, op2);
                match instruction.write(0) {
                    Err(fault) if fault.class == class::UNKNOWN => count += 1,
                    Err(fault) => fail!("{instruction} gives class {:#x}", fault.class),
                    Ok(_) => fail!("{instruction} is executed"),
                }
            }
        }
    }
    pass!("{count} instructions")
}

/// What a core may have and the hypervisor hides is undefined: registers of error records
/// (ERRIDR_EL1 to ERXMISC3_EL1) and of activity monitors.
fn hidden() -> Check<Done> {
    needs_cassata!();
    let records = (3..6).flat_map(|crm| (0..8).map(move |op2| Encoding::new(3, 0, 5, crm, op2)));
    let monitors =
        Encoding::all(3, 3).filter(|register| register.crn() == 13 && register.crm() > 1);
    let mut count = 0;
    for register in records.chain(monitors) {
        for access in [register.read(), register.write(0)] {
            match access {
                Err(fault) if fault.class == class::UNKNOWN => count += 1,
                Err(fault) => fail!("{register} gives exception class {:#x}", fault.class),
                Ok(value) => fail!("{register} can be accessed: {value:#x}"),
            }
        }
    }
    pass!("{count} accesses")
}

/// A register's access works or is undefined; nothing worse.
fn harmless(register: Encoding, value: u64) -> Check<bool> {
    match register.write(value) {
        Ok(_) => Ok(true),
        Err(fault) if fault.class == class::UNKNOWN => Ok(false),
        Err(fault) => fail!("writing {register} gives exception class {:#x}", fault.class),
    }
}

/// The OS lock and the debug registers, as an operating system clears them.
fn debug() -> Check<Done> {
    const OSLAR: Encoding = Encoding::new(2, 0, 1, 0, 4);
    const OSDLR: Encoding = Encoding::new(2, 0, 1, 3, 4);
    const MDSCR: Encoding = Encoding::new(2, 0, 0, 2, 2);
    for register in [OSLAR, OSDLR, MDSCR] {
        ensure!(harmless(register, 0)?, "{register} is undefined");
    }
    for n in 0..16 {
        // DBGBVR, DBGBCR, DBGWVR, DBGWCR
        for op2 in 4..8 {
            harmless(Encoding::new(2, 0, 0, n, op2), 0)?;
        }
    }
    ensure_eq!(read::mdscr_el1() & 0x8001, 0, "MDSCR_EL1.MDE and SS");
    pass!("")
}

/// PMU registers: there or not, as the hypervisor likes.
fn pmu() -> Check<Done> {
    let mut present = 0;
    for crm in 12..15 {
        for op2 in 0..8 {
            present += u32::from(harmless(Encoding::new(3, 3, 9, crm, op2), 0)?);
        }
    }
    for (crn, crm, op2) in [(14, 8, 0), (14, 12, 0), (14, 15, 7)] {
        present += u32::from(harmless(Encoding::new(3, 3, crn, crm, op2), 0)?);
    }
    for op2 in 1..3 {
        present += u32::from(harmless(Encoding::new(3, 0, 9, 14, op2), 0)?);
    }
    pass!("{present} writable")
}

/// Exceptions of the guest's own stay in the guest.
fn own_exceptions() -> Check<Done> {
    const BRK: u32 = 0xd420_0000;
    const SVC: u32 = 0xd400_0001;
    const UDF: u32 = 0x0000_0000;
    match fault::instruction(BRK, 0) {
        Err(fault) => ensure_eq!(fault.class, class::BRK, "exception class of BRK"),
        Ok(_) => fail!("BRK goes through"),
    }
    match fault::call_instruction(SVC) {
        Err(fault) => ensure_eq!(fault.class, class::SVC, "exception class of SVC"),
        Ok(_) => fail!("SVC goes through"),
    }
    match fault::instruction(UDF, 0) {
        Err(fault) => ensure_eq!(fault.class, class::UNKNOWN, "exception class of UDF"),
        Ok(_) => fail!("UDF goes through"),
    }
    pass!("")
}

/// Cache maintenance by set and way may be trapped, but goes through; so do
/// WFE, SEV and YIELD.
fn cache_by_set_way() -> Check<Done> {
    for way in 0..4_u64 {
        for set in 0..4_u64 {
            cpu::dc_cisw(way << 30 | set << 6);
        }
    }
    cpu::ic_iallu();
    cpu::tlbi_vmalle1();
    cpu::sev();
    cpu::wfe();
    cpu::yield_hint();
    pass!("")
}

/// Address translation instructions answer, for what is mapped and what not.
fn translation() -> Check<Done> {
    const AT_S1E1R: Encoding = Encoding::new(1, 0, 7, 8, 0);
    let here = crate::arch::memory::image_end() & !0xfff;
    for address in [here, 1 << 45] {
        if let Err(fault) = AT_S1E1R.write(address) {
            fail!("AT S1E1R of {address:#x} gives exception class {:#x}", fault.class);
        }
        let translated = read::par_el1();
        let expected = if address == here { here } else { 1 };
        let got = if translated & 1 == 0 { translated & 0xff_ffff_f000 } else { translated & 1 };
        ensure_eq!(got, expected, "PAR_EL1 for {address:#x}");
    }
    gic::let_in();
    ensure_eq!(irq::seen(cpu::index()).total(), 0, "interrupts taken");
    pass!("")
}
