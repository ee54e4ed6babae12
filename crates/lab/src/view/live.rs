//! A block of the terminal, redrawn in place.

use super::scene::{Recent, Scene, cores, latency, vcpu_shares, vm_state};
use super::{View, vm_style};
use crate::quantity::percent;
use console::{Style, Term, pad_str, style, truncate_str};
use std::io::{self, Write};
use std::time::Duration;

/// How often the block is redrawn.
const INTERVAL: Duration = Duration::from_millis(250);
/// Shares are over this time: shorter ones dance.
const SHARES: Duration = Duration::from_secs(1);
/// Characters for what has a core at present.
const NOW: usize = 28;
/// Characters of a bar.
const BAR: usize = 16;

/// Redraws in place.
#[derive(Debug)]
pub struct Live {
    title: String,
    term: Term,
    next: Duration,
    recent: Recent,
    drawn: usize,
}

impl Live {
    /// Draws on `term`, which should be buffered, under `title`.
    #[must_use]
    pub fn new(title: &str, term: Term) -> Self {
        let (next, recent) = (Duration::ZERO, Recent::over(SHARES));
        Self { title: title.into(), term, next, recent, drawn: 0 }
    }

    fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let (height, width) = self.term.size();
        let lines = fitted(lines, height.into(), width.into());
        if self.drawn > 0 {
            self.term.move_cursor_up(self.drawn)?;
        }
        self.drawn = lines.len();
        for line in lines {
            self.term.clear_line()?;
            writeln!(self.term, "{line}")?;
        }
        self.term.clear_to_end_of_screen()?;
        self.term.flush()
    }
}

impl View for Live {
    fn show(&mut self, scene: &Scene) {
        if scene.elapsed < self.next {
            return;
        }
        self.next = scene.elapsed + INTERVAL;
        let lines = lines(&self.title, scene, &mut self.recent);
        // A terminal that went away does not stop the run.
        drop(self.draw(&lines));
    }

    fn finish(&mut self) {
        drop(self.term.flush());
    }
}

/// Returns what a terminal of so many lines and columns has room for: the first lines, and of each
/// its beginning. The last line of the terminal is the cursor's.
pub(super) fn fitted(lines: &[String], height: usize, width: usize) -> Vec<String> {
    let room = height.saturating_sub(1).max(1);
    lines.iter().take(room).map(|line| truncate_str(line, width, "…").into_owned()).collect()
}

/// The whole block.
pub(super) fn lines(title: &str, scene: &Scene, recent: &mut Recent) -> Vec<String> {
    let before = recent.before(scene);
    let mut lines = vec![headline(title, scene), String::new()];
    for vm in 0..scene.observer.layout.vms.len() {
        lines.extend(vm_lines(scene, before.as_ref(), vm));
    }
    lines.push(String::new());
    let cores: Vec<String> = core_lines(scene).collect();
    if !cores.is_empty() {
        lines.extend(cores);
        lines.push(String::new());
    }
    lines.extend(console_lines(scene));
    lines
}

fn headline(title: &str, scene: &Scene) -> String {
    let time = format!("{}; Ctrl-C ends it", scene.time());
    format!("{}  {}", style(title).for_stderr().bold(), dim(&time))
}

fn vm_lines(scene: &Scene, before: Option<&crate::observe::Snapshot>, vm: usize) -> Vec<String> {
    let name = &scene.observer.layout.vms[vm].name;
    let state = vm_state(scene.observer.latest(), vm);
    let name = vm_style(vm).bold().apply_to(pad(name, 16)).to_string();
    let mut heads = [format!("  {name}{}", pad(&state, 22))].into_iter();
    let mut lines = Vec::new();
    for (index, pcpu, share) in vcpu_shares(scene, before, vm) {
        let head = heads.next().unwrap_or_else(|| pad("", 40));
        let bar = vm_style(vm).apply_to(bar(share));
        lines.push(format!("{head}vCPU {index} on pCPU {pcpu}  {bar} {:>7}", percent(share)));
    }
    lines.extend(heads);
    let reports = scene.observer.reports(vm).and_then(latency);
    lines.extend(reports.map(|latency| format!("{}{latency}", pad("", 18))));
    lines
}

/// What each core does: `pCPU 1  rtos.0 measure            before: linux.1 310 µs, rtos.0 21 µs`.
fn core_lines(scene: &Scene) -> impl Iterator<Item = String> {
    cores(scene).into_iter().enumerate().map(|(pcpu, core)| {
        let (vm, text) = core.now;
        let (style, text) = (vm.map_or_else(Style::new, vm_style), pad(&text, NOW));
        let now = style.apply_to(text);
        let before = core.before.join(", ");
        let before = if before.is_empty() { before } else { dim(&format!("  before: {before}")) };
        format!("  pCPU {pcpu}  {now}{before}")
    })
}

fn console_lines(scene: &Scene) -> impl Iterator<Item = String> {
    let (said, vms) = (scene.said, scene.observer.layout.vms.iter().enumerate());
    let guests =
        vms.map(|(vm, layout)| (&said.guests[vm].tail, layout.name.as_str(), vm_style(vm)));
    let own = (&said.hypervisor.tail, "hypervisor", Style::new().for_stderr().dim());
    std::iter::once(own).chain(guests).flat_map(|(tail, name, style)| {
        let line = move |text: &str| format!("  {}", style.apply_to(format!("{name}│ {text}")));
        tail.lines().map(line)
    })
}

fn bar(share: f64) -> String {
    let full = (share.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full))
}

fn pad(text: &str, width: usize) -> String {
    pad_str(text, width, console::Alignment::Left, None).into_owned()
}

fn dim(text: &str) -> String {
    style(text).for_stderr().dim().to_string()
}
