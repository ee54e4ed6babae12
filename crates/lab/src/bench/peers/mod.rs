//! The peers: Xen and KVM beside Cassata, on the same board, with the same guests, in the same time.
//!
//! | module | story |
//! | --- | --- |
//! | [`system`] | what is compared, and how each is tuned |
//! | [`case`], [`plan`] | one run, all of them |
//! | [`guest`], [`waker`] | the real-time guest, and what it is told |
//! | [`freertos`], [`cyclictest`] | two others, and what was found with them |
//! | [`boot`] | how large, and how soon both guests are up |
//! | [`xen`], [`bao`], [`tree`], [`machine`] | what boots |
//! | [`run`] | running it |
//! | [`table`], [`checks`] | what was found, and what is demanded |
//! | [`quoted`] | what the book has of it, and of how much that is |
//! | [`smoke`] | some runs as tests |

mod bao;
mod boot;
mod case;
mod checks;
mod cyclictest;
mod freertos;
mod guest;
mod machine;
mod plan;
mod quoted;
mod run;
mod smoke;
mod system;
mod table;
mod tree;
mod waker;
mod xen;

use super::campaign::Findings;
use super::experiment::{Experiment, Extent};
use super::inputs::Inputs;
use super::{Conduct, Label, Tell};
use crate::answer::Answer;
use crate::guests::Images;
use crate::suite::{Bench, Scenario};
use case::Case;
use miette::{Result, WrapErr};
use plan::Own;
use run::Seen;
use std::path::PathBuf;

/// What is conducted from here.
pub(super) const EXPERIMENTS: &[&dyn Conduct] = &[&Peers];

/// What the guest calls what a hypervisor has to answer, and what it is in words.
const CALLS: [(&str, &str); 4] = [
    ("call", "hypercall PSCI_VERSION"),
    ("read", "read of GICD_TYPER"),
    ("sgi", "SGI to itself until its vector"),
    ("timer", "timer while the guest runs, until its vector"),
];

/// The experiment.
#[derive(Clone, Copy, Debug)]
pub struct Peers;

/// What is asked of it besides.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Also measure RTDS with this Xen (an arm64 Image with CONFIG_SCHED_RTDS), as Debian's is without it;
    /// build/guests/peers-xen/xen is built when it is named
    #[arg(long, value_name = "IMAGE")]
    xen: Option<PathBuf>,

    /// Also measure KVM on this kernel (an arm64 Image with PREEMPT_RT and KVM), as Debian's with
    /// PREEMPT_RT has no KVM; build/guests/peers-rt/Image is built when it is named
    #[arg(long, value_name = "IMAGE")]
    kvm_rt: Option<PathBuf>,

    /// Also measure Bao, built from this checkout of its source: Linux and the guest have cores of their
    /// own there, so these figures are no goal's
    #[arg(long, value_name = "CHECKOUT", value_parser = bao::accept)]
    bao: Option<PathBuf>,
}

impl Experiment for Peers {
    const LABEL: Label = Label {
        name: "peers",
        about: "Xen and KVM beside Cassata: latencies, instructions, Linux's throughput",
        details: "Runs the same Linux and the same real-time guest on one core, and \
                  then on four, under Cassata, Debian's Xen and Debian's KVM, each tuned as its \
                  manual says. The guest is bare metal, FreeRTOS, or a Linux with PREEMPT_RT. It \
                  fetches Xen and that Linux from Debian's packages. It takes up to two hours, \
                  and goes on where it was stopped; with --quick it takes twenty minutes.",
        examples: "  cassata bench peers --quick\n  \
                   cassata bench peers --point wake-compute\n  \
                   cassata bench peers --kvm-rt build/guests/peers-rt/Image\n  \
                   cassata bench peers --xen build/guests/peers-xen/xen\n  \
                   cassata bench peers --bao ../bao-hypervisor",
    };
    type Options = Options;
    type Case = Case;
    type Seen = Seen;

    fn inputs(&self, bench: &Bench) -> Result<Inputs> {
        let images = Images::of(&bench.root);
        let inputs = Inputs::of(bench)?.hypervisor(bench).files("waker", &[&images.waker])?;
        let linux = [&images.kernel, &images.peers, &images.peers_guest];
        let inputs = inputs.files("linux", &linux.map(PathBuf::as_path));
        let inputs =
            inputs.and_then(|inputs| inputs.files("freertos", &[&images.rtos, &images.rtos_xen]));
        let inputs = inputs.and_then(|inputs| inputs.files("xen", &[&images.xen]));
        let inputs =
            inputs.wrap_err("Xen and KVM are missing: `./cassata bench peers` brings them")?;
        // The launcher brings it for points that need it.
        let realtime = images.kernel_of("rt");
        if realtime.exists() { inputs.files("realtime_linux", &[&realtime]) } else { Ok(inputs) }
    }

    /// Cores take turns, so one machine uses little more than one processor.
    fn side_by_side(&self) -> usize {
        2
    }

    fn cases(&self, extent: Extent, options: &Options) -> Vec<Case> {
        let Options { xen, kvm_rt, bao } = options;
        let (xen, kernel, bao) = (xen.as_deref(), kvm_rt.as_deref(), bao.as_deref());
        plan::cases(extent, Own { xen, kernel, bao })
    }

    fn run(&self, case: &Case, bench: &Bench, tell: Tell<'_>) -> Result<Seen> {
        run::run(case, bench, tell)
    }

    fn answer(&self, found: Findings<Seen>, _: &Bench) -> Result<Answer> {
        Ok(found.answer())
    }

    fn scenarios(&self) -> Vec<Scenario> {
        smoke::scenarios()
    }
}

/// Everything that was measured.
type Found = Findings<Seen>;
