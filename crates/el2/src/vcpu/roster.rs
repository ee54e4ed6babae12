//! Which vCPUs a core owns, and which of them is on the hardware.

use super::{Loaded, Parked, Vcpu};
use abi::{MAX_VCPUS, MAX_VMS};
use sched::{VcpuId, VcpuMap};

/// The identifier of no vCPU.
const NONE: VcpuId = VcpuId(u8::MAX);
const _: () = assert!(MAX_VCPUS <= u8::MAX as usize);

/// The vCPUs that a core owns. Each is either parked, or loaded: then its registers, and no
/// others, are on the hardware.
#[repr(C)]
pub struct Roster {
    loaded: Option<Loaded>,
    /// The vCPU of this core whose floating-point registers are on the hardware, or [`NONE`]: each
    /// switch compares it, and that takes less than comparing an option.
    float_owner: VcpuId,
    /// The vCPU of each VM that ran here last, or [`NONE`], for the same reason.
    last_of_vm: [VcpuId; MAX_VMS],
    parked: VcpuMap<Option<Parked>>,
}

impl Roster {
    /// Makes the roster of a core that owns no vCPU.
    pub const fn new() -> Self {
        Self {
            parked: VcpuMap::new([const { None }; MAX_VCPUS]),
            loaded: None,
            float_owner: NONE,
            last_of_vm: [NONE; MAX_VMS],
        }
    }

    /// Takes ownership of a vCPU.
    #[inline(always)]
    pub fn park(&mut self, vcpu: Parked) {
        let id = vcpu.id();
        self.parked[id] = Some(vcpu);
    }

    /// Gives a parked vCPU out.
    #[inline(always)]
    pub fn take_parked(&mut self, id: VcpuId) -> Option<Parked> {
        self.parked[id].take()
    }

    /// Takes back a vCPU whose registers are on the hardware now, where no others were.
    #[inline(always)]
    pub fn has_loaded(&mut self, vcpu: Loaded) {
        debug_assert!(self.loaded.is_none());
        self.loaded = Some(vcpu);
    }

    /// Gives the loaded vCPU out.
    #[inline(always)]
    pub fn take_loaded(&mut self) -> Option<Loaded> {
        self.loaded.take()
    }

    /// Returns a vCPU of this core, loaded or not.
    #[inline]
    pub fn get(&mut self, id: VcpuId) -> Option<&mut Vcpu> {
        if self.is_loaded(id) {
            return self.loaded.as_deref_mut();
        }
        self.parked[id].as_deref_mut()
    }

    /// Returns a vCPU of this core that is not on the hardware.
    #[inline]
    pub fn parked(&self, id: VcpuId) -> Option<&Parked> {
        self.parked[id].as_ref()
    }

    /// Returns a vCPU of this core that is not on the hardware, to change.
    #[inline]
    pub fn parked_mut(&mut self, id: VcpuId) -> Option<&mut Parked> {
        self.parked[id].as_mut()
    }

    /// Returns the vCPU that is on the hardware.
    #[inline]
    pub fn loaded(&self) -> Option<&Loaded> {
        self.loaded.as_ref()
    }

    /// Returns the vCPU that is on the hardware, to change.
    #[inline]
    pub fn loaded_mut(&mut self) -> Option<&mut Loaded> {
        self.loaded.as_mut()
    }

    /// Returns the identifier of the vCPU that is on the hardware.
    #[inline]
    pub fn loaded_id(&self) -> Option<VcpuId> {
        self.loaded.as_ref().map(|vcpu| vcpu.id())
    }

    /// Returns true if this vCPU's registers are on the hardware.
    #[inline]
    pub fn is_loaded(&self, id: VcpuId) -> bool {
        self.loaded.as_ref().is_some_and(|vcpu| vcpu.id() == id)
    }

    /// Returns true if this core owns a vCPU.
    pub fn owns(&self, id: VcpuId) -> bool {
        self.is_loaded(id) || self.parked[id].is_some()
    }

    /// Records that a vCPU is loaded that may share this core with siblings. Returns true if
    /// a sibling was the last of its VM to be loaded here.
    #[must_use]
    #[inline(always)]
    pub fn follows_sibling(&mut self, vm: usize, id: VcpuId) -> bool {
        let last = core::mem::replace(&mut self.last_of_vm[vm], id);
        last != id && last != NONE
    }

    /// Returns true if this vCPU's floating-point registers are on the hardware.
    #[inline(always)]
    pub fn owns_float(&self, id: VcpuId) -> bool {
        self.float_owner == id
    }

    /// Records that this vCPU's floating-point registers are loaded. Returns the vCPU whose
    /// registers were there.
    pub fn give_float(&mut self, id: VcpuId) -> Option<&mut Vcpu> {
        let previous = core::mem::replace(&mut self.float_owner, id);
        if previous == NONE {
            return None;
        }
        self.get(previous)
    }

    /// Returns a vCPU of this core, loaded or not, to look at.
    #[cfg(any(test, feature = "checked"))]
    pub fn peek(&self, id: VcpuId) -> Option<&Vcpu> {
        if self.is_loaded(id) {
            return self.loaded.as_deref();
        }
        self.parked.get(id)?.as_deref()
    }

    /// Asserts what stands at the type.
    #[cfg(any(test, feature = "checked"))]
    pub fn check(&self) {
        if let Some(id) = self.loaded_id() {
            assert!(self.parked[id].is_none(), "vCPU {} is here twice", id.0);
        }
        let parked = (0..MAX_VCPUS).filter_map(|id| self.parked[VcpuId(id as u8)].as_deref());
        parked.chain(self.loaded.as_deref()).for_each(Vcpu::check);
        let id = self.float_owner;
        assert!(id == NONE || self.owns(id), "floating point of vCPU {}, which is gone", id.0);
    }

    /// Forgets the owner of the floating-point registers: what they hold belongs to no vCPU.
    pub fn forget_float(&mut self) {
        self.float_owner = NONE;
    }
}
