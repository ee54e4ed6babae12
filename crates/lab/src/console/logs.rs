//! One log file for each channel, its bytes unchanged.

use super::ConsoleConfig;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};

/// The open logs, by channel.
pub(super) struct Logs {
    files: Vec<Option<BufWriter<File>>>,
}

impl Logs {
    pub(super) fn create(config: &ConsoleConfig) -> io::Result<Self> {
        let Some(directory) = &config.directory else { return Ok(Self { files: Vec::new() }) };
        fs::create_dir_all(directory)?;
        let open = |name: &String| {
            File::create(directory.join(format!("console-{name}.log")))
                .map(|file| Some(BufWriter::new(file)))
        };
        Ok(Self { files: config.names.iter().map(open).collect::<io::Result<_>>()? })
    }

    pub(super) fn write(&mut self, channel: u8, byte: u8) {
        let Some(slot) = self.files.get_mut(usize::from(channel)) else { return };
        // A full disk must not stop the machine: that log ends there.
        if slot.as_mut().is_some_and(|file| file.write_all(&[byte]).is_err()) {
            *slot = None;
        }
    }

    pub(super) fn flush(&mut self) {
        for slot in &mut self.files {
            if slot.as_mut().is_some_and(|file| file.flush().is_err()) {
                *slot = None;
            }
        }
    }
}
