//! The virtual platform every guest sees.
//!
//! Guest-physical addresses (IPA, bytes) and interrupt numbers (INTID) follow
//! QEMU's `virt` board, so that a guest built for that board runs unchanged.
//! A guest that reads its device tree need not know any of them.

/// Virtual distributor: that of a GICv3, 64 KiB; or on a board with a GICv2 that of one, the first
/// [`GICD_V2_SIZE`] bytes.
pub const GICD_BASE: u64 = 0x0800_0000;
/// Size of the distributor's frame.
pub const GICD_SIZE: u64 = 0x1_0000;
/// Size of the frame of a GICv2's distributor.
pub const GICD_V2_SIZE: u64 = 0x1000;
/// CPU interface of a virtual GICv2: the board's virtual CPU interface, and behind it a page with the
/// register that deactivates (GICC_DIR), which is emulated.
pub const GICC_BASE: u64 = GICD_BASE + GICD_SIZE;
/// Size of each of the two pages.
pub const GICC_PAGE: u64 = 0x1000;
/// Virtual GICv3 redistributors: [`GICR_STRIDE`] bytes for each vCPU, in
/// ascending order of the vCPU's index.
pub const GICR_BASE: u64 = 0x080a_0000;
/// Two 64 KiB frames (RD_base and SGI_base) for each vCPU.
pub const GICR_STRIDE: u64 = 0x2_0000;
/// The console: a PL011.
pub const UART_BASE: u64 = 0x0900_0000;
/// Size of the console's frame.
pub const UART_SIZE: u64 = 0x1000;
/// The console's interrupt: SPI 1, level.
pub const UART_INTID: u32 = 33;
/// What the device tree says of the console's clock, in hertz.
pub const UART_CLOCK_HZ: u32 = 24_000_000;
/// Stolen-time structures (Arm DEN0057A section 3.2), one for each vCPU,
/// [`STOLEN_STRIDE`] bytes apart, read-only to the guest.
pub const STOLEN_BASE: u64 = 0x0b00_0000;
/// Distance between the stolen-time structures of two vCPUs. DEN0057A asks for
/// 64-byte alignment.
pub const STOLEN_STRIDE: u64 = 64;
/// In the stolen-time structure of a vCPU, behind what DEN0057A defines: a byte for each mutex,
/// see [`crate::service::MUTEX_OPEN`].
pub const HOLDS_OFFSET: u64 = 16;
/// Size of the mapping that holds all stolen-time structures of a VM.
pub const STOLEN_SIZE: u64 = 0x1000;
/// Lines of preemption ([`crate::preemption::Line`]), one for each vCPU, [`LINE_STRIDE`] bytes apart,
/// which the guest and EL2 write. Absent unless the system description gives the VM some.
pub const LINES_BASE: u64 = 0x0b10_0000;
/// Distance between the lines of two vCPUs.
pub const LINE_STRIDE: u64 = 64;
/// Size of the mapping that holds all lines of a VM.
pub const LINES_SIZE: u64 = 0x1000;
/// The report area (see [`crate::report`]): memory that the guest writes and
/// the host reads. Absent when the system description gives the VM none.
pub const REPORT_BASE: u64 = 0x0c00_0000;
/// Largest report area.
pub const REPORT_MAX_SIZE: u64 = 0x0400_0000;
/// Memory that several VMs share: each piece at one address in all of them, a multiple of
/// [`SHARED_ALIGN`].
pub const SHARED_BASE: u64 = 0x1000_0000;
/// Alignment of each piece of shared memory: a page of a guest with the largest pages.
pub const SHARED_ALIGN: u64 = 0x1_0000;
/// Most pieces of shared memory, in a whole system.
pub const MAX_SHARED: usize = 8;
/// Largest piece of shared memory.
pub const SHARED_MAX_SIZE: u64 = 0x0100_0000;
/// The registers of links ([`crate::link`]): those of the link with number *n* are [`LINK_STRIDE`]
/// times *n* bytes behind the beginning.
pub const LINKS_BASE: u64 = 0x0b20_0000;
/// Distance between the registers of two links: a page of a guest with the largest pages.
pub const LINK_STRIDE: u64 = 0x1_0000;
/// Most links, in a whole system.
pub const MAX_LINKS: usize = 8;
/// The interrupt that is a link's doorbell, that of the first one: an SPI, by an edge.
pub const LINK_INTID: u32 = INTID_END - MAX_LINKS as u32;
/// The memory of links: that of the link with number *n* begins [`LINK_MAX_SIZE`] times *n* bytes
/// behind this, in both VMs.
pub const LINK_MEMORY_BASE: u64 = SHARED_BASE + MAX_SHARED as u64 * SHARED_MAX_SIZE;
/// Largest memory of a link.
pub const LINK_MAX_SIZE: u64 = 0x0100_0000;
/// The registers of the virtio devices that a VM gets from another one ([`crate::virtio`]), those of all its
/// devices: they trap.
pub const VIRTIO_BASE: u64 = LINKS_BASE + MAX_LINKS as u64 * LINK_STRIDE;
/// Distance between the registers of two devices of a VM.
pub const VIRTIO_STRIDE: u64 = 0x1000;
/// Size of the page that holds them: a page of a guest with the largest pages.
pub const VIRTIO_SIZE: u64 = 0x1_0000;
/// Most virtio devices that a VM may get.
pub const MAX_VIRTIO_DEVICES: usize = 4;
/// The registers of the VM that gives them: for the VM with index *n*, that gets some, [`VIRTIO_SIZE`] times
/// *n* bytes behind this.
pub const VIRTIO_BACK_BASE: u64 = VIRTIO_BASE + VIRTIO_SIZE;
/// The interrupt of a VM's first virtio device: an SPI, by an edge.
pub const VIRTIO_INTID: u32 = VIRTIO_BACK_INTID - MAX_VIRTIO_DEVICES as u32;
/// The doorbell of the VM that gives some to the first VM: an SPI, by an edge.
pub const VIRTIO_BACK_INTID: u32 = LINK_INTID - crate::MAX_VMS as u32;
/// The memory of virtio devices: for those of the VM with index *n*, [`VIRTIO_MEMORY_MAX_SIZE`] times *n* bytes
/// behind this, in both VMs.
pub const VIRTIO_MEMORY_BASE: u64 = LINK_MEMORY_BASE + MAX_LINKS as u64 * LINK_MAX_SIZE;
/// Largest memory of the virtio devices of a VM.
pub const VIRTIO_MEMORY_MAX_SIZE: u64 = 0x0100_0000;
/// Where a guest's memory begins unless its description says otherwise.
pub const RAM_BASE: u64 = 0x4000_0000;
/// Guest-physical addresses have this many bits (stage 2 starts at level 1
/// with one 512-entry table: T0SZ = 25).
pub const IPA_BITS: u32 = 39;

/// Secure EL1 physical timer and friends are not offered; these are.
pub mod ppi {
    /// EL1 virtual timer.
    pub const VIRTUAL_TIMER: u32 = 27;
    /// A task of the vCPU has been granted a mutex, see [`crate::service::MUTEX_LOCK`].
    pub const GRANT: u32 = 22;
    /// EL1 physical timer.
    pub const PHYSICAL_TIMER: u32 = 30;
}

/// First INTID of the shared peripheral interrupts.
pub const SPI_FIRST: u32 = 32;
/// One past the last INTID a virtual distributor implements
/// (GICD_TYPER.ITLinesNumber = 8).
pub const INTID_END: u32 = 288;

/// Every range of guest-physical addresses (base, size) that the platform
/// keeps for itself: neither guest memory nor a passed-through device may
/// touch one, whether the VM at hand has that device or not.
pub const OCCUPIED: [(u64, u64); 6] = [
    // Distributor and CPU interface.
    (GICD_BASE, GICD_SIZE + 2 * GICC_PAGE),
    (GICR_BASE, GICR_STRIDE * crate::MAX_VCPUS_PER_VM as u64),
    (UART_BASE, UART_SIZE),
    // Stolen time, lines of preemption, the registers of links and of virtio, and what is between them.
    (STOLEN_BASE, VIRTIO_BACK_BASE + crate::MAX_VMS as u64 * VIRTIO_SIZE - STOLEN_BASE),
    (REPORT_BASE, REPORT_MAX_SIZE),
    // And the memory of links and of virtio devices.
    (
        SHARED_BASE,
        VIRTIO_MEMORY_BASE + crate::MAX_VMS as u64 * VIRTIO_MEMORY_MAX_SIZE - SHARED_BASE,
    ),
];
