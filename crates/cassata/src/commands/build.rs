//! `cassata build`.

use super::signing::Signing;
use super::{description, gaps, say};
use crate::cli::Build;
use lab::gaps::Watch;
use lab::quantity::file_size;
use lab::results;
use miette::{Result, miette};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use system::sbom;

/// The time that what is built shall name, in seconds from 1970, as builds that are to be
/// repeated agree on (reproducible-builds.org, SOURCE_DATE_EPOCH).
const DATE: &str = "SOURCE_DATE_EPOCH";

/// Packs a system into one bootable image, and writes beside it what the image is made of.
pub fn build(arguments: &Build) -> Result<u8> {
    let date = env::var_os(DATE).map(|date| seconds(&date)).transpose()?;
    let (described, detector) = match arguments.gaps {
        None => (description::load(&arguments.system)?, None),
        Some(threshold_ns) => {
            let watch = Watch { threshold_ns, length: None };
            let (described, detector) = gaps::detector(&arguments.system, watch)?;
            (described, Some(detector))
        }
    };
    let checked = detector.as_ref().unwrap_or(&described);
    let bill = bill_beside(&arguments.output);
    for file in [&arguments.output, &bill] {
        description::spare_inputs(&described, file, "-o")?;
        results::has_place(file)?;
    }
    let signing =
        arguments.sign.as_deref().map(|key| Signing::prepare(key, checked)).transpose()?;
    let (bundle, origin) = match &signing {
        None => (description::pack(checked, &arguments.output)?, crate::origin(checked)),
        Some(signing) => {
            for file in [&arguments.output, &bill] {
                signing.spare_key(file)?;
            }
            (signing.pack(checked, &arguments.output)?, signing.origin())
        }
    };
    let text = sbom::bill(checked, &origin, &bundle.image, date);
    // An earlier one does not describe this image.
    let text = text.inspect_err(|_| drop(fs::remove_file(&bill)))?;
    results::write_file(&bill, text.as_bytes())?;
    let size = bundle.image.metadata().map_or(0, |metadata| metadata.len());
    say(&format!("{} ({})", bundle.image.display(), file_size(size)));
    say(&format!("{} (bill of materials, CycloneDX)", bill.display()));
    Ok(0)
}

/// Names the bill of materials of an image: `demo.cdx.json` of `demo.elf`. Only `.elf` is left
/// out, so that `v1.2` and `v1.3` have two bills.
fn bill_beside(image: &Path) -> PathBuf {
    let is_elf = image.extension() == Some(OsStr::new("elf"));
    let stem = if is_elf { image.file_stem() } else { image.file_name() };
    let mut name = stem.unwrap_or_default().to_owned();
    name.push(".cdx.json");
    image.with_file_name(name)
}

/// Reads a time in seconds.
fn seconds(date: &OsStr) -> Result<u64> {
    let number = date.to_str().and_then(|date| date.parse().ok());
    number.filter(|date| *date <= sbom::LAST_SECOND).ok_or_else(|| {
        miette!(
            help = "set it to seconds since 1970, such as `git log -1 --format=%ct` prints, \
                    or unset it",
            "{DATE} is `{}`, not a number up to {}",
            date.to_string_lossy(),
            sbom::LAST_SECOND
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_has_the_name_of_its_image() {
        for (image, bill) in [
            ("demo.elf", "demo.cdx.json"),
            ("out/demo.elf", "out/demo.cdx.json"),
            ("v1.2", "v1.2.cdx.json"),
            ("demo", "demo.cdx.json"),
            (".elf", ".elf.cdx.json"),
        ] {
            assert_eq!(bill_beside(Path::new(image)), Path::new(bill));
        }
    }

    #[test]
    fn only_seconds_are_a_date() {
        assert_eq!(seconds(OsStr::new("0")).unwrap(), 0);
        assert_eq!(seconds(OsStr::new("253402300799")).unwrap(), sbom::LAST_SECOND);
        for bad in ["", "-1", "now", "1.5", "253402300800"] {
            let error = seconds(OsStr::new(bad)).unwrap_err().to_string();
            assert!(error.contains(DATE) && error.contains(bad), "{error}");
        }
    }
}
