//! The bill of materials that `cassata build` writes beside an image: it is what CycloneDX
//! demands, and what is in the image.

mod support;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};
use serde_json::Value;
use spdx::Expression;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{cassata, command, files, said};
use tempfile::TempDir;
use toml::Table;

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

[[vm]]
name = "twin"
kernel = "rtos.bin"
format = "flat"
memory = { size = "4M" }
vcpus = [{ pcpu = 1, priority = 1 }]
"#;

/// Keys that the schema knows, of those that are written; the required ones come first.
const DOCUMENT: Keys = (
    &["bomFormat", "specVersion"],
    &["$schema", "version", "metadata", "components", "dependencies"],
);
const METADATA: Keys = (&[], &["timestamp", "lifecycles", "tools", "component"]);
const COMPONENT: Keys = (
    &["type", "name"],
    &[
        "bom-ref",
        "version",
        "description",
        "scope",
        "hashes",
        "licenses",
        "cpe",
        "purl",
        "properties",
    ],
);
const DEPENDENCY: Keys = (&["ref"], &["dependsOn"]);
const HASH: Keys = (&["alg", "content"], &[]);
const LICENSE: Keys = (&["expression"], &[]);
const PROPERTY: Keys = (&[], &["name", "value"]);
type Keys = (&'static [&'static str], &'static [&'static str]);

/// The types of components that the schema knows.
const TYPES: [&str; 12] = [
    "application",
    "framework",
    "library",
    "container",
    "platform",
    "operating-system",
    "device",
    "device-driver",
    "firmware",
    "file",
    "machine-learning-model",
    "data",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().into()
}

fn described(text: &str) -> TempDir {
    let directory = files();
    fs::write(directory.path().join("a.toml"), text).unwrap();
    directory
}

/// Builds there, and reads the bill.
fn bill(directory: &Path) -> Value {
    said(directory, &["build", "a.toml", "-o", "new.elf"]);
    serde_json::from_slice(&fs::read(directory.join("new.cdx.json")).unwrap()).unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no {key} in {value}"))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).map_or(&[], |list| list.as_array().unwrap())
}

/// Demands that an object has the required keys, and no others than these and the known ones.
fn check_keys(value: &Value, (required, others): Keys) {
    let object = value.as_object().unwrap();
    for key in required {
        assert!(object.contains_key(*key), "no {key} in {value}");
    }
    for key in object.keys() {
        assert!(required.iter().chain(others).any(|known| known == key), "{key} in {value}");
    }
}

/// Returns all components, those of the metadata too.
fn components(bill: &Value) -> Vec<&Value> {
    let metadata = &bill["metadata"];
    let tools = list(&metadata["tools"], "components").iter();
    list(bill, "components").iter().chain([&metadata["component"]]).chain(tools).collect()
}

fn find<'a>(bill: &'a Value, key: &str, value: &str) -> &'a Value {
    let all = components(bill);
    let found = all.into_iter().find(|component| component[key] == value);
    found.unwrap_or_else(|| panic!("no component whose {key} is {value}"))
}

/// Returns the value of a component's property.
fn property<'a>(component: &'a Value, name: &str) -> Option<&'a str> {
    let found = list(component, "properties").iter().find(|property| property["name"] == name);
    found.map(|property| text(property, "value"))
}

fn check_component(component: &Value) {
    check_keys(component, COMPONENT);
    assert!(TYPES.contains(&text(component, "type")), "{component}");
    assert!(!text(component, "name").is_empty());
    if let Some(scope) = component.get("scope") {
        assert!(["required", "optional", "excluded"].iter().any(|known| scope == known));
    }
    for hash in list(component, "hashes") {
        check_keys(hash, HASH);
        let content = text(hash, "content");
        let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        assert_eq!(text(hash, "alg"), "SHA-256");
        assert!(content.len() == 64 && content.chars().all(is_digit), "{content}");
    }
    // Either any number of licences by name, or one expression.
    assert!(list(component, "licenses").len() <= 1);
    for license in list(component, "licenses") {
        check_keys(license, LICENSE);
        Expression::parse(text(license, "expression")).unwrap();
    }
    if component.get("purl").is_some() {
        let (name, version) = (text(component, "name"), text(component, "version"));
        assert_eq!(text(component, "purl"), format!("pkg:cargo/{name}@{version}"));
    }
    if component.get("cpe").is_some() {
        let cpe = text(component, "cpe");
        assert!(cpe.starts_with("cpe:2.3:a:") && cpe.split(':').count() == 13, "{cpe}");
    }
    for property in list(component, "properties") {
        check_keys(property, PROPERTY);
        assert!(text(property, "name").starts_with("cassata:"));
        assert!(!text(property, "value").is_empty());
    }
}

/// The rules of the JSON schema of CycloneDX 1.5 for what is written, and its text's: references
/// are unique, and lead somewhere.
#[test]
fn a_bill_is_what_the_schema_demands() {
    let directory = described(TEXT);
    let bill = bill(directory.path());
    check_keys(&bill, DOCUMENT);
    assert_eq!(text(&bill, "bomFormat"), "CycloneDX");
    assert_eq!(text(&bill, "specVersion"), "1.5");
    assert_eq!(bill["version"], 1);
    check_keys(&bill["metadata"], METADATA);
    assert_eq!(bill["metadata"]["lifecycles"][0]["phase"], "build");
    let components = components(&bill);
    components.iter().for_each(|component| check_component(component));

    let all: Vec<&str> = components.iter().map(|component| text(component, "bom-ref")).collect();
    let references: BTreeSet<&str> = all.iter().copied().collect();
    assert_eq!(references.len(), all.len(), "{all:?}");
    let mut edges = BTreeMap::new();
    for dependency in list(&bill, "dependencies") {
        check_keys(dependency, DEPENDENCY);
        let needs: Vec<_> =
            list(dependency, "dependsOn").iter().map(|one| one.as_str().unwrap()).collect();
        let unique: BTreeSet<&str> = needs.iter().copied().collect();
        assert!(needs.len() == unique.len() && unique.is_subset(&references), "{dependency}");
        assert!(references.contains(text(dependency, "ref")), "{dependency}");
        assert!(edges.insert(text(dependency, "ref"), needs).is_none(), "{dependency}");
    }
    // All that is in the image can be reached from it.
    let (mut reached, mut next) = (BTreeSet::new(), vec!["image"]);
    while let Some(one) = next.pop() {
        if reached.insert(one) {
            next.extend(&edges[one]);
        }
    }
    for component in &components {
        let is_required = component.get("scope").is_some_and(|scope| scope == "required");
        assert!(!is_required || reached.contains(text(component, "bom-ref")), "{component}");
    }
}

/// Returns the strings of sections that name source files.
fn source_files(image: &[u8]) -> Vec<String> {
    let elf = ElfFile64::<LittleEndian>::parse(image).unwrap();
    let sections = [".debug_str", ".debug_line_str", ".debug_line"];
    let sections = sections.iter().filter_map(|name| elf.section_by_name(name));
    let strings = sections.flat_map(|section| section.data().unwrap().split(|byte| *byte == 0));
    strings.filter_map(|string| String::from_utf8(string.into()).ok()).collect()
}

/// Debug information names a compilation unit `PATH/@/LIBRARY.HASH-cgu.N`, and source files of
/// crates, also of those that have vanished into other units, as `registry/NAME-VERSION/…`.
#[test]
fn all_crates_that_the_image_names_are_listed() {
    let directory = described(TEXT);
    let bill = bill(directory.path());
    let linked = components(&bill);
    let linked: Vec<_> = linked.iter().filter(|one| one["scope"] == "required").collect();
    let libraries: BTreeSet<_> =
        linked.iter().filter_map(|one| property(one, "cassata:library")).collect();
    let crates = linked.iter().filter(|one| one.get("purl").is_some());
    let crates: BTreeSet<String> =
        crates.map(|one| format!("{}-{}", text(one, "name"), text(one, "version"))).collect();
    let image = fs::read(root().join("build/el2.elf")).expect("the launcher has built it");
    let files = source_files(&image);
    let units = files.iter().filter_map(|file| file.split_once("/@/")?.1.split('.').next());
    // The program is called like its package, the library is not.
    let units: BTreeSet<_> = units.filter(|unit| *unit != "cassata_el2").collect();
    assert!(units.len() > 5 && units.is_subset(&libraries), "{units:?}, {libraries:?}");
    let named = files.iter().filter_map(|file| file.strip_prefix("registry/")?.split('/').next());
    let named: BTreeSet<String> = named.map(str::to_owned).collect();
    assert!(named.len() > 3 && named.is_subset(&crates), "{named:?}, {crates:?}");
}

#[test]
fn what_only_builds_or_tests_is_not_in_the_image() {
    let directory = described(TEXT);
    let bill = bill(directory.path());
    for (key, tool) in [
        ("name", "zerocopy-derive"),
        ("name", "proc-macro2"),
        ("bom-ref", "tool:rustc"),
        ("bom-ref", "tool:linker"),
    ] {
        assert_eq!(find(&bill, key, tool)["scope"], "excluded", "{tool}");
    }
    let names: BTreeSet<_> = components(&bill).iter().map(|one| text(one, "name")).collect();
    // Dependencies of tests, and of the command line.
    for other in ["corosensei", "tempfile", "cassata-system", "clap", "cassata-probe"] {
        assert!(!names.contains(other), "{other}");
    }
}

/// Asks another program than ours.
fn sha256sum(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    said.trim_start_matches('\\').split(' ').next().unwrap().into()
}

#[test]
fn checksums_are_those_of_the_files() {
    let directory = described(TEXT);
    let bill = bill(directory.path());
    let at = |name: &str| directory.path().join(name);
    for (reference, file) in [
        ("image", at("new.elf")),
        ("file:the description itself", at("a.toml")),
        ("file:the kernel of VM `linux`", at("Image")),
        ("file:the initramfs of VM `linux`", at("initramfs")),
        ("file:the kernel of VM `rtos`", at("rtos.bin")),
        ("file:the kernel of VM `twin`", at("rtos.bin")),
    ] {
        let component = find(&bill, "bom-ref", reference);
        assert_eq!(text(component, "name"), file.file_name().unwrap().to_str().unwrap());
        assert_eq!(text(&component["hashes"][0], "content"), sha256sum(&file), "{reference}");
    }
    let hypervisor = find(&bill, "name", "cassata-el2");
    let elf = root().join("build/el2.elf");
    assert_eq!(text(&hypervisor["hashes"][0], "content"), sha256sum(&elf));
    let kernels = list(&bill, "components").iter().filter(|one| one["type"] == "file").count();
    assert_eq!(kernels, 5);
}

#[test]
fn checksums_of_crates_are_those_of_the_lock_file() {
    let directory = described(TEXT);
    let bill = bill(directory.path());
    let lock: Table = fs::read_to_string(root().join("Cargo.lock")).unwrap().parse().unwrap();
    let mut published = 0;
    for component in list(&bill, "components") {
        if !text(component, "bom-ref").starts_with("crate:") {
            continue;
        }
        let is_it = |package: &&toml::Value| {
            ["name", "version"].iter().all(|key| package[*key].as_str() == component[*key].as_str())
        };
        let package = lock["package"].as_array().unwrap().iter().find(is_it).unwrap();
        let checksum = package.get("checksum").and_then(toml::Value::as_str);
        assert_eq!(component.get("purl").is_some(), checksum.is_some(), "{component}");
        if let Some(checksum) = checksum {
            published += 1;
            assert_eq!(text(&component["hashes"][0], "content"), checksum);
        }
        assert_eq!(list(component, "licenses").len(), 1, "{component}");
    }
    assert!(published > 5, "{published}");
}

#[test]
fn a_system_has_the_build_with_the_parts_that_it_wants() {
    let features = |text: &str| {
        let directory = described(text);
        let bill = bill(directory.path());
        property(find(&bill, "name", "cassata-el2"), "cassata:features").map(str::to_owned)
    };
    assert_eq!(features(TEXT), None);
    let traced = format!("{TEXT}\n[hypervisor]\ntrace = \"1M\"\n");
    assert_eq!(
        features(&traced),
        Some("boosts,consolidation,links,parts,sections,smmu,trace,uarts,virtio".into())
    );
    let link = "\n[[link]]\nname = \"control\"\nbetween = [\"linux\", \"rtos\"]\nsize = \"8K\"\n";
    assert_eq!(
        features(&format!("{TEXT}{link}")),
        Some("boosts,consolidation,links,parts,sections,smmu,virtio".into())
    );
}

#[test]
fn only_a_given_date_is_in_a_bill() {
    let directory = described(TEXT);
    let undated = bill(directory.path());
    assert!(
        undated["metadata"].get("timestamp").is_none() && undated.get("serialNumber").is_none()
    );
    let arguments = ["build", "a.toml", "-o", "new.elf"];
    let build = |date: &str| {
        command(directory.path(), &arguments).env("SOURCE_DATE_EPOCH", date).output().unwrap()
    };
    assert!(build("1700000000").status.success());
    let dated = fs::read(directory.path().join("new.cdx.json")).unwrap();
    let mut dated: Value = serde_json::from_slice(&dated).unwrap();
    let metadata = dated["metadata"].as_object_mut().unwrap();
    assert_eq!(metadata.shift_remove("timestamp").unwrap(), "2023-11-14T22:13:20Z");
    assert_eq!(dated, undated);

    fs::remove_file(directory.path().join("new.elf")).unwrap();
    let refused = build("yesterday");
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("SOURCE_DATE_EPOCH is `yesterday`"), "{complaint}");
    assert!(!directory.path().join("new.elf").exists());
}

#[test]
fn a_bill_replaces_nothing_that_is_read() {
    let directory = described(TEXT);
    let at = |name: &str| directory.path().join(name);
    fs::rename(at("a.toml"), at("a.cdx.json")).unwrap();
    let refused = cassata(directory.path(), &["build", "a.cdx.json", "-o", "a.elf"]);
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("a.cdx.json is the description itself"), "{complaint}");
    assert_eq!(fs::read_to_string(at("a.cdx.json")).unwrap(), TEXT);

    fs::create_dir(at("b.cdx.json")).unwrap();
    let refused = cassata(directory.path(), &["build", "a.cdx.json", "-o", "b.elf"]);
    assert_eq!(refused.status.code(), Some(2));
    for image in ["a.elf", "b.elf"] {
        assert!(!at(image).exists(), "{image}");
    }
}
