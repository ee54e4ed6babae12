//! A vCPU as its owner sees it.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`config`] | what never changes of it |
//! | [`context`] | what its guest has in registers, on the hardware and off it |
//! | [`account`] | what it had of its core, and what it waited for |
//! | [`roster`] | which vCPUs a core owns, and which of them is on the hardware |

mod account;
mod config;
mod context;
mod physical_timer;
mod roster;

pub use account::Account;
pub use config::{VcpuConfig, params};
pub use context::{Loaded, Parked};
pub use roster::Roster;

use crate::arch::context::{Float, General, Space};
use crate::parts::Cause;
use context::Context;
use physical_timer::PhysicalTimer;
use sched::VcpuId;
use sched::policy::{ModeBias, Stay, View};
use vgic::interface::CpuInterface;

/// Exactly one core has the exclusive reference to each: as [`Parked`], or as [`Loaded`].
#[repr(C)]
pub struct Vcpu {
    /// First: the exception vectors store into it. The return state in it is the
    /// guest's while the vCPU is [`Parked`].
    general: General,
    context: Context,
    /// What is in the list registers and why.
    interface: CpuInterface,
    physical_timer: PhysicalTimer,
    account: Account,
    config: VcpuConfig,
    /// Its VM's memory as it may use it now, and which of the VM's vCPUs it is.
    space: Space,
    /// Which view of that memory it has.
    view: View,
    on: bool,
    /// Its VM's epoch when it was switched on.
    epoch: u32,
    /// Why its guest cannot go on, while that is told.
    failure: Option<Cause>,
    /// It could run when it left the core it comes from.
    left_ready: bool,
    /// What it does away from its base.
    mode_bias: ModeBias,
    /// What it has had of the core where it is a visitor.
    stay: Stay,
    /// Floating point; valid while no core has it on its hardware, where it stays until
    /// another vCPU uses it.
    float: Float,
}

// The exception vectors store a guest's registers where TPIDR_EL2 points: at the vCPU.
const _: () = assert!(core::mem::offset_of!(Vcpu, general) == 0);

impl Vcpu {
    /// Makes a vCPU that is off, as after reset.
    pub fn new(config: VcpuConfig, account: Account) -> Self {
        let view = config.usual_view(true);
        Self {
            general: General::default(),
            context: Context::reset(),
            interface: CpuInterface::new(config.index()),
            physical_timer: PhysicalTimer::default(),
            space: space(&config, view),
            view,
            on: false,
            epoch: 0,
            failure: None,
            left_ready: false,
            mode_bias: ModeBias::default(),
            stay: Stay::default(),
            float: Float::new(),
            config,
            account,
        }
    }

    /// Returns what never changes of it.
    #[inline]
    pub fn config(&self) -> &VcpuConfig {
        &self.config
    }

    /// Returns its number in the system.
    #[inline]
    pub fn id(&self) -> VcpuId {
        self.config.id()
    }

    /// Returns the index of its VM.
    #[inline]
    pub fn vm(&self) -> usize {
        self.config.vm()
    }

    /// Returns its index in the VM.
    #[inline]
    pub fn index(&self) -> usize {
        self.config.index()
    }

    /// Returns its account, to book in.
    #[inline]
    pub fn account(&mut self) -> &mut Account {
        &mut self.account
    }

    /// Returns true if it is switched on.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Returns its VM's epoch when it was switched on.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns what its guest may execute.
    pub fn view(&self) -> View {
        self.view
    }

    /// Lets its guest execute what `view` does, from when it is loaded next.
    #[inline(always)]
    pub fn set_view(&mut self, view: View) {
        if self.view != view {
            self.space = space(&self.config, view);
            self.view = view;
        }
    }

    /// Lets its guest execute what its policy does at its base, or elsewhere, from when it
    /// is loaded next.
    #[inline(always)]
    pub fn set_usual_view(&mut self, at_base: bool) {
        self.set_view(self.config.usual_view(at_base));
    }

    /// Records that it leaves its core for another one; `ready`: it could run here.
    #[inline]
    pub fn leaves(&mut self, ready: bool) {
        self.left_ready = ready;
    }

    /// Returns true if it could run when it left the core it comes from.
    pub fn left_ready(&self) -> bool {
        self.left_ready
    }

    /// Begins a visit on this core.
    pub fn begin_visit(&mut self) {
        self.stay = Stay::begin(self.account.ran());
    }

    /// Returns true if it has had its turn where it is a visitor.
    pub fn visit_is_over(&self) -> bool {
        self.stay.is_over(self.account.ran(), self.config.quantum())
    }

    /// Returns what it does away from its base, to note more of that.
    pub fn mode_bias(&mut self) -> &mut ModeBias {
        &mut self.mode_bias
    }

    /// Puts its address space in force, and with it the view it has.
    #[inline(always)]
    pub fn enter_space(&self) {
        self.space.enter();
    }

    /// Returns true if interrupts were posted since its list registers were filled.
    #[inline(always)]
    pub fn has_news(&self) -> bool {
        self.interface.has_news(&self.config.shared().gic)
    }

    /// Returns true if there may be interrupts that its list registers do not show, for
    /// lack of room too.
    #[inline(always)]
    pub fn has_unlisted(&self) -> bool {
        self.interface.has_unlisted(&self.config.shared().gic)
    }
}

#[cfg(any(test, feature = "checked"))]
impl Vcpu {
    /// Asserts what holds of it wherever it is.
    pub fn check(&self) {
        self.interface.check(&self.config.shared().gic);
    }
}

/// Returns the VM's memory in this view, as the vCPU of its index.
#[inline(always)]
fn space(config: &VcpuConfig, view: View) -> Space {
    Space::new(config.root(view), config.vm() as u64 + 1, config.index() as u64)
}
