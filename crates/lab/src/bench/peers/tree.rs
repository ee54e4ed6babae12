//! Device trees in source, and what compiles them.

use miette::{IntoDiagnostic, Result, WrapErr, ensure};
use std::path::Path;
use std::process::Command;

/// Returns a string of a tree's source.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Compiles the source of a tree into the file `tree`; `name` is what messages call it.
///
/// # Errors
/// When the compiler cannot be run, or objects.
pub fn compile(source: &Path, tree: &Path, name: &str) -> Result<()> {
    let arguments = ["-q", "-I", "dts", "-O", "dtb", "-o"];
    run(Command::new("dtc").args(arguments).args([tree, source]), name).map(drop)
}

/// Returns the source of a compiled tree.
///
/// # Errors
/// As those of [`compile`].
pub fn decompile(tree: &Path, name: &str) -> Result<String> {
    run(Command::new("dtc").args(["-q", "-I", "dtb", "-O", "dts"]).arg(tree), name)
}

/// Runs a program on the tree `name` to its end; returns what it printed.
///
/// # Errors
/// When it cannot be run, or fails.
pub fn run(command: &mut Command, name: &str) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let ran = command.output().into_diagnostic();
    let ran = ran.wrap_err_with(|| format!("cannot start {program}; `./cassata` installs it"))?;
    let complaint = String::from_utf8_lossy(&ran.stderr);
    ensure!(ran.status.success(), "{program} failed on {name}: {}", complaint.trim());
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_named_with_what_it_says() {
        let mut fails = Command::new("sh");
        let failed = run(fails.args(["-c", "echo bad tree >&2; exit 1"]), "Xen's device tree");
        assert_eq!(failed.unwrap_err().to_string(), "sh failed on Xen's device tree: bad tree");
        let absent = run(&mut Command::new("/nonexistent/dtc"), "it").unwrap_err().to_string();
        assert!(absent.contains("/nonexistent/dtc; `./cassata` installs it"), "{absent}");
    }
}
