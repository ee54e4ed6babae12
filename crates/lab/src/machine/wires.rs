//! Lines of interrupts that QEMU's model of a board has not connected. No option of QEMU connects them: its
//! monitor does, before the machine starts.

use rustix::fs::MemfdFlags;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use system::board::Wire;

/// What QEMU's monitor is told, in a file without a name, as the machine's memory is.
#[derive(Debug)]
pub(super) struct Wires(File);

impl Wires {
    /// Writes what connects `wires` and then starts the machine. `None` if there are none: then QEMU starts it
    /// by itself.
    pub(super) fn create(wires: &[Wire]) -> io::Result<Option<Self>> {
        if wires.is_empty() {
            return Ok(None);
        }
        let mut file: File = rustix::fs::memfd_create("cassata-wires", MemfdFlags::CLOEXEC)?.into();
        for command in commands(wires) {
            writeln!(file, "{command}")?;
        }
        Ok(Some(Self(file)))
    }

    /// Where QEMU opens it, as long as this value lives.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }
}

/// Returns commands of QEMU's machine protocol (QMP).
fn commands(wires: &[Wire]) -> impl Iterator<Item = Value> {
    let connect = wires.iter().map(|Wire { device, output, input }| {
        let arguments = json!({ "path": device, "property": output, "value": input });
        json!({ "execute": "qom-set", "arguments": arguments })
    });
    let begin = json!({ "execute": "qmp_capabilities" });
    std::iter::once(begin).chain(connect).chain([json!({ "execute": "cont" })])
}

#[cfg(test)]
mod tests {
    use super::*;
    use system::board::Board;

    /// A machine that waits to be started must be told to start, behind all wires.
    #[test]
    fn the_machine_starts_once_all_is_connected() {
        assert!(Wires::create(&Board::find("qemu-virt").unwrap().qemu.wires).unwrap().is_none());
        let wires = Wires::create(&Board::find("imx8mp").unwrap().qemu.wires).unwrap().unwrap();
        let text = std::fs::read_to_string(wires.path()).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 4 + 1);
        assert!(lines[1].contains("\"property\":\"sysbus-irq[8]\""), "{text}");
        assert_eq!(lines.last(), Some(&"{\"execute\":\"cont\"}"));
    }
}
