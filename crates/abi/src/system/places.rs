//! Where things lie, as the tables say it.

use super::{Board, Header, Mutex, PAGE_SIZE, Region, System, Vm};
use crate::platform;
use crate::status::Status;
use crate::trace;

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

    /// The report area, physical; empty when there is none.
    #[must_use]
    pub const fn report(&self) -> Region {
        Region::new(self.report_pa, self.report_size)
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

    /// The CRC-32 that belongs into `header.tables_crc`, computed with
    /// `update` (see [`crate::crc::update`]).
    #[must_use]
    pub fn tables_crc(&self, mut update: impl FnMut(u32, &[u8]) -> u32) -> u32 {
        use zerocopy::IntoBytes;
        let field = core::mem::offset_of!(Header, tables_crc);
        let bytes = self.as_bytes();
        let (before, rest) = bytes.split_at(field);
        let (hole, behind) = rest.split_at(size_of::<u32>());
        let zeros = [0; size_of::<u32>()];
        let crc = update(0, before);
        let crc = update(crc, zeros.get(..hole.len()).unwrap_or_default());
        update(crc, behind)
    }
}
