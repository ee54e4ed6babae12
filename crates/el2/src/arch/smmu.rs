//! The SMMU (SMMUv3, Arm IHI 0070): what devices reach by DMA.
//!
//! A stream, which is all that a device or a function of it accesses, is translated by the stage 2 of the
//! VM that has the device: by the very tables that the VM's vCPUs have, so that DMA reaches what its guest
//! reaches, at the guest's addresses, and nothing else. A stream that no VM has reaches nothing.
//!
//! All is set up before a guest runs, and stays as it is. What is refused the SMMU notes in memory
//! ([`abi::dma`]), where the host finds it: it sends no interrupt. So no device can delay EL2.

use super::atomic::AtomicU64;
use super::machine::instructions;
use super::memory::device::{read32, write32, write64};
use super::{cpu, statics};
use abi::dma::{Faults, KEPT, KEPT_LOG2};
use abi::system::{Confined, FUNCTION_SIZE, MAX_CONFINED, Region, SMMU_SIZE, STREAMS, System};
use core::sync::atomic::Ordering;
use notes::Bounded;

const IDR0: u64 = 0x00;
const IDR1: u64 = 0x04;
const IDR5: u64 = 0x14;
const CR0: u64 = 0x20;
const CR0ACK: u64 = 0x24;
const CR1: u64 = 0x28;
const CR2: u64 = 0x2c;
const GBPA: u64 = 0x44;
const IRQ_CTRL: u64 = 0x50;
const IRQ_CTRLACK: u64 = 0x54;
const STRTAB_BASE: u64 = 0x80;
const STRTAB_BASE_CFG: u64 = 0x88;
const CMDQ_BASE: u64 = 0x90;
const CMDQ_PROD: u64 = 0x98;
const CMDQ_CONS: u64 = 0x9c;
const EVENTQ_BASE: u64 = 0xa0;
const EVENTQ_PROD: u64 = 0x1_00a8;
const EVENTQ_CONS: u64 = 0x1_00ac;

/// CR0: it translates; it notes faults; it takes commands.
const SMMUEN: u32 = 1 << 0;
const EVENTQEN: u32 = 1 << 2;
const CMDQEN: u32 = 1 << 3;
/// GBPA: while it does not translate, it lets nothing through.
const ABORT: u32 = 1 << 20;
const UPDATE: u32 = 1 << 31;

/// How often a register is read at most until it has a value: far longer than any SMMU takes.
const PATIENCE: usize = 1_000_000;
/// Words of a stream table entry (section 5.2).
const ENTRY: usize = 8;
/// The commands that are sent, as two words each: forget all configuration, and all translations; and be
/// complete (CMD_CFGI_ALL, CMD_TLBI_NSNH_ALL, CMD_SYNC; section 4.1).
const COMMANDS: [[u64; 2]; 3] = [[0x04, 31], [0x30, 0], [0x46, 0]];
/// The size of their queue, as a power of two.
const COMMANDS_LOG2: u32 = 2;

/// Aligned to its size, as the SMMU takes the lower bits of its address for zero.
#[repr(align(0x4000))]
struct StreamTable([[AtomicU64; ENTRY]; STREAMS as usize]);

/// As [`StreamTable`].
#[repr(align(0x40))]
struct CommandQueue([[AtomicU64; 2]; 1 << COMMANDS_LOG2]);

/// As [`StreamTable`]; the SMMU writes it, as [`Faults`].
#[repr(align(0x800))]
struct EventQueue([[AtomicU64; 4]; KEPT]);

const _: () = {
    assert!(size_of::<StreamTable>() == 0x4000 && size_of::<CommandQueue>() == 0x40);
    assert!(size_of::<EventQueue>() == 0x800 && size_of::<Faults>() == 0x800);
    assert!(STREAMS.is_power_of_two() && COMMANDS.len() < 1 << COMMANDS_LOG2);
};

statics! {
    static TABLE: StreamTable = StreamTable(
        [const { [const { AtomicU64::new(0) }; ENTRY] }; STREAMS as usize]
    );
    static QUEUE: CommandQueue =
        CommandQueue([const { [const { AtomicU64::new(0) }; 2] }; 1 << COMMANDS_LOG2]);
    static EVENTS: EventQueue = EventQueue([const { [const { AtomicU64::new(0) }; 4] }; KEPT]);
}

/// Confines the devices of a system, if any VM has one. Boot core only, with its MMU on. Returns where
/// refused DMA is noted, or 0.
///
/// # Errors
/// Says in words what the SMMU cannot do, or that it does not answer.
pub fn confine(system: &System) -> Result<u64, &'static str> {
    let base = system.smmu.registers_pa;
    if base == 0 {
        return Ok(0);
    }
    fits(base)?;
    // First nothing gets through: what firmware has let a device do ends here.
    let is_open = becomes(base + GBPA, UPDATE, 0);
    write32(base + GBPA, UPDATE | ABORT);
    let answers = is_open && becomes(base + GBPA, UPDATE, 0) && set(base, 0);
    write32(base + IRQ_CTRL, 0);
    if !answers || !becomes(base + IRQ_CTRLACK, u32::MAX, 0) {
        return Err(SILENT);
    }
    for device in &system.smmu.confined {
        enter(device, system);
    }
    point(base);
    let forgets = set(base, CMDQEN) && forget(base);
    if !forgets || !set(base, CMDQEN | EVENTQEN) || !set(base, CMDQEN | EVENTQEN | SMMUEN) {
        return Err(SILENT);
    }
    Ok(address(&EVENTS.0))
}

/// Why a system is refused whose SMMU does not do what it is told, or is not there.
pub const SILENT: &str = "the SMMU (smmu_pa) does not answer";

/// Returns true if one of the SMMU's registers is at this address. The tables need not be valid.
pub fn has(system: &System, at: u64) -> bool {
    let registers = Region::new(system.smmu.registers_pa, SMMU_SIZE);
    registers.start != 0 && registers.contains(Region::new(at, 1))
}

/// Returns the physical address: EL2's mapping is an identity.
fn address<T>(place: &T) -> u64 {
    core::ptr::from_ref(place) as u64
}

/// Checks that the SMMU can do what is asked of it.
fn fits(base: u64) -> Result<(), &'static str> {
    let (idr0, idr1, idr5) = (read32(base + IDR0), read32(base + IDR1), read32(base + IDR5));
    let (commands, events) = (idr1 >> 21 & 0x1f, idr1 >> 16 & 0x1f);
    // S2P; TTF: AArch64.
    if idr0 & 1 == 0 || idr0 & 1 << 3 == 0 {
        return Err("the SMMU has no stage 2 for AArch64 (SMMU_IDR0.S2P, TTF)");
    }
    // COHACC.
    if idr0 & 1 << 4 == 0 {
        return Err("the SMMU does not see what is cached (SMMU_IDR0.COHACC)");
    }
    // STALL_MODEL.
    if idr0 >> 24 & 0b11 == 0b10 {
        return Err("the SMMU stalls what it refuses (SMMU_IDR0.STALL_MODEL)");
    }
    // TABLES_PRESET, QUEUES_PRESET.
    if idr1 & (1 << 30 | 1 << 29) != 0 || commands < COMMANDS_LOG2 || events < KEPT_LOG2 {
        return Err("the SMMU's tables or queues are where EL2 has none (SMMU_IDR1)");
    }
    // GRAN4K; OAS: 40 bits or more.
    if idr5 & 1 << 4 == 0 || idr5 & 0b111 < 2 {
        return Err(
            "the SMMU has no pages of 4 KiB, or addresses of less than 40 bits (SMMU_IDR5)",
        );
    }
    Ok(())
}

/// Waits until these bits of a register are `value`. Returns false if they never are.
fn becomes(register: u64, bits: u32, value: u32) -> bool {
    (0..PATIENCE).at_most::<PATIENCE>().any(|_| read32(register) & bits == value)
}

/// Sets CR0, and waits until that has effect.
fn set(base: u64, control: u32) -> bool {
    write32(base + CR0, control);
    becomes(base + CR0ACK, SMMUEN | EVENTQEN | CMDQEN, control)
}

/// Lets a device reach what its VM reaches.
fn enter(device: &Confined, system: &System) {
    let stage2 = system.vm(device.vm.into()).stage2_pa[0];
    // The VMID of the VM's vCPUs. It is the SMMU's own affair: no table changes.
    let entry = entry(stage2, u64::from(device.vm) + 1, cpu::stage2_control());
    let streams = usize::from(device.first)..device.end() as usize;
    for stream in streams.at_most::<{ STREAMS as usize }>() {
        // The first word last: it makes the entry a valid one.
        let words = TABLE.0[stream].iter().zip(entry).rev();
        words.at_most::<ENTRY>().for_each(|(word, value)| word.store(value, Ordering::Release));
    }
}

/// A stream table entry: stage 2 translates, and refused accesses are noted (section 5.2).
///
/// `control` is VTCR_EL2, whose lower half has the form of the fields from S2T0SZ to S2PS.
const fn entry(stage2: u64, vmid: u64, control: u64) -> [u64; ENTRY] {
    const VALID: u64 = 1 << 0;
    const CONFIG_STAGE2: u64 = 0b110 << 1;
    const SHCFG_INCOMING: u64 = 1 << 44;
    const FIELDS: u64 = 0x7_ffff;
    const S2AA64: u64 = 1 << 51;
    /// Faults are recorded, and end the access: S2S, by which it would wait, is 0.
    const S2R: u64 = 1 << 58;
    let second = vmid | (control & FIELDS) << 32 | S2AA64 | S2R;
    [VALID | CONFIG_STAGE2, SHCFG_INCOMING, second, stage2, 0, 0, 0, 0]
}

/// Tells the SMMU where its table and its queues are.
fn point(base: u64) {
    /// Tables and queues are inner shareable and write-back cacheable.
    const ATTRIBUTES: u32 = 0b11_01_01 << 6 | 0b11_01_01;
    /// A stream without an entry is noted; what cores broadcast for their TLBs is no concern of its.
    const RECINVSID: u32 = 1 << 1;
    const PTM: u32 = 1 << 2;
    write32(base + CR1, ATTRIBUTES);
    write32(base + CR2, RECINVSID | PTM);
    write64(base + STRTAB_BASE, address(&TABLE.0));
    write32(base + STRTAB_BASE_CFG, STREAMS.trailing_zeros());
    for (queue, log2, [producer, consumer]) in [
        (CMDQ_BASE, COMMANDS_LOG2, [CMDQ_PROD, CMDQ_CONS]),
        (EVENTQ_BASE, KEPT_LOG2, [EVENTQ_PROD, EVENTQ_CONS]),
    ] {
        let place = if queue == CMDQ_BASE { address(&QUEUE.0) } else { address(&EVENTS.0) };
        write64(base + queue, place | u64::from(log2));
        write32(base + producer, 0);
        write32(base + consumer, 0);
    }
}

/// Has the SMMU forget all that it may know of tables that firmware had.
fn forget(base: u64) -> bool {
    /// CMDQ_CONS: how far it is, and what was wrong with the command there.
    const INDEX: u32 = 0xf_ffff;
    const ERROR: u32 = 0x7f << 24;
    let words = QUEUE.0.iter().zip(COMMANDS);
    for (place, command) in words.at_most::<{ COMMANDS.len() }>() {
        place[0].store(command[0], Ordering::Relaxed);
        place[1].store(command[1], Ordering::Relaxed);
    }
    instructions::complete();
    let count = COMMANDS.len() as u32;
    write32(base + CMDQ_PROD, count);
    becomes(base + CMDQ_CONS, INDEX | ERROR, count)
}

/// Returns the device of a VM that is behind the SMMU, from the device `from` on, with its number.
pub fn confined(system: &System, vm: usize, from: usize) -> Option<(usize, &Confined)> {
    let devices = system.smmu.confined.iter().enumerate().skip(from);
    let mut devices = devices.at_most::<MAX_CONFINED>();
    devices.find(|(_, device)| device.functions().size > 0 && usize::from(device.vm) == vm)
}

/// Switches the DMA of a function of a PCI device off, as a reset does, until its guest switches it on: all
/// bits of its command register become 0 (PCI Local Bus Specification 3.0, section 6.2.2). A function that
/// is not there takes no notice.
pub fn silence(device: &Confined, function: u64) {
    /// The command, and the status behind it, which ones would change.
    const COMMAND: u64 = 0x04;
    write32(device.functions_pa + function * FUNCTION_SIZE + COMMAND, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::fake::machine;
    use crate::arch::fake::smmu::Smmu;
    use zerocopy::FromZeros;

    const BASE: u64 = 0x0905_0000;

    /// A system whose second VM has streams 16 to 23, and the machine for it.
    fn prepare(change: impl FnOnce(&mut Smmu)) -> System {
        let mut system = System::new_zeroed();
        system.header.vm_count = 2;
        system.board.gicd_pa = 0x0800_0000;
        (system.vms[0].stage2_pa[0], system.vms[1].stage2_pa[0]) = (0x4041_0000, 0x4042_0000);
        system.smmu.registers_pa = BASE;
        system.smmu.confined[0] =
            Confined { functions_pa: 0x3f01_0000, first: 16, count: 8, vm: 1, reserved: 0 };
        machine::install(system.board);
        let mut smmu = Smmu::new(BASE);
        change(&mut smmu);
        machine::with(|machine| machine.smmu = Some(smmu));
        system
    }

    fn words(stream: usize) -> [u64; ENTRY] {
        core::array::from_fn(|word| TABLE.0[stream][word].load(Ordering::Relaxed))
    }

    #[test]
    fn a_stream_reaches_what_its_vm_reaches_and_those_of_no_vm_nothing() {
        let system = prepare(|_| {});
        let faults = confine(&system).unwrap();
        for stream in 0..usize::from(STREAMS) {
            let entry = words(stream);
            if !(16..24).contains(&stream) {
                assert_eq!(entry, [0; ENTRY], "{stream}: not valid");
                continue;
            }
            assert_eq!(entry[0], 0b1101, "{stream}: valid, and stage 2 only");
            assert_eq!(entry[3], 0x4042_0000, "{stream}: by the tables of its VM");
            // S2T0SZ, S2SL0, S2TG: 39 bits, from level 1, pages of 4 KiB. S2AA64, S2R; not S2S.
            assert_eq!(entry[2] >> 32 & 0xff, 25 | 1 << 6, "{stream}");
            assert_eq!(entry[2] >> 46 & 0b11, 0, "{stream}");
            assert_eq!(entry[2] >> 51 & 0b1111_1111, 0b1000_0001, "{stream}");
            assert_eq!(entry[2] & 0xffff, 2, "{stream}: VMID");
        }
        machine::with(|machine| {
            let smmu = machine.smmu.as_ref().unwrap();
            let register = |offset: u64| smmu.registers[&offset];
            assert_eq!(register(CR0ACK), u64::from(SMMUEN | EVENTQEN | CMDQEN));
            assert_eq!(register(GBPA), u64::from(ABORT), "nothing gets through without it");
            assert_eq!(register(STRTAB_BASE), address(&TABLE.0));
            assert_eq!(register(STRTAB_BASE) % 0x4000, 0);
            assert_eq!(register(STRTAB_BASE_CFG), 8, "256 streams, and no further table");
            assert_eq!(register(EVENTQ_BASE), faults | u64::from(KEPT_LOG2));
            assert_eq!(faults % size_of::<Faults>() as u64, 0);
            // It is told to let nothing through before anything else, and enabled last.
            assert_eq!(smmu.written[0], (BASE + GBPA, u64::from(UPDATE | ABORT)));
            assert_eq!(smmu.written[1], (BASE + CR0, 0));
            let (last, value) = *smmu.written.last().unwrap();
            assert_eq!((last, value as u32 & SMMUEN), (BASE + CR0, SMMUEN));
            let enabled = smmu
                .written
                .iter()
                .filter(|(at, value)| *at == BASE + CR0 && *value as u32 & SMMUEN != 0);
            assert_eq!(enabled.count(), 1);
        });
    }

    #[test]
    fn an_smmu_that_cannot_do_it_is_refused_and_one_that_is_silent_too() {
        for (offset, value, word) in [
            (IDR0, 1 << 3 | 1 << 4, "S2P"),
            (IDR0, 1 | 1 << 2 | 1 << 4, "TTF"),
            (IDR0, 1 | 1 << 3, "COHACC"),
            (IDR0, 1 | 1 << 3 | 1 << 4 | 0b10 << 24, "STALL_MODEL"),
            (IDR1, 19 << 21 | 19 << 16 | 16 | 1 << 30, "IDR1"),
            (IDR1, 1 << 21 | 19 << 16, "IDR1"),
            (IDR1, 19 << 21 | 5 << 16, "IDR1"),
            (IDR5, 1 << 5 | 4, "IDR5"),
            (IDR5, 1 << 4 | 1, "IDR5"),
        ] {
            let system = prepare(|smmu| {
                let _ = smmu.registers.insert(offset, value);
            });
            let what = confine(&system).expect_err(word);
            assert!(what.contains(word), "{what}");
            machine::with(|machine| assert_eq!(machine.smmu.as_ref().unwrap().written, []));
        }
        for stuck in [CR0ACK, GBPA, CMDQ_CONS] {
            let system = prepare(|smmu| smmu.stuck = Some(stuck));
            assert_eq!(confine(&system), Err(SILENT), "{stuck:#x}");
        }
    }

    #[test]
    fn a_system_without_such_devices_touches_no_smmu() {
        let mut system = prepare(|_| {});
        system.smmu = System::new_zeroed().smmu;
        assert_eq!(confine(&system), Ok(0));
        machine::with(|machine| assert_eq!(machine.smmu.as_ref().unwrap().written, []));
    }

    #[test]
    fn the_functions_of_a_vm_are_silenced_and_no_others() {
        let mut system = prepare(|_| {});
        system.smmu.confined[1] = Confined { vm: 0, first: 24, ..system.smmu.confined[0] };
        assert!(confined(&system, 0, 0).is_some_and(|(at, device)| at == 1 && device.first == 24));
        assert!(confined(&system, 1, 1).is_none() && confined(&system, 2, 0).is_none());
        let (_, device) = confined(&system, 1, 0).unwrap();
        silence(device, 3);
        machine::with(|machine| {
            assert_eq!(machine.smmu.as_ref().unwrap().written, [(0x3f01_3004, 0)]);
        });
    }
}
