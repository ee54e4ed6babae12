//! A description as it was written: every value with its place in the text,
//! and `None` for what is missing or unreadable and has been reported. Sizes are in
//! bytes, times in nanoseconds.

pub(crate) mod boost;
mod link;
mod parse;
mod reader;
mod renamed;
pub(crate) mod server;
mod shared;
mod tasks;
mod values;
mod virtio;

pub(crate) use parse::parse;

use crate::board::Trigger;
use crate::model::{DevicetreePlace, Protocol};
use crate::problem::Span;
use analysis::model::ServerKind;
use sched::policy::MigrationPolicy;
use toml::Spanned;

/// A value and where it stands.
pub(crate) type At<T> = Spanned<T>;

#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) board: DraftBoard,
    pub(crate) priority_separation: Option<At<bool>>,
    pub(crate) off_when_done: Option<At<bool>>,
    pub(crate) reset_on_fault: Option<At<bool>>,
    pub(crate) watchdog: Option<At<u64>>,
    pub(crate) consolidation_window: Option<At<u64>>,
    pub(crate) protocol: Option<At<Protocol>>,
    pub(crate) shared_memory: Vec<DraftSharedMemory>,
    pub(crate) links: Vec<DraftLink>,
    pub(crate) virtio: Vec<DraftVirtio>,
    pub(crate) trace: Option<At<u64>>,
    pub(crate) sibling_grace: Option<At<u64>>,
    pub(crate) directed_yield: Option<At<bool>>,
    pub(crate) vms: Vec<DraftVm>,
}

/// Memory that VMs may share.
#[derive(Debug)]
pub(crate) struct DraftSharedMemory {
    /// The `[[shared_memory]]` line.
    pub(crate) span: Span,
    pub(crate) name: Option<At<String>>,
    pub(crate) size: Option<At<u64>>,
}

/// A link between two VMs.
#[derive(Debug)]
pub(crate) struct DraftLink {
    /// The `[[link]]` line.
    pub(crate) span: Span,
    pub(crate) name: Option<At<String>>,
    pub(crate) between_span: Span,
    /// None if it is no array.
    pub(crate) between: Option<Vec<At<String>>>,
    pub(crate) size: Option<At<u64>>,
    pub(crate) cached: Option<At<bool>>,
}

/// Virtio devices that one VM gets from another one.
#[derive(Debug)]
pub(crate) struct DraftVirtio {
    /// The `[[virtio]]` line.
    pub(crate) span: Span,
    pub(crate) front: Option<At<String>>,
    pub(crate) back: Option<At<String>>,
    pub(crate) memory: Option<At<u64>>,
    pub(crate) devices_span: Span,
    /// None if it is no array.
    pub(crate) devices: Option<Vec<At<String>>>,
}

#[derive(Debug, Default)]
pub(crate) struct DraftBoard {
    pub(crate) kind: Option<At<String>>,
    pub(crate) pcpus: Option<At<u64>>,
    pub(crate) memory: Option<At<u64>>,
    pub(crate) disks: Vec<DraftDisk>,
    pub(crate) network: Option<At<String>>,
    pub(crate) calibration: Option<At<String>>,
}

/// A disk of the board.
#[derive(Debug)]
pub(crate) struct DraftDisk {
    pub(crate) device: Option<At<String>>,
    pub(crate) file: Option<At<String>>,
    pub(crate) keep: Option<At<bool>>,
}

#[derive(Debug)]
pub(crate) struct DraftVm {
    /// The `[[vm]]` line.
    pub(crate) span: Span,
    pub(crate) name: Option<At<String>>,
    pub(crate) kernel: Option<At<String>>,
    pub(crate) format: Option<At<Format>>,
    pub(crate) initramfs: Option<At<String>>,
    pub(crate) cmdline: Option<At<String>>,
    pub(crate) memory: DraftMemory,
    pub(crate) vcpus: Vec<DraftVcpu>,
    pub(crate) console: Option<At<bool>>,
    pub(crate) realtime: Option<At<bool>>,
    pub(crate) report: Option<At<u64>>,
    pub(crate) shared_memory: Vec<DraftShare>,
    pub(crate) restart_on_fault: Option<At<bool>>,
    pub(crate) seed: Option<At<u64>>,
    pub(crate) migration_policy: Option<At<MigrationPolicy>>,
    pub(crate) may_switch_to: Vec<At<MigrationPolicy>>,
    /// [`abi::system::NO_DELAY_LIMIT`] for none.
    pub(crate) delay_limit: Option<At<u64>>,
    pub(crate) preempt_count_at: Option<At<u64>>,
    pub(crate) yields: Option<At<bool>>,
    pub(crate) timer_advance: Option<At<u64>>,
    pub(crate) adapt_timer_advance: Option<At<bool>>,
    pub(crate) consolidate: Option<At<bool>>,
    pub(crate) devices: Vec<At<String>>,
    pub(crate) interrupts: Vec<DraftInterrupt>,
    pub(crate) interrupts_to: Option<At<u64>>,
}

/// What `format` may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An arm64 Linux Image.
    Image,
    /// A statically linked AArch64 ELF file.
    Elf,
    /// Bytes that are entered at the first.
    Flat,
}

#[derive(Debug, Default)]
pub(crate) struct DraftMemory {
    pub(crate) size: Option<At<u64>>,
    pub(crate) address: Option<At<u64>>,
    pub(crate) identity: Option<At<bool>>,
    pub(crate) clear: Option<At<bool>>,
    pub(crate) device_tree: Option<At<DevicetreePlace>>,
}

/// Shared memory that a VM has.
#[derive(Debug)]
pub(crate) struct DraftShare {
    pub(crate) name: At<String>,
    pub(crate) access: Access,
}

/// What a VM may do with shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    ReadWrite,
    ReadOnly,
}

#[derive(Debug)]
pub(crate) struct DraftVcpu {
    pub(crate) span: Span,
    pub(crate) pcpu: Option<At<u64>>,
    /// The higher one, if it may mark itself.
    pub(crate) priority: Option<At<u64>>,
    /// What it has while it is not marked, if it may be.
    pub(crate) unmarked: Option<At<u64>>,
    pub(crate) quantum: Option<At<u64>>,
    pub(crate) may_run_on: Vec<At<u64>>,
    pub(crate) boost: Option<DraftBoost>,
    pub(crate) server: Option<DraftServer>,
    pub(crate) tasks: Vec<DraftTask>,
    pub(crate) handlers: Vec<DraftHandler>,
}

#[derive(Debug)]
pub(crate) struct DraftBoost {
    pub(crate) span: Span,
    pub(crate) priority: Option<At<u64>>,
    pub(crate) budget: Option<At<u64>>,
    pub(crate) period: Option<At<u64>>,
    pub(crate) window: Option<At<u64>>,
    pub(crate) timer_advance: Option<At<u64>>,
}

#[derive(Debug)]
pub(crate) struct DraftServer {
    pub(crate) span: Span,
    pub(crate) kind: Option<At<ServerKind>>,
    pub(crate) budget: Option<At<u64>>,
    pub(crate) period: Option<At<u64>>,
    pub(crate) overrun: Option<At<bool>>,
    pub(crate) offset: Option<At<u64>>,
}

#[derive(Debug)]
pub(crate) struct DraftTask {
    pub(crate) span: Span,
    pub(crate) name: Option<At<String>>,
    pub(crate) period: Option<At<u64>>,
    pub(crate) priority: Option<At<u64>>,
    pub(crate) jitter: Option<At<u64>>,
    pub(crate) offset: Option<At<u64>>,
    pub(crate) segments: Vec<DraftSegment>,
}

#[derive(Debug)]
pub(crate) struct DraftSegment {
    pub(crate) span: Span,
    pub(crate) wcet: Option<At<u64>>,
    pub(crate) gcs: Option<At<String>>,
    pub(crate) lcs: Option<At<String>>,
}

/// What handles an interrupt that releases no task.
#[derive(Debug)]
pub(crate) struct DraftHandler {
    pub(crate) span: Span,
    pub(crate) name: Option<At<String>>,
    pub(crate) period: Option<At<u64>>,
    pub(crate) wcet: Option<At<u64>>,
}

#[derive(Debug)]
pub(crate) struct DraftInterrupt {
    pub(crate) physical: At<u64>,
    pub(crate) virtual_: At<u64>,
    pub(crate) trigger: Trigger,
}

impl DraftVcpu {
    /// Where its priority stands, or it itself if it has none.
    pub(crate) fn priority_span(&self) -> Span {
        self.priority.as_ref().map_or(self.span.clone(), At::span)
    }
}

impl DraftVm {
    /// Returns the policy that it states, or the default.
    pub(crate) fn migration_policy(&self) -> MigrationPolicy {
        self.migration_policy.as_ref().map_or(MigrationPolicy::default(), |at| *at.get_ref())
    }

    /// Returns true if its vCPUs may move between pCPUs.
    pub(crate) fn migrates(&self) -> bool {
        let moves = |kind: MigrationPolicy| {
            let needs = kind.needs();
            needs.fallback || needs.wanders || needs.moves_on_request
        };
        self.policies().any(moves) || flag(&self.consolidate, false)
    }

    /// Returns the policies that it has or may have.
    pub(crate) fn policies(&self) -> impl Iterator<Item = MigrationPolicy> + '_ {
        let others = self.may_switch_to.iter().map(|at| *at.get_ref());
        std::iter::once(self.migration_policy()).chain(others)
    }

    /// How messages call it, whether it has a name or not.
    pub(crate) fn title(&self) -> String {
        match &self.name {
            Some(name) => format!("VM `{}`", name.get_ref()),
            None => "a VM".to_owned(),
        }
    }

    pub(crate) fn has_console(&self) -> bool {
        flag(&self.console, true)
    }

    pub(crate) fn is_realtime(&self) -> bool {
        flag(&self.realtime, false)
    }

    pub(crate) fn is_identity(&self) -> bool {
        flag(&self.memory.identity, false)
    }

    /// Returns true if its tasks share resources that mutexes of the hypervisor protect.
    pub(crate) fn has_global_sections(&self) -> bool {
        let tasks = self.vcpus.iter().flat_map(|vcpu| &vcpu.tasks);
        tasks.flat_map(|task| &task.segments).any(|segment| segment.gcs.is_some())
    }

    /// Where its memory begins for the guest, unless the layout decides.
    pub(crate) fn ram_ipa(&self) -> Option<u64> {
        let stated = self.memory.address.as_ref().map(|at| *at.get_ref());
        stated.or((!self.is_identity()).then_some(abi::platform::RAM_BASE))
    }

    /// Where to point when its memory is at fault.
    pub(crate) fn memory_span(&self) -> Span {
        let address = self.memory.address.as_ref().map(At::span);
        address.or(self.memory.size.as_ref().map(At::span)).unwrap_or(self.span.clone())
    }
}

/// Returns the value of a switch, or its default.
pub(crate) fn flag(value: &Option<At<bool>>, default: bool) -> bool {
    value.as_ref().map_or(default, |at| *at.get_ref())
}
