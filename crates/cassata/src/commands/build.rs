//! `cassata build`.

use super::signing::Signing;
use super::{description, gaps, say};
use crate::HYPERVISOR;
use crate::cli::{Build, Format};
use lab::gaps::Watch;
use lab::quantity::file_size;
use lab::results;
use miette::{Result, miette};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use system::{Checked, ImageFormat, Packed, is_same_place, sbom};

/// The time that what is built shall name, in seconds from 1970, as builds that are to be
/// repeated agree on (reproducible-builds.org, SOURCE_DATE_EPOCH).
const DATE: &str = "SOURCE_DATE_EPOCH";

/// Packs a system into one bootable image, and writes beside it what the image is made of.
pub fn build(arguments: &Build) -> Result<u8> {
    let (described, detector) = match arguments.gaps {
        None => (description::load(&arguments.system)?, None),
        Some(threshold_ns) => {
            let watch = Watch { threshold_ns, length: None };
            let (described, detector) = gaps::detector(&arguments.system, watch)?;
            (described, Some(detector))
        }
    };
    let checked = detector.as_ref().unwrap_or(&described);
    let (output, sign) = (arguments.output.as_path(), arguments.sign.as_deref());
    let (format, boot_script) = (arguments.format, arguments.boot_script.as_deref());
    write_image(checked, &described, &Image { output, format, boot_script, sign })?;
    Ok(0)
}

/// A bootable image that is to be written.
pub struct Image<'a> {
    /// Where.
    pub output: &'a Path,
    /// Which kind of file.
    pub format: Format,
    /// Where a script for U-Boot goes, if one is asked for.
    pub boot_script: Option<&'a Path>,
    /// The file of the key with which it is signed, if it is.
    pub sign: Option<&'a Path>,
}

/// Writes a system and the bill of its materials, and says so. No file is written over that `described`, the
/// description that was named, is made of.
pub fn write_image(checked: &Checked, described: &Checked, image: &Image<'_>) -> Result<()> {
    let date = env::var_os(DATE).map(|date| seconds(&date)).transpose()?;
    let bill = bill_beside(image.output);
    let signing = image.sign.map(|key| Signing::prepare(key, checked)).transpose()?;
    let files = [("-o", image.output), ("-o", bill.as_path())];
    let script = image.boot_script.map(|script| ("--boot-script", script));
    for (option, file) in files.into_iter().chain(script) {
        description::spare_inputs(described, file, option)?;
        results::has_place(file)?;
        signing.iter().try_for_each(|signing| signing.spare_key(file, option))?;
    }
    if let Some((option, file)) = script
        && [image.output, &bill].iter().any(|other| is_same_place(other, file))
    {
        let file = file.display();
        return Err(miette!(help = "name another file", "{option} and -o both write {file}"));
    }
    let packed = description::packing(image.output, || {
        let packed = match &signing {
            None => system::pack(checked, HYPERVISOR.of(checked))?,
            Some(signing) => signing.pack(checked)?,
        };
        write(image, &packed)?;
        Ok(packed)
    })?;
    let origin = signing.as_ref().map_or_else(|| crate::origin(checked), Signing::origin);
    let text = sbom::bill(checked, &origin, image.output, date);
    // An earlier one does not describe this image.
    let text = text.inspect_err(|_| drop(fs::remove_file(&bill)))?;
    results::write_file(&bill, text.as_bytes())?;
    tell(image, &packed, &bill);
    Ok(())
}

/// Writes the image, and the boot script if one is asked for.
fn write(image: &Image<'_>, packed: &Packed) -> Result<()> {
    let format = image.format.into();
    let script = |_: &Path| {
        let name = image.output.file_name().unwrap_or_default().to_string_lossy();
        packed.boot_script(format, &name)
    };
    // It may be refused: nothing is written then.
    let script = image.boot_script.map(script).transpose()?;
    packed.write_file(format, image.output)?;
    let pair = image.boot_script.iter().zip(&script);
    pair.into_iter().try_for_each(|(file, script)| results::write_file(file, script))
}

/// Says what was written, and how U-Boot starts what is made for it.
fn tell(image: &Image<'_>, packed: &Packed, bill: &Path) {
    let format = ImageFormat::from(image.format);
    let size = image.output.metadata().map_or(0, |metadata| metadata.len());
    say(&format!("{} ({})", image.output.display(), file_size(size)));
    say(&format!("{} (bill of materials, CycloneDX)", bill.display()));
    if let Some(script) = image.boot_script {
        say(&format!("{} (boot script for U-Boot)", script.display()));
    }
    if format != ImageFormat::Elf {
        let address = packed.load_address(format);
        let start = format.start_command(address);
        say(&format!("in U-Boot: load it to {address:#x}, then `{start}`"));
    }
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
