//! Plain lines, for logs and pipes: one for each VM every two seconds.

use super::View;
use super::scene::{Recent, Scene, latency, vcpu_shares, vm_state};
use crate::quantity::percent;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// How often lines appear.
const INTERVAL: Duration = Duration::from_secs(2);

/// Writes plain lines.
pub struct Plain {
    out: Box<dyn Write>,
    next: Duration,
    recent: Recent,
    shown: BTreeMap<usize, String>,
}

impl Plain {
    /// Writes to `out`.
    pub fn new(out: impl Write + 'static) -> Self {
        let recent = Recent::over(INTERVAL);
        Self { out: Box::new(out), next: INTERVAL, recent, shown: BTreeMap::new() }
    }

    fn lines(&mut self, scene: &Scene) -> Vec<String> {
        let before = self.recent.before(scene);
        let layout = &scene.observer.layout;
        let time = format!("[{:6.1} s{}]", scene.elapsed.as_secs_f64(), virtual_time(scene));
        let mut lines = Vec::new();
        for (vm, name) in layout.vms.iter().map(|vm| &vm.name).enumerate() {
            let state = vm_state(scene.observer.latest(), vm);
            let mut line = format!("{time} {name}: {state}");
            for (index, pcpu, share) in vcpu_shares(scene, before.as_ref(), vm) {
                line += &format!("; vCPU {index} has {} of pCPU {pcpu}", percent(share));
            }
            if let Some(latency) = scene.observer.reports(vm).and_then(latency) {
                line += &format!("; {latency}");
            }
            lines.push(line);
            if let Some(said) = self.news(scene, vm) {
                lines.push(format!("{time} {name}| {said}"));
            }
        }
        lines
    }

    /// The last console line, if it is not the one shown before.
    fn news(&mut self, scene: &Scene, vm: usize) -> Option<String> {
        let last = scene.said.guests[vm].tail.lines().next_back()?.to_owned();
        let known = self.shown.insert(vm, last.clone());
        (known.as_ref() != Some(&last)).then_some(last)
    }
}

/// `, virtual 2.31 s` where time is virtual.
fn virtual_time(scene: &Scene) -> String {
    let time = scene.virtual_time.map(|time| format!(", virtual {:6.2} s", time.as_secs_f64()));
    time.unwrap_or_default()
}

impl View for Plain {
    fn show(&mut self, scene: &Scene) {
        if scene.elapsed < self.next {
            return;
        }
        self.next = scene.elapsed + INTERVAL;
        for line in self.lines(scene) {
            // The pipe may be closed by now; the run goes on all the same.
            drop(writeln!(self.out, "{line}"));
        }
    }
}
