//! How large the hypervisor is.

use miette::{IntoDiagnostic, Result, WrapErr};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{elf, endian::LittleEndian};
use std::fs;
use std::path::{Path, PathBuf};

/// Size of the hypervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Bytes of its image that are loaded (PT_LOAD, sizes in the file).
    pub image: u64,
    /// Lines of its source, comments included, tests not.
    pub lines: u64,
}

/// Measures the ELF file `image` and the sources in `source`.
pub fn measure(image: &[u8], source: &Path) -> Result<Size> {
    let mut files = Vec::new();
    find_sources(source, &mut files)
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot read {}", source.display()))?;
    let texts = files.iter().map(fs::read_to_string).collect::<Result<Vec<_>, _>>();
    let texts = texts.into_diagnostic().wrap_err("cannot read the hypervisor's source")?;
    let image = image_size(image).into_diagnostic().wrap_err("the hypervisor's ELF file")?;
    Ok(Size { image, lines: texts.iter().map(|text| lines(text)).sum() })
}

fn image_size(image: &[u8]) -> object::read::Result<u64> {
    let header = elf::FileHeader64::<LittleEndian>::parse(image)?;
    let segments = header.program_headers(LittleEndian, image)?.iter();
    let loaded = segments.filter(|s| s.p_type(LittleEndian) == elf::PT_LOAD);
    Ok(loaded.map(|segment| segment.p_filesz(LittleEndian)).sum())
}

fn find_sources(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let tests = path.file_stem().is_some_and(|stem| stem == "tests");
        if !tests && path.is_dir() {
            find_sources(&path, files)?;
        } else if !tests && path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Lines up to the test module, which stands last in a file.
fn lines(text: &str) -> u64 {
    let lines: Vec<_> = text.lines().collect();
    let test_module = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ");
    lines.windows(2).position(test_module).unwrap_or(lines.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count() {
        assert_eq!(lines("a\n\n// b\nc\n"), 4);
        assert_eq!(lines("a\n#[cfg(test)]\nuse b;\nc\n#[cfg(test)]\nmod tests {\n}\n"), 4);
        let source = tempfile::tempdir().unwrap();
        for (path, text) in
            [("a.rs", "1\n2\n"), ("b/mod.rs", "3\n"), ("b/tests.rs", "x\n"), ("c.md", "x\n")]
        {
            let path = source.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut files = Vec::new();
        find_sources(source.path(), &mut files).unwrap();
        assert_eq!(files.len(), 2, "{files:?}");
    }

    #[test]
    fn only_an_elf_file_has_an_image() {
        assert!(image_size(b"no ELF file").is_err());
    }
}
