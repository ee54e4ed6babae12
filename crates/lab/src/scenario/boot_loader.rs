//! Debian's U-Boot loads and starts what `cassata build` writes for boot loaders: it finds the script by
//! itself, on a disk or by DHCP and TFTP, and the guests do their work. QEMU's own loader takes the
//! Image, too.
//!
//! RAM is full of ones before, as after another system: what is not cleared shows. With U-Boot the machine
//! lives in real time, as its network does; the guests ask for no more than order.

use super::expect::{Expect, Seen};
use super::signed;
use super::staged::description;
use super::{LIMIT, REAL_LIMIT};
use crate::bundle::Bundle;
use crate::figures;
use crate::guests::Images;
use crate::machine::Time;
use crate::results::{Check, Outcome};
use crate::session::{End, Run, Session};
use crate::suite::{Bench, Scenario};
use miette::{IntoDiagnostic, Result, ensure, miette};
use std::fs;
use std::path::{Path, PathBuf};
use system::{ImageFormat, Packed, pack, pack_signed};

/// The system: VMs that share memory, which must be cleared. One has none of it.
const SYSTEM: &str = "shared";
/// What its guests do instead, in less time.
const SHORTER: [(&str, &str); 2] =
    [("probe.run=shared,isolation", "probe.run=shared"), ("probe.run=isolation", "probe.run=psci")];
/// The VMs.
const VMS: [&str; 3] = ["writer", "reader", "other"];
/// The image.
const IMAGE: &str = "system.img";
/// What U-Boot says once the digest fits.
const SOUND: &str = "sha256+ OK";
/// What it says if it does not.
const DAMAGED: &str = "Bad Data Hash";
/// What ends a run before the hypervisor has switched the machine off: U-Boot says that nothing starts, of a
/// script, of a kernel, of all that it has tried.
const ENDS: [&str; 3] = ["SCRIPT FAILED", "Resetting the board", " valid)"];

/// Where U-Boot finds the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Medium {
    /// A virtio disk with a FAT file system.
    Disk,
    /// A server for DHCP and TFTP.
    Network,
}

/// Something that U-Boot boots.
#[derive(Clone, Copy, Debug)]
struct Way {
    name: &'static str,
    about: &'static str,
    format: ImageFormat,
    medium: Medium,
    is_signed: bool,
    /// What U-Boot must say.
    said: &'static [&'static str],
}

const WAYS: [Way; 5] = [
    Way {
        name: "boot-image-disk",
        about: "U-Boot finds a script on a disk, and starts an arm64 Image from there",
        format: ImageFormat::Image,
        medium: Medium::Disk,
        is_signed: false,
        said: &["Found U-Boot script /boot.scr"],
    },
    Way {
        name: "boot-image-network",
        about: "U-Boot finds a script by network, and starts an arm64 Image from there",
        format: ImageFormat::Image,
        medium: Medium::Network,
        is_signed: false,
        said: &["Filename 'boot.scr.uimg'.", "Filename 'system.img'."],
    },
    Way {
        name: "boot-fit-disk",
        about: "U-Boot starts a FIT from a disk once its digests fit",
        format: ImageFormat::Fit,
        medium: Medium::Disk,
        is_signed: false,
        said: &["Found U-Boot script /boot.scr", SOUND],
    },
    Way {
        name: "boot-fit-network",
        about: "U-Boot starts a FIT by network once its digests fit",
        format: ImageFormat::Fit,
        medium: Medium::Network,
        is_signed: false,
        said: &["Filename 'boot.scr.uimg'.", "Filename 'system.img'.", SOUND],
    },
    Way {
        name: "boot-fit-signed",
        about: "U-Boot starts a FIT whose system is signed",
        format: ImageFormat::Fit,
        medium: Medium::Disk,
        is_signed: true,
        said: &[SOUND],
    },
];

/// All of them.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let ways = WAYS.into_iter().map(|way| {
        Scenario::new(way.name, way.about, move |bench: &Bench| {
            let system = System::pack(bench, way.is_signed)?;
            let run = system.run(bench, way.format, way.medium, |_| {})?;
            judge(bench, way.name, &run, way.said)
        })
    });
    let damaged = "U-Boot does not start a FIT with a flipped bit";
    let direct = "QEMU's own loader starts an arm64 Image";
    ways.chain([
        Scenario::new("boot-fit-damaged", damaged, refused),
        Scenario::new("boot-image-qemu", direct, directly),
    ])
}

/// The system, packed.
struct System {
    /// As an ELF file, which is not booted: what there is to observe.
    bundle: Bundle,
    packed: Packed,
}

impl System {
    fn pack(bench: &Bench, is_signed: bool) -> Result<Self> {
        let edits = SHORTER.map(|(long, short)| (long.into(), short.into()));
        let checked = bench.described(&description(SYSTEM), &edits)?;
        let (bundle, packed) = if is_signed {
            let (hypervisor, key) = (signed::hypervisor(bench)?, signed::own_key()?);
            let bundle = Bundle::pack_signed(&checked, hypervisor, &key, &bench.image())?;
            (bundle, pack_signed(&checked, hypervisor, &key)?)
        } else {
            (bench.pack(&checked)?, pack(&checked, bench.hypervisor.of(&checked))?)
        };
        Ok(Self { bundle, packed })
    }

    /// Boots it by U-Boot, until the machine is off or U-Boot gives up. `spoil` has the image before.
    fn run(
        &self,
        bench: &Bench,
        format: ImageFormat,
        medium: Medium,
        spoil: impl Fn(&mut Vec<u8>),
    ) -> Result<Run> {
        let u_boot = Images::of(&bench.root).u_boot;
        ensure!(u_boot.exists(), "there is no {}: `./cassata test` fetches it", u_boot.display());
        let files = bench.directory.join("files");
        fs::create_dir_all(&files).into_diagnostic()?;
        let script = self.packed.boot_script(format, IMAGE)?;
        fs::write(files.join(medium.script()), script).into_diagnostic()?;
        let mut image = Vec::new();
        self.packed.write_as(format, &mut image).into_diagnostic()?;
        spoil(&mut image);
        fs::write(files.join(IMAGE), image).into_diagnostic()?;
        let arguments = medium.arguments(&files)?.into_iter().chain(self.ones(bench)?);
        let run = Session::of(&self.bundle, &bench.qemu, &Time::Real, &bench.directory)
            .within(REAL_LIMIT)
            .interrupted_by(bench.interrupt.clone())
            .loaded_by(&u_boot)
            .with_qemu_arguments(arguments)
            .run(|now| {
                let lines = &now.said.hypervisor.lines;
                lines.iter().any(|line| ENDS.iter().any(|sign| line.contains(sign)))
            })?;
        fs::remove_dir_all(&files).into_diagnostic()?;
        fs::remove_file(bench.directory.join("ones")).into_diagnostic()?;
        Ok(run)
    }

    /// Returns arguments by which memory is full of ones wherever an image comes to lie.
    fn ones(&self, bench: &Bench) -> Result<[String; 2]> {
        let [start, end] =
            [ImageFormat::Image, ImageFormat::Fit].map(|format| self.packed.load_address(format));
        let file = bench.directory.join("ones");
        fs::write(&file, vec![0xff; (end - start) as usize]).into_diagnostic()?;
        let file = escaped(&file)?;
        Ok(["-device".into(), format!("loader,addr={start:#x},force-raw=on,file={file}")])
    }
}

impl Medium {
    /// The name of a script that U-Boot looks for there.
    const fn script(self) -> &'static str {
        match self {
            Self::Disk => "boot.scr",
            Self::Network => "boot.scr.uimg",
        }
    }

    /// QEMU's arguments.
    fn arguments(self, files: &Path) -> Result<Vec<String>> {
        let files = escaped(files)?;
        let arguments = match self {
            Self::Disk => [
                "-blockdev".into(),
                format!("driver=vvfat,node-name=disk,fat-type=16,read-only=on,dir={files}"),
                "-device".into(),
                "virtio-blk-device,drive=disk".into(),
            ],
            Self::Network => [
                "-netdev".into(),
                format!("user,id=network,tftp={files}"),
                "-device".into(),
                "virtio-net-device,netdev=network".into(),
            ],
        };
        Ok(arguments.into())
    }
}

/// Writes a path as a value of QEMU's options, in which a comma is doubled.
fn escaped(path: &Path) -> Result<String> {
    let path = path.canonicalize().into_diagnostic()?;
    let text = path.to_str().ok_or_else(|| miette!("{} is not UTF-8", path.display()))?;
    Ok(text.replace(',', ",,"))
}

/// Returns what is wrong with a run in which the guests were to do their work.
fn objections(run: &Run, said: &[&str]) -> Vec<String> {
    let lines = &run.said.hypervisor.lines;
    let unsaid = said.iter().filter(|sign| !lines.iter().any(|line| line.contains(**sign)));
    let unsaid = unsaid.map(|sign| format!("U-Boot did not say \"{sign}\""));
    let unfit = VMS.iter().filter_map(|vm| {
        let seen = Seen::of(vm, &run.said, &run.observer);
        let why =
            seen.map_or(Some("there is no such VM".into()), |seen| Expect::Passes.objection(&seen));
        why.map(|why| format!("{vm}: {why}"))
    });
    let is_off = run.end == End::PoweredOff;
    let left = (!is_off).then(|| format!("the machine was not switched off: {}", run.end.about()));
    unsaid.chain(unfit).chain(left).collect()
}

fn judge(bench: &Bench, name: &str, run: &Run, said: &[&str]) -> Result<()> {
    let objections = objections(run, said);
    let mut outcome = figures::outcome(name, run);
    outcome.check(Check::done("every VM did what is expected", objections.is_empty()));
    bench.judge(run, outcome, &objections)
}

/// A bit in the middle of the system is another one.
fn refused(bench: &Bench) -> Result<()> {
    let system = System::pack(bench, /* is_signed */ false)?;
    let run = system.run(bench, ImageFormat::Fit, Medium::Disk, |image| {
        let middle = image.len() / 2;
        image[middle] ^= 1;
    })?;
    let lines = &run.said.hypervisor.lines;
    let is_refused = lines.iter().any(|line| line.contains(DAMAGED));
    let begins = lines.iter().any(|line| line.starts_with("cassata: "));
    let mut outcome = Outcome::new("boot-fit-damaged");
    outcome.check(Check::done("U-Boot says that the digest does not fit", is_refused));
    outcome.check(Check::done("the hypervisor does not begin", !begins));
    bench.demand(&outcome)?;
    fs::remove_file(bench.image()).into_diagnostic()
}

/// In virtual time.
fn directly(bench: &Bench) -> Result<()> {
    let system = System::pack(bench, /* is_signed */ false)?;
    let image: PathBuf = bench.directory.join(IMAGE);
    system.packed.write_file(ImageFormat::Image, &image)?;
    let run = bench.session(&system.bundle, LIMIT)?.beginning_with(&image).run(|_| false)?;
    fs::remove_file(&image).into_diagnostic()?;
    judge(bench, "boot-image-qemu", &run, &[])
}
