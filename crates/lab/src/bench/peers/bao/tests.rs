//! The bench's side of Bao: what is refused, what is built with a stand-in's Makefile and header, and what
//! QEMU is told.

use super::super::case::{Case, Load, Measure};
use super::super::plan::CORES;
use super::super::system::System;
use super::{BAO_PA, MEMORY, board, checkout, config, images, stand_in, told};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn source() -> PathBuf {
    stand_in(crate::testing::root())
}

fn case(checkout: &Path) -> Case {
    let measure = Measure::Wake { load: Load::Idle, periods: 5 };
    Case { image: Some(checkout.into()), ..Case::new(System::Bao, CORES, measure) }
}

/// Writes what the configuration names as guests.
fn write_guests(directory: &Path) {
    for (file, bytes) in [(config::LINUX, [1; 5000]), (config::WAKER, [2; 5000])] {
        fs::write(directory.join(file), bytes).unwrap();
    }
}

#[test]
fn what_is_no_checkout_is_refused_with_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let refused = || checkout::accept(path.to_str().unwrap()).unwrap_err();
    assert!(refused().contains("is no checkout of Bao: it has no Makefile; name"), "{}", refused());
    fs::write(path.join("Makefile"), "").unwrap();
    assert!(refused().contains("it has no src/core/inc/config.h"));
    fs::create_dir_all(path.join("src/core/inc")).unwrap();
    fs::write(path.join("src/core/inc/config.h"), "").unwrap();
    assert!(refused().contains("it has no src/platform/qemu-aarch64-virt"));
    fs::create_dir_all(path.join("src/platform/qemu-aarch64-virt")).unwrap();
    assert_eq!(checkout::accept(path.to_str().unwrap()).unwrap(), path.canonicalize().unwrap());
    assert!(
        checkout::accept("/nonexistent/bao").unwrap_err().starts_with("/nonexistent/bao is no")
    );
}

/// Bao compiles a configuration with warnings as errors, and its list of VMs was an array before it was a
/// pointer: then without `-pedantic`, as ISO C gives such an array no initial value.
#[test]
fn the_configuration_compiles_for_both_kinds_of_list() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    write_guests(path);
    let pointer = checkout::header(&source()).unwrap();
    let array = pointer.replace("struct vm_config *vmlist;", "struct vm_config vmlist[];");
    assert_ne!(pointer, array);
    for (header, strictness) in [(pointer, "-pedantic-errors"), (array, "-Wextra")] {
        fs::write(path.join("config.h"), &header).unwrap();
        fs::write(path.join("config.c"), config::text(4, &header, path, 0x6230_0000)).unwrap();
        let mut compile = Command::new("aarch64-linux-gnu-gcc");
        compile.args(["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror", strictness]);
        compile.args(["-ffreestanding", "-c", "-o", "config.o", "-I.", "config.c"]);
        let ran = compile.current_dir(path).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
}

#[test]
fn linux_has_all_cores_but_the_last_and_the_uarts_interrupt_is_its_own() {
    let text = config::text(4, "vmlist[]", Path::new("/d"), 0x6230_0000);
    for there in [
        "VM_IMAGE(linux_image, \"/d/linux.bin\")\n",
        ".entry = 0x62300000,",
        ".cpu_affinity = 0x7,",
        ".cpu_num = 3,",
        ".place_phys = true, .phys = 0x60000000 }",
        ".size = 0x1000, .interrupt_num = 1, .interrupts = (irqid_t[]) { 33 } }",
        ".cpu_affinity = 0x8,",
        ".cpu_num = 1,",
        ".vmlist = {",
    ] {
        assert_eq!(text.matches(there).count(), 1, "{there}: {text}");
    }
    assert_eq!(text.matches("{ 27 }").count(), 2, "each has its timer");
    let pointer = config::text(4, "struct vm_config *vmlist;", Path::new("/d"), 0);
    assert!(pointer.contains(".vmlist = (struct vm_config[]) {"));
}

#[test]
fn a_copy_is_built_and_the_checkout_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    write_guests(path);
    let before = checkout::sum(&source());
    let header = checkout::header(&source()).unwrap();
    let text = config::text(4, &header, path, config::LINUX_PA);
    let built = checkout::build(&source(), &text, path).unwrap();
    assert_eq!(built.image, path.join("bao.bin"));
    let image = fs::read(&built.image).unwrap();
    let has = |byte| image.windows(5000).any(|at| at == [byte; 5000]);
    assert!(has(1) && has(2), "both guests are in it");
    assert!(
        (100..100_000).contains(&built.own_bytes),
        "{}: the guests do not count",
        built.own_bytes
    );
    assert_eq!(checkout::sum(&source()), before);
    assert!(!source().join("bin").exists() && !path.join("bao").exists());
}

#[test]
fn a_build_that_fails_says_so_with_makes_last_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    write_guests(path);
    let failed = checkout::build(&source(), "#error \"no such field\"\n", path).unwrap_err();
    let said = failed.to_string();
    assert!(said.starts_with("Bao does not build; ") && said.contains("no such field"), "{said}");
    assert!(failed.help().unwrap().to_string().contains("docs/src/peers.md"));
    assert!(!path.join("bao.bin").exists());
    let spaced = path.join("a b");
    let refused = checkout::build(&source(), "", &spaced).unwrap_err().to_string();
    assert!(refused.starts_with("Bao's Makefile cannot build in"), "{refused}");
}

#[test]
fn qemu_loads_bao_beside_what_it_enters() {
    let config = board(Path::new("/d/first.bin"), Path::new("/d/bao.bin"), CORES);
    let args = config.args(Path::new("/d/ram"), None, None);
    let text: Vec<_> = args.iter().map(|arg| arg.to_str().unwrap()).collect();
    assert!(text.ends_with(&["-device", "loader,file=/d/bao.bin,addr=0x50000000,force-raw=on"]));
    for pair in [["-kernel", "/d/first.bin"], ["-smp", "4"], ["-m", "4294967296B"]] {
        assert!(text.windows(2).any(|two| two == pair), "{pair:?}: {text:?}");
    }
    assert!(text.iter().any(|arg| arg.contains("virtualization=on,gic-version=3")));
}

/// A result of another state of the checkout is not taken for one of this.
#[test]
fn a_case_is_told_apart_by_what_the_checkout_has() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    for (file, text) in [("Makefile", "a"), ("build", "b")] {
        fs::write(path.join(file), text).unwrap();
    }
    let before = told(&case(path), "console=ttyAMA0");
    assert!(before.contains(".cpu_num = 3,") && before.ends_with("console=ttyAMA0"));
    assert!(!before.contains(path.to_str().unwrap()), "the project may be elsewhere");
    fs::write(path.join("build"), "c").unwrap();
    assert_eq!(told(&case(path), "console=ttyAMA0"), before, "what was built there does not count");
    fs::write(path.join("Makefile"), "d").unwrap();
    assert_ne!(told(&case(path), "console=ttyAMA0"), before);
}

/// Bao's description of the platform has so much memory, and its image ends below Linux's.
#[test]
fn memory_has_room_for_all_that_is_put_there() {
    const { assert!(BAO_PA + checkout::ROOM <= config::LINUX_PA) };
    const { assert!(config::LINUX_PA + config::LINUX_SIZE <= 0x4000_0000 + MEMORY) };
    assert!(images::first(BAO_PA).len() < 4096);
}
