//! How budgets are served: one way for the whole system, and other ways for some vCPUs.

use super::{ServerKind, System, Vcpu};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// How the budget of a vCPU is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// What happens to budget that is not used.
    pub kind: ServerKind,
    /// True if the vCPU may finish a global critical section without budget.
    pub overrun: bool,
}

/// The vCPUs of a system, a slice of them. Those that are not served as
/// [`System::server`] and [`System::overrun`] say have a [`Service`] of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vcpus {
    list: Vec<Vcpu>,
    /// By index.
    own: BTreeMap<usize, Service>,
}

impl System {
    /// Returns how the budget of a vCPU is served, given its index.
    #[must_use]
    pub fn service(&self, vcpu: usize) -> Service {
        let common = Service { kind: self.server, overrun: self.overrun };
        self.vcpus.own.get(&vcpu).copied().unwrap_or(common)
    }

    /// Serves the budget of one vCPU, given its index, in a way of its own.
    pub fn set_service(&mut self, vcpu: usize, service: Service) {
        if service == (Service { kind: self.server, overrun: self.overrun }) {
            self.vcpus.own.remove(&vcpu);
        } else {
            self.vcpus.own.insert(vcpu, service);
        }
    }

    /// Returns true if all vCPUs are served as the system says.
    #[must_use]
    pub fn serves_all_alike(&self) -> bool {
        self.vcpus.own.is_empty()
    }
}

impl Vcpus {
    /// Adds a vCPU, after all others.
    pub fn push(&mut self, vcpu: Vcpu) {
        self.list.push(vcpu);
    }
}

impl Deref for Vcpus {
    type Target = [Vcpu];

    fn deref(&self) -> &[Vcpu] {
        &self.list
    }
}

impl DerefMut for Vcpus {
    fn deref_mut(&mut self) -> &mut [Vcpu] {
        &mut self.list
    }
}

impl FromIterator<Vcpu> for Vcpus {
    fn from_iter<I: IntoIterator<Item = Vcpu>>(vcpus: I) -> Self {
        Self { list: vcpus.into_iter().collect(), own: BTreeMap::new() }
    }
}

impl<'a> IntoIterator for &'a Vcpus {
    type Item = &'a Vcpu;
    type IntoIter = std::slice::Iter<'a, Vcpu>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl<'a> IntoIterator for &'a mut Vcpus {
    type Item = &'a mut Vcpu;
    type IntoIter = std::slice::IterMut<'a, Vcpu>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter_mut()
    }
}
