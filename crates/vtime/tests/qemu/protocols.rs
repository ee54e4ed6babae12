//! How QEMU is spoken to while it runs.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

/// QEMU's machine protocol.
pub struct Qmp {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
}

impl Qmp {
    /// A session, ready for commands.
    pub fn on(stream: UnixStream) -> Self {
        let mut qmp = Self { lines: BufReader::new(stream.try_clone().unwrap()), stream };
        qmp.message();
        qmp.execute("qmp_capabilities");
        qmp
    }

    fn message(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.lines.read_line(&mut line).unwrap() > 0, "QMP has ended");
        serde_json::from_str(&line).unwrap()
    }

    /// Executes a command and returns its result.
    pub fn execute(&mut self, command: &str) -> Value {
        self.execute_with(command, &json!({}))
    }

    /// The same with arguments.
    pub fn execute_with(&mut self, command: &str, arguments: &Value) -> Value {
        let message = json!({ "execute": command, "arguments": arguments });
        // At once: QEMU carries a command out at the last brace, and one that quits is gone before the line's end.
        self.stream.write_all(format!("{message}\n").as_bytes()).unwrap();
        loop {
            let mut message = self.message();
            assert!(message.get("error").is_none(), "{command}: {message}");
            if let Some(result) = message.get_mut("return") {
                return result.take();
            }
        }
    }
}

/// GDB's remote serial protocol.
pub struct Gdb {
    stream: UnixStream,
}

impl Gdb {
    /// A session.
    pub fn on(stream: UnixStream) -> Self {
        Self { stream }
    }

    /// Sends a packet.
    pub fn send(&mut self, packet: &str) {
        let sum = packet.bytes().fold(0_u8, u8::wrapping_add);
        write!(self.stream, "${packet}#{sum:02x}").unwrap();
    }

    /// Stops the machine, as Ctrl-C in the debugger does.
    pub fn interrupt(&mut self) {
        self.stream.write_all(&[3]).unwrap();
    }

    /// The next packet from the stub, acknowledged.
    pub fn receive(&mut self) -> String {
        let mut byte = || {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).unwrap();
            byte[0]
        };
        while byte() != b'$' {}
        let mut packet = Vec::new();
        loop {
            match byte() {
                b'#' => break,
                b => packet.push(b),
            }
        }
        let _sum = [byte(), byte()];
        self.stream.write_all(b"+").unwrap();
        String::from_utf8(packet).unwrap()
    }
}
