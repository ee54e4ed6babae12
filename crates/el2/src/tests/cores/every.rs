//! Every trap of a kind, not some by chance: system registers, devices' registers, calls, and on
//! request every syndrome of a data abort. One core and one guest, which executes them one after
//! the other.
//!
//! What a guest must find stands here a second time, by the tables of
//! `docs/src/design/registers.md` and `calls.md`. After each trap the guest goes on behind the
//! instruction or takes an exception, keeps all registers but the one that it named, and has changed
//! none of those that confine it.

use super::guests::{Name, access_to};
use super::program;
use crate::arch::fake::machine;
use crate::arch::fake::registers::Register;
use crate::arch::sysreg::ec;
use crate::arch::vectors::Vector;
use crate::exits;
use crate::pcpu::Pcpu;
use abi::platform::{GICD_BASE, GICD_SIZE, GICR_BASE, GICR_STRIDE, UART_BASE, UART_SIZE};
use abi::service::{self, psci, smccc};

/// Where each trapped instruction stands.
const PC: u64 = 0x4000_1000;
const VECTORS: u64 = 0xffff_0000_0000_0000;
/// Offset of the vector of a synchronous exception from EL1 with its own stack pointer.
const FROM_EL1: u64 = 0x200;
/// SPSR_EL2.M at EL1.
const KERNEL: u64 = 5;
/// ESR.IL.
const IL: u64 = 1 << 25;

/// Registers that confine a guest, none of which a trap may change.
const CONFINING: [Register; 15] = [
    Register::named("hcr_el2"),
    Register::named("vttbr_el2"),
    Register::named("vtcr_el2"),
    Register::named("cptr_el2"),
    Register::named("mdcr_el2"),
    Register::named("cnthctl_el2"),
    Register::named("hstr_el2"),
    Register::named("vmpidr_el2"),
    Register::named("vpidr_el2"),
    Register::named("icc_sre_el2"),
    Register::named("ttbr0_el2"),
    Register::named("tcr_el2"),
    Register::named("mair_el2"),
    Register::named("sctlr_el2"),
    Register::named("tpidr_el2"),
];

/// What became of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The guest goes on behind it.
    Done,
    /// It is executed again.
    Again,
    /// The guest takes an exception, of this class.
    Exception(u64),
}

/// The guest, and the core that executes it.
struct Guest<'a> {
    core: &'a mut Pcpu,
    confined: [u64; CONFINING.len()],
}

fn set(register: Register, value: u64) {
    machine::with(|machine| machine.core_mut().registers[register.0] = value);
}

fn get(register: Register) -> u64 {
    machine::with(|machine| machine.core().registers[register.0])
}

fn confining() -> [u64; CONFINING.len()] {
    machine::with(|machine| CONFINING.map(|register| machine.core().registers[register.0]))
}

/// What a general register has before each trap.
fn pattern(number: usize) -> u64 {
    0x5a5a_0000_0000_0000 | number as u64
}

impl Guest<'_> {
    /// Lets an instruction trap whose operands are `given`, by number of register, and checks all
    /// but those in `results`. Returns what became of it.
    fn trap(&mut self, esr: u64, given: &[(usize, u64)], results: &[usize]) -> Outcome {
        set(Register::named("elr_el2"), PC);
        set(Register::named("spsr_el2"), KERNEL);
        set(Register::named("vbar_el1"), VECTORS);
        set(Register::named("esr_el2"), esr);
        let general = self.core.loaded_mut().expect("a guest runs").general();
        general.x = std::array::from_fn(pattern);
        given.iter().for_each(|&(number, value)| general.set(number, value));
        let before = general.x;
        exits::take(self.core, Vector::Synchronous);
        self.core.check();
        assert_eq!(confining(), self.confined, "{esr:#x}");
        let general = self.core.loaded_mut().expect("a guest runs").general();
        for (number, value) in general.x.iter().enumerate() {
            assert!(results.contains(&number) || *value == before[number], "X{number}: {esr:#x}");
        }
        match get(Register::named("elr_el2")) {
            at if at == PC + 4 => Outcome::Done,
            PC => Outcome::Again,
            at => {
                assert_eq!(at, VECTORS + FROM_EL1, "{esr:#x}");
                assert_eq!(get(Register::named("elr_el1")), PC, "{esr:#x}");
                Outcome::Exception(get(Register::named("esr_el1")) >> 26)
            }
        }
    }

    /// Writes a system register, and reads it.
    fn write_and_read(&mut self, name: Name, value: u64) -> u64 {
        let outcome = self.trap(access_from_x1(name), &[(1, value)], &[]);
        assert_eq!(outcome, Outcome::Done, "{name:?} is written");
        self.read(name)
    }

    fn read(&mut self, name: Name) -> u64 {
        let outcome = self.trap(access_from_x1(name) | 1, &[], &[1]);
        assert_eq!(outcome, Outcome::Done, "{name:?} is read");
        self.register(1)
    }

    fn register(&mut self, number: usize) -> u64 {
        self.core.loaded_mut().expect("a guest runs").register(number)
    }
}

/// Runs a program as the guest of a machine with one core and one vCPU.
fn run(program: fn(&mut Guest)) {
    program::run("alone-1", move |core| program(&mut Guest { core, confined: confining() }));
}

/// Returns ESR_EL2 of a write to a system register from X1.
fn access_from_x1(name: Name) -> u64 {
    ec::SYSREG << 26 | IL | access_to(name) | 1 << 5
}

/// What a guest finds where it reads a register: its value, or any if none is given; none: no
/// such register.
fn readable(name: Name) -> Option<Option<u64>> {
    match name {
        // ICC_PMR, ICC_RPR, ICC_CTLR; CNTP_TVAL, CNTP_CTL, CNTP_CVAL; ID_*; MDSCR_EL1.
        (3, 0, 4, 6, 0) | (3, 0, 12, 11, 3) | (3, 0, 12, 12, 4) => Some(None),
        (3, 3, 14, 2, 0..=2) | (3, 0, 0, 1..=7, _) | (2, 0, 0, 2, 2) => Some(None),
        // ICC_SRE: system registers, and no bypass.
        (3, 0, 12, 12, 5) => Some(Some(7)),
        // DBGBVR, DBGBCR; DBGWVR, DBGWCR.
        (2, 0, 0, 0..6, 4 | 5) | (2, 0, 0, 0..4, 6 | 7) => Some(None),
        // OSLSR_EL1: the lock is there and open.
        (2, 0, 1, 1, 4) => Some(Some(8)),
        // PMCR_EL0: the cycle counter has 64 bits. PMCEID0_EL0: CPU_CYCLES.
        (3, 3, 9, 12, 0) => Some(Some(1 << 6)),
        (3, 3, 9, 12, 6) => Some(Some(1 << 0x11)),
        // PMCNTENSET and CLR, PMOVSCLR, PMSELR, PMOVSSET; PMINTENSET and CLR; PMCCNTR, PMXEVTYPER,
        // PMCCFILTR.
        (3, 3, 9, 12, 1..=3 | 5) | (3, 3, 9, 14, 3) | (3, 0, 9, 14, 1 | 2) => Some(None),
        (3, 3, 9, 13, 0 | 1) | (3, 3, 14, 15, 7) => Some(None),
        _ => is_silent(name).then_some(Some(0)),
    }
}

fn writable(name: Name) -> bool {
    match name {
        // ICC_SGI1R, ICC_ASGI1R, ICC_SGI0R, ICC_DIR; ICC_PMR, ICC_CTLR, ICC_SRE.
        (3, 0, 12, 11, 1 | 5..=7) | (3, 0, 4, 6, 0) | (3, 0, 12, 12, 4 | 5) => true,
        // CNTP_TVAL, CNTP_CTL, CNTP_CVAL.
        (3, 3, 14, 2, 0..=2) => true,
        _ => is_silent(name),
    }
}

/// ACTLR_EL1, debug and trace, event counters: they read as zero and ignore writes.
fn is_silent(name: Name) -> bool {
    matches!(
        name,
        (2, ..)
            | (3, 0, 1, 0, 1)
            | (3, 0, 9, 14, _)
            | (3, 3, 9, 12..=14, _)
            | (3, 3, 14, 8..=15, _)
    )
}

#[test]
fn every_system_register_in_both_directions() {
    run(|guest| {
        let mut count = [0; 2];
        for encoding in 0..1 << 16 {
            let name = (
                encoding >> 14 & 3,
                encoding >> 11 & 7,
                encoding >> 7 & 15,
                encoding >> 3 & 15,
                encoding & 7,
            );
            for register in [1, 31] {
                let esr = ec::SYSREG << 26 | IL | access_to(name) | register << 5;
                let outcome = guest.trap(esr | 1, &[], &[1]);
                let found = guest.register(1);
                match readable(name) {
                    Some(value) => {
                        assert_eq!(outcome, Outcome::Done, "{name:?} is read");
                        let fits = value.is_none_or(|value| found == value);
                        assert!(register == 31 || fits, "{name:?} reads {found:#x}");
                        count[0] += u32::from(register == 1);
                    }
                    None => {
                        assert_eq!(outcome, Outcome::Exception(ec::UNKNOWN), "{name:?} is read")
                    }
                }
                assert!(register == 1 || found == pattern(1), "XZR is no X1: {name:?}");
                for value in [0, u64::MAX] {
                    let outcome = guest.trap(esr, &[(1, value)], &[]);
                    let expected = if writable(name) {
                        Outcome::Done
                    } else {
                        Outcome::Exception(ec::UNKNOWN)
                    };
                    assert_eq!(outcome, expected, "{name:?} is written");
                }
                count[1] += u32::from(register == 1 && writable(name));
            }
        }
        let [readable, writable] = count;
        println!("65536 encodings, of which {readable} can be read and {writable} written");
    });
}

/// Six breakpoints and four watchpoints, of which no field reaches beyond EL1 and EL0. They are on the
/// hardware while they act.
#[test]
fn breakpoints_and_watchpoints_are_confined() {
    const MDSCR: Name = (2, 0, 0, 2, 2);
    const SS_TDCC_KDE: u64 = 1 << 0 | 1 << 12 | 1 << 13;
    const MDE: u64 = 1 << 15;
    /// DBGBCR.HMC and SSC, and the type of a context of EL2 or of a VMID; the same of DBGWCR.
    const BEYOND: [u64; 4] = [0, 1 << 23 | 0b111 << 13, 0, 1 << 29 | 0b111 << 13];
    const LAST: [Register; 4] = [
        Register::named("dbgbvr5_el1"),
        Register::named("dbgbcr5_el1"),
        Register::named("dbgwvr3_el1"),
        Register::named("dbgwcr3_el1"),
    ];
    run(|guest| {
        // TDE and TGE, which would have debug exceptions taken at EL2, are 0; the registers trap (TDA).
        assert_eq!(get(Register::named("mdcr_el2")) >> 8 & 3, 2);
        assert_eq!(get(Register::named("hcr_el2")) >> 27 & 1, 0);
        let hardware = || LAST.map(get);
        let at_reset = hardware();
        for acts in [0, MDE] {
            let _ = guest.write_and_read(MDSCR, acts);
            for (kind, last) in [5, 5, 3, 3].into_iter().enumerate() {
                for number in 0..16 {
                    let name = (2, 0, 0, number, 4 + kind as u64);
                    let found = guest.write_and_read(name, u64::MAX);
                    assert_eq!(found & BEYOND[kind], 0, "{name:?}");
                    assert_eq!(found == 0, number > last, "{name:?}: {found:#x}");
                    if number == last {
                        let expected = if acts == 0 { at_reset[kind] } else { found };
                        assert_eq!(hardware()[kind], expected, "{name:?}");
                    }
                }
            }
        }
        assert_eq!(guest.write_and_read(MDSCR, u64::MAX), MDE | SS_TDCC_KDE);
        // A core that has others: none acts.
        set(Register::named("s3_0_c0_c5_0"), 3 << 20 | 15 << 12);
        assert_eq!(guest.write_and_read(MDSCR, u64::MAX), SS_TDCC_KDE);
        assert_eq!(get(Register::named("mdscr_el1")), SS_TDCC_KDE);
    });
}

/// A guest's cycle counter shows what the hardware's has gained while it counts.
#[test]
fn a_guest_has_a_cycle_counter() {
    const CONTROL: Name = (3, 3, 9, 12, 0);
    const ENABLE: Name = (3, 3, 9, 12, 1);
    const DISABLE: Name = (3, 3, 9, 12, 2);
    const OVERFLOWS: Name = (3, 3, 9, 12, 3);
    const COUNT: Name = (3, 3, 9, 13, 0);
    const FILTER: Name = (3, 3, 14, 15, 7);
    const CYCLES: u64 = 1 << 31;
    fn passes(cycles: u64) {
        let counter = Register::named("pmccntr_el0");
        set(counter, get(counter).wrapping_add(cycles));
    }
    run(|guest| {
        // It counts at EL1 and EL0 only, not for programs, and without an interrupt.
        assert_eq!(get(Register::named("pmcr_el0")), 1 << 6 | 1 << 5 | 1, "LC, DP, E");
        assert_eq!(get(Register::named("pmcntenset_el0")), CYCLES);
        assert_eq!(get(Register::named("pmccfiltr_el0")), 0);
        assert_eq!(get(Register::named("pmuserenr_el0")), 0);
        let traps = get(Register::named("mdcr_el2"));
        assert_eq!(traps >> 5 & 3, 3, "accesses trap: TPMCR, TPM");
        passes(1_000);
        assert_eq!(guest.read(COUNT), 0);
        // Both switches must be on.
        assert_eq!(guest.write_and_read(CONTROL, 1), 1 | 1 << 6);
        passes(10);
        assert_eq!(guest.read(COUNT), 0);
        assert_eq!(guest.write_and_read(ENABLE, u64::MAX), CYCLES);
        passes(10);
        assert_eq!(guest.read(COUNT), 10);
        passes(5);
        assert_eq!(guest.write_and_read(DISABLE, u64::MAX), 0);
        passes(20);
        assert_eq!(guest.read(COUNT), 15);
        // PMCR_EL0.C.
        assert_eq!(guest.write_and_read(CONTROL, 1 | 1 << 2), 1 | 1 << 6);
        assert_eq!(guest.read(COUNT), 0);
        // P and U pass, NSH, which would count at EL2, does not.
        let _ = guest.write_and_read(ENABLE, CYCLES);
        assert_eq!(guest.write_and_read(FILTER, u64::MAX), 3 << 30);
        assert_eq!(get(Register::named("pmccfiltr_el0")), 3 << 30);
        assert_eq!(guest.write_and_read(COUNT, u64::MAX - 1), u64::MAX - 1);
        passes(3);
        assert_eq!(guest.read(COUNT), 1);
        assert_eq!(guest.write_and_read(CONTROL, 0), 1 << 6);
        assert_eq!(guest.read(OVERFLOWS), CYCLES);
        assert_eq!(guest.write_and_read(OVERFLOWS, CYCLES), 0);
        // A core without them, and one whose monitors are its maker's own, counts nothing.
        for version in [0, 0xf] {
            set(Register::named("s3_0_c0_c5_0"), version << 8);
            assert_eq!(guest.read((3, 0, 0, 5, 0)) >> 8 & 0xf, 0);
            let _ = guest.write_and_read(CONTROL, 1);
            passes(7);
            assert_eq!(guest.read(COUNT), 0);
        }
    });
}

/// Accesses a device: width as its logarithm.
fn access(guest: &mut Guest, ipa: u64, width: u64, store: Option<u64>) -> Outcome {
    const VALID: u64 = 1 << 24;
    const TRANSLATION_FAULT: u64 = 0b00_0111;
    const WIDE: u64 = 1 << 15;
    let write = u64::from(store.is_some()) << 6;
    let iss = VALID | width << 22 | 1 << 16 | WIDE | write | TRANSLATION_FAULT;
    abort(guest, ipa, iss, store.unwrap_or(0))
}

fn abort(guest: &mut Guest, ipa: u64, iss: u64, value: u64) -> Outcome {
    set(Register::named("hpfar_el2"), ipa >> 12 << 4);
    set(Register::named("far_el2"), ipa & 0xfff);
    let register = (iss >> 16 & 0x1f) as usize;
    let is_load = iss & 1 << 6 == 0;
    let results = if is_load { vec![register] } else { vec![] };
    guest.trap(ec::DATA_ABORT << 26 | IL | iss, &[(register, value)], &results)
}

#[test]
fn every_register_of_every_device_in_every_width() {
    run(|guest| {
        let mut count = 0;
        let frames = [(GICD_BASE, GICD_SIZE), (GICR_BASE, GICR_STRIDE), (UART_BASE, UART_SIZE)];
        for (base, size) in frames {
            for offset in 0..size {
                for width in 0..4 {
                    // Some of all that can be set, so that the controller has work.
                    for store in [None, Some(0x0101_0101_0101_0101), Some(0)] {
                        let outcome = access(guest, base + offset, width, store);
                        assert_eq!(outcome, Outcome::Done, "{:#x}, {width}", base + offset);
                        count += 1;
                    }
                }
            }
            // Right before and right behind a device there is none, unless another begins there.
            for ipa in [base - 4, base + size] {
                let is_device = frames.iter().any(|(at, size)| (*at..at + size).contains(&ipa));
                let outcome = access(guest, ipa, 2, None);
                let nothing = Outcome::Exception(ec::DATA_ABORT + 1);
                assert_eq!(outcome, if is_device { Outcome::Done } else { nothing }, "{ipa:#x}");
            }
        }
        println!("{count} accesses");
    });
}

/// What a call with no arguments answers in X0; none: it depends.
fn answer(function: u32) -> Option<i64> {
    match function {
        psci::VERSION => Some(psci::VERSION_1_1.into()),
        // Of CPU_ON, address 0; the caller itself; a trusted OS is not there.
        psci::CPU_ON_32 | psci::CPU_ON_64 => Some(psci::INVALID_ADDRESS),
        psci::AFFINITY_INFO_32 | psci::AFFINITY_INFO_64 => Some(0),
        psci::MIGRATE_INFO_TYPE => Some(2),
        smccc::VERSION => Some(smccc::VERSION_1_1.into()),
        // Which feature: 0 is none. The vCPU has no global critical sections.
        psci::FEATURES
        | smccc::ARCH_FEATURES
        | service::PV_TIME_FEATURES
        | service::START_GCS
        | service::FINISH_GCS => Some(service::NOT_SUPPORTED),
        service::NULL => Some(0),
        service::PV_TIME_ST
        | service::CALL_UID
        | service::CALL_REVISION
        | service::COUNTER
        | service::REPORT_AREA
        | service::MUTEX_OPEN..=service::MUTEX_ABANDON => None,
        _ => Some(service::NOT_SUPPORTED),
    }
}

/// Calls every function whose identifier has these upper halves; returns how many.
fn call_every(guest: &mut Guest, upper: impl Iterator<Item = u32>) -> u64 {
    let mut count = 0;
    for function in upper.flat_map(|upper| (0..1 << 16).map(move |lower| upper << 16 | lower)) {
        // They do not come back.
        if let psci::CPU_OFF | psci::SYSTEM_OFF | psci::SYSTEM_RESET = function {
            continue;
        }
        // They come back with an interrupt.
        if let psci::CPU_SUSPEND_32 | psci::CPU_SUSPEND_64 = function {
            continue;
        }
        let class = if function & 1 == 0 { ec::HVC64 } else { ec::SMC64 };
        let given = [(0, function.into()), (1, 0), (2, 0), (3, 0)];
        let results: &[usize] = if answer(function).is_some() { &[0] } else { &[0, 1, 2, 3] };
        let outcome = guest.trap(class << 26 | IL, &given, results);
        // HVC's return address is the next instruction already.
        let expected = if class == ec::HVC64 { Outcome::Again } else { Outcome::Done };
        assert_eq!(outcome, expected, "{function:#x}");
        if let Some(answer) = answer(function) {
            assert_eq!(guest.register(0) as i64, answer, "{function:#x}");
        }
        count += 1;
    }
    count
}

/// Those of Arm, PSCI, hypervisors and this one, fast and 32 or 64 bits wide; some others.
#[test]
fn every_call_of_the_services_that_there_are() {
    run(|guest| {
        let owners = [0x8000, 0xc000, 0x8400, 0xc400, 0x8500, 0xc500, 0x8600, 0xc600, 0, 0xffff];
        println!("{} calls", call_every(guest, owners.into_iter()));
    });
}

#[test]
#[ignore = "it takes minutes"]
fn every_call_of_every_service() {
    run(|guest| {
        // Bits 16 to 23 are reserved.
        println!("{} calls", call_every(guest, (0..1 << 8).map(|upper| upper << 8)));
    });
}

#[test]
#[ignore = "it takes minutes"]
fn every_syndrome_of_a_data_abort() {
    run(|guest| {
        const DESCRIBES: u64 = 1 << 24;
        const UNFIT: u64 = 1 << 8 | 1 << 7;
        for iss in 0..1 << 25 {
            // The priority of an interrupt, which has no effect; where no device stands.
            for (ipa, is_device) in [(GICD_BASE + 0x420, true), (0x1234_5000, false)] {
                let is_described =
                    iss & (DESCRIBES | UNFIT) == DESCRIBES && (4..8).contains(&(iss & 0x3f));
                let outcome = abort(guest, ipa, iss, 0);
                let expected = if is_described && is_device {
                    Outcome::Done
                } else {
                    Outcome::Exception(ec::DATA_ABORT + 1)
                };
                assert_eq!(outcome, expected, "{iss:#x} at {ipa:#x}");
            }
        }
        println!("{} syndromes", 1 << 25);
    });
}
