//! Everything but the hypervisor itself: which memory each part gets, what each
//! guest finds in its own, the tables that keep them apart, and where in the
//! bundle it all lies.

mod clearing;
mod devicetree;
mod guest;
mod layout;
mod segments;
mod views;

pub(crate) use guest::{Guest, Piece};
pub(crate) use layout::Layout;
use layout::NoRoom;
pub(crate) use views::stage1;

use crate::check::Sound;
use crate::code::Code;
use crate::model::Vm;
use crate::paging::Tables;
use crate::problem::Problems;
use crate::topology;
use abi::system::{LOAD_ALIGN, Load, MAX_LOADS, PAGE_SIZE, Region, STAGE2_VIEWS, System};
use guest::GuestLoad;
use sched::policy::View;
use sched::topology::{Placed, Topology};
use sched::{Member, VcpuId};
use std::collections::BTreeSet;

/// A system laid out.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) layout: Layout,
    pub(crate) guests: Vec<Guest>,
    /// Where EL2's own tables will lie; they depend on the hypervisor.
    pub(crate) stage1: Region,
    /// For each VM, the root among them by which EL2 reaches its memory.
    pub(crate) stage1_roots: Vec<u64>,
    /// For each VM its views ([`sched::policy::View`]), the first of them at
    /// least, and where they lie.
    pub(crate) stage2: Vec<Vec<(u64, Tables)>>,
    /// For each VM, what fills its memory.
    pub(crate) loads: Vec<Vec<Load>>,
    /// Contents of the bundle behind the tables, in ascending order.
    pub(crate) pieces: Vec<(u64, Piece)>,
}

impl Plan {
    /// Where a VM's views begin; the first stands for those it has not.
    pub(crate) fn stage2_roots(&self, vm: usize) -> [u64; STAGE2_VIEWS] {
        let views = &self.stage2[vm];
        std::array::from_fn(|view| views.get(view).unwrap_or(&views[0]).0)
    }
}

/// Lays a system out; `None` when it does not fit, and has been reported.
///
/// How large the bundle is depends on what is in it, which depends on where
/// the guests lie, which depends on how large the bundle is. So: guess low,
/// lay out, and take what was needed as the next guess, until it is enough.
pub(crate) fn plan(system: &Sound, problems: &mut Problems) -> Option<Plan> {
    let mut bundle_size = PAGE_SIZE;
    loop {
        let (plan, needed) = attempt(system, bundle_size, problems)?;
        if needed <= bundle_size {
            return Some(plan);
        }
        bundle_size = needed;
    }
}

/// Lays a system out with a bundle of that size; also answers the size that
/// was really needed.
fn attempt(system: &Sound, bundle_size: u64, problems: &mut Problems) -> Option<(Plan, u64)> {
    let layout = match layout::layout(system, bundle_size) {
        Ok(layout) => layout,
        Err(no_room) => {
            report(&no_room, system, problems);
            return None;
        }
    };
    let guests = guests(system, &layout, problems)?;
    let mut bundle = Bundle::new(layout.bundle.start);
    let everything = [(system.machine.hypervisor(), crate::paging::stage1::Kind::Data)];
    let mut stage1_roots = Vec::new();
    let stage1 = bundle.tables(|pa| {
        let (tables, roots) = views::stage1(pa, &system.machine, &layout, &everything);
        stage1_roots = roots;
        tables
    });
    let stage1 = Region::new(stage1.0, stage1.1.pages() * PAGE_SIZE);
    let vms = system.vms.iter().zip(&layout.vms);
    let gic = system.machine.board.gic;
    let meet = vms_whose_vcpus_meet(system);
    let stage2 = vms.clone().enumerate().map(|(index, (vm, memory))| {
        let needs_views = vm.migration_policy.needs().views || meet.contains(&index);
        let views: &[View] = if needs_views {
            &[View::Full, View::UserOnly, View::KernelOnly]
        } else {
            &[View::Full]
        };
        views
            .iter()
            .map(|&view| bundle.tables(|pa| views::stage2(pa, gic, vm, memory, &layout, view)))
            .collect()
    });
    let stage2 = stage2.collect();
    let loads = vms.zip(&guests).map(|((vm, memory), guest)| {
        let offset = memory.ram.start.wrapping_sub(guest_ram(vm, memory.ram).start);
        guest.loads.iter().map(|load| bundle.load(load, offset)).collect()
    });
    let loads = loads.collect();
    let needed = bundle.end.next_multiple_of(PAGE_SIZE) - layout.bundle.start;
    let pieces = bundle.pieces;
    Some((Plan { layout, guests, stage1, stage1_roots, stage2, loads, pieces }, needed))
}

/// Returns the VMs with vCPUs that may share a pCPU: EL2 then has to learn when one
/// goes from its kernel to a program or back.
fn vms_whose_vcpus_meet(system: &Sound) -> BTreeSet<usize> {
    let placed = topology::all_placed(&system.vms, &system.consolidation.targets);
    let topology = Topology::new(&placed, system.machine.pcpus);
    let meets =
        |(id, _): &(usize, &Placed)| !topology.siblings_met(VcpuId::numbered(*id)).is_empty();
    placed.iter().enumerate().filter(meets).map(|(_, vcpu)| vcpu.vm).collect()
}

fn report(no_room: &NoRoom, system: &Sound, problems: &mut Problems) {
    let vm = &system.vms[no_room.vm()];
    let code = match no_room {
        NoRoom::Taken { .. } => Code::MemoryOverlap,
        NoRoom::Full { .. } => Code::MemoryFull,
    };
    let (message, hint) = no_room.explain(vm);
    problems.add(code, vm.spans.memory.clone(), message).hint(hint);
}

fn guests(system: &Sound, layout: &Layout, problems: &mut Problems) -> Option<Vec<Guest>> {
    let mut guests = Vec::new();
    let mut loads = 0;
    for (vm, memory) in system.vms.iter().zip(&layout.vms) {
        match guest::guest(vm, system.machine.board.gic, guest_ram(vm, memory.ram)) {
            Ok(guest) => {
                loads += guest.loads.len();
                guests.push(guest);
            }
            Err(misfit) => {
                problems.add(misfit.code, misfit.span, misfit.message).hint(misfit.hint);
            }
        }
    }
    if loads > MAX_LOADS {
        let most = system.vms.iter().zip(&guests).max_by_key(|(_, guest)| guest.loads.len());
        let span = most.map_or(0..0, |(vm, _)| vm.spans.kernel.clone());
        let message = format!("{loads} pieces to load: a system can have {MAX_LOADS}");
        problems
            .add(Code::TooMany, span, message)
            .hint("this file has the most; link it with fewer segments");
    }
    (!problems.any_error()).then_some(guests)
}

/// A VM's memory as the guest sees it.
pub(crate) fn guest_ram(vm: &Vm, ram: Region) -> Region {
    Region::new(vm.ram_ipa.unwrap_or(ram.start), ram.size)
}

/// The bundle being filled, in ascending order.
struct Bundle {
    end: u64,
    pieces: Vec<(u64, Piece)>,
}

impl Bundle {
    fn new(start: u64) -> Self {
        Self { end: start + size_of::<System>() as u64, pieces: Vec::new() }
    }

    fn reserve(&mut self, size: u64, align: u64) -> u64 {
        let start = self.end.next_multiple_of(align);
        self.end = start + size;
        start
    }

    /// Builds tables where they will lie.
    fn tables(&mut self, build: impl FnOnce(u64) -> Tables) -> (u64, Tables) {
        let pa = self.reserve(0, PAGE_SIZE);
        let tables = build(pa);
        self.reserve(tables.pages() * PAGE_SIZE, PAGE_SIZE);
        (pa, tables)
    }

    /// Puts a load's bytes into the bundle, once for all VMs that use them.
    /// The VM's memory lies `offset` behind where the guest sees it.
    fn load(&mut self, load: &GuestLoad, offset: u64) -> Load {
        let known = self.pieces.iter().find(|(_, piece)| piece.is(&load.piece));
        let src_pa = known.map(|(pa, _)| *pa).unwrap_or_else(|| {
            // Large pieces in whole pages keep copies and the file aligned.
            let align = if load.piece.len() >= PAGE_SIZE { PAGE_SIZE } else { LOAD_ALIGN };
            let pa = self.reserve(load.piece.len(), align);
            self.pieces.push((pa, load.piece.clone()));
            pa
        });
        let dst_pa = load.ipa.wrapping_add(offset);
        Load { src_pa, dst_pa, size: load.piece.len(), zero_size: load.zeros }
    }
}
