//! `cassata test`, as a command.

mod support;

use support::cassata;
use tempfile::TempDir;

/// A slip of the hand would else pass for a test that passed.
#[test]
fn a_name_that_no_test_has_is_an_error() {
    let directory = TempDir::new().unwrap();
    std::fs::create_dir(directory.path().join("systems")).unwrap();
    std::fs::write(directory.path().join("systems/demo.toml"), "").unwrap();
    let result = cassata(directory.path(), &["test", "no-such", "--machine-only"]);
    let complaint = String::from_utf8(result.stderr).unwrap();
    assert_eq!(result.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("no test has `no-such` in its name"), "{complaint}");
}
