//! What page tables let EL2 and VMs reach, checked against the rest of the [`System`].
//!
//! The tables are walked as the architecture does it (DDI 0487, D8.2: 4 KiB granule, 39-bit
//! input addresses, start at level 1), knowing nothing of how the host built them. It is pure,
//! so that the host tests the very code that runs at EL2.

use super::stage1::{ALIAS, ATTR_DEVICE, ATTR_NORMAL};
use super::validate::ensure;
use super::{Confined, Invalid, MAX_CONFINED, PAGE_SIZE, Region, System, Vm, vm_flags};
use crate::platform::{
    GICC_BASE, GICC_PAGE, GICD_BASE, GICD_SIZE, GICD_V2_SIZE, GICR_BASE, GICR_STRIDE, LINES_BASE,
    REPORT_BASE, STOLEN_BASE, UART_BASE, UART_SIZE,
};

/// Levels of a walk: 1 to 3.
const LEVELS: usize = 3;
/// Descriptors in a table.
const ENTRIES: u64 = 512;
/// Descriptors of a root that are for addresses below [`ALIAS`].
const BELOW_ALIAS: u64 = ALIAS / PAGE_SIZE / ENTRIES / ENTRIES;
/// Output address of a descriptor.
const OUTPUT: u64 = 0x0000_ffff_ffff_f000;

/// One translation.
#[derive(Clone, Copy)]
struct Leaf {
    input: u64,
    output: Region,
    descriptor: u64,
}

impl Leaf {
    /// Returns a field of the descriptor.
    const fn bits(self, low: u32, count: u32) -> u64 {
        self.descriptor >> low & ((1 << count) - 1)
    }

    const fn input(self) -> Region {
        Region::new(self.input, self.output.size)
    }

    /// Returns true if `region`, seen from `input` on, leads to itself here.
    fn is_of(self, input: u64, region: Region) -> bool {
        region.contains(self.output)
            && self.input.checked_sub(input) == self.output.start.checked_sub(region.start)
    }
}

/// Whose translations are looked at.
#[derive(Clone, Copy)]
enum Of<'a> {
    /// EL2's, by the common root.
    El2,
    /// EL2's, by the root of a VM: aliases only.
    Alias(&'a Vm),
    /// A VM's own.
    Vm(&'a Vm),
}

/// What may be done with what a stage 1 descriptor of EL2 maps (DDI 0487, D8.4.1).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Rights {
    device: bool,
    writable: bool,
    executable: bool,
}

impl Rights {
    const CONSTANT: Self = Self { device: false, writable: false, executable: false };
    const CODE: Self = Self { executable: true, ..Self::CONSTANT };
    const DATA: Self = Self { writable: true, ..Self::CONSTANT };
    const DEVICE: Self = Self { device: true, ..Self::DATA };

    /// Returns none if the memory is of an unknown kind.
    fn of(leaf: Leaf) -> Option<Self> {
        let attribute = leaf.bits(2, 3);
        [ATTR_DEVICE, ATTR_NORMAL].contains(&attribute).then_some(Self {
            device: attribute == ATTR_DEVICE,
            writable: leaf.bits(7, 1) == 0,
            executable: leaf.bits(54, 1) == 0,
        })
    }
}

impl System {
    /// Checks what EL2's page table, with all its roots, lets it reach: its own, identically, nothing of
    /// it both writable and executable, nothing else executable, no guest memory; and by the root of each
    /// VM the same by the same tables, and the memory of this VM alone, at its alias. `read`
    /// returns the word at a physical address in the bundle.
    ///
    /// # Errors
    /// [`Invalid::TableForm`] or [`Invalid::Stage1Reach`]. Never panics, whatever is read, where
    /// [`System::validate`] has passed.
    #[inline(never)]
    pub fn check_stage1(&self, read: &dyn Fn(u64) -> u64) -> Result<(), Invalid> {
        let common = self.board.stage1_pa;
        self.walk(Of::El2, common, read)?;
        self.vms().iter().try_for_each(|vm| {
            // What a TLB holds from one root has to be true for the other.
            let agrees = |index: u64| {
                let [always, while_filled] = [common, vm.stage1_pa].map(|pa| read(pa + 8 * index));
                always == if index < BELOW_ALIAS { while_filled } else { 0 }
            };
            ensure((0..ENTRIES).all(agrees), Invalid::Stage1Reach)?;
            self.walk(Of::Alias(vm), vm.stage1_pa, read)
        })
    }

    /// Checks what the page tables of all VMs let them reach: each its own, where it was
    /// described. Devices that are passed through, and memory that several VMs share, stand in
    /// none of these tables: they must be no part of what does. `read` is as for
    /// [`System::check_stage1`].
    ///
    /// # Errors
    /// [`Invalid::TableForm`] or [`Invalid::Stage2Reach`]. Never panics, whatever is read, where
    /// [`System::validate`] has passed.
    #[inline(never)]
    pub fn check_stage2(&self, read: &dyn Fn(u64) -> u64) -> Result<(), Invalid> {
        for vm in self.vms() {
            for (view, &root) in vm.stage2_pa.iter().enumerate() {
                // A VM that needs no views has one.
                if !vm.stage2_pa.iter().take(view).any(|&other| other == root) {
                    self.walk(Of::Vm(vm), root, read)?;
                }
            }
        }
        Ok(())
    }

    /// Looks at each translation below a root.
    fn walk(&self, of: Of<'_>, root: u64, read: &dyn Fn(u64) -> u64) -> Result<(), Invalid> {
        let first = if matches!(of, Of::Alias(_)) { BELOW_ALIAS } else { 0 };
        // Of each level: the table, and the descriptor to look at next.
        let (mut tables, mut next, mut level) = ([root; LEVELS], [first, 0, 0], 0);
        loop {
            let Some((&table, at)) = tables.get(level).zip(next.get_mut(level)) else {
                return Err(Invalid::TableForm);
            };
            let index = *at;
            *at += 1;
            if index == ENTRIES {
                *at = 0;
                let Some(upper) = level.checked_sub(1) else { return Ok(()) };
                level = upper;
                continue;
            }
            let descriptor = read(table + 8 * index);
            let output = descriptor & OUTPUT;
            match (level, descriptor & 0b11) {
                (_, 0b00) => {}
                (0 | 1, 0b11) => {
                    // No attributes for what is below: a leaf says all of its own.
                    if descriptor & !(OUTPUT | 0b11) != 0 || !self.is_table(output) {
                        return Err(Invalid::TableForm);
                    }
                    level += 1;
                    if let Some(table) = tables.get_mut(level) {
                        *table = output;
                    }
                }
                (0 | 1, 0b01) | (2, 0b11) => {
                    let size = PAGE_SIZE << (9 * (LEVELS - 1 - level));
                    let output = Region::new(output, size);
                    if !output.is_aligned(size) {
                        return Err(Invalid::TableForm);
                    }
                    // Those above point behind the descriptor that led here.
                    let place = next.iter().take(level + 1);
                    let page = place.fold(0, |page, &next| page * ENTRIES + next - 1);
                    let leaf = Leaf { input: page * size, output, descriptor };
                    self.check_leaf(of, leaf)?;
                }
                _ => return Err(Invalid::TableForm),
            }
        }
    }

    fn check_leaf(&self, of: Of<'_>, leaf: Leaf) -> Result<(), Invalid> {
        match of {
            Of::El2 => ensure(self.is_for_el2(leaf), Invalid::Stage1Reach),
            Of::Alias(vm) => {
                let is_data = Rights::of(leaf) == Some(Rights::DATA);
                ensure(is_data && leaf.is_of(vm.alias().start, vm.ram()), Invalid::Stage1Reach)
            }
            Of::Vm(vm) => ensure(self.is_for_vm(vm, leaf), Invalid::Stage2Reach),
        }
    }

    fn is_for_el2(&self, leaf: Leaf) -> bool {
        let Some(rights) = Rights::of(leaf) else { return false };
        let board = &self.board;
        let is = |region: Region, allowed: &[Rights]| {
            region.contains(leaf.output) && allowed.contains(&rights)
        };
        leaf.input == leaf.output.start
            && (is(board.hypervisor(), &[Rights::CODE, Rights::CONSTANT, Rights::DATA])
                || is(self.header.bundle(), &[Rights::CONSTANT])
                || [board.status(), self.trace()].iter().any(|&own| is(own, &[Rights::DATA]))
                || self.vms().iter().any(|vm| is(vm.stolen(), &[Rights::DATA]))
                || self.vms().iter().any(|vm| is(vm.lines(), &[Rights::DATA]))
                || self.has_spin_table() && is(self.release(), &[Rights::DEVICE])
                || self.own_devices().iter().any(|&own| is(own, &[Rights::DEVICE]))
                || self.functions().any(|functions| is(functions, &[Rights::DEVICE])))
    }

    fn is_for_vm(&self, vm: &Vm, leaf: Leaf) -> bool {
        /// MemAttr (DDI 0487, D8.6.5): Normal, write-back; Device-nGnRE.
        const NORMAL: u64 = 0b1111;
        const DEVICE: u64 = 0b0001;
        let (normal, device) = (leaf.bits(2, 4) == NORMAL, leaf.bits(2, 4) == DEVICE);
        let writable = leaf.bits(7, 1) == 1;
        // XN: neither at EL0 nor at EL1.
        let executable = leaf.bits(53, 2) != 0b10;
        if self.emulated(vm).iter().any(|frame| frame.overlaps(leaf.input())) {
            return false;
        }
        if self.has_gic_v2() && leaf.is_of(GICC_BASE, self.virtual_interface()) {
            return device && !executable;
        }
        if leaf.is_of(vm.ram_ipa, vm.ram()) {
            return normal;
        }
        if leaf.is_of(STOLEN_BASE, vm.stolen()) {
            return normal && !writable && !executable;
        }
        if leaf.is_of(REPORT_BASE, vm.report()) || leaf.is_of(LINES_BASE, vm.lines()) {
            return normal && !executable;
        }
        let ram = self.board.ram();
        /// MemAttr: Normal, non-cacheable, which the memory of links may be.
        const NON_CACHEABLE: u64 = 0b0101;
        let uncached = cfg!(feature = "links") && leaf.bits(2, 4) == NON_CACHEABLE;
        let is_shared = (normal || uncached) && ram.contains(leaf.output);
        let is_device = device
            && vm.is(vm_flags::DEVICES)
            && leaf.input == leaf.output.start
            && !ram.overlaps(leaf.output);
        (is_shared || is_device) && !executable && !self.is_owned(leaf.output)
    }

    /// Returns what is emulated for a VM, so that each access has to trap.
    fn emulated(&self, vm: &Vm) -> [Region; 3] {
        let uart = Region::new(UART_BASE, UART_SIZE);
        if self.has_gic_v2() {
            let distributor = Region::new(GICD_BASE, GICD_V2_SIZE);
            return [distributor, Region::new(GICC_BASE + GICC_PAGE, GICC_PAGE), uart];
        }
        let redistributors = GICR_STRIDE * u64::from(vm.vcpu_count);
        [Region::new(GICD_BASE, GICD_SIZE), Region::new(GICR_BASE, redistributors), uart]
    }

    /// Returns true if something of a region is EL2's, the firmware's, or one VM's alone.
    pub(super) fn is_owned(&self, region: Region) -> bool {
        let board = &self.board;
        let below = Region::new(board.ram_pa, board.hypervisor_pa.saturating_sub(board.ram_pa));
        let own = [below, board.hypervisor(), self.header.bundle(), board.status(), self.trace()];
        let guests =
            self.vms().iter().flat_map(|vm| [vm.ram(), vm.stolen(), vm.lines(), vm.report()]);
        let mut all = own.into_iter().chain(self.own_devices()).chain(guests);
        all.any(|other| other.overlaps(region))
    }

    /// The configuration space of PCI functions, which EL2 silences while their VM is off: that VM's, too.
    fn functions(&self) -> impl Iterator<Item = Region> {
        let built = if cfg!(feature = "smmu") { MAX_CONFINED } else { 0 };
        self.smmu.confined.iter().take(built).map(Confined::functions)
    }
}
