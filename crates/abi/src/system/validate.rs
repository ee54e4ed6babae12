//! What EL2 checks before it believes a [`System`].
//!
//! The digest says that the tables are those the host wrote; this says that
//! they are such as EL2 can use without further thought: every index is in
//! range, every address in memory that may be used so, nothing overlaps. It
//! is pure arithmetic, so that the host tests the very code that runs at EL2.

#[cfg(feature = "links")]
use super::Link;
#[cfg(feature = "virtio")]
use super::Virtio;
#[cfg(feature = "smmu")]
use super::{Confined, SMMU_SIZE, STREAMS};
use super::{
    EDGE, HYPERVISOR_SIZE, Header, LOAD_ALIGN, Load, MAGIC, MAX_BOOST_PERIOD_NS, MAX_BOOSTS,
    MAX_CONSOLIDATION_WINDOW_NS, MAX_DELAY_LIMIT_NS, MAX_PERIOD_NS, MAX_PRIORITY, MAX_QUANTUM_NS,
    MAX_SIBLING_GRACE_NS, MAX_TIMER_ADVANCE_NS, MIN_BOOST_NS, MIN_BUDGET_NS,
    MIN_CONSOLIDATION_WINDOW_NS, MIN_QUANTUM_NS, MIN_WATCHDOG_NS, Mutex, NO_DELAY_LIMIT, PAGE_SIZE,
    RAM_ALIGN, Region, SPI_END, System, VERSION, Vcpu, Vm, flags, part, parts, server, stage1,
    vcpu_flags, vm_flags,
};
use crate::platform::{self, INTID_END, IPA_BITS, OCCUPIED, REPORT_MAX_SIZE, SPI_FIRST};
use crate::{MAX_VCPUS_PER_VM, MAX_VMS, trace};

/// Physical addresses EL2 can map: an identity of all, and all guest memory by its alias.
const ADDRESSABLE: Region = Region::new(0, stage1::ALIAS);
/// Guest-physical addresses.
const IPA_SPACE: Region = Region::new(0, 1 << IPA_BITS);
/// All of [`vcpu_flags`].
const VCPU_FLAGS: u16 =
    vcpu_flags::URGENT | vcpu_flags::MARKABLE | vcpu_flags::LOWER | vcpu_flags::ADAPTS;
/// Affinity fields of MPIDR_EL1.
const AFFINITY: u64 = 0xff_00ff_ffff;

macro_rules! invalid {
    ($($(#[$when:meta])* $name:ident = $message:literal,)*) => {
        /// Why a [`System`] cannot be used.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Invalid {
            $($(#[$when])* #[doc = $message] $name,)*
        }

        impl Invalid {
            /// The reason in words.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self {
                    $($(#[$when])* Self::$name => $message,)*
                }
            }
        }
    };
}

invalid! {
    Magic = "no system is behind the hypervisor (wrong magic)",
    Version = "the system was packed for another version of the hypervisor",
    TablesDigest = "the tables are damaged (SHA-256)",
    Parts = "the digests do not cover the hypervisor and all of the bundle",
    Counts = "a count exceeds its table",
    Trace = "a trace's ring is no power of two or of an impossible size",
    Watchdog = "the time of the watchdog is too short",
    SiblingGrace = "siblings may wait too long for each other's kernels",
    Flags = "a flag is set that has no meaning",
    Ram = "the board's memory is empty, unaligned or out of reach",
    Hypervisor = "the hypervisor's memory is elsewhere",
    Bundle = "the bundle is not right behind the hypervisor, or unaligned",
    Device = "a device of the board lies in memory or is unaligned",
    UartIntid = "the console's interrupt is not an SPI",
    Pcpu = "two pCPUs have one affinity, or an affinity is impossible",
    Stage1 = "EL2's page table lies outside the bundle",
    TableForm = "a page table has a reserved descriptor, or leads outside the bundle",
    Stage1Reach = "EL2's page table maps what is not EL2's, or with other rights",
    Stage2Reach = "a VM's page table maps what the VM was not given, or with other rights",
    Overlap = "two ranges of memory overlap",
    OutsideRam = "a range lies outside the board's memory",
    VmName = "a VM's name is empty or has forbidden bytes",
    VmVcpus = "a VM's vCPUs do not follow those of the VM before",
    VmLoads = "a VM's loads do not follow those of the VM before",
    VmMemory = "a VM's memory is empty, unaligned or overlaps its platform",
    VmEntry = "a VM's entry lies outside its memory",
    VmStage2 = "a VM's page table lies outside the bundle",
    VmDelay = "a VM makes others wait too long",
    VmReport = "a VM's report area is too large or unaligned",
    Vcpu = "a vCPU's index, pCPU, priority, quantum or server is out of range",
    Consolidation = "a pCPU that must stay on has a consolidation target, or a target has one",
    Load = "a load reaches outside the bundle or its VM's memory",
    Mutex = "a mutex has no claimants or too many, or one that may not hold it",
    #[cfg(feature = "links")]
    Link = "a link is between VMs that do not exist",
    #[cfg(feature = "smmu")]
    Smmu = "the SMMU lies in memory, or a device behind it is no VM's or has streams of another one",
    #[cfg(feature = "virtio")]
    Virtio = "a VM gets virtio devices from one that does not exist, or too many",
    Spi = "an interrupt or its pCPU is out of range, or it is given twice",
}

/// `Ok` when the condition holds.
pub(super) fn ensure(holds: bool, otherwise: Invalid) -> Result<(), Invalid> {
    if holds { Ok(()) } else { Err(otherwise) }
}

impl Header {
    /// Magic and version: whether there is a [`System`] of our kind at all.
    ///
    /// # Errors
    /// [`Invalid::Magic`] or [`Invalid::Version`].
    pub fn identify(&self) -> Result<(), Invalid> {
        ensure(self.magic == MAGIC, Invalid::Magic)?;
        ensure(self.version & !parts::BUILT == VERSION, Invalid::Version)
    }
}

impl System {
    /// Checks everything but the digests.
    ///
    /// # Errors
    /// The first fault found. Never panics, whatever the bytes.
    // Not inlined, here and in `reach`: the caller is not compiled for size.
    #[inline(never)]
    pub fn validate(&self) -> Result<(), Invalid> {
        self.header.identify()?;
        self.check_counts()?;
        self.check_board()?;
        self.check_pcpus()?;
        self.check_vms()?;
        self.check_regions()?;
        self.check_vcpus()?;
        self.check_consolidation_targets()?;
        self.check_loads()?;
        self.check_spis()?;
        self.check_mutexes()?;
        #[cfg(feature = "links")]
        self.check_links()?;
        #[cfg(feature = "smmu")]
        self.check_smmu()?;
        #[cfg(feature = "virtio")]
        self.check_virtio()?;
        self.check_parts()
    }

    /// Returns true if the system has a part, and this build, too: false without looking in a build without
    /// that part.
    #[inline(always)]
    const fn has(&self, part: u32) -> bool {
        parts::has(part) && self.header.version & part != 0
    }

    fn check_counts(&self) -> Result<(), Invalid> {
        let Header { vm_count, vcpu_count, load_count, spi_count, .. } = self.header;
        let fits = |count: u32, table: usize| (count as usize) <= table;
        ensure(
            vm_count > 0
                && fits(vm_count, self.vms.len())
                && fits(vcpu_count, self.vcpus.len())
                && fits(load_count, self.loads.len())
                && fits(spi_count, self.spis.len()),
            Invalid::Counts,
        )?;
        let known = flags::PRIORITY_SEPARATION
            | flags::OFF_WHEN_DONE
            | flags::RESET_ON_FAULT
            | flags::DIRECTED_YIELD;
        ensure(self.header.flags & !known == 0, Invalid::Flags)?;
        // 0, which is none, becomes the largest.
        let watchdog = self.header.watchdog_ns.wrapping_sub(1);
        ensure(watchdog >= MIN_WATCHDOG_NS - 1, Invalid::Watchdog)?;
        ensure(self.header.sibling_grace_ns <= MAX_SIBLING_GRACE_NS, Invalid::SiblingGrace)?;
        let trace = u64::from(self.header.trace_size);
        let sound = trace.is_power_of_two() && (trace::MIN_SIZE..=trace::MAX_SIZE).contains(&trace);
        ensure(trace == 0 || sound, Invalid::Trace)
    }

    fn check_board(&self) -> Result<(), Invalid> {
        let Self { header, board, .. } = self;
        let ram = board.ram();
        ensure(
            ram.size > 0 && ram.is_aligned(PAGE_SIZE) && ADDRESSABLE.contains(ram),
            Invalid::Ram,
        )?;
        let hypervisor = board.hypervisor();
        ensure(
            hypervisor.size == HYPERVISOR_SIZE
                && hypervisor.is_aligned(RAM_ALIGN)
                && ram.contains(hypervisor),
            Invalid::Hypervisor,
        )?;
        let bundle = header.bundle();
        ensure(
            hypervisor.end() == Some(bundle.start)
                && bundle.is_aligned(PAGE_SIZE)
                && bundle.size >= size_of::<Self>() as u64
                && ram.contains(bundle),
            Invalid::Bundle,
        )?;
        ensure(self.is_table(board.stage1_pa), Invalid::Stage1)?;
        self.check_board_devices()
    }

    fn check_board_devices(&self) -> Result<(), Invalid> {
        let board = &self.board;
        let strides = board.gicr_stride >= platform::GICR_STRIDE;
        ensure(self.has_gic_v2() || strides, Invalid::Device)?;
        if self.has_gic_v2() {
            let interface = self.virtual_interface();
            ensure(interface.is_aligned(PAGE_SIZE) && !self.is_owned(interface), Invalid::Device)?;
        }
        if self.has_spin_table() {
            // It is the firmware's memory, and nothing that EL2 has otherwise.
            let below = Region::new(board.ram_pa, board.hypervisor_pa.saturating_sub(board.ram_pa));
            let last = board.release_pa.saturating_add(8 * crate::MAX_PCPUS as u64);
            let sound = below.contains(self.release()) && self.release().end() >= Some(last);
            ensure(sound && board.release_pa.is_multiple_of(8), Invalid::Device)?;
        }
        for device in self.own_devices() {
            let usable = device.is_aligned(PAGE_SIZE)
                && ADDRESSABLE.contains(device)
                && !device.overlaps(board.ram());
            ensure(usable, Invalid::Device)?;
        }
        ensure((SPI_FIRST..SPI_END).contains(&board.uart_intid), Invalid::UartIntid)
    }

    fn check_pcpus(&self) -> Result<(), Invalid> {
        let mpidrs = self.board.pcpu_mpidr.get(..self.board.pcpu_count as usize);
        let mpidrs = mpidrs.ok_or(Invalid::Counts)?;
        ensure(!mpidrs.is_empty(), Invalid::Counts)?;
        for (i, mpidr) in mpidrs.iter().enumerate() {
            let fresh = !mpidrs.iter().skip(i + 1).any(|other| other == mpidr);
            ensure(fresh && mpidr & !AFFINITY == 0, Invalid::Pcpu)?;
        }
        Ok(())
    }

    /// Returns true if a page table may lie there.
    pub(super) fn is_table(&self, pa: u64) -> bool {
        let table = Region::new(pa, PAGE_SIZE);
        table.is_aligned(PAGE_SIZE) && self.header.payload().contains(table)
    }

    fn check_vms(&self) -> Result<(), Invalid> {
        let (mut vcpus, mut loads) = (0, 0);
        for vm in self.vms() {
            ensure(is_name(&vm.name), Invalid::VmName)?;
            let known = vm_flags::REALTIME
                | vm_flags::CONSOLE
                | vm_flags::RESTART_ON_FAULT
                | vm_flags::DEVICES
                | vm_flags::YIELD
                | vm_flags::COUNT_AT_16
                | vm_flags::INTERRUPTS_STAY;
            ensure(vm.flags & !known == 0, Invalid::Flags)?;
            let count = usize::from(vm.vcpu_count);
            ensure(
                u32::from(vm.vcpu_first) == vcpus && (1..=MAX_VCPUS_PER_VM).contains(&count),
                Invalid::VmVcpus,
            )?;
            vcpus += u32::from(vm.vcpu_count);
            ensure(u32::from(vm.load_first) == loads, Invalid::VmLoads)?;
            loads += u32::from(vm.load_count);
            self.check_vm_memory(vm)?;
        }
        ensure(vcpus == self.header.vcpu_count, Invalid::VmVcpus)?;
        ensure(loads == self.header.load_count, Invalid::VmLoads)
    }

    fn check_vm_memory(&self, vm: &Vm) -> Result<(), Invalid> {
        let guest = vm.ram_of_guest();
        let clear = OCCUPIED.iter().all(|&(base, size)| !guest.overlaps(Region::new(base, size)));
        ensure(
            guest.size > 0
                && guest.is_aligned(RAM_ALIGN)
                && vm.ram().is_aligned(RAM_ALIGN)
                && IPA_SPACE.contains(guest)
                && clear,
            Invalid::VmMemory,
        )?;
        ensure(
            vm.entry_ipa.is_multiple_of(4)
                && guest.contains(Region::new(vm.entry_ipa, 4))
                && guest.contains(Region::new(vm.entry_x0, 1)),
            Invalid::VmEntry,
        )?;
        ensure(vm.stage2_pa.iter().all(|&root| self.is_table(root)), Invalid::VmStage2)?;
        ensure(self.is_table(vm.stage1_pa), Invalid::Stage1)?;
        let is_limited = vm.delay_limit_ns <= MAX_DELAY_LIMIT_NS;
        ensure(is_limited || vm.delay_limit_ns == NO_DELAY_LIMIT, Invalid::VmDelay)?;
        let report = vm.report();
        ensure(
            report.size <= REPORT_MAX_SIZE && (report.size == 0 || report.is_aligned(PAGE_SIZE)),
            Invalid::VmReport,
        )
    }

    /// Everything that lies in RAM is inside it and apart from the rest.
    fn check_regions(&self) -> Result<(), Invalid> {
        const COUNT: usize = 4 + 4 * MAX_VMS;
        let mut regions = [Region::new(0, 0); COUNT];
        let board = &self.board;
        let own = [board.hypervisor(), self.header.bundle(), board.status(), self.trace()];
        let guests = self.vms().iter();
        let guests = guests.flat_map(|vm| [vm.ram(), vm.stolen(), vm.lines(), vm.report()]);
        for (slot, region) in regions.iter_mut().zip(own.into_iter().chain(guests)) {
            *slot = region;
        }
        for (i, &region) in regions.iter().enumerate().filter(|(_, region)| region.size > 0) {
            ensure(self.board.ram().contains(region), Invalid::OutsideRam)?;
            ensure(region.is_aligned(PAGE_SIZE), Invalid::OutsideRam)?;
            let apart = !regions.iter().skip(i + 1).any(|other| other.overlaps(region));
            ensure(apart, Invalid::Overlap)?;
        }
        Ok(())
    }

    fn check_vcpus(&self) -> Result<(), Invalid> {
        for (number, vm) in self.vms().iter().enumerate() {
            let mine = self.vcpus.iter().skip(vm.vcpu_first.into()).take(vm.vcpu_count.into());
            for (index, vcpu) in mine.enumerate() {
                let placed = usize::from(vcpu.vm) == number && usize::from(vcpu.index) == index;
                ensure(placed && self.is_schedulable(vcpu), Invalid::Vcpu)?;
            }
        }
        Ok(())
    }

    fn is_schedulable(&self, vcpu: &Vcpu) -> bool {
        u32::from(vcpu.pcpu) < self.board.pcpu_count
            && self.is_movable(vcpu)
            && vcpu.flags & !VCPU_FLAGS == 0
            && (!vcpu.is_markable() || self.stays_below(vcpu))
            && (is_never_boosted(vcpu) || self.has(parts::BOOSTS) && self.is_boosted_soundly(vcpu))
            && (has_no_sections(vcpu) || self.has(parts::SECTIONS))
            && (!vcpu.is_lower() || self.is_realtime(vcpu) && !vcpu.adapts())
            && is_served(vcpu)
            && vcpu.timer_advance_ns <= self.longest_timer_advance_ns(vcpu)
            && vcpu.priority <= MAX_PRIORITY
            && (MIN_QUANTUM_NS..=MAX_QUANTUM_NS).contains(&vcpu.quantum_ns)
    }

    /// Returns true if it stays on its pCPU, has no budget there, and is no real-time one.
    fn stays_below(&self, vcpu: &Vcpu) -> bool {
        vcpu.server == server::NONE && vcpu.elsewhere() == 0 && !self.is_realtime(vcpu)
    }

    /// Returns true if its boosts raise it for some time, nothing else raises it, and it stays below
    /// what is promised something.
    fn is_boosted_soundly(&self, vcpu: &Vcpu) -> bool {
        (MIN_BUDGET_NS as u32..=vcpu.boost_period_ns).contains(&vcpu.boost_budget_ns)
            && vcpu.boost_period_ns <= MAX_BOOST_PERIOD_NS
            && vcpu.boost_window_ns <= vcpu.boost_period_ns
            && (vcpu.priority + 1..=MAX_PRIORITY).contains(&vcpu.boost_priority)
            && vcpu.reserved == 0
            && !vcpu.is_markable()
            && self.stays_below(vcpu)
            && self.boosts_fit(vcpu.pcpu)
    }

    /// Returns true if no more vCPUs of this pCPU may be boosted than its scheduler has room for.
    fn boosts_fit(&self, pcpu: u16) -> bool {
        let boosted = |vcpu: &&Vcpu| vcpu.pcpu == pcpu && vcpu.may_be_boosted();
        self.vcpus.iter().filter(boosted).count() <= MAX_BOOSTS
            && self.header.vcpu_count as usize + MAX_BOOSTS <= crate::MAX_VCPUS
    }

    fn is_realtime(&self, vcpu: &Vcpu) -> bool {
        self.vms().get(usize::from(vcpu.vm)).is_some_and(|vm| vm.is(vm_flags::REALTIME))
    }

    fn is_movable(&self, vcpu: &Vcpu) -> bool {
        let pcpus = (1u32 << self.board.pcpu_count) - 1;
        let base = 1 << (vcpu.pcpu & 15);
        u32::from(vcpu.affinity) & !pcpus == 0
            && vcpu.affinity & base != 0
            && vcpu.rotation & !vcpu.elsewhere() == 0
            && vcpu.fallback < 16
            && vcpu.affinity >> vcpu.fallback & 1 == 1
    }

    fn longest_timer_advance_ns(&self, vcpu: &Vcpu) -> u32 {
        if self.is_realtime(vcpu) {
            MAX_TIMER_ADVANCE_NS
        } else {
            // Its boost has to last until the timer fires, on a board with a slow counter, too.
            let lasts = vcpu.boost_window_ns.min(vcpu.boost_budget_ns);
            lasts.saturating_sub(MIN_BOOST_NS).min(MAX_TIMER_ADVANCE_NS)
        }
    }

    /// Checks that a pCPU that may be powered down is neither the boot core nor the
    /// base of a VM's first vCPU or of a real-time vCPU, that no policy moves a vCPU
    /// to it and no interrupt is routed there, and that its consolidation target stays on.
    fn check_consolidation_targets(&self) -> Result<(), Invalid> {
        let window = MIN_CONSOLIDATION_WINDOW_NS..=MAX_CONSOLIDATION_WINDOW_NS;
        ensure(window.contains(&self.header.consolidation_window_ns), Invalid::Consolidation)?;
        let targets = self.board.consolidation_target.get(..self.board.pcpu_count as usize);
        let targets = targets.ok_or(Invalid::Counts)?;
        let vcpus = self.vcpus.get(..self.header.vcpu_count as usize).ok_or(Invalid::Counts)?;
        let spis = self.spis.get(..self.header.spi_count as usize).ok_or(Invalid::Counts)?;
        for (pcpu, &target) in targets.iter().enumerate() {
            if usize::from(target) == pcpu {
                continue;
            }
            ensure(self.has(parts::CONSOLIDATION), Invalid::Consolidation)?;
            let stays_on = targets.get(usize::from(target)) == Some(&target);
            let bound = vcpus.iter().any(|vcpu| {
                let based = usize::from(vcpu.pcpu) == pcpu;
                let comes = vcpu.elsewhere() >> pcpu & 1 == 1;
                let vm = self.vms().get(usize::from(vcpu.vm));
                let realtime = vm.is_none_or(|vm| vm.is(vm_flags::REALTIME));
                let stays =
                    vcpu.index == 0 || realtime || vcpu.has_sections() || vcpu.is_markable();
                comes || based && stays
            });
            let bound = bound || spis.iter().any(|spi| usize::from(spi.pcpu) == pcpu);
            ensure(pcpu != 0 && stays_on && !bound, Invalid::Consolidation)?;
        }
        Ok(())
    }

    fn check_loads(&self) -> Result<(), Invalid> {
        for (index, vm) in self.vms().iter().enumerate() {
            let mine = self.loads.iter().skip(vm.load_first.into()).take(vm.load_count.into());
            for load in mine {
                ensure(self.is_loadable(vm, load), Invalid::Load)?;
                ensure(load.size == 0 || self.has_digest(index, load), Invalid::Parts)?;
            }
        }
        Ok(())
    }

    fn is_loadable(&self, vm: &Vm, load: &Load) -> bool {
        let Some(filled) = load.size.checked_add(load.zero_size) else { return false };
        (load.src_pa | load.dst_pa).is_multiple_of(LOAD_ALIGN)
            && self.header.payload().contains(Region::new(load.src_pa, load.size))
            && vm.ram().contains(Region::new(load.dst_pa, filled))
    }

    /// Returns true if what is loaded is compared with its digest before this VM starts.
    fn has_digest(&self, vm: usize, load: &Load) -> bool {
        let loaded = Region::new(load.src_pa, load.size);
        let mut own = self.parts().iter().filter(|part| part.fills_memory() && part.is_of(vm));
        own.any(|part| part.region().contains(loaded))
    }

    /// The hypervisor's parts lie in its memory, the others fill the bundle: nothing of it is used
    /// that has no digest.
    fn check_parts(&self) -> Result<(), Invalid> {
        let hypervisor = self.board.hypervisor();
        let bundle = self.header.bundle();
        let mut end = self.header.payload().start;
        let count = self.header.part_count as usize;
        for part in self.parts.get(..count).ok_or(Invalid::Parts)? {
            let own = part.kind == part::HYPERVISOR;
            let place = if own {
                hypervisor.contains(part.region())
            } else {
                let follows = part.pa == end;
                end = part.region().end().ok_or(Invalid::Parts)?;
                follows && bundle.contains(part.region())
            };
            // EL2 reads these by blocks of the digest.
            let blocks = !part.fills_memory() || (part.pa | part.size).is_multiple_of(LOAD_ALIGN);
            let known = part.kind < part::KINDS && part.vms >> self.header.vm_count.min(31) == 0;
            ensure(place && blocks && known, Invalid::Parts)?;
        }
        ensure(Some(end) == bundle.end(), Invalid::Parts)
    }

    #[cfg(feature = "links")]
    fn check_links(&self) -> Result<(), Invalid> {
        let exists = |vm: u16| u32::from(vm) < self.header.vm_count;
        let is_sound = |link: &Link| match link.vms {
            [first, second] if first == second => first == 0,
            both => self.has(parts::LINKS) && both.into_iter().all(exists),
        };
        ensure(self.links.iter().all(is_sound), Invalid::Link)
    }

    #[cfg(feature = "smmu")]
    fn check_smmu(&self) -> Result<(), Invalid> {
        let own = Region::new(self.smmu.registers_pa, SMMU_SIZE);
        if !self.has(parts::SMMU) {
            let is_zero = self.smmu.confined.iter().all(|device| *device == Confined::NONE);
            return ensure(own.start == 0 && is_zero, Invalid::Smmu);
        }
        let usable = |region: Region| {
            region.is_aligned(PAGE_SIZE)
                && ADDRESSABLE.contains(region)
                && !region.overlaps(self.board.ram())
        };
        ensure(own.start != 0 && usable(own), Invalid::Smmu)?;
        for (i, device) in self.smmu.confined.iter().enumerate() {
            if device.count == 0 {
                ensure(*device == Confined::NONE, Invalid::Smmu)?;
                continue;
            }
            let has = self.vms().get(usize::from(device.vm));
            let apart =
                self.smmu.confined.iter().skip(i + 1).all(|other| !device.has_stream_of(other));
            ensure(
                has.is_some_and(|vm| vm.is(vm_flags::DEVICES))
                    && device.end() <= u32::from(STREAMS)
                    && usable(device.functions())
                    && apart
                    && device.reserved == 0,
                Invalid::Smmu,
            )?;
        }
        Ok(())
    }

    #[cfg(feature = "virtio")]
    fn check_virtio(&self) -> Result<(), Invalid> {
        const MAX_DEVICES: u16 = platform::MAX_VIRTIO_DEVICES as u16;
        let exists = |vm: usize| vm < self.header.vm_count as usize;
        let is_sound = |(vm, given): (usize, &Virtio)| match given.devices {
            0 => given.back == 0,
            1..=MAX_DEVICES => {
                let back = usize::from(given.back);
                self.has(parts::VIRTIO) && back != vm && exists(vm) && exists(back)
            }
            _ => false,
        };
        ensure(self.virtio.iter().enumerate().all(is_sound), Invalid::Virtio)
    }

    fn check_mutexes(&self) -> Result<(), Invalid> {
        if !self.has(parts::SECTIONS) {
            return ensure(self.header.mutex_count == 0, Invalid::Mutex);
        }
        let mutexes =
            self.mutexes.get(..self.header.mutex_count as usize).ok_or(Invalid::Counts)?;
        ensure(mutexes.iter().all(|mutex| is_claimed(self, mutex)), Invalid::Mutex)?;
        for (id, vcpu) in self.vcpus.iter().enumerate() {
            let claims = |&(_, mutex): &(usize, &Mutex)| mutex.ranks_of(id) != 0;
            let claimed = mutexes.iter().enumerate().filter(claims);
            let claimed = claimed.fold(0, |set, (number, _)| set | 1 << number);
            ensure(vcpu.mutexes == claimed, Invalid::Mutex)?;
        }
        Ok(())
    }

    fn check_spis(&self) -> Result<(), Invalid> {
        let spis = self.spis.get(..self.header.spi_count as usize).ok_or(Invalid::Counts)?;
        for (i, spi) in spis.iter().enumerate() {
            let vm = self.vms().get(usize::from(spi.vm)).ok_or(Invalid::Spi)?;
            let first = self.vcpus.get(usize::from(vm.vcpu_first));
            let routed = if vm.is(vm_flags::INTERRUPTS_STAY) {
                u32::from(spi.pcpu) < self.board.pcpu_count
            } else {
                first.is_some_and(|vcpu| vcpu.pcpu == spi.pcpu)
            };
            let free = spi.physical != self.board.uart_intid
                && !(vm.is(vm_flags::CONSOLE) && spi.virtual_ == platform::UART_INTID);
            let in_range = (SPI_FIRST..SPI_END).contains(&spi.physical)
                && (SPI_FIRST..INTID_END).contains(&spi.virtual_);
            let fresh = !spis.iter().skip(i + 1).any(|other| {
                other.physical == spi.physical
                    || (other.vm == spi.vm && other.virtual_ == spi.virtual_)
            });
            ensure(free && routed && in_range && fresh && spi.trigger <= EDGE, Invalid::Spi)?;
        }
        Ok(())
    }
}

/// Returns true if the vCPUs of a mutex's claimants are there and have servers.
fn is_claimed(system: &System, mutex: &Mutex) -> bool {
    let vcpus = system.vcpus.get(..system.header.vcpu_count as usize);
    let claimants = mutex.vcpus.get(..mutex.claimant_count as usize);
    let may_hold = |&vcpu: &u8| {
        let vcpu = vcpus.and_then(|vcpus| vcpus.get(usize::from(vcpu)));
        vcpu.is_some_and(|vcpu| vcpu.server != server::NONE)
    };
    claimants.is_some_and(|claimants| !claimants.is_empty() && claimants.iter().all(may_hold))
}

/// Returns true if the tables say nothing of boosts of a vCPU.
fn is_never_boosted(vcpu: &Vcpu) -> bool {
    let times = [vcpu.boost_budget_ns, vcpu.boost_period_ns, vcpu.boost_window_ns];
    times == [0; 3] && (vcpu.boost_priority, vcpu.reserved) == (0, 0)
}

/// Returns true if the tables say nothing of sections of a vCPU.
fn has_no_sections(vcpu: &Vcpu) -> bool {
    (vcpu.gcs_ns, vcpu.gcs_calls, vcpu.mutexes) == (0, 0, 0)
}

/// Returns true if a vCPU has no server, or one that can be. A vCPU that may have global critical
/// sections stays on its pCPU: that one alone raises and lowers it.
fn is_served(vcpu: &Vcpu) -> bool {
    match vcpu.server {
        server::NONE => {
            let times = [vcpu.budget_ns, vcpu.period_ns, vcpu.overrun_ns, vcpu.offset_ns];
            times == [0; 4] && vcpu.gcs_ns == 0
        }
        server::PERIODIC | server::DEFERRABLE => {
            (MIN_BUDGET_NS..=vcpu.period_ns).contains(&vcpu.budget_ns)
                && vcpu.period_ns <= MAX_PERIOD_NS
                && vcpu.overrun_ns <= vcpu.period_ns - vcpu.budget_ns
                && vcpu.offset_ns < vcpu.period_ns
                && vcpu.gcs_ns <= vcpu.period_ns
                && (vcpu.elsewhere() == 0 || !vcpu.has_sections())
        }
        _ => false,
    }
}

/// Lower-case letters, digits and hyphens, at least one and at most 15, then
/// zero bytes only.
fn is_name(bytes: &[u8; 16]) -> bool {
    let length = bytes.iter().take_while(|&&byte| byte != 0).count();
    let (name, filling) = bytes.split_at(length);
    let allowed = |&byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..bytes.len()).contains(&length)
        && name.iter().all(allowed)
        && filling.iter().all(|&byte| byte == 0)
}
