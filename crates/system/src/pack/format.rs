//! In which kinds of file a packed system can be written, and where a boot loader puts each.

use super::error::PackError;
use super::flat::Flat;
use super::{Packed, boot_script, fit};
use abi::system::{PAGE_SIZE, RAM_ALIGN, Region};
use std::io::{self, Write};

/// The largest system that fits a FIT: 4 GiB, less than 1 MiB for the rest of it.
const FIT_MOST: u64 = (4 << 30) - (1 << 20);

/// A kind of bootable file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImageFormat {
    /// An ELF file, whose segments say where they belong.
    #[default]
    Elf,
    /// A flat arm64 Image with the header of Linux's: for `booti`, and as `kernel8.img`.
    Image,
    /// A Flattened Image Tree with SHA-256 digests, for `bootm`.
    Fit,
}

impl ImageFormat {
    /// The name, as `cassata build --format` takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Elf => "elf",
            Self::Image => "image",
            Self::Fit => "fit",
        }
    }

    /// The command by which U-Boot starts what was loaded to `address`.
    #[must_use]
    pub fn start_command(self, address: u64) -> String {
        match self {
            Self::Elf => format!("bootelf -p {address:#x}"),
            // It wants a device tree, which EL2 does not read: its own is there.
            Self::Image => format!("booti {address:#x} - ${{fdtcontroladdr}}"),
            // Not all take the default: some look for the one whose device tree is for the board.
            Self::Fit => format!("bootm {address:#x}#{}", fit::CONFIGURATION),
        }
    }
}

impl Packed {
    /// Writes the system in `format`.
    ///
    /// # Errors
    /// When the writer fails.
    pub fn write_as(&self, format: ImageFormat, to: &mut impl Write) -> io::Result<()> {
        let ram_pa = self.tables.board.ram_pa;
        match format {
            ImageFormat::Elf => self.write(to),
            ImageFormat::Image => self.flat().write_image(ram_pa, to),
            ImageFormat::Fit => {
                to.write_all(&fit::write(&self.flat(), ram_pa))?;
                to.flush()
            }
        }
    }

    /// Returns why the system cannot be written in `format`, if it cannot.
    pub(super) fn check_format(&self, format: ImageFormat) -> Result<(), PackError> {
        let board = &self.tables.board;
        if format != ImageFormat::Elf && board.hypervisor_pa < board.ram_pa + PAGE_SIZE {
            return Err(PackError::new(
                "the board has no RAM below the hypervisor, where an Image has its header",
                "take `--format elf`, or a greater `hypervisor_pa` for the board",
            ));
        }
        if format == ImageFormat::Fit && self.flat().region.size > FIT_MOST {
            return Err(PackError::new(
                "the system is too large for a FIT, whose offsets have 32 bits",
                "take another `--format`, or less shared memory and smaller images",
            ));
        }
        Ok(())
    }

    /// Returns where a boot loader puts a file of `format`, physical address: an Image to its own
    /// place, any other behind all that it is unpacked to.
    #[must_use]
    pub fn load_address(&self, format: ImageFormat) -> u64 {
        match format {
            ImageFormat::Image => self.flat().image_region().start,
            ImageFormat::Elf | ImageFormat::Fit => self.flat().end().next_multiple_of(RAM_ALIGN),
        }
    }

    /// Returns a script for U-Boot that loads the file `name` of `format` from where the script came
    /// from, and starts it.
    ///
    /// # Errors
    /// When the name is not fit for a script, the format is not one that U-Boot starts as EL2 wants it or
    /// that the system can be written in, or the file does not fit the board's memory beside what it is
    /// unpacked to.
    pub fn boot_script(&self, format: ImageFormat, name: &str) -> Result<Vec<u8>, PackError> {
        if format == ImageFormat::Elf {
            return Err(PackError::new(
                "there is no boot script for an ELF file: `bootelf` enters it with caches on",
                "add `--format fit` or `--format image`",
            ));
        }
        self.check_format(format)?;
        let board = &self.tables.board;
        let address = self.load_address(format);
        // An Image is loaded to its own place, and a FIT has an Image in it and a little more.
        let more = if format == ImageFormat::Fit { RAM_ALIGN } else { 0 };
        let file = Region::new(address, self.flat().image_region().size + more);
        if !Region::new(board.ram_pa, board.ram_size).contains(file) {
            let message = format!(
                "the board's memory has no room for {name} at {address:#x}, behind what it is unpacked to"
            );
            return Err(PackError::new(
                message,
                "take `--format image`, which is loaded to where it belongs, or raise `memory`",
            ));
        }
        boot_script::write(name, address, &format.start_command(address))
    }

    fn flat(&self) -> Flat<'_> {
        Flat::of(self.container())
    }
}
