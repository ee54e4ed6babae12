//! What `cassata calibrate` has measured on a board, in bounds for a system of that board.

mod support;

use analysis::bounds::{Bounds, analyze_with};
use analysis::overheads::{DEFAULT_MARGIN_PERMILLE, Overheads};
use std::path::Path;
use system::calibration::{Calibration, Measured, PATHS};

const TEXT: &str = r#"
[board]
kind = "qemu-virt"
pcpus = 1
memory = "256M"
#calibration

[[vm]]
name = "a"
kernel = "rtos.elf"
memory = { size = "64M" }
[[vm.vcpus]]
pcpu = 0
priority = 5
server = { kind = "deferrable", budget = "4ms", period = "10ms", overrun = true }
[[vm.vcpus.tasks]]
name = "control"
priority = 2
period = "200ms"
segments = [{ wcet = "2ms" }, { wcet = "100us", gcs = "R" }]
"#;

/// A board on which every path takes `ps` for an instruction.
fn calibration(ps: u64) -> Calibration {
    let paths = PATHS.iter().map(|(name, _)| Measured {
        name: (*name).into(),
        repetitions: 1_000,
        instructions: 100,
        mean_ps: 90 * ps,
        longest_ps: 100 * ps,
        instruction_ps: ps,
    });
    let (board, hypervisor) = ("qemu-virt".into(), "0123456789abcdef".into());
    Calibration::new(
        board,
        hypervisor,
        62_500_000,
        ("none".into(), 64),
        (1_200, ps * 6 / 5),
        paths.collect(),
    )
}

fn described(directory: &Path, text: &str) -> Result<system::Checked, system::Report> {
    std::fs::write(directory.join("board.toml"), text).unwrap();
    let named = TEXT.replace("#calibration", "calibration = \"board.toml\"");
    support::check(directory, &named)
}

/// What EL2 takes on a board of half speed is twice as long, in every bound and in what EL2 allows for an
/// overrun.
#[test]
fn a_board_of_half_speed_has_longer_bounds() {
    let directory = support::files();
    let plain = support::sound(directory.path(), TEXT);
    assert_eq!((plain.instruction_ps(), plain.calibration.is_none()), (1_000, true));
    let same = described(directory.path(), &calibration(1_000).to_string()).unwrap();
    assert_eq!(same.instruction_ps(), 1_200, "for what is computed, with its margin");
    let half = described(directory.path(), &calibration(2_000).to_string()).unwrap();
    assert_eq!(half.instruction_ps(), 2_400);
    let [plain_takes, same_takes, half_takes] =
        [&plain, &same, &half].map(|checked| checked.overheads(DEFAULT_MARGIN_PERMILLE));
    assert_eq!(same_takes, plain_takes);
    let lengths = |overheads: &Overheads| overheads.named().into_iter().take(7);
    for ((name, once), (_, twice)) in lengths(&plain_takes).zip(lengths(&half_takes)) {
        // Each is rounded up.
        assert!(once > 0 && (2 * once - 1..=2 * once).contains(&twice), "{name}: {once}, {twice}");
    }
    let responses = |checked: &system::Checked, overheads| {
        let timing = checked.timing.as_ref().unwrap();
        let verdict = analyze_with(timing, Bounds::Corrected, overheads).unwrap();
        (verdict.vcpus[0].response_ns, verdict.tasks[0].response_ns)
    };
    let none = responses(&plain, Overheads::NONE);
    let once = responses(&plain, plain_takes);
    let twice = responses(&half, half_takes);
    assert!(none.0 < once.0 && once.0 < twice.0, "{none:?} {once:?} {twice:?}");
    assert!(none.1 < once.1 && once.1 < twice.1, "{none:?} {once:?} {twice:?}");
    let overrun = |checked: &system::Checked| checked.vms[0].vcpus[0].server.unwrap().overrun_ns;
    assert!(overrun(&half) > overrun(&plain));
}

/// A path that takes more instructions there than bounds have otherwise counts with them.
#[test]
fn no_bound_is_below_what_was_measured() {
    let mut slow = calibration(1_000);
    for path in &mut slow.paths {
        if path.name == "timer" {
            (path.instructions, path.instruction_ps, path.longest_ps) = (400, 3_000, 1_200_000);
        }
    }
    let takes = Overheads::measured(&slow.paces(), 1_000);
    assert_eq!((takes.release_ns, takes.doorbell_ns), (1_200, 1_050));
}

#[test]
fn what_is_no_calibration_of_the_board_is_refused() {
    let directory = support::files();
    let refused = |change: &dyn Fn(&str) -> String| {
        let text = change(&calibration(2_000).to_string());
        described(directory.path(), &text)
            .unwrap_err()
            .plain()
            .replace(&format!("{}/", directory.path().display()), "")
    };
    let path = |name: &str| format!("[[path]]\nname = \"{name}\"\n");
    for (change, wanted) in [
        (Box::new(|_: &str| "[board]".into()) as Box<dyn Fn(&str) -> String>, "no calibration: "),
        (
            Box::new(|text: &str| text.replace("\"qemu-virt\"", "\"zcu102\"")),
            "measured on `zcu102`, not on `qemu-virt`",
        ),
        (Box::new(|text: &str| text.replace("format = 1", "format = 2")), "its format is 2, not 1"),
        (Box::new(|text: &str| text[..text.len() - 200].to_owned() + "\n"), "no calibration: "),
        (
            Box::new(|text: &str| text.split(&path("grant")).next().unwrap().to_owned()),
            "path `grant` is missing",
        ),
        (
            Box::new(|text: &str| text.replace("\"wake\"", "\"wkae\"")),
            "there is no path `wkae`: did you mean `wake`?",
        ),
        (
            Box::new(|text: &str| text.replace("\"wake\"", "\"sleep\"")),
            "path `sleep` is there twice",
        ),
        (
            Box::new(|text: &str| text.replacen("instructions = 100", "instructions = 0", 1)),
            "the figures of path `null` cannot be",
        ),
        (
            Box::new(|text: &str| text.replacen("longest_ps = 200000", "longest_ps = 200001", 1)),
            "the figures of path `null` cannot be",
        ),
        (
            Box::new(|text: &str| text.replace("instruction_ps = 2400", "instruction_ps = 1")),
            "`instruction_ps` is less than that of a path",
        ),
        (Box::new(|text: &str| text.replace("margin_permille", "margin")), "no calibration: "),
    ] {
        let said = refused(&change);
        assert!(
            said.contains("error[calibration]: board.toml ") && said.contains(wanted),
            "{wanted}: {said}"
        );
        assert!(
            said.contains("hint: let `cassata calibrate --board qemu-virt` write it"),
            "{said}"
        );
    }
}
