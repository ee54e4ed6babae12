//! Where vCPUs may go: the fallback and the affinity that the host chooses, which
//! vCPUs must be reached beside a real-time vCPU, and that this arrives in the tables.

mod support;

use abi::system::Vcpu;
use sched::policy::MigrationPolicy;
use std::sync::LazyLock;
use support::{elf, files, sound};
use system::pack;
use tempfile::TempDir;

static FILES: LazyLock<TempDir> = LazyLock::new(files);

const BOARD: &str = r#"board = { kind = "qemu-virt", pcpus = 4, memory = "256M" }
"#;

/// A VM with these vCPUs, as (pCPU, priority), and further keys.
fn vm(name: &str, vcpus: &[(usize, u16)], more: &str) -> String {
    let vcpu =
        |(pcpu, priority): &(usize, u16)| format!("{{ pcpu = {pcpu}, priority = {priority} }}");
    let vcpus = vcpus.iter().map(vcpu).collect::<Vec<_>>().join(", ");
    format!(
        "[[vm]]\nname = \"{name}\"\nkernel = \"rtos.elf\"\nmemory = {{ size = \"4M\" }}\n\
         vcpus = [{vcpus}]\n{more}\n"
    )
}

/// Returns true if a policy lets a vCPU leave that is displaced or enters its kernel, and is not
/// for a real-time VM.
fn moves(kind: MigrationPolicy) -> bool {
    let needs = kind.needs();
    (needs.fallback || needs.wanders) && !needs.lives_at_fallback && !needs.for_realtime
}

/// A vCPU on each pCPU.
fn linux(policy: &str) -> String {
    let migration = format!("migration_policy = \"{policy}\"");
    vm("linux", &[(0, 1), (1, 1), (2, 1), (3, 1)], &migration)
}

/// Real-time, with a vCPU of priority 10 on each of these pCPUs.
fn rtos(pcpus: &[usize]) -> String {
    let vcpus: Vec<_> = pcpus.iter().map(|&pcpu| (pcpu, 10)).collect();
    vm("rtos", &vcpus, "realtime = true")
}

/// What the tables say of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    pcpu: u16,
    fallback: u16,
    affinity: u16,
    rotation: u16,
    urgent: bool,
    advance_ns: u32,
}

/// A vCPU that stays, and whose messages may wait.
fn stays(pcpu: u16) -> Place {
    Place { pcpu, fallback: pcpu, affinity: 1 << pcpu, rotation: 0, urgent: false, advance_ns: 0 }
}

/// A real-time vCPU that stays on a pCPU that others use too.
fn realtime(pcpu: u16) -> Place {
    Place { urgent: true, advance_ns: 4_000, ..stays(pcpu) }
}

/// Returns all vCPUs of a system with these VMs, in their order.
fn vcpus(vms: &[String]) -> Vec<Vcpu> {
    let text = BOARD.to_owned() + &vms.concat();
    let packed = pack(&sound(FILES.path(), &text), &elf::plain_hypervisor()).unwrap();
    packed.tables.validate().unwrap();
    packed.tables.vcpus[..packed.tables.header.vcpu_count as usize].to_vec()
}

/// Returns what the tables say of each of them.
fn places(vms: &[String]) -> Vec<Place> {
    let place = |vcpu: &Vcpu| Place {
        pcpu: vcpu.pcpu,
        fallback: vcpu.fallback,
        affinity: vcpu.affinity,
        rotation: vcpu.rotation,
        urgent: vcpu.is_urgent(),
        advance_ns: vcpu.timer_advance_ns,
    };
    vcpus(vms).iter().map(place).collect()
}

/// Returns the first vCPU of `linux` under this policy, beside an RTOS on pCPU 0; the
/// others and the RTOS stay.
fn first_beside_an_rtos(policy: &str) -> Place {
    let places = places(&[linux(policy), rtos(&[0])]);
    assert_eq!(places[1..], [stays(1), stays(2), stays(3), realtime(0)], "{policy}");
    places[0]
}

/// Returns which of the vCPUs of these VMs wait for another real-time one of their pCPUs.
fn lower(vms: &[String]) -> Vec<bool> {
    vcpus(vms).iter().map(Vcpu::is_lower).collect()
}

#[test]
fn real_time_vcpus_below_another_one_of_their_pcpu_are_lower() {
    let control = |more| vm("control", &[(0, 9), (1, 9)], &format!("realtime = true{more}"));
    let [linux, rtos, control_stays] = [linux("none"), rtos(&[0]), control("")];
    let alone = lower(&[linux.clone(), rtos.clone()]);
    assert_eq!(alone, [false; 5], "Linux is no real-time VM");
    let both = lower(&[linux.clone(), rtos.clone(), control_stays]);
    assert_eq!(both, [false, false, false, false, false, true, false]);
    let goes = control("\nmigration_policy = \"rt-vcpu\"");
    let one_goes = lower(&[linux, rtos, goes]);
    assert_eq!(one_goes, [false; 7], "elsewhere it might be above what is lower here");
}

#[test]
fn on_demand_has_a_fallback_and_may_go_wherever_no_vcpu_is_real_time() {
    let leaves = Place { fallback: 1, affinity: 0b1111, rotation: 0b1110, ..stays(0) };
    assert_eq!(first_beside_an_rtos("on-demand"), leaves);
    assert_eq!(first_beside_an_rtos("adaptive"), leaves, "it does so when that pays");
}

#[test]
fn trap_based_must_be_reached_if_interrupts_make_it_leave() {
    let leaves = Place { fallback: 1, affinity: 0b1111, rotation: 0b1110, ..stays(0) };
    assert_eq!(first_beside_an_rtos("trap-based"), Place { urgent: true, ..leaves });
    assert_eq!(first_beside_an_rtos("trap-based-eager"), Place { urgent: true, ..leaves });
    assert_eq!(first_beside_an_rtos("trap-based-deferred"), leaves);
}

#[test]
fn the_papers_policies_know_one_pcpu_to_go_to() {
    let leaves = Place { fallback: 1, affinity: 0b11, ..stays(0) };
    for policy in ["on-demand-fixed", "on-demand-lazy", "trap-based-paper"] {
        assert_eq!(first_beside_an_rtos(policy), leaves, "{policy}");
    }
}

#[test]
fn balance_knows_idle_pcpus_only() {
    assert_eq!(first_beside_an_rtos("balance"), Place { affinity: 0b1111, ..stays(0) });
}

#[test]
fn a_vcpu_that_never_moves_has_nowhere_to_go() {
    for policy in
        ["none", "safe-unsafe", "coscheduling", "delayed-call", "delayed-page", "delayed-peek"]
    {
        assert_eq!(first_beside_an_rtos(policy), stays(0), "{policy}");
    }
}

#[test]
fn partition_lives_at_its_fallback() {
    let alone = Place { advance_ns: 0, ..realtime(0) };
    let expected = [stays(1), stays(1), stays(2), stays(3), alone];
    assert_eq!(places(&[linux("partition"), rtos(&[0])]), expected);
}

#[test]
fn a_real_time_vcpu_that_makes_way_has_one_place_to_go() {
    let linux = vm("linux", &[(0, 20), (1, 1), (2, 1), (3, 1)], "");
    let rtos = vm("rtos", &[(0, 10)], "realtime = true\nmigration_policy = \"rt-vcpu\"");
    // The vCPU that takes its pCPU must be reached while it runs.
    let above = Place { urgent: true, ..stays(0) };
    let leaves = Place { fallback: 1, affinity: 0b11, ..realtime(0) };
    assert_eq!(places(&[linux, rtos]), [above, stays(1), stays(2), stays(3), leaves]);
}

#[test]
fn real_time_vcpus_that_make_way_do_not_meet() {
    let linux = vm("linux", &[(0, 20), (1, 20), (2, 1), (3, 1)], "");
    let rtos =
        |name, pcpu| vm(name, &[(pcpu, 10)], "realtime = true\nmigration_policy = \"rt-vcpu\"");
    let places = places(&[linux, rtos("one", 0), rtos("two", 1)]);
    assert_eq!([places[4].fallback, places[5].fallback], [2, 3]);
}

#[test]
fn no_vcpu_goes_where_every_pcpu_has_an_rtos() {
    for kind in MigrationPolicy::ALL.iter().filter(|kind| moves(**kind)) {
        let policy = kind.name();
        let places = places(&[linux(policy), rtos(&[0, 1, 2, 3])]);
        assert_eq!(places[..4], [0, 1, 2, 3].map(stays), "{policy}");
        assert_eq!(places[4..], [0, 1, 2, 3].map(realtime), "{policy}");
    }
}

#[test]
fn a_fallback_is_where_the_fewest_are() {
    // The two that leave do not leave for the same pCPU.
    let places = places(&[linux("on-demand"), rtos(&[0, 1])]);
    assert_eq!([places[0].fallback, places[1].fallback], [2, 3]);
    assert_eq!([places[0].affinity, places[1].affinity], [0b1101, 0b1110]);
}

#[test]
fn a_rotation_leads_to_equals_of_its_own_vm() {
    let linux =
        |third| vm("linux", &[(0, 2), (1, 2), (3, third)], "migration_policy = \"on-demand\"");
    let rotation = |third, other| {
        let places = places(&[linux(third), vm("other", &[(2, 1), other], ""), rtos(&[0])]);
        assert_eq!(places[0].affinity, 0b1111);
        places[0].rotation
    };
    assert_eq!(rotation(2, (2, 2)), 0b1010, "pCPU 2 is another VM's");
    assert_eq!(rotation(3, (2, 2)), 0b0010, "the sibling on pCPU 3 has a higher priority");
    assert_eq!(rotation(1, (2, 2)), 0b0010, "or a lower one");
    assert_eq!(rotation(2, (3, 2)), 0b1010, "there is an equal of another VM, too");
    assert_eq!(rotation(2, (3, 3)), 0b0010, "or one with a higher priority");
}

#[test]
fn a_fallback_is_in_the_rotation() {
    // The sibling on pCPU 1 has a higher priority: the visitor might wait for ever behind it.
    let linux = vm("linux", &[(0, 1), (1, 2), (2, 1), (3, 1)], "migration_policy = \"on-demand\"");
    let leaves = Place { fallback: 2, affinity: 0b1111, rotation: 0b1100, ..stays(0) };
    assert_eq!(places(&[linux, rtos(&[0])])[0], leaves);
}

#[test]
fn no_vcpu_goes_where_a_real_time_vcpu_would_wait_for_it() {
    // Its priority is above, or equal to, that of the real-time vCPU of pCPU 1.
    for (above, policy) in [(20, "on-demand"), (10, "on-demand"), (20, "trap-based-eager")] {
        let migration = format!("migration_policy = \"{policy}\"");
        let linux = vm("linux", &[(0, above), (2, above)], &migration);
        let fast = vm("fast", &[(0, 30)], "realtime = true");
        let places = places(&[linux, fast, rtos(&[1])]);
        assert_eq!((places[0].fallback, places[0].affinity), (2, 0b1101), "{above}, {policy}");
        // So the real-time vCPU has its pCPU to itself.
        assert_eq!(places[3], Place { advance_ns: 0, ..realtime(1) });
    }
    let linux = vm("linux", &[(0, 20), (2, 20)], "migration_policy = \"balance\"");
    let fast = vm("fast", &[(0, 30)], "realtime = true");
    assert_eq!(places(&[linux, fast, rtos(&[1])])[0].affinity, 0b1101);
}

#[test]
fn the_model_says_what_is_packed() {
    let vms = [linux("on-demand"), rtos(&[0])];
    let checked = sound(FILES.path(), &(BOARD.to_owned() + &vms.concat()));
    let said = checked.vms.iter().flat_map(|vm| &vm.vcpus).map(|vcpu| Place {
        pcpu: vcpu.pcpu as u16,
        fallback: vcpu.fallback as u16,
        affinity: vcpu.affinity().fold(0, |set, pcpu| set | 1 << pcpu),
        rotation: vcpu.rotation().fold(0, |set, pcpu| set | 1 << pcpu),
        urgent: vcpu.urgent,
        advance_ns: vcpu.timer_advance_ns,
    });
    assert_eq!(said.collect::<Vec<_>>(), places(&vms));
}
