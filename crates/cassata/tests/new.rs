//! `cassata new` writes what passes `cassata check`, or nothing.

mod support;

use std::fs;
use std::path::Path;
use support::{cassata, files, said};

/// Calls it with files that are there, and more arguments.
fn new(directory: &Path, more: &[&str]) -> std::process::Output {
    let rtos = ["--rtos", "Image", "--rtos-memory", "8M"];
    let linux = ["--linux", "Image", "--initramfs", "initramfs", "--linux-memory", "64M"];
    cassata(directory, &[&["new", "a.toml"][..], &linux, &rtos, more].concat())
}

#[test]
fn what_is_written_is_sound() {
    for policy in ["none", "on-demand", "trap-based", "balance", "safe-unsafe", "adaptive"] {
        for pcpus in ["1", "2", "8"] {
            let directory = files();
            let output = new(directory.path(), &["--pcpus", pcpus, "--policy", policy]);
            let complaints = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{policy}, {pcpus}: {complaints}");
            let table = said(directory.path(), &["check", "a.toml"]);
            assert!(table.contains(&format!("{pcpus} pCPUs")), "{table}");
        }
    }
}

/// Whatever is asked for together, and without a warning that says more than that a device does DMA.
#[test]
fn several_vms_links_a_disk_and_a_network_are_sound() {
    for (arguments, told) in [
        (&["--pcpus", "4", "--linux-vms", "2", "--rtos-vms", "2", "--link", "64K"][..], "linux-2"),
        (&["--pcpus", "4", "--rtos-vms", "3", "--link", "8K"], "rtos-3"),
        (&["--rtos-vms", "2"], "rtos-2"),
        (&["--pcpus", "3", "--linux-vms", "3", "--rtos-vms", "3"], "linux-3"),
        (&["--disk", "disk.img", "--network"], "linux"),
        (&["--linux-vms", "2", "--disk", "disk.img", "--link", "1M"], "linux-2"),
    ] {
        let directory = files();
        fs::write(directory.path().join("disk.img"), [0; 1024]).unwrap();
        let output = new(directory.path(), arguments);
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {complaints}");
        let mut warnings = complaints.lines().filter(|line| line.contains("warning["));
        assert!(warnings.all(|line| line.contains("dma-unconfined")), "{complaints}");
        let table = said(directory.path(), &["check", "a.toml"]);
        assert!(table.contains(told), "{arguments:?}: {table}");
    }
    for (kind, count) in [("rtos", 3), ("linux", 2)] {
        let directory = files();
        let other = if kind == "rtos" { "linux" } else { "rtos" };
        let (none, all, kernel) =
            (format!("--{other}-vms"), format!("--{kind}-vms"), format!("--{kind}"));
        let (memory, count) = (format!("--{kind}-memory"), count.to_string());
        let some = [all.as_str(), &count, &kernel, "Image", &memory, "64M", "--pcpus", "4"];
        said(
            directory.path(),
            &[&["new", "a.toml", &none, "0", "--link", "8K"][..], &some].concat(),
        );
        let table = said(directory.path(), &["check", "a.toml"]);
        assert!(table.contains(&format!("{kind}-{count}")), "{table}");
    }
}

#[test]
fn an_option_of_vms_that_are_none_is_refused() {
    for (arguments, option) in [
        (&["new", "a.toml", "--rtos-vms", "0", "--rtos", "Image"][..], "--rtos"),
        (&["new", "a.toml", "--linux-vms", "0", "--network"], "--network"),
        (&["new", "a.toml", "--rtos-vms", "0", "--policy", "balance"], "--policy"),
        (&["new", "a.toml", "--linux-vms", "0", "--link", "8K"], "--link"),
    ] {
        let directory = files();
        let output = cassata(directory.path(), arguments);
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complaints}");
        let refused = format!("{option} is about VMs that the system has not");
        assert!(complaints.contains(&refused), "{complaints}");
        assert!(!directory.path().join("a.toml").exists());
    }
}

#[test]
fn paths_are_those_of_the_description_and_not_of_the_caller() {
    let directory = files();
    fs::create_dir(directory.path().join("below")).unwrap();
    let files = ["--linux", "Image", "--rtos", "Image", "--linux-memory", "64M"];
    let arguments = [&["new", "below/a.toml"][..], &files].concat();
    said(directory.path(), &arguments);
    let text = fs::read_to_string(directory.path().join("below/a.toml")).unwrap();
    assert!(text.contains("kernel = \"../Image\""), "{text}");
    said(&directory.path().join("below"), &["check", "a.toml"]);
}

#[test]
fn what_is_there_is_left_as_it_is() {
    let directory = files();
    fs::write(directory.path().join("a.toml"), "mine").unwrap();
    let output = new(directory.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("a.toml is there already"));
    assert_eq!(fs::read_to_string(directory.path().join("a.toml")).unwrap(), "mine");
}

/// What is wrong is said once, with the option or the line, and nothing is written.
#[test]
fn what_would_not_be_sound_is_not_written() {
    for (arguments, said) in [
        (["--rtos-pcpu", "2"], "--rtos-pcpu must be a number from 0 to 1"),
        (["--pcpus", "9"], "--pcpus must be a number from 1 to 8"),
        (["--policy", "on-deman"], "on-demand"),
    ] {
        let directory = files();
        let output = new(directory.path(), &arguments);
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complaints}");
        assert!(complaints.contains(said), "{complaints}");
        assert!(!directory.path().join("a.toml").exists());
    }
    let directory = files();
    let output =
        cassata(directory.path(), &["new", "a.toml", "--linux", "none", "--rtos", "Image"]);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        complaints.contains("--linux must be a file that can be read, and none is none"),
        "{complaints}"
    );
    assert!(!directory.path().join("a.toml").exists());
}

/// The command knows no board by itself: it takes from the board's file where there is memory, and what takes a disk.
#[test]
fn a_description_for_any_board_is_sound() {
    for (board, pcpus, disk, network) in [
        ("qemu-virt", "8", "pcie", Some("virtio-mmio-31")),
        ("qemu-virt-gicv2", "8", "virtio-mmio-31", Some("virtio-mmio-30")),
        ("imx8mp", "4", "sd", Some("network")),
        ("raspi4b", "4", "sd", None),
        ("raspi4b-mini", "4", "sd", None),
        ("versal", "2", "sd", Some("network")),
        ("zcu102", "4", "sd", Some("network")),
    ] {
        // Memory as it is by default, with which little is left on a Raspberry Pi.
        let kernels = ["--board", board, "--linux", "Image", "--rtos", "Image"];
        let plugged =
            [&["--disk", "disk.img"][..], &["--network"][..network.iter().count()]].concat();
        for more in [&[][..], &["--pcpus", pcpus, "--link", "64K"], &plugged] {
            let directory = files();
            fs::write(directory.path().join("disk.img"), [0; 1024]).unwrap();
            let output =
                cassata(directory.path(), &[&["new", "a.toml"][..], &kernels, more].concat());
            let complaints = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{board}, {more:?}: {complaints}");
            let mut warnings = complaints.lines().filter(|line| line.contains("warning["));
            assert!(warnings.all(|line| line.contains("dma-unconfined")), "{complaints}");
            let text = fs::read_to_string(directory.path().join("a.toml")).unwrap();
            assert!(text.contains(&format!("kind = \"{board}\"")), "{text}");
            if more == plugged {
                let devices = [Some(disk), network].into_iter().flatten();
                let devices: Vec<_> = devices.map(|name| format!("{name:?}")).collect();
                assert!(text.contains(&format!("devices = [{}]", devices.join(", "))), "{text}");
            }
            said(directory.path(), &["check", "a.toml"]);
        }
    }
}

#[test]
fn what_a_board_does_not_have_is_refused() {
    for (arguments, refused) in [
        (&["--board", "raspi5"][..], "--board must be one of qemu-virt, "),
        (&["--board", "my-board.toml"], "and my-board.toml is none"),
        (&["--board", "raspi4b", "--network"], "--network: board `raspi4b` has no slot for it"),
        (&["--board", "versal", "--pcpus", "3"], "--pcpus must be a number from 1 to 2"),
        (&["--board", "raspi4b", "--linux-memory", "1G"], "board `raspi4b` can have"),
    ] {
        let directory = files();
        let kernels = ["--linux", "Image", "--rtos", "Image"];
        let arguments = [&["new", "a.toml"][..], &kernels, arguments].concat();
        let output = cassata(directory.path(), &arguments);
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complaints}");
        assert!(complaints.contains(refused), "{arguments:?}: {complaints}");
        assert!(!directory.path().join("a.toml").exists());
    }
}
