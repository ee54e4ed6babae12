//! Where vCPUs may go: what the host chooses as refuge and havens, who must be
//! reached beside a real-time vCPU, and that this arrives in the tables.

mod support;

use abi::system::{Vcpu, vcpu_flags::URGENT};
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

/// A vCPU on each pCPU.
fn linux(policy: &str) -> String {
    let migration = format!("migration = \"{policy}\"");
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
    refuge: u16,
    havens: u16,
    tour: u16,
    urgent: bool,
    lead_us: u32,
}

/// One that stays, and that nobody must reach at once.
fn stays(pcpu: u16) -> Place {
    Place { pcpu, refuge: pcpu, havens: 0, tour: 0, urgent: false, lead_us: 0 }
}

/// A real-time one that stays on a pCPU that others use too.
fn realtime(pcpu: u16) -> Place {
    Place { urgent: true, lead_us: 4, ..stays(pcpu) }
}

/// All vCPUs of a system with these VMs, in their order.
fn places(vms: &[String]) -> Vec<Place> {
    let text = BOARD.to_owned() + &vms.concat();
    let packed = pack(&sound(FILES.path(), &text), &elf::plain_hypervisor()).unwrap();
    packed.tables.validate().unwrap();
    let count = packed.tables.header.vcpu_count as usize;
    let place = |vcpu: &Vcpu| Place {
        pcpu: vcpu.pcpu,
        refuge: vcpu.refuge,
        havens: vcpu.havens,
        tour: vcpu.tour,
        urgent: vcpu.flags & URGENT != 0,
        lead_us: vcpu.timer_lead_ns / 1_000,
    };
    packed.tables.vcpus[..count].iter().map(place).collect()
}

/// Of `linux` under this policy beside an RTOS on pCPU 0: its first vCPU; the
/// others and the RTOS stay.
fn first_beside_an_rtos(policy: &str) -> Place {
    let places = places(&[linux(policy), rtos(&[0])]);
    assert_eq!(places[1..], [stays(1), stays(2), stays(3), realtime(0)], "{policy}");
    places[0]
}

#[test]
fn on_demand_has_a_refuge_and_may_go_wherever_nobody_is_real_time() {
    let leaves = Place { refuge: 1, havens: 0b1110, tour: 0b1110, ..stays(0) };
    assert_eq!(first_beside_an_rtos("on-demand"), leaves);
}

#[test]
fn trap_based_must_be_reached_if_interrupts_make_it_leave() {
    let leaves = Place { refuge: 1, havens: 0b1110, tour: 0b1110, ..stays(0) };
    assert_eq!(first_beside_an_rtos("trap-based"), Place { urgent: true, ..leaves });
    assert_eq!(first_beside_an_rtos("trap-based-eager"), Place { urgent: true, ..leaves });
    assert_eq!(first_beside_an_rtos("trap-based-deferred"), leaves);
}

#[test]
fn balance_knows_idle_pcpus_only() {
    assert_eq!(first_beside_an_rtos("balance"), Place { havens: 0b1110, ..stays(0) });
}

#[test]
fn who_never_moves_has_nowhere_to_go() {
    for policy in ["none", "safe-unsafe", "coscheduling"] {
        assert_eq!(first_beside_an_rtos(policy), stays(0), "{policy}");
    }
}

#[test]
fn partition_lives_at_its_refuge() {
    let alone = Place { lead_us: 0, ..realtime(0) };
    let expected = [stays(1), stays(1), stays(2), stays(3), alone];
    assert_eq!(places(&[linux("partition"), rtos(&[0])]), expected);
}

#[test]
fn a_real_time_vcpu_that_makes_way_has_one_place_to_go() {
    let linux = vm("linux", &[(0, 20), (1, 1), (2, 1), (3, 1)], "");
    let rtos = vm("rtos", &[(0, 10)], "realtime = true\nmigration = \"rt-vcpu\"");
    // Who takes its pCPU must be reached while it runs.
    let above = Place { urgent: true, ..stays(0) };
    let leaves = Place { refuge: 1, havens: 0b10, ..realtime(0) };
    assert_eq!(places(&[linux, rtos]), [above, stays(1), stays(2), stays(3), leaves]);
}

#[test]
fn real_time_vcpus_that_make_way_do_not_meet() {
    let linux = vm("linux", &[(0, 20), (1, 20), (2, 1), (3, 1)], "");
    let rtos = |name, pcpu| vm(name, &[(pcpu, 10)], "realtime = true\nmigration = \"rt-vcpu\"");
    let places = places(&[linux, rtos("one", 0), rtos("two", 1)]);
    assert_eq!([places[4].refuge, places[5].refuge], [2, 3]);
}

#[test]
fn where_every_pcpu_has_an_rtos_nobody_goes() {
    for policy in ["on-demand", "trap-based", "trap-based-eager", "trap-based-deferred", "balance"]
    {
        let places = places(&[linux(policy), rtos(&[0, 1, 2, 3])]);
        assert_eq!(places[..4], [0, 1, 2, 3].map(stays), "{policy}");
        assert_eq!(places[4..], [0, 1, 2, 3].map(realtime), "{policy}");
    }
}

#[test]
fn a_refuge_is_where_the_fewest_are() {
    // The two that leave do not leave for the same pCPU.
    let places = places(&[linux("on-demand"), rtos(&[0, 1])]);
    assert_eq!([places[0].refuge, places[1].refuge], [2, 3]);
    assert_eq!([places[0].havens, places[1].havens], [0b1100, 0b1100]);
}

#[test]
fn a_tour_leads_to_equals_of_its_own_vm() {
    let linux = |third| vm("linux", &[(0, 2), (1, 2), (3, third)], "migration = \"on-demand\"");
    let tour = |third, other| {
        let places = places(&[linux(third), vm("other", &[(2, 1), other], ""), rtos(&[0])]);
        assert_eq!(places[0].havens, 0b1110);
        places[0].tour
    };
    assert_eq!(tour(2, (2, 2)), 0b1010, "pCPU 2 is another VM's");
    assert_eq!(tour(3, (2, 2)), 0b0010, "the sibling on pCPU 3 ranks higher");
    assert_eq!(tour(1, (2, 2)), 0b0010, "or lower");
    assert_eq!(tour(2, (3, 2)), 0b1010, "there is an equal of another VM, too");
    assert_eq!(tour(2, (3, 3)), 0b0010, "or one that ranks higher");
}

#[test]
fn a_refuge_is_on_the_tour() {
    // The sibling on pCPU 1 ranks higher: behind it the visitor might wait for ever.
    let linux = vm("linux", &[(0, 1), (1, 2), (2, 1), (3, 1)], "migration = \"on-demand\"");
    let leaves = Place { refuge: 2, havens: 0b1110, tour: 0b1100, ..stays(0) };
    assert_eq!(places(&[linux, rtos(&[0])])[0], leaves);
}

#[test]
fn nobody_goes_where_a_real_time_vcpu_would_wait_for_it() {
    // It ranks above, or equal to, the real-time one of pCPU 1.
    for (above, policy) in [(20, "on-demand"), (10, "on-demand"), (20, "trap-based-eager")] {
        let migration = format!("migration = \"{policy}\"");
        let linux = vm("linux", &[(0, above), (2, above)], &migration);
        let fast = vm("fast", &[(0, 30)], "realtime = true");
        let places = places(&[linux, fast, rtos(&[1])]);
        assert_eq!((places[0].refuge, places[0].havens), (2, 0b1100), "{above}, {policy}");
        // So this one has its pCPU for itself.
        assert_eq!(places[3], Place { lead_us: 0, ..realtime(1) });
    }
    let linux = vm("linux", &[(0, 20), (2, 20)], "migration = \"balance\"");
    let fast = vm("fast", &[(0, 30)], "realtime = true");
    assert_eq!(places(&[linux, fast, rtos(&[1])])[0].havens, 0b1100);
}

#[test]
fn the_model_says_what_is_packed() {
    let vms = [linux("on-demand"), rtos(&[0])];
    let checked = sound(FILES.path(), &(BOARD.to_owned() + &vms.concat()));
    let said = checked.vms.iter().flat_map(|vm| &vm.vcpus).map(|vcpu| Place {
        pcpu: vcpu.pcpu as u16,
        refuge: vcpu.refuge as u16,
        havens: vcpu.havens().fold(0, |set, pcpu| set | 1 << pcpu),
        tour: vcpu.tour().fold(0, |set, pcpu| set | 1 << pcpu),
        urgent: vcpu.urgent,
        lead_us: vcpu.timer_lead_us,
    });
    assert_eq!(said.collect::<Vec<_>>(), places(&vms));
}
