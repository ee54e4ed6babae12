//! Where in a machine's memory there is something to see.

use super::clock;
use super::supply::Periods;
use abi::system::{System, server};
use sched::CoreSet;
use sched::policy::{MigrationPolicy, PolicySet};
use std::ops::Range;
use std::time::Duration;

/// What the packed tables say about a system, as far as watching it goes. The default is a
/// machine without a hypervisor, whose guest reports nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Physical address of the status area.
    pub status_pa: u64,
    /// How many pCPUs there are.
    pub pcpus: usize,
    /// The virtual machines, in the order of the tables.
    pub vms: Vec<VmLayout>,
    /// For each vCPU of the system, its VM and its index in that.
    pub vcpus: Vec<VcpuName>,
    /// Streams of the SMMU, each with the VM that has them.
    pub streams: Vec<(Range<u32>, usize)>,
    /// Physical address and size in bytes of the report area of a guest that runs without a
    /// hypervisor; there are no VMs then.
    pub plain_report: Option<(u64, u64)>,
}

/// One virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmLayout {
    /// The name.
    pub name: String,
    /// The vCPUs, as indices into the system's.
    pub vcpus: Range<usize>,
    /// Physical address and size in bytes of its report area.
    pub report: Option<(u64, u64)>,
    /// The migration policy that it begins with.
    pub policy: MigrationPolicy,
    /// Policies that it may have from some moment on, its own included; none: it keeps that.
    pub may_switch_to: PolicySet,
}

/// Which vCPU this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VcpuName {
    /// Index of its VM.
    pub vm: usize,
    /// The index in the VM.
    pub index: usize,
    /// What limits it.
    pub server: Option<Served>,
    /// pCPUs where its policy may place it.
    pub affinity: CoreSet,
}

/// A budget, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// What the vCPU may run in each period.
    pub budget_ns: u64,
    /// What its global critical sections may take beyond that.
    pub overrun_ns: u64,
    /// From one period to the next.
    pub period_ns: u64,
    /// When the first begins, after EL2 was entered.
    pub offset_ns: u64,
}

impl VcpuName {
    /// Returns its periods in ticks of a counter that runs at `counter_hz`.
    pub(super) fn periods(&self, counter_hz: u64) -> Option<Periods> {
        let ticks = |ns| clock::ticks(Duration::from_nanos(ns), counter_hz);
        let server = self.server?;
        let length = ticks(server.period_ns);
        (length > 0).then(|| Periods { offset: ticks(server.offset_ns), length })
    }
}

impl Layout {
    /// Reads the tables.
    #[must_use]
    pub fn of(system: &System) -> Self {
        let vm_count = system.header.vm_count as usize;
        let vcpu_count = system.header.vcpu_count as usize;
        let vms = system.vms.iter().take(vm_count).map(VmLayout::of).collect();
        let name = |v: &abi::system::Vcpu| VcpuName {
            vm: v.vm.into(),
            index: v.index.into(),
            server: served(v),
            affinity: CoreSet::from_bits(v.affinity.into()),
        };
        let vcpus = system.vcpus.iter().take(vcpu_count).map(name).collect();
        let (status_pa, pcpus) = (system.board.status_pa, system.board.pcpu_count as usize);
        let confined = system.smmu.confined.iter().filter(|device| device.count > 0);
        let streams = confined.map(|device| (device.first.into()..device.end(), device.vm.into()));
        let streams = streams.collect();
        Self { status_pa, pcpus, vms, vcpus, streams, plain_report: None }
    }

    /// Index of the VM called `name`.
    #[must_use]
    pub fn vm(&self, name: &str) -> Option<usize> {
        self.vms.iter().position(|vm| vm.name == name)
    }

    /// Index of the VM called `name`, which must be there.
    ///
    /// # Errors
    /// If it is not.
    pub fn vm_called(&self, name: &str) -> miette::Result<usize> {
        self.vm(name).ok_or_else(|| miette::miette!("there is no VM `{name}`"))
    }

    /// How people call a vCPU: `linux.0`.
    #[must_use]
    pub fn vcpu_label(&self, vcpu: usize) -> String {
        let VcpuName { vm, index, .. } = self.vcpus[vcpu];
        format!("{}.{index}", self.vms[vm].name)
    }
}

fn served(vcpu: &abi::system::Vcpu) -> Option<Served> {
    (vcpu.server != server::NONE).then_some(Served {
        budget_ns: vcpu.budget_ns,
        overrun_ns: vcpu.overrun_ns,
        period_ns: vcpu.period_ns,
        offset_ns: vcpu.offset_ns,
    })
}

impl VmLayout {
    fn of(vm: &abi::system::Vm) -> Self {
        let first = usize::from(vm.vcpu_first);
        Self {
            name: vm.name().to_owned(),
            vcpus: first..first + usize::from(vm.vcpu_count),
            report: (vm.report_size > 0).then_some((vm.report_pa, vm.report_size)),
            policy: MigrationPolicy::from_number(vm.migration_policy).unwrap_or_default(),
            may_switch_to: PolicySet::from_bits(vm.other_policies.into()),
        }
    }
}
