//! What is asked for: which console, and where its other end shall be.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A console to be connected, as `--console` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The VM's name.
    pub vm: String,
    /// The other end.
    pub place: Where,
}

/// The other end of a console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// The terminal that the program runs in.
    Keyboard,
    /// A new pseudo-terminal.
    Pty,
    /// A new Unix socket at this path.
    Unix(PathBuf),
}

impl FromStr for Request {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (vm, place) = match text.split_once('=') {
            None => (text, Where::Keyboard),
            Some((vm, "pty")) => (vm, Where::Pty),
            Some((vm, place)) => match place.strip_prefix("unix:") {
                Some(path) if !path.is_empty() => (vm, Where::Unix(path.into())),
                _ => return Err("a console goes to `pty` or `unix:PATH`, such as linux=pty".into()),
            },
        };
        if vm.is_empty() {
            return Err("name a VM, such as linux or linux=pty".into());
        }
        Ok(Self { vm: vm.into(), place })
    }
}

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keyboard => write!(f, "the keyboard"),
            Self::Pty => write!(f, "a pseudo-terminal"),
            Self::Unix(path) => write!(f, "the socket {}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_and_perhaps_a_place() {
        let request = |vm: &str, place| Ok(Request { vm: vm.into(), place });
        assert_eq!("linux".parse(), request("linux", Where::Keyboard));
        assert_eq!("linux=pty".parse(), request("linux", Where::Pty));
        assert_eq!("a=unix:/run/a=b".parse(), request("a", Where::Unix("/run/a=b".into())));
        for wrong in ["", "=pty", "linux=", "linux=tty", "linux=unix:", "linux=/run/x"] {
            assert!(wrong.parse::<Request>().is_err(), "{wrong}");
        }
    }
}
