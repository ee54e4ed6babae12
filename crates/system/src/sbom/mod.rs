//! What an image is made of, as a CycloneDX bill of materials: the crates of the hypervisor, the
//! toolchain that compiled them, and the files of the description.

mod cyclonedx;
mod inventory;

use crate::inputs::Input;
use crate::model::Checked;
use crate::pack::PackError;
use crate::temporary::without_name;
use cyclonedx::{Bom, Component, Dependency, Hash, License, Lifecycle, Metadata, Property, Tools};
use inventory::{Crate, Id, Inventory};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};
use toml::{Table, Value};

/// The last second of which RFC 3339 can tell, that of the year 9999.
pub const LAST_SECOND: u64 = 253_402_300_799;
/// The image.
const IMAGE: &str = "image";
/// Crates that come with the compiler and are linked into the image, and their licences.
const LIBRARIES: [(&str, &str); 2] =
    [("core", RUST_LICENSE), ("compiler_builtins", BUILTINS_LICENSE)];
/// That of what is translated from LLVM, and of what is not.
const BUILTINS_LICENSE: &str = "MIT AND Apache-2.0 WITH LLVM-exception AND (MIT OR Apache-2.0)";
/// The compiler's.
const RUST_LICENSE: &str = "MIT OR Apache-2.0";
const REQUIRED: Option<&str> = Some("required");
const EXCLUDED: Option<&str> = Some("excluded");

/// Where a hypervisor comes from.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The ELF file.
    pub elf: &'a [u8],
    /// What it was built from, as `setup/inventory.sh` writes it.
    pub inventory: &'a str,
    /// The lock file by which its crates were chosen.
    pub lock: &'a str,
}

/// Writes the bill of materials of `image`, which was packed from `checked`: a JSON document.
/// `date` is the time that it names, in seconds from 1970 up to [`LAST_SECOND`].
///
/// # Errors
/// When the image cannot be read, or the hypervisor's origin is damaged.
pub fn bill(
    checked: &Checked,
    origin: &Origin<'_>,
    image: &Path,
    date: Option<u64>,
) -> Result<String, PackError> {
    let inventory = Inventory::parse(origin.inventory).map_err(|line| damaged(&line))?;
    let root = inventory.root.as_ref().ok_or_else(|| damaged("a missing line"))?;
    let checksums = checksums(origin.lock).ok_or_else(|| damaged("the lock file"))?;
    let mut components = Vec::new();
    for (id, part) in &inventory.crates {
        let elf = (id == root).then_some(origin.elf);
        components.push(crate_component(id, part, elf, &checksums)?);
    }
    components.extend(LIBRARIES.map(|(name, license)| library(name, license, &inventory)));
    components.extend(toolchain(&inventory));
    components.extend(checked.inputs.iter().map(file));
    let dependencies = dependencies(&inventory, root, &checked.inputs);
    let timestamp = date.map(|date| {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(date.min(LAST_SECOND));
        humantime::format_rfc3339_seconds(time).to_string()
    });
    let bom = Bom {
        schema: "http://cyclonedx.org/schema/bom-1.5.schema.json",
        bom_format: "CycloneDX",
        spec_version: "1.5",
        version: 1,
        metadata: Metadata {
            timestamp,
            lifecycles: [Lifecycle { phase: "build" }],
            tools: Tools { components: [writer()] },
            component: image_component(image)?,
        },
        components,
        dependencies,
    };
    let json = serde_json::to_string_pretty(&bom).map_err(|error| damaged(&error.to_string()))?;
    Ok(json + "\n")
}

fn damaged(what: &str) -> PackError {
    let message = format!("what the hypervisor was built from cannot be told: {what}");
    PackError::new(message, "build the `cassata` command again, with ./cassata")
}

/// Finds the checksums of crates in a lock file; crates of the project have none.
fn checksums(lock: &str) -> Option<BTreeMap<Id, Option<String>>> {
    let lock: Table = lock.parse().ok()?;
    let packages = lock.get("package")?.as_array()?.iter();
    let checksum = |package: &Value| {
        let text = |key: &str| package.get(key)?.as_str().map(str::to_owned);
        Some((Id { name: text("name")?, version: text("version")? }, text("checksum")))
    };
    packages.map(checksum).collect()
}

fn crate_component(
    id: &Id,
    part: &Crate,
    elf: Option<&[u8]>,
    checksums: &BTreeMap<Id, Option<String>>,
) -> Result<Component, PackError> {
    let checksum = checksums
        .get(id)
        .ok_or_else(|| damaged(&format!("{} {} is not in the lock file", id.name, id.version)))?;
    // A crate of the project has no package URL: where one of its name were published, scanners
    // would take that for it.
    let purl = checksum
        .as_ref()
        .map(|_| format!("pkg:cargo/{}@{}", id.name, id.version.replace('+', "%2B")));
    let hashes = elf.map(sha256).or_else(|| checksum.clone());
    let property = |name, value: &str| Property { name, value: value.into() };
    let features = Some(part.features.as_str()).filter(|features| !features.is_empty());
    let features = features.map(|features| property("cassata:features", features));
    let library = property("cassata:library", &part.library);
    Ok(Component {
        kind: if elf.is_some() { "application" } else { "library" },
        reference: crate_reference(id),
        name: id.name.clone(),
        version: Some(id.version.clone()),
        description: elf.map(|_| "the hypervisor; the checksum is that of its ELF file".into()),
        scope: if part.is_linked { REQUIRED } else { EXCLUDED },
        hashes: hashes.into_iter().map(Hash::sha256).collect(),
        licenses: licenses(&part.license),
        purl,
        properties: [library].into_iter().chain(features).collect(),
        ..Component::default()
    })
}

/// A manifest may name no licence.
fn licenses(expression: &str) -> Vec<License> {
    let named = Some(expression).filter(|expression| !expression.is_empty());
    named.map(|expression| License { expression: expression.into() }).into_iter().collect()
}

fn crate_reference(id: &Id) -> String {
    format!("crate:{}@{}", id.name, id.version)
}

fn library_reference(name: &str) -> String {
    format!("rust:{name}")
}

/// Describes a library of the toolchain.
fn library(name: &str, license: &str, inventory: &Inventory) -> Component {
    Component {
        kind: "library",
        reference: library_reference(name),
        name: name.into(),
        version: Some(inventory.release().into()),
        scope: REQUIRED,
        licenses: licenses(license),
        cpe: Some(rust_cpe(inventory)),
        properties: vec![Property { name: "cassata:library", value: name.into() }],
        ..Component::default()
    }
}

/// Returns the name under which vulnerabilities of Rust are listed (CPE 2.3).
fn rust_cpe(inventory: &Inventory) -> String {
    // `-` begins a pre-release, and has to be quoted.
    let release = inventory.release().replace('-', "\\-");
    format!("cpe:2.3:a:rust-lang:rust:{release}:*:*:*:*:*:*:*")
}

/// Describes the programs that compiled and linked.
fn toolchain(inventory: &Inventory) -> [Component; 2] {
    let (linker, version) =
        inventory.linker.rsplit_once(' ').unwrap_or((inventory.linker.as_str(), ""));
    let tool = |reference: &str, name: &str, version: &str| Component {
        kind: "application",
        reference: reference.into(),
        name: name.into(),
        version: Some(version.into()),
        scope: EXCLUDED,
        ..Component::default()
    };
    let rustc = Component {
        licenses: vec![License { expression: RUST_LICENSE.into() }],
        description: Some(format!("rustc {}", inventory.rustc)),
        cpe: Some(rust_cpe(inventory)),
        ..tool("tool:rustc", "rustc", inventory.release())
    };
    [rustc, tool("tool:linker", linker, version)]
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Refers to a file by its title: no two files of a description have one.
fn file_reference(input: &Input) -> String {
    format!("file:{}", input.title)
}

fn file(input: &Input) -> Component {
    Component {
        kind: "file",
        reference: file_reference(input),
        name: file_name(&input.path),
        description: Some(input.title.clone()),
        scope: REQUIRED,
        hashes: vec![Hash::sha256(sha256(&input.bytes))],
        ..Component::default()
    }
}

fn writer() -> Component {
    Component {
        kind: "application",
        reference: "tool:cassata".into(),
        name: "cassata".into(),
        version: Some(env!("CARGO_PKG_VERSION").into()),
        ..Component::default()
    }
}

fn image_component(image: &Path) -> Result<Component, PackError> {
    let checksum = sha256_of_file(image).map_err(|error| {
        let message = format!("cannot read {}: {}", image.display(), without_name(error));
        PackError::new(message, "was the image removed while it was packed?")
    })?;
    Ok(Component {
        kind: "firmware",
        reference: IMAGE.into(),
        name: file_name(image),
        hashes: vec![Hash::sha256(checksum)],
        ..Component::default()
    })
}

/// Lists what each component needs.
fn dependencies(inventory: &Inventory, root: &Id, inputs: &[Input]) -> Vec<Dependency> {
    let files: Vec<String> = inputs.iter().map(file_reference).collect();
    let parts = [crate_reference(root)].into_iter().chain(files.iter().cloned());
    let image = Dependency { reference: IMAGE.into(), depends_on: parts.collect() };
    let crates = inventory.crates.iter().map(|(id, part)| {
        // All that is linked is compiled against `core`, and is without `std`.
        let core = part.is_linked.then(|| library_reference(LIBRARIES[0].0));
        let needs = part.needs.iter().map(crate_reference).chain(core);
        Dependency { reference: crate_reference(id), depends_on: needs.collect() }
    });
    let core = Dependency {
        reference: library_reference(LIBRARIES[0].0),
        depends_on: vec![library_reference(LIBRARIES[1].0)],
    };
    let leaf = |reference| Dependency { reference, depends_on: Vec::new() };
    let leaves = [library_reference(LIBRARIES[1].0)].into_iter().chain(files).map(leaf);
    [image].into_iter().chain(crates).chain([core]).chain(leaves).collect()
}

fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn sha256_of_file(path: &Path) -> io::Result<String> {
    let (mut file, mut sum) = (File::open(path)?, Sha256::new());
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hexadecimal(&sum.finalize())),
            read => sum.update(&buffer[..read]),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standard() {
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), abc);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        for size in [0, 1 << 16, (1 << 16) + 1] {
            let bytes = vec![7; size];
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(sha256_of_file(&path).unwrap(), sha256(&bytes));
        }
    }

    #[test]
    fn a_lock_file_has_checksums_of_what_is_not_the_projects() {
        let lock = "version = 4\n\
            [[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"12\"\n\
            [[package]]\nname = \"b\"\nversion = \"2.0.0\"\n";
        let found: Vec<_> = checksums(lock).unwrap().into_values().collect();
        assert_eq!(found, [Some("12".into()), None]);
        assert_eq!(checksums("version = 4"), None);
        assert_eq!(checksums("[[package]]\nname = 3"), None);
    }

    #[test]
    fn the_last_second_is_in_the_year_9999() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(LAST_SECOND);
        assert_eq!(humantime::format_rfc3339_seconds(time).to_string(), "9999-12-31T23:59:59Z");
    }
}
