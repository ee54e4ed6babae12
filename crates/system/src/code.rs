//! The kinds of problem a description can have.

use miette::Severity;

macro_rules! codes {
    ($($variant:ident = $name:literal, $severity:ident, $meaning:literal;)*) => {
        /// Kind of a [`crate::Problem`]; its name is stable, for scripts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $variant,)*
        }

        impl Code {
            /// Every kind there is.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name, as it stands in messages.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns true if it is an error or a warning.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// What it means in general.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

codes! {
    Unreadable = "unreadable", Error, "The description cannot be read.";
    Syntax = "syntax", Error, "The description is not TOML.";
    UnknownKey = "unknown-key", Error, "A key that means nothing here.";
    MissingKey = "missing-key", Error, "A key that must be there is not.";
    WrongType = "wrong-type", Error, "A value of another type than its key wants.";
    BadValue = "bad-value", Error, "A value of the right type that makes no sense.";
    UnknownBoard = "unknown-board", Error, "There is no such board.";
    TooMany = "too-many", Error, "More of something than the tables or the board can hold.";
    NoVm = "no-vm", Error, "A system without a VM has nothing to do.";
    NoVcpu = "no-vcpu", Error, "A VM without a vCPU cannot run.";
    VmName = "vm-name", Error, "A VM's name must be short and plain.";
    DuplicateName = "duplicate-name", Error, "Two VMs have one name.";
    UnknownPcpu = "unknown-pcpu", Error, "A vCPU, or an interrupt, on a pCPU that the system has not.";
    Priority = "priority-range", Error, "A priority out of range.";
    Mark = "rt-priority", Error, "A priority for marks where it cannot be.";
    Boost = "boost", Error, "A boost where it cannot be, or that is none.";
    RealtimePriority = "realtime-priority", Error, "A real-time vCPU that others could delay.";
    Quantum = "quantum-range", Error, "A quantum out of range.";
    QuantumUnused = "quantum-unused", Warning, "A quantum where nothing shares the pCPU.";
    UnequalSiblings = "unequal-siblings", Warning, "vCPUs of one VM that starve each other.";
    MigrationPolicy = "migration-policy", Error, "A policy, or part of one, where it cannot be.";
    MigrationUnused = "migration-unused", Warning, "Migration where no vCPU would ever move.";
    DelayUnlimited = "delay-unlimited", Warning, "A real-time vCPU that waits without a limit.";
    OutrankedFallback = "outranked-fallback", Warning, "A vCPU that may get nothing where it goes.";
    InterruptsTo = "interrupts-to", Error, "Interrupts of devices that cannot come to the pCPU that is stated.";
    TimerAdvance = "timer-advance", Error, "A timer advance where there cannot be one.";
    SiblingGrace = "sibling-grace", Error, "A grace for siblings out of range.";
    Consolidate = "consolidate", Error, "Consolidation where it cannot be.";
    ConsolidateUnused = "consolidate-unused", Warning, "Consolidation that can power down no pCPU.";
    Timing = "timing", Error, "Budgets or tasks that no bound can be computed for.";
    NoBounds = "no-bounds", Warning, "Tasks that no bound is known for.";
    UncountedVisits = "uncounted-visits", Warning, "Visits to EL2 that no bound counts.";
    IdlePcpu = "idle-pcpu", Warning, "A pCPU that no vCPU uses.";
    Unaligned = "unaligned", Error, "A size or an address that cannot be mapped.";
    MemoryRange = "memory-range", Error, "Memory that lies where no memory is.";
    MemoryOverlap = "memory-overlap", Error, "Two things in one place.";
    MemoryFull = "memory-full", Error, "More memory than the board has.";
    TraceSize = "trace-size", Error, "A trace of impossible size.";
    Watchdog = "watchdog", Error, "A watchdog that would see too much, or nothing.";
    ReportSize = "report-size", Error, "A report area of impossible size.";
    SharedMemory = "shared-memory", Error, "Shared memory that cannot be.";
    SharedMemoryUnused = "shared-memory-unused", Warning, "Shared memory that no two VMs share.";
    Link = "link", Error, "A link between VMs that cannot be.";
    Virtio = "virtio", Error, "Virtio devices of one VM for another one that cannot be.";
    UnknownInterrupt = "unknown-interrupt", Error, "An interrupt the board or the guest has not.";
    ReservedInterrupt = "reserved-interrupt", Error, "An interrupt that is already in use.";
    InterruptTwice = "interrupt-twice", Error, "An interrupt that is given away twice.";
    UnknownDevice = "unknown-device", Error, "The board has no such device.";
    DeviceTwice = "device-twice", Error, "A device that is given away twice.";
    NoSlot = "no-slot", Error, "A disk or a network where none can be plugged in.";
    SlotUnused = "slot-unused", Warning, "A disk or a network that no VM has.";
    Disk = "disk", Error, "A file that is no disk.";
    Calibration = "calibration", Error, "A file that is no calibration of this board.";
    SharedPage = "shared-page", Error, "Devices of two VMs in one page.";
    DmaNeedsIdentity = "dma-needs-identity", Error, "A device whose addresses would be wrong.";
    DmaUnconfined = "dma-unconfined", Warning, "A device that nothing keeps out of memory.";
    Image = "image", Error, "A file that cannot be read.";
    ImageKind = "image-kind", Error, "A file that is no kernel for this VM.";
    FlatElf = "flat-elf", Warning, "An ELF file whose header would be run.";
    ImageTooLarge = "image-too-large", Error, "A file that does not fit its VM's memory.";
    Initramfs = "initramfs", Error, "An initramfs that the guest would not unpack.";
    CommandLine = "command-line", Error, "A command line the guest could not read.";
}
