//! Where things lie, as the tables say it.

use super::{
    Board, Confined, DIGEST_SIZE, FUNCTION_SIZE, Header, Mutex, PAGE_SIZE, Part, Region, SIGNED_AS,
    SIGNED_SIZE, SMMU_SIZE, System, Vcpu, Vm, parts, stage1,
};
use crate::platform;
use crate::status::Status;
use crate::trace;
use crate::{MAX_VCPUS, MAX_VMS};
use core::fmt::{self, Write};

/// Most devices that are EL2's.
const OWN_DEVICES: usize = 3
    + if cfg!(feature = "gic-v2") { 1 } else { 0 }
    + if cfg!(feature = "spin-table") { 1 } else { 0 }
    + if cfg!(feature = "smmu") { 1 } else { 0 };
/// Bytes of a GICv2's CPU interface: GICC_DIR has a page for itself (IHI 0048B, section 4.1.3).
const GICC_SIZE: u64 = 0x2000;
/// Bytes of the registers that control a GICv2's virtual CPU interface.
const GICH_SIZE: u64 = 0x1000;

impl Header {
    /// The bundle.
    #[must_use]
    pub const fn bundle(&self) -> Region {
        Region::new(self.bundle_pa, self.bundle_size)
    }

    /// The bundle behind the [`System`].
    #[must_use]
    pub const fn payload(&self) -> Region {
        let tables = size_of::<System>() as u64;
        Region::new(self.bundle_pa.saturating_add(tables), self.bundle_size.saturating_sub(tables))
    }
}

impl Board {
    /// RAM.
    #[must_use]
    pub const fn ram(&self) -> Region {
        Region::new(self.ram_pa, self.ram_size)
    }

    /// The hypervisor's own memory.
    #[must_use]
    pub const fn hypervisor(&self) -> Region {
        Region::new(self.hypervisor_pa, self.hypervisor_size)
    }

    /// The status area, whole pages.
    #[must_use]
    pub const fn status(&self) -> Region {
        let size = (size_of::<Status>() as u64).next_multiple_of(PAGE_SIZE);
        Region::new(self.status_pa, size)
    }
}

impl Vm {
    /// Guest memory, physical.
    #[must_use]
    pub const fn ram(&self) -> Region {
        Region::new(self.ram_pa, self.ram_size)
    }

    /// Guest memory as EL2 sees it while a core fills it: its alias.
    #[must_use]
    pub const fn alias(&self) -> Region {
        Region::new(stage1::ALIAS.saturating_add(self.ram_pa), self.ram_size)
    }

    /// Guest memory as the guest sees it.
    #[must_use]
    pub const fn ram_of_guest(&self) -> Region {
        Region::new(self.ram_ipa, self.ram_size)
    }

    /// The stolen-time page, physical.
    #[must_use]
    pub const fn stolen(&self) -> Region {
        Region::new(self.stolen_pa, platform::STOLEN_SIZE)
    }

    /// The page of its lines of preemption, physical; empty when there is none.
    #[must_use]
    pub const fn lines(&self) -> Region {
        Region::new(self.lines_pa, if self.lines_pa == 0 { 0 } else { platform::LINES_SIZE })
    }

    /// The report area, physical; empty when there is none.
    #[must_use]
    pub const fn report(&self) -> Region {
        Region::new(self.report_pa, self.report_size)
    }
}

impl Confined {
    /// Returns the configuration space of its PCI functions; empty if it is no PCI device.
    #[must_use]
    pub const fn functions(&self) -> Region {
        let count = if self.functions_pa == 0 { 0 } else { self.count as u64 };
        Region::new(self.functions_pa, count * FUNCTION_SIZE)
    }
}

/// Says of a part that it is not what was packed.
#[derive(Clone, Copy, Debug)]
pub struct Damaged<'a> {
    part: &'a Part,
    owner: Option<&'a Vm>,
}

impl fmt::Display for Damaged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.part.what())?;
        if let Some(owner) = self.owner {
            f.write_str(" of VM ")?;
            let name = owner.name.iter().take_while(|&&byte| byte != 0);
            name.into_iter().try_for_each(|&byte| f.write_char(byte.into()))?;
        }
        f.write_str(" is damaged (SHA-256)")
    }
}

impl Part {
    /// Where it is.
    #[must_use]
    pub const fn region(&self) -> Region {
        Region::new(self.pa, self.size)
    }

    /// Returns true if a VM's memory is filled with it.
    #[must_use]
    pub const fn fills_memory(&self) -> bool {
        self.kind >= super::part::KERNEL
    }

    /// Returns true if a VM uses it.
    #[must_use]
    pub const fn is_of(&self, vm: usize) -> bool {
        vm < MAX_VMS && self.vms >> vm & 1 == 1
    }

    /// Returns what to say of a VM that cannot start because of it.
    #[must_use]
    pub const fn damage(&self) -> &'static str {
        match self.kind {
            super::part::INITRAMFS => "its initramfs is damaged",
            super::part::DEVICETREE => "its device tree is damaged",
            _ => "its kernel is damaged",
        }
    }

    /// Returns what it is, in words.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        match self.kind {
            super::part::HYPERVISOR => "the hypervisor's code",
            super::part::STAGE1 => "EL2's page table",
            super::part::STAGE2 => "the page table",
            super::part::KERNEL => "the kernel",
            super::part::INITRAMFS => "the initramfs",
            super::part::DEVICETREE => "the device tree",
            _ => "a part of unknown kind",
        }
    }
}

impl Mutex {
    /// The ranks of a vCPU's tasks, by its index in [`System::vcpus`]: a bit for each.
    #[must_use]
    pub fn ranks_of(&self, vcpu: usize) -> u64 {
        let claimants = self.vcpus.iter().take(self.claimant_count as usize).enumerate();
        let own = claimants.filter(|&(_, &claimant)| usize::from(claimant) == vcpu);
        own.fold(0, |ranks, (rank, _)| ranks | 1 << rank)
    }
}

impl System {
    /// Returns true if the board has a GICv2: false without looking in a build without that part.
    #[must_use]
    #[inline(always)]
    pub const fn has_gic_v2(&self) -> bool {
        cfg!(feature = "gic-v2") && self.header.version & parts::GIC_V2 != 0
    }

    /// Returns the devices that are EL2's: those of the interrupt controller, and the UART, which
    /// fills up what is left.
    #[must_use]
    pub fn own_devices(&self) -> [Region; OWN_DEVICES] {
        let board = &self.board;
        let mut own = [Region::new(board.uart_pa, platform::UART_SIZE); OWN_DEVICES];
        if self.has_gic_v2() {
            own[0] = Region::new(board.gicd_pa, platform::GICD_V2_SIZE);
            own[1] = Region::new(board.gicc_pa, GICC_SIZE);
            own[2] = Region::new(board.gich_pa, GICH_SIZE);
        } else {
            let redistributors = board.gicr_stride.saturating_mul(board.pcpu_count.into());
            own[0] = Region::new(board.gicd_pa, platform::GICD_SIZE);
            own[1] = Region::new(board.gicr_pa, redistributors);
        }
        if self.has_spin_table() {
            own[OWN_DEVICES - 1] = Region::new(board.power_pa, PAGE_SIZE);
        }
        if cfg!(feature = "smmu") && self.smmu.registers_pa != 0 {
            // Behind what is there always.
            if let Some(place) = own.get_mut(3) {
                *place = Region::new(self.smmu.registers_pa, SMMU_SIZE);
            }
        }
        own
    }

    /// Returns true if the firmware has a spin table: false without looking in a build without that part.
    #[must_use]
    #[inline(always)]
    pub const fn has_spin_table(&self) -> bool {
        cfg!(feature = "spin-table") && self.header.version & parts::SPIN_TABLE != 0
    }

    /// Returns the page with the addresses at which the cores go on that wait in a spin table.
    #[must_use]
    pub const fn release(&self) -> Region {
        Region::new(self.board.release_pa & !(PAGE_SIZE - 1), PAGE_SIZE)
    }

    /// Returns what a guest sees of a GICv2's virtual CPU interface.
    #[must_use]
    pub const fn virtual_interface(&self) -> Region {
        Region::new(self.board.gicv_pa, platform::GICC_PAGE)
    }

    /// Returns a VM by its index, in tables that are valid: there are no other indices, and none is
    /// compared with their number at each access.
    #[must_use]
    #[inline]
    pub const fn vm(&self, index: usize) -> &Vm {
        debug_assert!(index < MAX_VMS);
        &self.vms[index & (MAX_VMS - 1)]
    }

    /// Returns a vCPU by its index, as [`Self::vm`] does a VM.
    #[must_use]
    #[inline]
    pub const fn vcpu(&self, index: usize) -> &Vcpu {
        debug_assert!(index < MAX_VCPUS);
        &self.vcpus[index & (MAX_VCPUS - 1)]
    }

    /// Used entries of [`System::vms`]; none when the count is out of range.
    #[must_use]
    pub fn vms(&self) -> &[Vm] {
        self.vms.get(..self.header.vm_count as usize).unwrap_or_default()
    }

    /// Returns the trace, right behind the status area. Empty when there is none.
    #[must_use]
    pub const fn trace(&self) -> Region {
        let status = self.board.status();
        let size = trace::size(self.header.trace_size as u64, self.board.pcpu_count as u64);
        Region::new(status.start.saturating_add(status.size), size)
    }

    /// Returns where the header of a pCPU's ring is; the ring is right behind it.
    #[must_use]
    pub const fn trace_header(&self, pcpu: usize) -> u64 {
        let each = trace::HEADER_SIZE + self.header.trace_size as u64;
        self.trace().start + each * pcpu as u64
    }

    /// Returns what belongs into `header.tables_sha256`, computed with `sha256` of bytes that
    /// follow one another.
    #[must_use]
    pub fn digest(
        &self,
        sha256: impl FnOnce([&[u8]; 3]) -> [u8; DIGEST_SIZE],
    ) -> [u8; DIGEST_SIZE] {
        use zerocopy::IntoBytes;
        let (covered, _) = self.as_bytes().split_at(core::mem::offset_of!(Self, signature));
        let (before, rest) = covered.split_at(core::mem::offset_of!(Header, tables_sha256));
        let (_, behind) = rest.split_at(DIGEST_SIZE);
        sha256([before, &[0; DIGEST_SIZE], behind])
    }

    /// Returns what `signature` signs: the digest of the tables, which have those of all parts.
    #[must_use]
    pub fn signed(&self) -> [u8; SIGNED_SIZE] {
        let mut message = [0; SIGNED_SIZE];
        let (text, rest) = message.split_at_mut(SIGNED_AS.len());
        let (version, digest) = rest.split_at_mut(size_of::<u32>());
        text.copy_from_slice(&SIGNED_AS);
        version.copy_from_slice(&self.header.version.to_le_bytes());
        digest.copy_from_slice(&self.header.tables_sha256);
        message
    }

    /// Returns the used entries of [`System::parts`]; none when the count is out of range.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        self.parts.get(..self.header.part_count as usize).unwrap_or_default()
    }

    /// Returns what to say when a part is not what its digest says.
    #[must_use]
    pub fn damaged<'a>(&'a self, part: &'a Part) -> Damaged<'a> {
        Damaged { part, owner: self.vms().get(part.vms.trailing_zeros() as usize) }
    }
}
