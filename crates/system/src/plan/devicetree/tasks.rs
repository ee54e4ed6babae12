//! The node `tasks`: what the description declares for the VM's vCPUs, for guests that run it.

use super::{Written, node, strings};
use crate::model::{DeclaredSegment, DeclaredTask};
use vm_fdt::FdtWriter;

/// Writes the node, if there are tasks.
pub(super) fn write(fdt: &mut FdtWriter, tasks: &[DeclaredTask]) -> Written {
    if tasks.is_empty() {
        return Ok(());
    }
    node(fdt, "tasks", |fdt| {
        fdt.property_string("compatible", "cassata,tasks-1.0")?;
        tasks.iter().enumerate().try_for_each(|(number, task)| {
            node(fdt, &format!("task-{number}"), |fdt| self::task(fdt, task))
        })
    })
}

fn task(fdt: &mut FdtWriter, task: &DeclaredTask) -> Written {
    fdt.property_string("label", &task.name)?;
    fdt.property_u32("vcpu", task.vcpu as u32)?;
    fdt.property_u32("priority", task.priority.into())?;
    fdt.property_u64("period-ns", task.period_ns)?;
    fdt.property_u64("offset-ns", task.offset_ns)?;
    fdt.property_u64("jitter-ns", task.jitter_ns)?;
    let wcets: Vec<_> = task.segments.iter().map(|segment| segment.wcet_ns).collect();
    fdt.property_array_u64("wcet-ns", &wcets)?;
    let holds: Vec<_> = task.segments.iter().map(holds).collect();
    strings(fdt, "holds", &holds.iter().map(String::as_str).collect::<Vec<_>>())
}

fn holds(segment: &DeclaredSegment) -> String {
    match &segment.resource {
        None => "nothing".to_owned(),
        Some((name, true)) => format!("gcs {name}"),
        Some((name, false)) => format!("lcs {name}"),
    }
}
