//! `cassata calibrate` in virtual time, where it is known what an instruction takes; and logs that it must refuse.

use crate::calibrate::{Plan, count, judge, measure};
use crate::guests::summed;
use crate::results::{Check, Outcome};
use crate::suite::{Bench, Scenario};
use analysis::overheads::DEFAULT_MARGIN_PERMILLE;
use miette::{IntoDiagnostic, Result, miette};
use std::path::Path;
use std::process::Command;
use system::board::Board;

/// Boards, one with each interrupt controller.
const BOARDS: [&str; 2] = ["qemu-virt", "zcu102"];

/// All of them.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let boards = BOARDS.into_iter().map(|board| {
        let about =
            format!("what a guest measures of EL2 on a {board} is a nanosecond for an instruction");
        Scenario::new(format!("calibrate-{board}"), about, move |bench| measured(bench, board))
            .shipped()
    });
    let about = "logs that are no whole measurement of this hypervisor get one clear error";
    boards.chain([Scenario::new("calibrate-logs", about, logs).shipped()])
}

fn measured(bench: &Bench, board: &str) -> Result<()> {
    let board = Board::find(board).ok_or_else(|| miette!("there is no board `{board}`"))?;
    let plan = Plan { repetitions: 100, cold: 10, ..Plan::virtual_time(board) };
    let said = measure(&plan, bench, &mut |_| {})?;
    let counts = count(&plan, bench, &mut |_| {})?;
    let judged = judge(&said, &counts, DEFAULT_MARGIN_PERMILLE)?;
    let name = format!("calibrate-{}", board.kind);
    bench.demand(&judged.answer(&name, true).outcome)
}

/// Each of these is refused, with one error that names what is wrong, and nothing is written.
fn logs(bench: &Bench) -> Result<()> {
    let begin = |fields: &str| {
        let rest = "pcpus=4 counter_hz=54000000 load=memory sweep_kib=2048";
        summed(&format!("calibrate-begin {fields} {rest}"))
    };
    let end = summed("calibrate-end paths=0");
    let whole = format!("{}\n{end}\n", begin("format=1 board=raspi4b hypervisor=0123456789abcdef"));
    let cases = [
        (String::new(), "there is no line `calibrate-begin`"),
        (whole.replace(&end, ""), "it is cut off"),
        (whole.repeat(2), "it has 2 measurements"),
        (whole.replace("54000000", "54000001"), "a line is damaged"),
        (whole.replace(&end, &summed("calibrate-end paths=9")), "0 of 9 lines of paths are there"),
        (whole.clone(), "it was measured with another build of the hypervisor"),
        (
            format!("{}\n{end}\n", begin("format=7 board=raspi4b hypervisor=0")),
            "its format is 7, not 1",
        ),
        (
            format!("{}\n{end}\n", begin("format=1 board=toaster hypervisor=0")),
            "there is no board `toaster`",
        ),
    ];
    let mut objections = Vec::new();
    let file = bench.directory.join("uart.log");
    for (log, wanted) in &cases {
        std::fs::write(&file, log).into_diagnostic()?;
        objections.extend(refusal(bench, &[], &file, wanted)?);
    }
    std::fs::write(&file, &whole).into_diagnostic()?;
    let other = ["--board", "zcu102"];
    objections.extend(refusal(
        bench,
        &other,
        &file,
        "it was measured on `raspi4b`, not on `zcu102`",
    )?);
    objections.extend(refusal(bench, &[], &bench.directory, "a directory, not a file")?);
    let mut outcome = Outcome::new("calibrate-logs");
    outcome.check(Check::done("each is refused", objections.is_empty()));
    bench.keep(&outcome)?;
    if objections.is_empty() { Ok(()) } else { Err(miette!("{}", objections.join("\n"))) }
}

/// Calls the command line, which must refuse `log` with a message that has `wanted`.
fn refusal(bench: &Bench, words: &[&str], log: &Path, wanted: &str) -> Result<Option<String>> {
    let file = bench.directory.join("written.toml");
    let mut command = Command::new("/proc/self/exe");
    command.args(["calibrate", "--console"]).arg(log).arg("--write").arg(&file).args(words);
    let output = command.env("CASSATA_ROOT", &bench.root).output().into_diagnostic()?;
    let said = String::from_utf8_lossy(&output.stderr);
    // Long messages are wrapped.
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_refused = output.status.code() == Some(2) && flat.contains(wanted) && !file.exists();
    Ok((!is_refused)
        .then(|| format!("it ended with {}, not with {wanted:?}:\n{said}", output.status)))
}
