//! A checkout of Bao: what is taken for one, and building it. Bao's Makefile builds beside itself, so a copy
//! is built, and the user's checkout stays as it is.

use super::Built;
use miette::{IntoDiagnostic, Result, WrapErr, ensure, miette};
use object::{Object, ObjectSection, SectionKind};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The platform of Bao's that is QEMU's board.
const PLATFORM: &str = "qemu-aarch64-virt";
/// The header that declares the configuration.
const HEADER: &str = "src/core/inc/config.h";
/// What the configuration is called in Bao's build.
const CONFIG: &str = "cassata";
/// The flat image in the directory of a run, and what `make` leaves that is moved there.
pub const IMAGE: &str = "bao.bin";
/// What the cross compiler's programs begin with.
const CROSS_COMPILE: &str = "aarch64-linux-gnu-";
/// What that compiler and its linker do for Linux, and those for bare metal, which Bao's guide names, do not:
/// atomics as calls of a library, a guarded stack, and warnings, which Bao's Makefile makes errors.
const FLAGS: [&str; 2] = [
    "CFLAGS=-mno-outline-atomics -fno-stack-protector -fno-asynchronous-unwind-tables",
    "LDFLAGS=--no-warn-rwx-segments --no-warn-execstack",
];
/// What only a checkout that was built has, and what no build needs.
const LEFT_OUT: [&str; 4] = [".git", "build", "bin", "wrkdir"];
/// The most that Bao's image may take, where the memory behind it is Linux's.
pub const ROOM: u64 = 0x1000_0000;
/// Variables by which another `make`, or the user's shell, would change how Bao is compiled.
const UNSET: [&str; 8] =
    ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CPPFLAGS", "CFLAGS", "ASFLAGS", "LDFLAGS", "CC"];

/// Takes the argument of `--bao`.
///
/// # Errors
/// What is missing.
pub fn accept(argument: &str) -> Result<PathBuf, String> {
    let path = Path::new(argument);
    check(path).map_err(|error| error.to_string())?;
    fs::canonicalize(path).map_err(|error| format!("cannot find {argument}: {error}"))
}

/// Checks that `path` is a checkout of Bao.
///
/// # Errors
/// What is missing.
pub fn check(path: &Path) -> Result<()> {
    let platform = format!("src/platform/{PLATFORM}");
    for (wanted, is_there) in [
        ("Makefile", path.join("Makefile").is_file()),
        (HEADER, path.join(HEADER).is_file()),
        (platform.as_str(), path.join(&platform).is_dir()),
    ] {
        ensure!(
            is_there,
            "{} is no checkout of Bao: it has no {wanted}; name the directory that a clone of \
             bao-hypervisor made",
            path.display()
        );
    }
    Ok(())
}

/// Returns the text of the header that declares the configuration.
///
/// # Errors
/// When it cannot be read.
pub fn header(checkout: &Path) -> Result<String> {
    let path = checkout.join(HEADER);
    let text = fs::read_to_string(&path).into_diagnostic();
    text.wrap_err_with(|| format!("cannot read {}", path.display()))
}

/// Returns a sum of all that is built of `checkout`, by which results of another one are not taken for its
/// own; 0 if there is none.
pub fn sum(checkout: &Path) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for path in files(checkout).unwrap_or_default() {
        hasher.update(path.as_os_str().as_encoded_bytes());
        hasher.update(&fs::read(checkout.join(&path)).unwrap_or_default());
    }
    hasher.finalize()
}

/// Returns the files that a build needs, each with its path in `checkout`, sorted.
fn files(checkout: &Path) -> Result<Vec<PathBuf>> {
    let unread = |path: &Path| format!("cannot read {}", path.display());
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let path = checkout.join(&folder);
        let entries = fs::read_dir(&path).into_diagnostic().wrap_err_with(|| unread(&path))?;
        for entry in entries {
            let entry = entry.into_diagnostic().wrap_err_with(|| unread(&path))?;
            let name = folder.join(entry.file_name());
            let kind = entry.file_type().into_diagnostic().wrap_err_with(|| unread(&path))?;
            if LEFT_OUT.iter().any(|left_out| name == Path::new(left_out)) {
            } else if kind.is_dir() {
                folders.push(name);
            } else if checkout.join(&name).is_file() {
                found.push(name);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Builds `checkout` with the configuration `config` in `directory`, which has the guests' images; what
/// `make` prints is in `bao.log` there.
///
/// # Errors
/// When it does not build, or a file cannot be written.
pub fn build(checkout: &Path, config: &str, directory: &Path) -> Result<Built> {
    let text = directory.to_string_lossy();
    ensure!(
        !text.contains([' ', '\t', '"', '\\', '#', '$', ':', ',']),
        help = "put the project where its path has none of space, quote, backslash, `#`, `$`, colon and \
                comma",
        "Bao's Makefile cannot build in {text}"
    );
    let [copy, configs] = ["bao", "bao-config"].map(|name| directory.join(name));
    clear(&copy)?;
    for file in files(checkout)? {
        let target = copy.join(&file);
        let made = fs::create_dir_all(target.parent().unwrap_or(&copy));
        let copied = made.and_then(|()| fs::copy(checkout.join(&file), &target));
        copied.into_diagnostic().wrap_err_with(|| format!("cannot make {}", target.display()))?;
    }
    fs::create_dir_all(&configs)
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot make {}", configs.display()))?;
    crate::results::write_file(&configs.join(CONFIG).with_extension("c"), config.as_bytes())?;
    make(&copy, &configs, directory)?;
    let made = copy.join("bin").join(PLATFORM).join(CONFIG);
    let own_bytes = own_bytes(&made.join("bao.elf"))?;
    let [left, image] = [made.join(IMAGE), directory.join(IMAGE)];
    let size = fs::metadata(&left).map(|file| file.len()).into_diagnostic();
    let size = size.wrap_err_with(|| format!("`make` left no {}", left.display()))?;
    ensure!(size < ROOM, "Bao's image with both guests is too large: {size} bytes");
    let moved = fs::rename(&left, &image).into_diagnostic();
    moved.wrap_err_with(|| format!("cannot write {}", image.display()))?;
    // It is as large as the guests several times over.
    clear(&copy)?;
    Ok(Built { image, own_bytes })
}

fn clear(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(miette!("cannot remove {}: {error}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Runs Bao's Makefile in `copy` to its end.
fn make(copy: &Path, configs: &Path, directory: &Path) -> Result<()> {
    let log = directory.join("bao.log");
    let unwritten = || format!("cannot write {}", log.display());
    let file = fs::File::create(&log).into_diagnostic().wrap_err_with(unwritten)?;
    let other = file.try_clone().into_diagnostic().wrap_err_with(unwritten)?;
    let mut make = Command::new("make");
    for name in UNSET {
        make.env_remove(name);
    }
    make.arg("-C").arg(copy).arg(format!("PLATFORM={PLATFORM}")).arg(format!("CONFIG={CONFIG}"));
    make.arg(format!("CONFIG_REPO={}", configs.display()));
    make.arg(format!("CROSS_COMPILE={CROSS_COMPILE}")).arg("GIC_VERSION=GICV3").args(FLAGS);
    // Bao's Makefile asks git for a version, and the copy is in no repository of Bao's.
    make.env("GIT_CEILING_DIRECTORIES", directory).env("LC_ALL", "C");
    let ran = make.stdin(Stdio::null()).stdout(file).stderr(other).status().into_diagnostic();
    let ran = ran.wrap_err("cannot start make; `./cassata` installs it")?;
    let said = fs::read_to_string(&log).unwrap_or_default();
    let lines: Vec<_> = said.lines().collect();
    let last = lines[lines.len().saturating_sub(5)..].join("\n");
    ensure!(
        ran.success(),
        help = format!(
            "docs/src/peers.md says for which state of Bao the configuration in {} was written",
            configs.display()
        ),
        "Bao does not build; {} ends with:\n{last}",
        log.display()
    );
    Ok(())
}

/// Returns the bytes of code and data in Bao's ELF file that are not the guests'.
fn own_bytes(path: &Path) -> Result<u64> {
    let bytes = fs::read(path).into_diagnostic();
    let bytes = bytes.wrap_err_with(|| format!("`make` left no {}", path.display()))?;
    let file = object::File::parse(&*bytes).into_diagnostic();
    let file = file.wrap_err_with(|| format!("cannot read {}", path.display()))?;
    let is_own = |section: &object::Section<'_, '_>| {
        let is_loaded = matches!(
            section.kind(),
            SectionKind::Text | SectionKind::Data | SectionKind::ReadOnlyData
        );
        is_loaded && !section.name().is_ok_and(|name| name.starts_with(".vm_image"))
    };
    Ok(file.sections().filter(is_own).map(|section| section.size()).sum())
}
