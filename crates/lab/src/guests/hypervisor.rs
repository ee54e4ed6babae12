//! What the hypervisor says on its own console: above all why guests could not go on, in a line
//! with the reason and lines with the registers (`report` of `crates/el2/src/pcpu/jobs.rs`).

use super::Tail;
use super::words::keep;
use std::collections::BTreeMap;

/// Begins each of the hypervisor's lines.
const SPEAKER: &str = "cassata: ";
/// Ends the VM's name and the vCPU's number in the line with the reason.
const VERDICT: &str = " cannot go on: ";
/// Stands in a line about a fault of the hypervisor itself.
const FAULT: &str = "hypervisor fault";

/// What the hypervisor has said so far.
#[derive(Clone, Debug, Default)]
pub struct Hypervisor {
    /// The lines, in order.
    pub lines: Vec<String>,
    /// The last of them.
    pub tail: Tail,
    /// By VM name: the reason of the last failure, then the registers.
    crashes: BTreeMap<String, Vec<String>>,
    /// The VM that the lines are about.
    current: Option<String>,
}

impl Hypervisor {
    /// Takes one line of its console.
    pub fn hear(&mut self, line: &str) {
        keep(&mut self.lines, line.into());
        self.tail.hear(line);
        if let Some(line) = line.strip_prefix(SPEAKER) {
            self.follow_crash(line);
        }
    }

    /// Returns the lines about faults of its own.
    pub fn faults(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str).filter(|line| line.contains(FAULT))
    }

    /// Returns the reason and the registers of VM `name`'s last failure.
    #[must_use]
    pub fn crash(&self, name: &str) -> Option<&[String]> {
        self.crashes.get(name).map(Vec::as_slice)
    }

    fn follow_crash(&mut self, line: &str) {
        if let Some(name) = failed(line) {
            self.current = Some(name.into());
            self.crashes.insert(name.into(), vec![line.into()]);
        } else if line.starts_with("  ") {
            let crash = self.current.as_ref().and_then(|name| self.crashes.get_mut(name));
            crash.into_iter().for_each(|lines| lines.push(line.into()));
        } else {
            self.current = None;
        }
    }
}

/// Returns the VM in `VM rtos vCPU 0 cannot go on: ...`
fn failed(line: &str) -> Option<&str> {
    let (vcpu, _) = line.strip_prefix("VM ")?.split_once(VERDICT)?;
    vcpu.rsplit_once(" vCPU ").map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_and_the_registers_belong_to_the_vm() {
        let text = "cassata: two VMs\n\
                    cassata: VM a vCPU 1 cannot go on: an old reason\n\
                    cassata:   pc 0x1\n\
                    cassata: VM a is started again\n\
                    cassata:   not a register\n\
                    cassata: VM a vCPU 0 cannot go on: its exception vector cannot be fetched\n\
                    cassata:   pc 0x2\n\
                    cassata:   x0  0x3\n";
        let mut hypervisor = Hypervisor::default();
        text.lines().for_each(|line| hypervisor.hear(line));
        let lines = [
            "VM a vCPU 0 cannot go on: its exception vector cannot be fetched",
            "  pc 0x2",
            "  x0  0x3",
        ];
        assert_eq!(hypervisor.crash("a").unwrap(), lines);
        assert_eq!(hypervisor.crash("b"), None);
        assert_eq!(hypervisor.lines.len(), 8);
    }
}
