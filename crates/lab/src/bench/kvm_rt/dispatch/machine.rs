//! What boots: two Linuxes under Cassata, or one on the board.

use super::super::pair::{self, Guest};
use super::super::{PROGRAMS_INIT, command_line};
use super::case::{Case, Kernel, Place, period_us};
use crate::guests::Images;
use crate::machine::MachineConfig;
use std::path::{Path, PathBuf};

/// The initramfs with `cyclictest`'s first process.
pub const CYCLICTEST: &str = "cyclictest";
/// The uptime at which it begins, seconds: the other Linux works by then, or the run is an error.
const BEGIN: &str = "2.50";
/// Memory of the board where Linux is alone, bytes: as much as a guest has.
const MEMORY: u64 = 256 << 20;

fn kernel(case: &Case, images: &Images) -> PathBuf {
    match case.kernel {
        Kernel::Stock => images.kernel.clone(),
        Kernel::Rt => images.rt_kernel.clone(),
    }
}

/// What the Linux that is measured is told.
fn told_control(case: &Case) -> String {
    let arguments = format!("-i {} -l {}", period_us(case.load), case.wakes);
    let work = format!("programs.begin={BEGIN} programs.cyclictest=\"{arguments}\"");
    command_line(PROGRAMS_INIT, &work)
}

/// Returns the description of the system, for the project at `root`.
pub fn description(case: &Case, root: &Path) -> String {
    let images = Images::of(root);
    let vcpus = match case.place {
        Place::Equal => pair::equal(1),
        Place::Board | Place::Above | Place::Pinned => pair::above(),
    };
    let image = pair::linux_image(&kernel(case, &images), &images.program(CYCLICTEST));
    let (more, told) = (String::new(), told_control(case));
    let control = Guest { image, identity: false, more, vcpus, told };
    let second = if case.place == Place::Pinned { 0 } else { 1 };
    pair::description(&control, &case.load.guest(&images, second, None))
}

/// Returns the machine on which Linux is alone.
pub fn board(case: &Case, root: &Path) -> MachineConfig {
    let images = Images::of(root);
    let mut config = MachineConfig::new(kernel(case, &images), 1, MEMORY);
    config.el2 = false;
    let initramfs = images.program(CYCLICTEST).into();
    config.extra_args =
        vec!["-initrd".into(), initramfs, "-append".into(), told_control(case).into()];
    config
}

/// Returns all that a machine is told, wherever the project is.
pub fn told(case: &Case) -> String {
    match case.place {
        Place::Board => format!("{}\n{}", case.kernel.name(), told_control(case)),
        _ => description(case, Path::new("")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::cases;
    use super::*;
    use crate::bench::Extent;
    use crate::testing;

    /// Without a hypervisor there is no description.
    #[test]
    fn descriptions_are_understood() {
        let guests = |case: &Case, root: &Path| {
            (case.place != Place::Board).then(|| description(case, root))
        };
        testing::lack_guests_only(cases(Extent::Full), guests);
    }
}
