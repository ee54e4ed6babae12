//! `cassata build` writes what it is told to, and never over what it reads.

mod support;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::process::Output;
use support::{cassata, command, files, said};
use tempfile::TempDir;

const TEXT: &str = r#"
board = { kind = "qemu-virt", pcpus = 2, memory = "256M" }

[[vm]]
name = "linux"
kernel = "Image"
initramfs = "initramfs"
memory = { size = "16M" }
vcpus = [{ pcpu = 0, priority = 1 }]

[[vm]]
name = "rtos"
kernel = "rtos.bin"
format = "flat"
memory = { size = "4M" }
vcpus = [{ pcpu = 1, priority = 1 }]
"#;

fn described() -> TempDir {
    let directory = files();
    fs::write(directory.path().join("a.toml"), TEXT).unwrap();
    directory
}

/// Every file there, with what it holds.
fn contents(directory: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files.map(|path| (path.file_name().unwrap().into(), fs::read(&path).unwrap())).collect()
}

/// Builds to `output`, which must be refused, and nothing be written; answers
/// what is said of it, in one line.
fn refused(directory: &Path, output: &str) -> String {
    let before = contents(directory);
    let result = cassata(directory, &["build", "a.toml", "-o", output]);
    assert_eq!(result.status.code(), Some(2), "{output}");
    assert_eq!(contents(directory), before, "{output}");
    assert!(result.stdout.is_empty(), "{output}");
    let complaint = String::from_utf8(result.stderr).unwrap();
    complaint.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

#[test]
fn no_file_that_is_read_is_replaced() {
    let directory = described();
    let cases = [
        ("a.toml", "a.toml: a.toml is the description itself"),
        ("Image", "a.toml:6:10: Image is the kernel of VM `linux`"),
        ("initramfs", "a.toml:7:13: initramfs is the initramfs of VM `linux`"),
        ("rtos.bin", "a.toml:13:10: rtos.bin is the kernel of VM `rtos`"),
    ];
    for (output, expected) in cases {
        let said = refused(directory.path(), output);
        assert!(said.contains(expected), "{said}");
        assert!(said.contains("hint: name another file behind `-o`"), "{said}");
    }
}

#[test]
fn other_names_of_these_files_are_seen_through() {
    let directory = described();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    let long = at("sub").join("..").join("Image");
    let said = refused(directory.path(), long.to_str().unwrap());
    assert!(said.contains("is the kernel of VM `linux`"), "{said}");

    fs::hard_link(at("rtos.bin"), at("hard.elf")).unwrap();
    let said = refused(directory.path(), "hard.elf");
    assert!(said.contains("hard.elf is the kernel of VM `rtos`"), "{said}");

    symlink("initramfs", at("soft.elf")).unwrap();
    let said = refused(directory.path(), "soft.elf");
    assert!(said.contains("soft.elf is the initramfs of VM `linux`"), "{said}");

    // The description names the link, `-o` the file.
    fs::rename(at("rtos.bin"), at("version-7")).unwrap();
    symlink("version-7", at("rtos.bin")).unwrap();
    let said = refused(directory.path(), "version-7");
    assert!(said.contains("version-7 is the kernel of VM `rtos`"), "{said}");
}

#[test]
fn what_the_project_has_built_is_not_replaced() {
    let directory = described();
    let make = |name: &str| {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, name).unwrap();
    };
    let built = ["build/el2.elf", "build/guests/linux/Image", "target/release/cassata"];
    ["systems/demo.toml"].into_iter().chain(built).for_each(make);
    for output in built {
        let said = refused(directory.path(), output);
        assert!(said.contains(&format!("{output} is what the project has built")), "{said}");
        assert_eq!(fs::read_to_string(directory.path().join(output)).unwrap(), output);
    }
    said(directory.path(), &["build", "a.toml", "-o", "build/new.elf"]);
}

#[test]
fn a_missing_directory_is_named() {
    let directory = described();
    let said = refused(directory.path(), "nowhere/new.elf");
    assert!(said.contains("there is no directory nowhere"), "{said}");
    assert!(!said.contains(".tmp"), "{said}");
}

#[test]
fn a_run_that_cannot_begin_leaves_nothing_behind() {
    let directory = described();
    let bad = TEXT.replace("pcpu = 1", "pcpu = 2");
    fs::write(directory.path().join("a.toml"), bad).unwrap();
    let result = cassata(directory.path(), &["run", "a.toml"]);
    assert_eq!(result.status.code(), Some(2));
    let complaint = String::from_utf8(result.stderr).unwrap();
    assert!(complaint.contains("unknown-pcpu"), "{complaint}");
    assert!(!directory.path().join("results").exists());
}

/// A run may take long; where its result goes is looked at before.
#[test]
fn a_result_without_a_place_is_refused_at_once() {
    let directory = described();
    let result = cassata(directory.path(), &["run", "a.toml", "--json", "none/a.json"]);
    let complaint = String::from_utf8(result.stderr).unwrap();
    assert_eq!(result.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("there is no directory none"), "{complaint}");
    assert!(!directory.path().join("results").exists());
}

#[test]
fn a_result_replaces_nothing_that_is_read() {
    let directory = described();
    let before = contents(directory.path());
    let result = cassata(directory.path(), &["run", "a.toml", "--json", "a.toml"]);
    assert_eq!(result.status.code(), Some(2));
    let complaint = String::from_utf8(result.stderr).unwrap();
    assert!(complaint.contains("name another file behind `--json`"), "{complaint}");
    assert_eq!(contents(directory.path()), before);
}

#[test]
fn the_directory_is_not_in_the_image() {
    let (one, other) = (described(), described());
    let below = other.path().join("a/longer/name");
    fs::create_dir_all(&below).unwrap();
    for name in contents(other.path()).into_keys() {
        fs::rename(other.path().join(&name), below.join(&name)).unwrap();
    }
    for directory in [one.path(), &below] {
        said(directory, &["build", "a.toml", "-o", "new.elf"]);
    }
    assert_eq!(contents(one.path()), contents(&below));
    assert!(contents(&below).contains_key(&OsString::from("new.cdx.json")));
}

#[test]
fn an_image_is_written_and_replaced() {
    let directory = described();
    fs::write(directory.path().join("old.elf"), "an older one").unwrap();
    for output in ["new.elf", "old.elf"] {
        said(directory.path(), &["build", "a.toml", "-o", output]);
        assert!(fs::read(directory.path().join(output)).unwrap().starts_with(b"\x7fELF"));
    }
}

#[test]
fn each_format_is_written_with_a_script_that_loads_it() {
    let directory = described();
    let read = |name: &str| fs::read(directory.path().join(name)).unwrap();
    for (format, output, magic) in
        [("image", "new.img", &b"ARM\x64"[..]), ("fit", "new.fit", b"\xd0\x0d\xfe\xed")]
    {
        let script = ["--format", format, "--boot-script", "boot.scr"];
        let arguments = [&["build", "a.toml", "-o", output][..], &script].concat();
        let told = said(directory.path(), &arguments);
        assert!(told.contains("boot.scr (boot script for U-Boot)"), "{told}");
        assert!(told.contains("in U-Boot: load it to 0x4"), "{told}");
        assert!(read(output)[..64].windows(4).any(|bytes| bytes == magic));
        let script = String::from_utf8_lossy(&read("boot.scr")).into_owned();
        assert!(script.contains(&format!("${{prefix}}{output} && boot")), "{script}");
    }
}

#[test]
fn a_boot_script_replaces_nothing_and_is_not_written_in_vain() {
    let directory = signable();
    let refused = |arguments: &[&str], why: &str| {
        let before = contents(directory.path());
        let all = [&["build", "a.toml", "-o", "new.fit"], arguments].concat();
        let result = command(directory.path(), &all).env("CASSATA_ROOT", project()).output();
        let result = result.unwrap();
        let complaint = String::from_utf8(result.stderr).unwrap();
        assert_eq!(result.status.code(), Some(2), "{complaint}");
        let words = complaint.split_whitespace().filter(|word| *word != "│");
        let complaint = words.collect::<Vec<_>>().join(" ");
        assert!(complaint.contains(why), "{complaint}");
        assert_eq!(contents(directory.path()), before);
    };
    std::os::unix::fs::symlink("new.fit", directory.path().join("link.scr")).unwrap();
    let fit = ["--format", "fit", "--boot-script"];
    let with = |file: &'static str| [&fit[..], &[file]].concat();
    refused(&["--boot-script", "boot.scr"], "`bootelf` enters it with caches on");
    refused(&with("Image"), "name another file behind `--boot-script`");
    refused(&with("new.fit"), "--boot-script and -o both write new.fit");
    refused(&with("./new.fit"), "--boot-script and -o both write ./new.fit");
    refused(&with("link.scr"), "--boot-script and -o both write link.scr");
    refused(&with("new.fit.cdx.json"), "both write new.fit.cdx.json");
    refused(&with("none/boot.scr"), "there is no directory none");
    refused(&[&with("key.pem")[..], &["--sign", "key.pem"]].concat(), "is the private key");
    refused(&["--format", "uimage"], "invalid value 'uimage'");
    let odd = [&["-o", "a b"][..], &with("boot.scr")].concat();
    let all = [&["build", "a.toml"], &odd[..]].concat();
    let before = contents(directory.path());
    assert_eq!(cassata(directory.path(), &all).status.code(), Some(2));
    assert_eq!(contents(directory.path()), before);
}

#[test]
fn what_is_signed_and_a_detector_of_gaps_have_each_format() {
    let directory = signable();
    for format in ["image", "fit"] {
        for more in [&["--sign", "key.pem"][..], &["--gaps"]] {
            let name = format!("new{}.{format}", more[0]);
            let arguments = ["build", "a.toml", "-o", &name, "--format", format];
            let all = [&arguments[..], more].concat();
            let done = command(directory.path(), &all).env("CASSATA_ROOT", project()).output();
            let done = done.unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            let file = fs::read(directory.path().join(&name)).unwrap();
            let has_key = file.windows(PUBLIC.len()).any(|bytes| bytes == PUBLIC);
            assert_eq!(has_key, more[0] == "--sign", "{name}");
        }
    }
}

/// Two keys: the first is that which RFC 8410, section 10.3, shows.
const KEYS: [&str; 2] = [
    "EINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC",
    "EINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhD",
];
/// The public key of the first (RFC 8410, section 10.1).
const PUBLIC: [u8; 8] = [0x19, 0xbf, 0x44, 0x09, 0x69, 0x84, 0xcd, 0xfe];

fn signable() -> TempDir {
    let directory = described();
    for (key, name) in KEYS.iter().zip(["key.pem", "other.pem"]) {
        let text = format!(
            "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCI{key}\n-----END PRIVATE KEY-----\n"
        );
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

/// Builds and signs, with the hypervisor that the launcher has built below `root`.
fn sign(root: &Path, directory: &Path, output: &str, key: &str) -> Output {
    let arguments = ["build", "a.toml", "-o", output, "--sign", key];
    command(directory, &arguments).env("CASSATA_ROOT", root).output().unwrap()
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().into()
}

#[test]
fn a_signed_image_has_the_key_and_its_bill_what_checks_it() {
    let directory = signable();
    let read = |name: &str| fs::read(directory.path().join(name)).unwrap();
    for (output, key) in [("a.elf", "key.pem"), ("b.elf", "key.pem"), ("c.elf", "other.pem")] {
        let done = sign(&project(), directory.path(), output, key);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    said(directory.path(), &["build", "a.toml", "-o", "plain.elf"]);
    let has_key = |name: &str| read(name).windows(PUBLIC.len()).any(|bytes| bytes == PUBLIC);
    assert!(has_key("a.elf") && !has_key("c.elf") && !has_key("plain.elf"));
    assert_eq!(read("a.elf"), read("b.elf"));
    let lists = |name: &str| String::from_utf8(read(name)).unwrap().contains("ed25519-compact");
    assert!(lists("a.cdx.json") && !lists("plain.cdx.json"));
}

#[test]
fn what_cannot_be_signed_is_not_written() {
    let directory = signable();
    let refused = |root: &Path, output: &str, key: &str, why: &str| {
        let before = contents(directory.path());
        let result = sign(root, directory.path(), output, key);
        let complaint = String::from_utf8(result.stderr).unwrap();
        assert_eq!(result.status.code(), Some(2), "{complaint}");
        assert!(complaint.contains(why), "{complaint}");
        assert_eq!(contents(directory.path()), before);
    };
    refused(&project(), "new.elf", "none.pem", "cannot read the key none.pem");
    refused(&project(), "new.elf", "a.toml", "a.toml is no private key for Ed25519");
    refused(&project(), "key.pem", "key.pem", "key.pem is the private key");
    symlink("key.pem", directory.path().join("new.cdx.json")).unwrap();
    refused(&project(), "new.elf", "key.pem", "new.cdx.json is the private key");
    // Outside the project there is no such hypervisor.
    refused(directory.path(), "new.elf", "key.pem", "cannot read build/el2-signed.elf");
    let traced = format!("{TEXT}\n[hypervisor]\ntrace = \"1M\"\n");
    fs::write(directory.path().join("a.toml"), traced).unwrap();
    refused(&project(), "new.elf", "key.pem", "records a trace");
}
