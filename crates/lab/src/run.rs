//! What is said of any system that has run.

use crate::answer::Answer;
use crate::bundle::Bundle;
use crate::figures;
use crate::machine::Time;
use crate::qemu::Qemu;
use crate::quantity::bytes;
use crate::results::{Check, Goal};
use crate::session::Run;
use crate::trace::{Guests, History, Trace};
use abi::status::vm_state;
use maud::html;
use miette::Result;
use std::path::Path;

/// Returns what was seen of a run called `name`, and whether it went well.
#[must_use]
pub fn answer(run: &Run, name: &str) -> Answer {
    let lead = "What every VM did, seen through the machine's memory while it ran.";
    let mut answer = Answer::new(name, name, lead);
    figures::tell(&mut answer, run);
    let (now, outcome) = (run.observer.latest(), &mut answer.outcome);
    outcome.figure("ended", run.end.about());
    outcome.check(Check::done("the hypervisor came up", now.is_some()));
    let failed = now.map(|now| {
        let failed = now.vms.iter().filter(|vm| vm.state == vm_state::FAILED).count();
        f64::from(u32::try_from(failed).unwrap_or(u32::MAX))
    });
    outcome.check(Check::new("VMs that failed", failed, "VMs", Goal::Exactly(0.0)));
    figures::check_bugs(outcome, &run.observer);
    answer
}

/// Adds the trace that a run called `name` has left in `directory`: what was recorded, and its
/// beginning as a drawing.
///
/// # Errors
/// When there is none.
pub fn show_trace(answer: &mut Answer, directory: &Path, name: &str) -> Result<()> {
    let trace = Trace::read(directory)?;
    let history = History::of(&trace);
    let guests = Guests::of(&trace, &history);
    let more = format!("All of it: cassata trace {name}, then https://ui.perfetto.dev.");
    let drawing = answer.drawing("trace", &trace.draw_beginning(&history, name), &more);
    answer.section("Trace", drawing);
    trace.data(&guests).iter().for_each(|data| answer.data(data));
    if let Some(lost) = trace.loss(&guests) {
        answer.section("Lost records", html! { p { (lost) } });
    }
    answer.outcome.figure("trace", trace.json(&guests));
    Ok(())
}

/// Records the conditions of a run of `bundle`, packed from the description
/// `text`, on `qemu`, with time as `time` says.
pub fn conditions(answer: &mut Answer, qemu: &Qemu, time: &Time, bundle: &Bundle, text: &str) {
    let (outcome, board) = (&mut answer.outcome, &bundle.tables.board);
    outcome.parameter("qemu", qemu.version.to_string());
    outcome.parameter("time", time.about());
    outcome.parameter("host_cores", std::thread::available_parallelism().map_or(0, usize::from));
    outcome.parameter("pcpus", board.pcpu_count);
    outcome.parameter("memory", bytes(board.ram_size));
    outcome.parameter("system", text);
}

/// Returns what the terminal shows of `answer`, with what is wrong at its end.
#[must_use]
pub fn summary(run: &Run, answer: &Answer) -> String {
    let mut text = answer.findings().to_owned();
    if !answer.outcome.holds() {
        text += &format!("{}\n", answer.outcome.table());
    }
    text += &refusal(run).unwrap_or_default();
    for (vm, name) in run.observer.layout.vms.iter().map(|vm| &vm.name).enumerate() {
        text += &failure(run, vm, name).unwrap_or_default();
    }
    for refused in run.observer.refused_dma() {
        text += &format!("{}\n\n", refused.about());
    }
    text + run.end.about()
}

/// Returns what a hypervisor that did not come up said of it, and where its log is.
fn refusal(run: &Run) -> Option<String> {
    let said = &run.said.hypervisor.lines;
    // What it looks at last it refuses when there is a status area.
    let refused = said.iter().any(|line| line.contains("refused to start: "));
    if run.observer.latest().is_some() && !refused {
        return None;
    }
    let said = if said.is_empty() { "it said nothing".into() } else { said.join("\n  ") };
    Some(format!("the hypervisor did not come up\n  {said}\n  {}\n\n", log(run, "hypervisor")))
}

/// Returns why VM `vm` failed, its registers, and where more stands; `None` for one that
/// never did.
fn failure(run: &Run, vm: usize, name: &str) -> Option<String> {
    let state = run.observer.latest().map(|now| now.vms[vm].state);
    let has_failed = state == Some(vm_state::FAILED);
    let crash = run.said.hypervisor.crash(name);
    if !has_failed && crash.is_none() {
        return None;
    }
    let verdict = if has_failed { "failed" } else { "failed, and was started again" };
    let reason = crash
        .map_or_else(|| "the hypervisor's log has the reason".into(), |lines| lines.join("\n  "));
    let logs = [name, "hypervisor"].map(|name| log(run, name)).join("\n  ");
    Some(format!("VM {name} {verdict}\n  {reason}\n  {logs}\n\n"))
}

/// Returns the path of a console's log.
fn log(run: &Run, name: &str) -> String {
    run.directory.join(format!("console-{name}.log")).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::End;
    use crate::testing;
    use abi::status::Status;

    fn run(status: &Status, said: &str) -> Run {
        let observer = testing::observer(status, &testing::report(100, 0));
        testing::run(observer, said, End::TimeOver)
    }

    #[test]
    fn a_run_fails_when_a_vm_does() {
        let good = run(&testing::status(), "");
        assert_eq!(answer(&good, "x").outcome.exit_code(false), 0);
        let text = summary(&good, &answer(&good, "x"));
        assert!(text.ends_with("the time was over") && !text.contains("failed"));
        assert!(answer(&good, "x").page().contains("linux.1"));
        let mut bad = testing::status();
        bad.vms[0].state = vm_state::FAILED;
        let failed = run(&bad, "\x1f0cassata: VM linux vCPU 1 cannot go on: a reason\n");
        assert_eq!(answer(&failed, "x").outcome.exit_code(false), 1);
        let text = summary(&failed, &answer(&failed, "x"));
        assert!(text.contains("VMs that failed") && text.contains("FAILS"), "{text}");
        assert!(text.contains("\nVM linux failed\n  VM linux vCPU 1 cannot"), "{text}");
        assert!(text.contains("\n  results/run-x/console-linux.log\n"), "{text}");
    }

    #[test]
    fn a_hypervisor_that_refuses_its_tables_says_why() {
        let mut nothing = testing::status();
        nothing.magic = 0;
        let refused = run(&nothing, "\x1f0refused to start: the tables are damaged\n");
        let answer = answer(&refused, "x");
        assert_eq!(answer.outcome.exit_code(false), 1);
        let expected = "the hypervisor did not come up\n  refused to start: the tables are \
                        damaged\n  results/run-x/console-hypervisor.log\n";
        let text = summary(&refused, &answer);
        assert!(text.contains(expected), "{text}");
        let late = run(&testing::status(), "\x1f0refused to start: the tables are damaged\n");
        assert!(summary(&late, &answer).contains(expected), "with a status area");
        let silent = summary(&run(&nothing, ""), &answer);
        assert!(silent.contains("it said nothing"), "{silent}");
    }

    #[test]
    fn a_bug_that_the_hypervisor_survived_is_shown() {
        let mut status = testing::status();
        status.bugs = 2;
        let run = run(&status, "");
        let answer = answer(&run, "x");
        assert_eq!(answer.outcome.exit_code(false), 1);
        assert_eq!(answer.outcome.figures["hypervisor_bugs"], 2);
        for text in [summary(&run, &answer), answer.page()] {
            assert!(text.contains("bugs that the hypervisor met"), "{text}");
        }
    }
}
