//! What is built from the source is the same, byte for byte, wherever the source lies.

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a clone has that products are built from.
const SOURCES: [&str; 7] =
    [".cargo", "Cargo.toml", "Cargo.lock", "crates", "fuzz", "guests", "setup"];
/// What `cassata build` packs into the image of an example, and what decides it.
const PRODUCTS: [&str; 9] = [
    "build/el2.elf",
    "build/el2.crates",
    "build/guests/probe.elf",
    "build/guests/metronome.elf",
    "build/guests/intra.elf",
    "build/guests/freertos.elf",
    "build/guests/linux/packages",
    "build/guests/linux/Image",
    "build/guests/linux/initramfs.cpio.gz",
];
/// The launcher's own way to build them.
const BUILD: &str = "
    set -euo pipefail
    umask 077
    for part in progress debian toolchain packages inventory products; do . setup/$part.sh; done
    [[ -n ${CASSATA_CORE:-} ]] || find_toolchain
    build_bare_metal && build_metronome && build_intra && build_freertos && build_linux
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().into()
}

/// Makes a clone in a directory whose name is longer than the project's, and builds there in
/// another environment. Only the packages of Debian's Linux are not fetched again.
fn build_elsewhere(clone: &Path) {
    fs::create_dir_all(clone.join("build/guests")).unwrap();
    let sources = SOURCES.map(|name| root().join(name));
    let copied = Command::new("cp").arg("-a").args(sources).arg(clone).status().unwrap();
    assert!(copied.success());
    symlink(root().join("build/apt"), clone.join("build/apt")).unwrap();
    // Macros run on the host, and are in no product.
    fs::create_dir(clone.join("target")).unwrap();
    let macros = root().join("target/bare");
    let copied = Command::new("cp").arg("-a").arg(macros).arg(clone.join("target")).status();
    assert!(copied.unwrap().success());
    let output = Command::new("bash")
        .args(["-c", BUILD])
        .current_dir(clone)
        .env("CASSATA_ROOT", clone)
        .envs([("LC_ALL", "C.UTF-8"), ("TZ", "Asia/Kathmandu"), ("USER", "another")])
        .envs([("RUSTFLAGS", "-C debuginfo=0"), ("SOURCE_DATE_EPOCH", "1")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the sections of an ELF file, each with its name, then all that is in none.
fn parts(file: &[u8]) -> Vec<(String, &[u8])> {
    let Ok(elf) = ElfFile64::<LittleEndian>::parse(file) else {
        return vec![("the file".into(), file)];
    };
    let sections = elf.sections();
    let sections = sections.map(|part| (part.name().unwrap().to_owned(), part.data().unwrap()));
    sections.chain([("headers and padding".into(), file)]).collect()
}

/// Says where two files begin to differ, if they do.
fn difference(one: &[u8], other: &[u8]) -> Option<String> {
    if one == other {
        return None;
    }
    let (parts, others) = (parts(one), parts(other));
    let names = |parts: &[(String, &[u8])]| parts.iter().map(|part| part.0.clone()).collect();
    let (ours, theirs): (Vec<_>, Vec<_>) = (names(&parts), names(&others));
    if ours != theirs {
        return Some(format!("one has {ours:?}, the other {theirs:?}"));
    }
    let mut pairs = parts.iter().zip(&others);
    let ((name, one), (_, other)) = pairs.find(|(one, other)| one.1 != other.1)?;
    let at = one.iter().zip(*other).take_while(|(one, other)| one == other).count();
    let around = |bytes: &[u8]| {
        let shown = &bytes[at.saturating_sub(32)..bytes.len().min(at + 32)];
        shown.escape_ascii().to_string()
    };
    Some(format!("{name}, from byte {at:#x}:\n  {}\n  {}", around(one), around(other)))
}

#[test]
fn what_is_built_does_not_depend_on_where() {
    let directory = tempfile::tempdir().unwrap();
    let clone = directory.path().canonicalize().unwrap().join("a-clone-with-a-longer-name");
    build_elsewhere(&clone);
    let differences = PRODUCTS.iter().filter_map(|name| {
        let read = |root: &Path| fs::read(root.join(name)).expect("the launcher has built it");
        let difference = difference(&read(&root()), &read(&clone))?;
        Some(format!("{name} here and in another directory differ in {difference}"))
    });
    assert_eq!(differences.collect::<Vec<_>>().join("\n"), "");
}

#[test]
fn the_first_section_that_differs_is_named() {
    let image = fs::read(root().join("build/el2.elf")).expect("the launcher has built it");
    let elf = ElfFile64::<LittleEndian>::parse(&image[..]).unwrap();
    let offset = |name| elf.section_by_name(name).unwrap().file_range().unwrap().0 as usize;
    assert_eq!(difference(&image, &image), None);
    for section in [".text", ".rodata", ".debug_line", ".symtab"] {
        let mut other = image.clone();
        other[offset(section) + 5] ^= 1;
        let said = difference(&image, &other).unwrap();
        assert!(said.starts_with(&format!("{section}, from byte 0x5:")), "{said}");
    }
    let mut other = image.clone();
    other[7] ^= 1; // EI_OSABI
    assert!(difference(&image, &other).unwrap().starts_with("headers and padding"));
    assert!(difference(&image, &[&image[..], b"x"].concat()).is_some());
    assert!(difference(b"gz 1", b"gz 2").unwrap().starts_with("the file, from byte 0x3"));
}
