//! Every message a description can draw, word for word: `problems.md` holds
//! bad descriptions and what is said of them.
//!
//! `UPDATE_EXPECT=1 cargo test -p cassata-system --test problems` writes what
//! is said now into the file, to be read before it is committed.

mod support;

use miette::Severity;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use support::{elf, files, linux_image};
use system::Code;
use tempfile::TempDir;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/problems.md");
const TOML: &str = "```toml\n";
const TEXT: &str = "```text\n";
const END: &str = "```\n";

/// A bad description, and what is said of it.
struct Case<'a> {
    description: &'a str,
    said: &'a str,
}

/// The cases of the file, and the text between them.
fn cases(file: &str) -> (Vec<Case<'_>>, Vec<&str>) {
    let (mut cases, mut between) = (Vec::new(), Vec::new());
    let mut rest = file;
    while let Some((before, after)) = rest.split_once(TOML) {
        let (description, after) = after.split_once(END).expect("the description ends");
        let (gap, after) = after.split_once(TEXT).expect("something is said of it");
        let (said, after) = after.split_once(END).expect("what is said ends");
        assert!(gap.trim().is_empty(), "{gap}");
        cases.push(Case { description, said });
        between.push(before);
        rest = after;
    }
    between.push(rest);
    (cases, between)
}

/// What is said of a description now.
fn say(directory: &Path, description: &str) -> String {
    let report = match support::check(directory, description) {
        Ok(checked) => checked.warnings,
        Err(report) => report,
    };
    let here = format!("{}/", directory.display());
    report.plain().replace(&here, "") + "\n"
}

/// The files that the bad descriptions name.
fn bad_files() -> TempDir {
    let directory = files();
    let put = |name: &str, bytes: &[u8]| fs::write(directory.path().join(name), bytes).unwrap();
    put("empty", &[]);
    put("disk.img", &[0; 1024]);
    put("Image-4K", &linux_image(4096));
    put("mid.cpio", &support::initramfs(3 << 19));
    put("big.cpio", &support::initramfs(2 << 20));
    put("vmlinuz", &[&b"\x1f\x8b\x08"[..], &[0; 99]].concat());
    put("noise.bin", &[0xab; 999]);
    let mut x86 = vec![0; 0x400];
    x86[0x202..0x206].copy_from_slice(b"HdrS");
    put("bzImage", &x86);
    let with = |at: usize, bytes: &[u8]| {
        let mut image = linux_image(4096);
        image[at..at + bytes.len()].copy_from_slice(bytes);
        image
    };
    put("Image-be", &with(24, &[1]));
    put("Image-old", &with(16, &[0; 8]));
    put("Image-odd", &with(8, &[8, 0, 0, 0]));
    put("Image-bad", &with(16, &[1, 0, 0, 0, 0, 0, 0, 0]));
    put("Image-1G", &with(16, &(1_u64 << 30).to_le_bytes()));
    let efi = support::efi_image(4096);
    put("Image-cut", &efi[..3000]);
    put("Image-stub", &efi[..100]);
    let sparse = |name: &str, start: &[u8]| {
        put(name, start);
        let file = fs::File::options().write(true).open(directory.path().join(name)).unwrap();
        file.set_len(3 << 30).unwrap();
    };
    sparse("Image-3G", &linux_image(4096));
    sparse("cpio-3G", b"070701");
    sparse("elf-3G", &support::guest_elf());
    fs::create_dir(directory.path().join("directory")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, directory.path().join("fifo"), mode).unwrap();
    let guest = || elf::Elf::new(elf::ET_EXEC, 0x4000_0000);
    let code = |elf: elf::Elf, at: u64| elf.segment(at, &[0; 64], 64, elf::R | elf::X);
    let changed = |change: fn(&mut elf::Elf)| {
        let mut elf = code(guest(), 0x4000_0000);
        change(&mut elf);
        elf.build()
    };
    put("x86.elf", &changed(|elf| elf.machine = 62));
    put("pie.elf", &changed(|elf| elf.kind = elf::ET_DYN));
    put("arm32.elf", &changed(|elf| elf.class = 1));
    put("lost.elf", &changed(|elf| elf.entry = 0x5000_0000));
    put("short.elf", &changed(|_| ())[..150]);
    put("low.elf", &code(code(guest(), 0x4000_0000), 0x2000_0000).build());
    put("top.elf", &code(code(guest(), 0x4000_0000), 0x43ff_8000).build());
    put("overlap.elf", &code(code(guest(), 0x4000_0000), 0x4000_0020).build());
    let many = (0..70).fold(guest(), |elf, n| code(elf, 0x4000_0000 + n * 0x1000));
    put("many.elf", &many.build());
    directory
}

#[test]
fn every_problem_is_told_where_what_and_how_to_mend_it() {
    let directory = bad_files();
    let file = fs::read_to_string(FILE).unwrap();
    let (cases, between) = cases(&file);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let mut updated = String::new();
        for (case, before) in cases.iter().zip(&between) {
            let said = say(directory.path(), case.description);
            let parts = [before, TOML, case.description, END, "\n", TEXT, &said, END];
            parts.iter().for_each(|part| updated.push_str(part));
        }
        updated.push_str(between.last().unwrap());
        fs::write(FILE, updated).unwrap();
        return;
    }
    for (case, heading) in cases.iter().zip(&between) {
        let said = say(directory.path(), case.description);
        assert_eq!(said, case.said, "{heading}{}", case.description);
    }
}

#[test]
fn the_documentation_has_every_kind_of_problem() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/description.md");
    let page = fs::read_to_string(page).unwrap();
    for code in Code::ALL {
        let warning = if code.severity() == Severity::Warning { " (warning)" } else { "" };
        let row = format!("| `{}`{warning} | {} |\n", code.name(), code.meaning());
        assert!(page.contains(&row), "not there: {row}");
    }
}

#[test]
fn every_kind_of_problem_has_an_example() {
    let file = fs::read_to_string(FILE).unwrap();
    let said: HashSet<_> = cases(&file).0.iter().flat_map(|case| case.said.lines()).collect();
    for code in Code::ALL {
        let mark = format!("[{}]", code.name());
        let found = said.iter().any(|line| line.contains(&mark));
        // There is no description to show for one that cannot be read.
        assert!(found || *code == Code::Unreadable, "no example draws {mark}");
    }
}

#[test]
fn every_problem_comes_with_a_hint() {
    let file = fs::read_to_string(FILE).unwrap();
    for case in cases(&file).0 {
        let count = |mark: &str| case.said.lines().filter(|line| line.contains(mark)).count();
        assert_eq!(count("test.toml:") - count("  see "), count("  hint: "), "{}", case.said);
    }
}

#[test]
fn a_description_that_is_not_there_is_told_too() {
    let directory = TempDir::new().unwrap();
    let report = system::load(&directory.path().join("none.toml")).unwrap_err();
    assert_eq!(report.problems()[0].code, Code::Unreadable);
    assert!(
        report.plain().contains("none.toml: error[unreadable]: cannot read"),
        "{}",
        report.plain()
    );
}

#[test]
fn a_description_that_is_no_file_is_told_at_once() {
    let directory = bad_files();
    for (name, why) in [("directory", "a directory, not a file"), ("fifo", "a device or a pipe")] {
        let report = system::load(&directory.path().join(name)).unwrap_err();
        assert_eq!(report.problems()[0].code, Code::Unreadable);
        assert!(report.plain().contains(why), "{}", report.plain());
    }
}

#[test]
fn the_diagnostic_shows_the_offending_text() {
    use miette::Diagnostic;
    let directory = files();
    let text = "# täuschend\nboard = { kind = \"qemu-virt\", pcpus = 99, memory = \"1G\" }\n";
    let report = support::check(directory.path(), text).unwrap_err();
    let problem = report.problems().iter().find(|p| p.code == Code::TooMany).unwrap();
    let place = report.place(problem).unwrap();
    assert_eq!((place.line, place.column, place.text.as_str()), (2, 39, "99"));
    let label = problem.labels().unwrap().next().unwrap();
    let span = label.inner();
    let shown = report.source_code().unwrap().read_span(span, 0, 0).unwrap();
    assert_eq!(shown.line(), 1, "miette counts from 0");
    assert_eq!(report.to_string().split(": ").last(), Some("2 errors, 0 warnings"));
}
