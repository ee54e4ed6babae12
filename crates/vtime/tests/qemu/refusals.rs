//! What cannot be is said before the machine starts, once and in plain words.

use crate::board::{attempt, refusal};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn says_what_is_wrong_and_does_not_start() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing/statistics.json");
    let missing = format!(",statistics={}", missing.display());
    let itself = format!(",statistics={}", directory.path().display());
    let cases: [(&[&str], &str, bool, &str); 6] = [
        (&[], "", false, "name this plugin's file in LD_PRELOAD as well"),
        (&[], ",quantum=5", true, "option `quantum=5`: known are quantum-ns"),
        (&[], ",mhz=0", true, "give a whole number from 1 to 10000"),
        (&[], &missing, true, "cannot write statistics to"),
        (&[], &itself, true, "it is no regular file"),
        (&["-smp", "65"], "", true, "65 cores are more than 64: lower -smp"),
    ];
    for (arguments, option, preloaded, what) in cases {
        let (status, said) = attempt(arguments, option, preloaded);
        assert_eq!(status.code(), Some(1), "{said}");
        assert_eq!(said.matches("virtual time: ").count(), 1, "{said}");
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn a_script_around_qemu_is_told_from_qemu() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("my-qemu");
    fs::write(&script, "#!/bin/sh\nexec qemu-system-aarch64 \"$@\"\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let error = refusal(&script);
    assert!(error.contains("my-qemu` starts something else before QEMU"), "{error}");
}
