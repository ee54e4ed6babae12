//! EL2's check of the tables, beside a second one that is written from what must not happen.

use crate::bytes::Bytes;
use crate::packed::SYSTEMS;
use abi::system::{PAGE_SIZE, Region, System};
use std::sync::LazyLock;
use zerocopy::{FromBytes, IntoBytes};

static TABLES: LazyLock<Vec<Box<System>>> = LazyLock::new(|| {
    let unpacked = SYSTEMS.iter().map(|file| system::unpack(file).expect("what was packed"));
    unpacked.map(|unpacked| unpacked.tables).collect()
});

/// Tables of a packed system, in which words are changed.
pub fn validate(input: &[u8]) {
    let mut bytes = Bytes(input);
    let mut changed = TABLES[bytes.below(TABLES.len())].as_bytes().to_vec();
    while !bytes.is_empty() {
        let (at, word, width) = (usize::from(bytes.half()), bytes.word(), 1 << bytes.below(4));
        let at = at % changed.len() / width * width;
        changed[at..at + width].copy_from_slice(&word.to_le_bytes()[..width]);
    }
    let tables = System::read_from_bytes(&changed).expect("as many bytes");
    if tables.validate().is_ok() {
        sound(&tables);
    }
}

/// From the first address to behind the last one, which cannot overflow.
fn range(region: Region) -> (u128, u128) {
    let start = u128::from(region.start);
    (start, start + u128::from(region.size))
}

fn contains(outer: Region, inner: Region) -> bool {
    let (outer, inner) = (range(outer), range(inner));
    outer.0 <= inner.0 && inner.1 <= outer.1
}

/// What belongs to EL2 or to one VM alone, with the VM.
pub fn owned(tables: &System) -> Vec<(Option<usize>, Region)> {
    let board = &tables.board;
    let own = [board.hypervisor(), tables.header.bundle(), board.status(), tables.trace()];
    let own = own.into_iter().map(|region| (None, region));
    let vms = tables.vms().iter().enumerate();
    let guests = vms.flat_map(|(number, vm)| {
        [vm.ram(), vm.stolen(), vm.report()].map(|region| (Some(number), region))
    });
    own.chain(guests).filter(|(_, region)| region.size > 0).collect()
}

/// Panics where tables would let EL2 index out of range, or break isolation.
pub fn sound(tables: &System) {
    let (header, board) = (&tables.header, &tables.board);
    let owned = owned(tables);
    for (number, (_, one)) in owned.iter().enumerate() {
        assert!(contains(board.ram(), *one), "{one:x?} is not in memory");
        assert!(one.start.is_multiple_of(PAGE_SIZE), "{one:x?}");
        let (start, end) = range(*one);
        for (_, other) in &owned[..number] {
            let (from, to) = range(*other);
            assert!(end <= from || to <= start, "{one:x?} and {other:x?} overlap");
        }
    }
    assert!(range(board.ram()).1 <= 1 << 38, "below all aliases");
    let pcpus = board.pcpu_count as usize;
    assert!((1..=abi::MAX_PCPUS).contains(&pcpus));
    let vms = tables.vms();
    assert_eq!(vms.len(), header.vm_count as usize);
    let vcpus = &tables.vcpus[..header.vcpu_count as usize];
    let (mut next_vcpu, mut next_load) = (0, 0);
    for (number, vm) in vms.iter().enumerate() {
        assert_eq!(
            (usize::from(vm.vcpu_first), usize::from(vm.load_first)),
            (next_vcpu, next_load)
        );
        next_vcpu += usize::from(vm.vcpu_count);
        next_load += usize::from(vm.load_count);
        let own = &vcpus[usize::from(vm.vcpu_first)..next_vcpu];
        assert!((1..=abi::MAX_VCPUS_PER_VM).contains(&own.len()));
        for (index, vcpu) in own.iter().enumerate() {
            assert_eq!((usize::from(vcpu.vm), usize::from(vcpu.index)), (number, index));
            assert!(usize::from(vcpu.pcpu) < pcpus && usize::from(vcpu.fallback) < pcpus);
            assert!(u32::from(vcpu.affinity) >> pcpus == 0 && vcpu.quantum_ns > 0);
            assert!(
                vcpu.budget_ns
                    .checked_add(vcpu.overrun_ns)
                    .is_some_and(|all| all <= vcpu.period_ns)
            );
        }
        for load in &tables.loads[usize::from(vm.load_first)..next_load] {
            let payload = Region::new(load.src_pa, load.size);
            assert!(contains(header.payload(), payload), "{load:x?}");
            let filled = load.size.checked_add(load.zero_size).expect("no load wraps");
            assert!(contains(vm.ram(), Region::new(load.dst_pa, filled)), "{load:x?}");
        }
        assert!(contains(vm.ram_of_guest(), Region::new(vm.entry_ipa, 4)));
        for (base, size) in abi::platform::OCCUPIED {
            let ((start, end), (from, to)) =
                (range(vm.ram_of_guest()), range(Region::new(base, size)));
            assert!(end <= from || to <= start, "memory over the platform");
        }
        for root in vm.stage2_pa.into_iter().chain([vm.stage1_pa]) {
            assert!(contains(header.payload(), Region::new(root, PAGE_SIZE)));
        }
    }
    assert_eq!((next_vcpu, next_load), (vcpus.len(), header.load_count as usize));
    assert!(contains(header.payload(), Region::new(board.stage1_pa, PAGE_SIZE)));
    for (pcpu, &target) in board.consolidation_target[..pcpus].iter().enumerate() {
        let target = usize::from(target);
        assert!(target < pcpus && usize::from(board.consolidation_target[target]) == target);
        assert!(pcpu != 0 || target == 0, "the boot core goes off");
    }
    let spis = &tables.spis[..header.spi_count as usize];
    for spi in spis {
        assert!((spi.vm as usize) < vms.len());
        assert!(
            (32..1020).contains(&spi.physical)
                && (32..abi::platform::INTID_END).contains(&spi.virtual_)
        );
        let same = spis.iter().filter(|other| other.physical == spi.physical);
        assert_eq!(same.count(), 1, "an interrupt of two VMs");
    }
    for mutex in &tables.mutexes[..header.mutex_count as usize] {
        let claimants = &mutex.vcpus[..mutex.claimant_count as usize];
        assert!(claimants.iter().all(|&vcpu| usize::from(vcpu) < vcpus.len()));
    }
}
