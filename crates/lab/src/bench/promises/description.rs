//! A machine as a system description.

use super::machine::{Drawn, Machine};
use abi::MAX_PCPUS;
use analysis::model::{Section, Segment, Task};
use std::fmt::Write;
use std::path::Path;

/// When the first tasks arrive, ms after the counter began: all guests have booted.
pub const BEGIN_MS: u64 = 100;

impl Machine {
    /// Returns the description of a machine whose guests boot the probe at `kernel`.
    pub fn text(&self, kernel: &Path) -> String {
        let mut text = format!(
            "# Drawn by `cassata bench promises`.\n[board]\nkind = \"qemu-virt\"\npcpus = \
             {MAX_PCPUS}\nmemory = \"1G\"\n"
        );
        let mut pcpu = 0;
        for (number, drawn) in self.systems.iter().enumerate() {
            write(&mut text, number, drawn, pcpu, kernel);
            pcpu += drawn.pcpus().len();
        }
        text
    }
}

/// Returns the name of the VM that has vCPU `vcpu` of system `number`.
pub fn vm_name(number: usize, drawn: &Drawn, vcpu: usize) -> String {
    let letter = if vcpu < drawn.split { 'a' } else { 'b' };
    format!("s{number}{letter}")
}

/// Returns the name of a global resource of system `number`.
pub fn mutex_name(number: usize, resource: usize) -> String {
    format!("s{number}-{resource}")
}

/// Adds a system whose first pCPU is `first`. A string takes all that is written.
fn write(text: &mut String, number: usize, drawn: &Drawn, first: usize, kernel: &Path) {
    let (system, pcpus) = (&drawn.system, drawn.pcpus());
    for (index, vcpu) in system.vcpus.iter().enumerate() {
        if index == 0 || index == drawn.split {
            let (kernel, least) = (kernel.display(), drawn.least_percent);
            let name = vm_name(number, drawn, index);
            let _ = write!(
                text,
                "\n[[vm]]\nname = \"{name}\"\nkernel = \"{kernel}\"\ncmdline = \
                 \"probe.run=tasks probe.begin_ms={BEGIN_MS} probe.least_percent={least}\"\n\
                 memory = {{ size = \"64M\" }}\nreport = \"256K\"\n"
            );
        }
        let service = system.service(index);
        let pcpu = first + pcpus.range(..vcpu.pcpu).count();
        let _ = write!(
            text,
            "[[vm.vcpus]]\npcpu = {pcpu}\npriority = {}\nserver = {{ kind = \"{}\", budget = \
             \"{}ns\", period = \"{}ns\", overrun = {}, offset = \"{}ns\" }}\n",
            vcpu.priority + 1,
            service.kind.name(),
            vcpu.budget_ns,
            vcpu.period_ns,
            service.overrun,
            vcpu.offset_ns
        );
        for task in system.tasks.iter().filter(|task| task.vcpu == index) {
            self::task(text, number, task);
        }
    }
}

fn task(text: &mut String, number: usize, task: &Task) {
    let segment = |segment: &Segment| {
        let holds = match segment.section {
            Section::Normal => String::new(),
            Section::Global(resource) => format!(", gcs = \"{}\"", mutex_name(number, resource)),
            Section::Local(resource) => format!(", lcs = \"s{number}-{resource}\""),
        };
        format!("{{ wcet = \"{}ns\"{holds} }}", segment.wcet_ns)
    };
    let segments: Vec<_> = task.segments.iter().map(segment).collect();
    let _ = write!(
        text,
        "[[vm.vcpus.tasks]]\nname = \"{}\"\npriority = {}\nperiod = \"{}ns\"\njitter = \"{}ns\"\n\
         offset = \"{}ns\"\nsegments = [{}]\n",
        task.id,
        task.priority,
        task.period_ns,
        task.jitter_ns,
        task.offset_ns,
        segments.join(", ")
    );
}
