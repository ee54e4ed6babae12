//! The launcher's own words, before there is a command line to hand over to.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::UNIX_EPOCH;
use tempfile::TempDir;

/// A user that owns nothing (Debian's `nobody`).
const STRANGER: &str = "65534";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().into()
}

/// A project with nothing in it but the launcher.
fn project() -> TempDir {
    let project = TempDir::new().unwrap();
    fs::set_permissions(project.path(), Permissions::from_mode(0o755)).unwrap();
    fs::copy(root().join("cassata"), project.path().join("cassata")).unwrap();
    fs::create_dir(project.path().join("setup")).unwrap();
    for entry in fs::read_dir(root().join("setup")).unwrap() {
        let file = entry.unwrap();
        // What tests need is in folders.
        if file.file_type().unwrap().is_dir() {
            continue;
        }
        fs::copy(file.path(), project.path().join("setup").join(file.file_name())).unwrap();
    }
    project
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_log_sees_that_a_long_step_goes_on() {
    let project = project();
    let script = ". setup/progress.sh; step 'building it' it sh -c 'echo part one; sleep 3'";
    let output = Command::new("bash")
        .args(["-c", script])
        .current_dir(project.path())
        .env("CASSATA_ROOT", project.path())
        .env("CASSATA_TELL_EVERY", "1")
        .output()
        .unwrap();
    let said = said(&output);
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[0], "cassata: building it");
    assert!(lines[1].starts_with("cassata: building it ... "), "{said}");
    assert!(lines[1].ends_with(" s  part one"), "{said}");
    assert!(output.status.success() && lines.last().unwrap().ends_with(" s"), "{said}");
}

/// What a test needs is built if the test runs.
#[test]
fn a_test_is_included_by_part_of_its_name_or_with_all_of_them() {
    let project = project();
    let includes = |arguments: &str| {
        let has_argument = "eval \"$(sed -n '/^has_argument()/,/^}/p' cassata)\"";
        let script = format!("{has_argument}; . setup/products.sh; includes virtio {arguments}");
        let mut bash = Command::new("bash");
        bash.args(["-c", &script]).current_dir(project.path());
        let output = bash.env("CASSATA_ROOT", project.path()).output().unwrap();
        assert_eq!(said(&output), "", "{arguments}");
        output.status.success()
    };
    for asked in ["test --all", "test virtio", "test --machine-only virt", "test --all --coverage"]
    {
        assert!(includes(asked), "{asked}");
    }
    for other in ["test", "test hostile-virtio", "test --all --host-only", "run virtio"] {
        assert!(!includes(other), "{other}");
    }
}

#[test]
fn an_interrupted_step_ends_as_commands_do() {
    let project = project();
    // One that makes something else of the signal.
    let script =
        ". setup/progress.sh; step 'building it' it bash -c 'trap \"exit 7\" INT; sleep 60'";
    // The shell that runs the tests may ignore the signal.
    let mut child = Command::new("env")
        .args(["--default-signal=INT", "bash", "-c", script])
        .current_dir(project.path())
        .env("CASSATA_ROOT", project.path())
        .process_group(0)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(said.next().as_deref(), Some("cassata: building it"));
    while fs::metadata(project.path().join("build/log/it.txt")).is_err() {
        std::thread::yield_now();
    }
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(said.any(|line| line == "cassata: interrupted"));
}

#[test]
fn help_sets_nothing_up() {
    let project = project();
    for arguments in [&["--help"][..], &["test", "--help"], &["help", "run"], &[]] {
        let output = Command::new(project.path().join("cassata")).args(arguments).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}");
        assert!(String::from_utf8(output.stdout).unwrap().contains("./cassata demo"));
    }
    assert!(!project.path().join("build").exists());
}

#[test]
fn a_lock_of_another_user_is_told_with_its_owner() {
    let project = project();
    let lock = project.path().join("build/lock");
    fs::create_dir(project.path().join("build")).unwrap();
    fs::write(&lock, "").unwrap();
    for path in [&lock, &project.path().join("build")] {
        fs::set_permissions(path, Permissions::from_mode(0o555)).unwrap();
    }
    // To root every file is its own.
    let is_root = fs::metadata(&lock).unwrap().uid() == 0;
    let stranger = ["--reuid", STRANGER, "--regid", STRANGER, "--clear-groups"];
    let mut command = Command::new("setpriv");
    command.args(is_root.then_some(stranger).into_iter().flatten());
    let output = command.arg(project.path().join("cassata")).arg("check").output().unwrap();
    fs::set_permissions(project.path().join("build"), Permissions::from_mode(0o755)).unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("build belongs to user "), "{said}");
    assert!(said.contains("run cassata as that user"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// The kernel with the port takes minutes, so it is built for what needs it only.
#[test]
fn the_kernel_with_the_port_is_built_where_it_is_named() {
    let project = project();
    fs::write(project.path().join("own.toml"), "kernel = \"../guests/linux-own/Image\"\n").unwrap();
    fs::write(project.path().join("other.toml"), "kernel = \"../guests/linux/Image\"\n").unwrap();
    for (arguments, needs) in [
        (&["run", "own.toml", "--for", "1"][..], true),
        (&["test", "own-kernel"], true),
        (&["test", "own-kernel.delayed-call"], true),
        (&["bench", "lhp", "--quick"], true),
        (&["bench", "lhp", "--point", "technique-own"], true),
        (&["bench", "lhp", "--point=throughput-none"], false),
        (&["bench", "el2"], false),
        (&["run", "other.toml"], false),
        (&["run", "gone.toml"], false),
        (&["test"], false),
        (&[], false),
    ] {
        let status = Command::new("bash")
            .args(["-c", "set -eu; . setup/products.sh; needs_own_linux \"$@\"", "-"])
            .args(arguments)
            .current_dir(project.path())
            .env("CASSATA_ROOT", project.path())
            .env("setup_directory", project.path())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(i32::from(!needs)), "{arguments:?}");
    }
}

/// What others wrote is large, so it is fetched for what names it only.
#[test]
fn what_others_wrote_is_fetched_where_it_is_named() {
    let project = project();
    // The caller is elsewhere than the project.
    let here = project.path().join("below");
    fs::create_dir(&here).unwrap();
    for (file, kernel) in [
        ("rt.toml", "others/rt.Image"),
        ("next.toml", "others/backports.Image"),
        ("boot.toml", "others/u-boot.bin"),
        ("embassy.toml", "embassy.elf"),
    ] {
        fs::write(here.join(file), format!("kernel = \"../build/guests/{kernel}\"\n")).unwrap();
    }
    let script = "set -eu; eval \"$(sed -n '/^has_argument()/,/^}/p' ../cassata)\"
                  . ../setup/products.sh; product() { echo \"$1\"; }; ensure_others \"$@\"";
    for (arguments, fetched) in [
        (&["run", "rt.toml", "--vtime"][..], "rt-kernel\n"),
        (&["check", "next.toml"], "backports-kernel\n"),
        (&["run", "boot.toml"], "u-boot\n"),
        (&["run", "embassy.toml"], "embassy\n"),
        (&["test", "conformance-kernel.rt"], "rt-kernel\n"),
        (&["test", "conformance-kernel.backports"], "backports-kernel\n"),
        (&["test", "--all"], "rt-kernel\nbackports-kernel\n"),
        (&["test", "--all", "--host-only"], ""),
        (&["run", "gone.toml"], ""),
        (&["test"], ""),
        (&["demo"], ""),
    ] {
        let output = Command::new("bash")
            .args(["-c", script, "-"])
            .args(arguments)
            .current_dir(&here)
            .env("setup_directory", project.path())
            .env("CASSATA_ROOT", project.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), fetched, "{arguments:?}");
    }
}

/// A kernel finds its modules on the disk that it was installed with, and on no other.
#[test]
fn a_users_debian_keeps_its_kernel_when_there_is_a_newer_one() {
    const MADE: &str = "build/guests/debian";
    let script = "set -eu; . setup/progress.sh; . setup/products.sh; ensure_disk_tools() { :; }
                  build_debian() { for file in Image initrd root.img; do echo new >build/guests/debian/$file; done; }
                  ensure_debian";
    // What is there, what the kernel is then, and what is said.
    for (there, kernel, told) in [
        (
            &["Image", "initrd", "root.img", "disk.img"][..],
            "old\n",
            "remove that file to get a new one",
        ),
        (&["Image", "initrd", "disk.img"], "old\n", "remove that file to get a new one"),
        (&["Image", "initrd", "root.img"], "new\n", "installing Debian"),
        (&[], "new\n", "installing Debian"),
        (&["initrd", "disk.img"], "", "error: build/guests/debian/disk.img is there without"),
    ] {
        let project = project();
        for directory in ["guests/debian", "guests/linux", "build/apt", "build/stamps", MADE] {
            fs::create_dir_all(project.path().join(directory)).unwrap();
        }
        let sources =
            ["guests/linux/fetch", "guests/linux/archive.sh", "build/apt/fetched", "toolchain"];
        for source in sources {
            fs::write(project.path().join(source), "").unwrap();
        }
        for file in there {
            fs::write(project.path().join(MADE).join(file), "old\n").unwrap();
        }
        // All sources are newer, as after a fetch.
        let stamp = fs::File::create(project.path().join("build/stamps/debian")).unwrap();
        stamp.set_modified(UNIX_EPOCH).unwrap();
        let output = Command::new("bash")
            .args(["-c", script])
            .current_dir(project.path())
            .env("setup_directory", project.path())
            .env("CASSATA_ROOT", project.path())
            .output()
            .unwrap();
        let said = said(&output);
        assert!(said.contains(told), "{there:?}: {said}");
        assert_eq!(output.status.success(), !kernel.is_empty(), "{there:?}: {said}");
        let image = fs::read_to_string(project.path().join(MADE).join("Image"));
        assert_eq!(image.unwrap_or_default(), kernel, "{there:?}");
        let disk = fs::read_to_string(project.path().join(MADE).join("disk.img")).unwrap();
        assert_eq!(disk, if kernel == "new\n" { "new\n" } else { "old\n" }, "{there:?}");
    }
}

/// Security updates are some packages of a release, and not the release.
#[test]
fn apt_has_a_release_only_with_its_plain_suite() {
    let project = project();
    let script = ". setup/debian.sh; apt-get() { cat configured; }; debian_sources bookworm";
    let [main, security] = [("debian", "bookworm"), ("debian-security", "bookworm-security")]
        .map(|(at, suite)| format!("http://mirror/{at}/ {suite} /etc/apt/sources.list"));
    for (configured, sources) in [
        (vec![&security, &main], vec![&main, &security]),
        (vec![&main], vec![&main]),
        (vec![&security], vec![]),
        (vec![], vec![]),
    ] {
        let lines = configured.iter().map(|source| format!("{source}:1 main\n"));
        fs::write(project.path().join("configured"), lines.collect::<String>()).unwrap();
        let output = Command::new("bash")
            .args(["-ec", script])
            .current_dir(project.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let found = String::from_utf8(output.stdout).unwrap();
        assert_eq!(found.lines().collect::<Vec<_>>(), sources, "{configured:?}");
    }
}

/// Calls `doctor` in a project with this PATH.
fn examined(project: &Path, path: &str) -> (Option<i32>, serde_json::Value) {
    let output = Command::new(project.join("cassata"))
        .args(["doctor", "--json"])
        .env_clear()
        .env("PATH", path)
        .output()
        .unwrap();
    let found = serde_json::from_slice(&output.stdout);
    (output.status.code(), found.unwrap_or_else(|_| panic!("{}", said(&output))))
}

#[test]
fn the_doctor_says_what_is_missing_and_leaves_all_as_it_is() {
    let project = project();
    fs::copy(root().join("Cargo.toml"), project.path().join("Cargo.toml")).unwrap();
    // What the shell scripts need, and none of what they look for.
    let tools = project.path().join("tools");
    fs::create_dir(&tools).unwrap();
    for tool in [
        "bash", "cut", "df", "dirname", "grep", "head", "id", "nproc", "realpath", "sed", "sort",
        "stat", "tail",
    ] {
        let is_there = ["/usr/bin", "/bin"].map(|bin| Path::new(bin).join(tool));
        let there = is_there.into_iter().find(|path| path.exists()).unwrap();
        std::os::unix::fs::symlink(there, tools.join(tool)).unwrap();
    }
    let before = fs::read_dir(project.path()).unwrap().count();
    let (code, found) = examined(project.path(), tools.to_str().unwrap());
    assert_eq!((code, &found["sound"]), (Some(1), &false.into()), "{found}");
    let missing = |found: &serde_json::Value, word: &str| {
        let all = found["findings"].as_array().unwrap();
        all.iter()
            .any(|one| one["state"] == "missing" && one["what"].as_str().unwrap().contains(word))
    };
    assert!(missing(&found, "gcc, which links") && missing(&found, "qemu-system-arm"), "{found}");
    let notes = found["findings"].as_array().unwrap().iter().filter(|one| one["state"] == "note");
    let notes: Vec<_> = notes.map(|one| one["what"].as_str().unwrap()).collect();
    let later = "e2fsprogs is not there, which only ./cassata run systems/debian.toml needs";
    assert!(notes.contains(&later), "what one command needs is no reason to stop: {notes:?}");
    let (_, found) = examined(project.path(), "/usr/bin:/bin");
    assert!(!missing(&found, "gcc") && !missing(&found, "qemu"), "{found}");
    assert_eq!(fs::read_dir(project.path()).unwrap().count(), before, "nothing was written");
}
