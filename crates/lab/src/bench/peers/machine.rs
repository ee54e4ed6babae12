//! The machine of a case: what boots, and what Linux and the hypervisor are told.

use super::bao;
use super::case::{Case, Measure};
use super::guest::Guest;
use super::system::{Advance, Policy, Scheduler, System};
use super::xen::{
    Domain, GUEST_INITRAMFS_PA, GUEST_PA, INITRAMFS_PA, LINUX_PA, MEMORY as XEN_MEMORY, Modules,
};
use crate::guests::Images;
use crate::machine::{MachineConfig, Time};
use crate::session::Session;
use crate::suite::Bench;
use miette::{IntoDiagnostic, Result, WrapErr, ensure};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Memory of a machine without Xen, bytes.
const MEMORY: u64 = 1 << 30;
/// Memory of Xen's first domain, MiB; as much as Cassata's has.
const LINUX_MIB: u64 = 512;
/// Virtual time for the machine: many times what the longest needs.
const LIMIT: Duration = Duration::from_secs(120);
/// How often a machine is held to be judged, and where it is to be known when a guest was up.
pub const PERIOD: Duration = Duration::from_millis(10);
const SHORT_PERIOD: Duration = Duration::from_millis(1);
/// How far a core may run ahead of the others where the counters of two are compared.
const FINE_QUANTUM_NS: u64 = 200;

/// The guest's counter when a guest begins that wakes all the time, milliseconds.
pub const SOON_MS: u64 = 100;
/// The guest's counter when a guest begins that is to tell that it is up, milliseconds: it counts from a
/// millisecond before.
pub const AT_ONCE_MS: u64 = 1;
/// The guest's counter when a guest begins that never wakes, milliseconds.
pub const NEVER_MS: u64 = 3_600_000;

/// Returns the guest's counter when it begins, milliseconds: by then Linux has booted and set to work.
/// A run in which it has not is an error.
pub const fn begin_ms(system: System) -> u64 {
    match system {
        // There is nothing to wait for.
        System::Board => 10,
        // Both start the guest together with Linux, or about then.
        System::Cassata { .. } | System::Xen(_) => 2_000,
        // Linux starts the guest when it has booted.
        System::Kvm(_) => 1_000,
        // The counter is the board's. Bao copies Linux before it starts either.
        System::Bao => 4_000,
    }
}

/// What Linux is told, whose console is `console`.
fn linux_told(case: &Case, console: &str) -> String {
    let mut text = format!(
        "console={console} rdinit=/peers/init quiet loglevel=4 nokaslr {}",
        case.linux_options()
    );
    let (period_us, burn_us) = case.period_and_burn_us();
    match (case.system, case.guest()) {
        (System::Xen(scheduler), Some(guest)) => {
            let (vcpus, set) = (guest.vcpus(), scheduler.tune(period_us, burn_us));
            text += &format!(" peers.tune=\"{vcpus} {set}\"");
        }
        (System::Kvm(_), Some(guest)) => text += &format!(" {}", guest.told_host()),
        _ => {}
    }
    text
}

fn xen_told(case: &Case, scheduler: Scheduler) -> String {
    let (cores, pin, schedule) = (case.cores, scheduler.first_domain(), scheduler.boot());
    format!("console=dtuart dom0_mem={LINUX_MIB}M dom0_max_vcpus={cores} {pin}{schedule}")
}

/// The description of a system under Cassata. `waker` is the file of a bare-metal guest.
fn described(
    case: &Case,
    policy: Policy,
    advance: Advance,
    images: &Images,
    waker: &Path,
) -> String {
    let (cores, migration) = (case.cores, policy.line());
    let advance = advance.line();
    let vcpus = |count, priority| {
        let vcpu = |pcpu| format!("{{ pcpu = {pcpu}, priority = {priority} }}");
        (0..count).map(vcpu).collect::<Vec<_>>().join(", ")
    };
    let guest = case.guest().map_or_else(String::new, |guest| {
        let (kernel, initramfs) = guest.files(case.system, images, waker);
        let more =
            initramfs.map_or_else(String::new, |path| format!("initramfs = {path:?}\nseed = 1\n"));
        let told = match guest.told() {
            "" => String::new(),
            told => format!("cmdline = '{told}'\n"),
        };
        format!(
            "[[vm]]\nname = {:?}\nkernel = {kernel:?}\n{more}{told}memory = {{ size = \"{}M\" }}\n\
             vcpus = [{}]\nrealtime = true\n{advance}",
            guest.name(),
            guest.mib(),
            vcpus(guest.vcpus(), 10),
        )
    });
    format!(
        "[board]\nkind = \"qemu-virt\"\npcpus = {cores}\nmemory = \"1G\"\n\n\
         [[vm]]\nname = \"linux\"\nkernel = {:?}\ninitramfs = {:?}\ncmdline = '{}'\nseed = 1\n\
         memory = {{ size = \"{LINUX_MIB}M\" }}\n{migration}vcpus = [{}]\n\n\
         {guest}",
        images.kernel,
        images.peers,
        linux_told(case, "ttyAMA0"),
        vcpus(cores, 1),
    )
}

/// Returns a line that tells the user's own image from others; nothing where there is none.
fn sum(case: &Case) -> String {
    let image = case.image.as_ref().and_then(|path| std::fs::read(path).ok());
    image.map_or_else(String::new, |image| format!("{:08x}\n", crc32fast::hash(&image)))
}

/// Returns all that a machine is told, wherever the project is.
pub fn told(case: &Case) -> String {
    let guest = match case.guest() {
        Some(Guest::Waker(parameters)) => parameters.text(),
        Some(guest) => guest.told().to_owned(),
        None => String::new(),
    };
    let system = match case.system {
        System::Board => linux_told(case, "ttyAMA0"),
        System::Bao => bao::told(case, &linux_told(case, "ttyAMA0")),
        System::Kvm(_) => format!("{}{}", sum(case), linux_told(case, "ttyAMA0")),
        System::Cassata { policy, advance } => {
            described(case, policy, advance, &Images::of(Path::new("")), Path::new("waker"))
        }
        // The guest's vCPUs, which its tree has, are in what Linux is told, too.
        System::Xen(scheduler) => {
            let (xen, linux) = (xen_told(case, scheduler), linux_told(case, "hvc0"));
            format!("{}{xen}\n{linux}", sum(case))
        }
    };
    format!("{guest}\n{system}")
}

/// Prepares a run of `case` with its files in the directory of `bench`.
///
/// # Errors
/// When a file cannot be read or written, or this QEMU cannot carry the instrument.
pub fn session<'a>(case: &Case, bench: &'a Bench) -> Result<Session<'a>> {
    let images = Images::of(&bench.root);
    let waker = write_guest(case, &images, bench)?;
    let held = |session: Session<'a>| match case.measure {
        Measure::Woken { .. } => session.with_quantum(FINE_QUANTUM_NS).held_every(PERIOD),
        Measure::Boot => session.held_every(SHORT_PERIOD),
        _ => session.held_every(PERIOD),
    };
    let session = match case.system {
        System::Cassata { policy, advance } => {
            let text = described(case, policy, advance, &images, &waker);
            let bundle = bench.pack(&bench.kept(&text)?)?;
            return Ok(held(bench.session(&bundle, LIMIT)?));
        }
        System::Board => plain(board(case, &images, &waker), bench)?,
        System::Kvm(_) => {
            let kernel = case.image.as_ref().unwrap_or(&images.kernel);
            is_image(&read(kernel)?).wrap_err_with(|| kernel.display().to_string())?;
            plain(linux(case, kernel, &images), bench)?
        }
        System::Xen(scheduler) => plain(xen(case, scheduler, &images, &waker, bench)?, bench)?,
        System::Bao => {
            let told = linux_told(case, "ttyAMA0");
            plain(bao::machine(case, &told, &images, &waker, bench)?, bench)?
        }
    };
    Ok(held(session.interrupted_by(bench.interrupt.clone()).within(LIMIT)))
}

/// Writes the guest of `case`; returns where it is.
fn write_guest(case: &Case, images: &Images, bench: &Bench) -> Result<PathBuf> {
    let path = bench.directory.join("waker.bin");
    if let Some(Guest::Waker(parameters)) = case.guest() {
        crate::results::write_file(&path, &parameters.write(read(&images.waker)?)?)?;
    }
    Ok(path)
}

/// Reads a whole file.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let bytes = std::fs::read(path).into_diagnostic();
    bytes.wrap_err_with(|| format!("cannot read {}", path.display()))
}

fn plain(mut config: MachineConfig, bench: &Bench) -> Result<Session<'_>> {
    config.time = Time::Virtual(bench.virtual_time()?);
    Ok(Session::plain(config, "board", &bench.qemu, &bench.directory))
}

/// The guest or Linux, alone.
fn board(case: &Case, images: &Images, waker: &Path) -> MachineConfig {
    let mut config = match case.guest() {
        None => linux(case, &images.kernel, images),
        Some(guest) => {
            let (kernel, initramfs) = guest.files(case.system, images, waker);
            let mut config = MachineConfig::new(&kernel, case.cores, MEMORY);
            let initramfs = initramfs.into_iter().flat_map(|path| ["-initrd".into(), path.into()]);
            config.extra_args = initramfs.collect();
            if !guest.told().is_empty() {
                config.extra_args.extend(["-append".into(), guest.told().into()]);
            }
            config
        }
    };
    config.el2 = false;
    config
}

/// Linux on the board.
fn linux(case: &Case, kernel: &Path, images: &Images) -> MachineConfig {
    let mut config = MachineConfig::new(kernel, case.cores, MEMORY);
    let told = linux_told(case, "ttyAMA0");
    let initramfs = match (case.system, case.guest()) {
        (System::Kvm(_), Some(Guest::Linux(_))) => images.peers_kvm.clone().into(),
        _ => images.peers.clone().into(),
    };
    config.extra_args = vec!["-initrd".into(), initramfs, "-append".into(), told.into()];
    config
}

/// Xen, its first domain and the guest.
fn xen(
    case: &Case,
    scheduler: Scheduler,
    images: &Images,
    waker: &Path,
    bench: &Bench,
) -> Result<MachineConfig> {
    let image = case.image.as_ref().unwrap_or(&images.xen);
    can_run(scheduler, &read(image)?).wrap_err_with(|| image.display().to_string())?;
    let mut config = MachineConfig::new(image, case.cores, XEN_MEMORY);
    let size = |file: &Path| Ok::<_, miette::Report>(read(file)?.len() as u64);
    let mut files = vec![(images.kernel.clone(), LINUX_PA), (images.peers.clone(), INITRAMFS_PA)];
    let (xen, linux) = (xen_told(case, scheduler), linux_told(case, "hvc0"));
    let sizes = [size(&images.kernel)?, size(&images.peers)?];
    let guest = match case.guest() {
        None => None,
        Some(guest) => {
            let (kernel, initramfs) = guest.files(case.system, images, waker);
            let (vcpus, kib, told) = (guest.vcpus(), guest.mib() << 10, guest.told().to_owned());
            let initramfs_size = initramfs.as_deref().map(size).transpose()?;
            let domain = Domain { vcpus, kib, told, size: size(&kernel)?, initramfs_size };
            files.push((kernel, GUEST_PA));
            files.extend(initramfs.map(|path| (path, GUEST_INITRAMFS_PA)));
            Some(domain)
        }
    };
    let tree = Modules { xen, linux, sizes, guest }.tree(case.cores, bench)?;
    config.extra_args = vec!["-dtb".into(), tree.into()];
    for (file, pa) in files {
        let device = format!("loader,file={},addr={pa:#x},force-raw=on", file.display());
        config.extra_args.extend(["-device".into(), device.into()]);
    }
    Ok(config)
}

/// How RTDS calls itself in an image that has it (Xen, `xen/common/sched/rt.c`).
const RTDS: &[u8] = b"SMP RTDS Scheduler";

/// Checks that a file is what QEMU loads as a kernel, which it would else enter at its first byte.
///
/// # Errors
/// When it is none.
pub fn is_image(bytes: &[u8]) -> Result<()> {
    // Linux, Documentation/arm64/booting.rst.
    let magic = bytes.get(0x38..0x3c);
    ensure!(
        magic == Some(b"ARM\x64"),
        help = "Linux's build leaves it as arch/arm64/boot/Image and Xen's as xen/xen; vmlinux and xen-syms \
                are ELF files, and Image.gz and xen.gz are compressed",
        "this is no arm64 Image"
    );
    Ok(())
}

/// Checks that Xen's file is one that QEMU can load, and that it has RTDS if that is asked for: Xen would go on with another scheduler.
fn can_run(scheduler: Scheduler, bytes: &[u8]) -> Result<()> {
    is_image(bytes)?;
    let has_rtds = || bytes.windows(RTDS.len()).any(|at| at == RTDS);
    ensure!(
        scheduler != Scheduler::Rtds || has_rtds(),
        help = "build it with CONFIG_EXPERT, CONFIG_UNSUPPORTED and CONFIG_SCHED_RTDS",
        "this Xen has no RTDS"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::plan;
    use super::*;
    use crate::bench::Extent;
    use crate::bench::store::Case as _;
    use crate::testing;

    fn told_of(name: &str) -> String {
        let own = plan::Own {
            xen: Some(Path::new("/nonexistent/xen")),
            kernel: Some(Path::new("/nonexistent/kernel")),
            bao: Some(Path::new("/nonexistent/bao")),
        };
        let all = plan::cases(Extent::Full, own);
        told(all.iter().find(|case| case.name() == name).unwrap_or_else(|| panic!("{name}")))
    }

    /// Only Cassata has descriptions.
    #[test]
    fn descriptions_are_understood() {
        testing::lack_guests_only(plan::cases(Extent::Full, plan::Own::default()), |case, root| {
            let System::Cassata { policy, advance } = case.system else { return None };
            let waker = root.join("build/guests/waker.bin");
            Some(described(case, policy, advance, &Images::of(root), &waker))
        });
    }

    #[test]
    fn another_file_is_not_booted_as_xen() {
        let mut bytes = vec![0; 0x40];
        let credit2 = |bytes: &[u8]| can_run(Scheduler::Credit2, bytes);
        assert!(credit2(&bytes).unwrap_err().help().unwrap().to_string().contains("xen/xen"));
        bytes[0x38..0x3c].copy_from_slice(b"ARMd");
        assert!(credit2(&bytes).is_ok() && credit2(&bytes[..0x39]).is_err());
        let lacks = can_run(Scheduler::Rtds, &bytes).unwrap_err();
        assert_eq!(lacks.to_string(), "this Xen has no RTDS");
        bytes.extend(RTDS);
        assert!(can_run(Scheduler::Rtds, &bytes).is_ok());
    }

    #[test]
    fn each_is_told_what_its_settings_say() {
        let xen = told_of("hackbench-50-x11-4-xen-credit2");
        for there in ["dom0_max_vcpus=4 dom0_vcpus_pin sched=credit2", "=\"1 credit2 65535\""] {
            assert!(xen.contains(there), "{xen}");
        }
        for (scheduler, weight) in [("credit2", "credit2 65535"), ("credit", "credit 65535")] {
            let xen = told_of(&format!("hackbench-50-x11-4-xen-{scheduler}-throughput"));
            let line = format!("dom0_max_vcpus=4 sched={scheduler}\n");
            assert!(xen.contains(&line) && xen.contains(&format!("=\"1 {weight}\"")), "{xen}");
            assert!(!xen.contains("pin") && !xen.contains("ratelimit"), "{xen}");
        }
        assert!(told_of("hackbench-80-x11-4-xen-rtds").contains("tune=\"1 rtds 10000 10000\""));
        // The period of its server is that of the guest: cyclictest wakes each 1,009 µs.
        let rtds = told_of("cyclictest-idle-1000-1-xen-rtds");
        assert!(
            rtds.contains("tune=\"1 rtds 1009 201\"") && rtds.contains("period_us=1009"),
            "{rtds}"
        );
        assert!(told_of("freertos-idle-2000-1-xen-rtds").contains("tune=\"1 rtds 1000 200\""));
        let kvm = told_of("wake-compute-2000-1-kvm");
        assert!(
            kvm.contains("vmm=\"1 134217728 134873088 150994944 0 1000000000 1000000 2000 0 0\"")
        );
        assert_eq!(told_of("wake-compute-2000-1-kvm-rt"), kvm);
        let plain = told_of("wake-idle-2000-1-cassata");
        assert!(plain.contains("timer_advance = \"0us\"") && !plain.contains("peers.vmm"));
        assert!(!told_of("wake-idle-2000-1-cassata-advance").contains("timer_advance"));
        assert!(told_of("hackbench-0-x11-4-cassata-on-demand-advance").contains("on-demand"));
        assert!(!told_of("hackbench-alone-x11-4-board").contains("peers.vmm"));
        let rtos = told_of("freertos-compute-2000-1-cassata");
        assert!(rtos.contains("cmdline = 'load=0 ") && rtos.contains("timer_advance = \"0us\""));
        let linux = told_of("cyclictest-idle-1000-1-kvm");
        assert!(
            linux.contains("peers.boot=\"/peers/rt.Image 128 ") && !linux.contains("peers.vmm")
        );
        let woken = told_of("woken-idle-1000-2-cassata");
        assert!(
            woken.contains("vcpus = [{ pcpu = 0, priority = 10 }, { pcpu = 1, priority = 10 }]")
        );
        assert!(told_of("woken-idle-1000-2-xen-credit2").contains("=\"2 credit2 65535\""));
        // Its Linux shares the guest's console.
        let bao = told_of("wake-compute-2000-4-bao");
        assert!(bao.contains("peers.compute") && !bao.contains("cassata.run=work"), "{bao}");
        assert!(bao.contains(".cpu_affinity = 0x8,") && bao.contains("134217728 134873088"));
    }
}
