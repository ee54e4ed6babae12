//! DMA that the SMMU has refused ([`abi::dma`]).

use super::layout::Layout;
use crate::machine::Memory;
use abi::dma::{Fault, Faults, KEPT};
use abi::status::Status;
use miette::Result;
use serde_json::{Value, json};

/// Reads what the SMMU has noted, in the order in which it came; nothing where there is none.
pub(super) fn read(memory: &Memory, status: &Status) -> Result<Vec<Fault>> {
    if status.dma_faults_pa == 0 {
        return Ok(Vec::new());
    }
    let noted: Faults = memory.read(status.dma_faults_pa)?;
    Ok(noted.records.into_iter().take_while(|fault| fault.kind() != 0).collect())
}

/// What devices of a VM have tried in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedDma {
    /// The VM's name; none for devices that no VM has.
    pub vm: Option<String>,
    /// How often, as far as it was noted.
    pub count: usize,
    /// True if there was no room to note more, of any VM.
    pub is_full: bool,
    /// The first time.
    pub first: Fault,
}

impl RefusedDma {
    /// Sorts what was noted by the VMs that have the devices.
    pub(super) fn of(noted: &[Fault], layout: &Layout) -> Vec<Self> {
        let owner = |fault: &Fault| {
            let has = layout.streams.iter().find(|(streams, _)| streams.contains(&fault.stream()));
            has.map(|&(_, vm)| vm)
        };
        let vms = (0..layout.vms.len()).map(Some).chain([None]);
        let of = |vm: Option<usize>| {
            let mut own = noted.iter().filter(|fault| owner(fault) == vm);
            let first = *own.next()?;
            let (vm, count) = (vm.map(|vm| layout.vms[vm].name.clone()), own.count() + 1);
            Some(Self { vm, count, is_full: noted.len() == KEPT, first })
        };
        vms.filter_map(of).collect()
    }

    /// Returns it in words.
    #[must_use]
    pub fn about(&self) -> String {
        let whose = match &self.vm {
            Some(name) => format!("a device of VM {name}"),
            None => "a device of no VM".into(),
        };
        let stream = self.first.stream();
        format!(
            "the SMMU has refused DMA of {whose}: {}{} times; the first was to {} {:#x}, by PCI function \
             {:02x}:{:02x}.{}",
            if self.is_full { "at least " } else { "" },
            self.count,
            if self.first.is_read() { "read" } else { "write" },
            self.first.address,
            stream >> 8,
            stream >> 3 & 0x1f,
            stream & 7,
        )
    }

    /// Returns it for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "vm": self.vm,
            "count": self.count,
            "more": self.is_full,
            "kind": self.first.kind(),
            "stream": self.first.stream(),
            "address": self.first.address,
            "read": self.first.is_read(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn faults_are_told_of_the_vm_that_has_the_device() {
        let fault = |stream: u64, address| Fault {
            what: stream << 32 | 0x10,
            how: 1 << 35,
            address,
            rest: address,
        };
        let layout = testing::layout();
        let mut noted = vec![fault(3, 0x1000), fault(17, 0x5000_0000), fault(16, 0x6000)];
        let seen = RefusedDma::of(&noted, &layout);
        assert_eq!(seen.len(), 2);
        let expected = "the SMMU has refused DMA of a device of VM linux: 2 times; the first was to read \
                        0x50000000, by PCI function 00:02.1";
        assert_eq!(seen[0].about(), expected);
        assert!(seen[1].about().contains("a device of no VM: 1 times"), "{}", seen[1].about());
        noted.resize(KEPT, noted[1]);
        assert!(RefusedDma::of(&noted, &layout)[0].about().contains("at least 63 times"));
        assert_eq!(RefusedDma::of(&[], &layout), []);
    }
}
