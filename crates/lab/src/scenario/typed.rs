//! What is typed reaches the guest it is typed to, whole and in order.

use super::staged::description;
use super::{LIMIT, REAL_LIMIT};
use crate::bundle::channel;
use crate::figures;
use crate::session::{End, Moment};
use crate::suite::{Bench, Scenario};
use miette::Result;

/// The name, and that of its description.
pub const NAME: &str = "typed";
/// Lines for each guest, as its command line says.
const LINES: usize = 20;

/// Boards with another UART than a PL011: what they are, and what their guests are.
const BOARDS: [(&str, &str); 3] =
    [("imx8mp", "probe.elf"), ("raspi4b-mini", "probe-gicv2.elf"), ("zcu102", "probe-gicv2.elf")];

/// Returns the scenarios.
pub fn scenarios() -> impl Iterator<Item = Scenario> {
    let about = "what is typed reaches the guest it is meant for, and no other";
    let usual = Scenario::new(NAME, about, |bench: &Bench| type_lines(bench, NAME, &[]));
    let boards = BOARDS.into_iter().map(move |(board, probe)| {
        let name = format!("{NAME}-{board}");
        Scenario::new(name.clone(), format!("{about}: on a {board}"), move |bench: &Bench| {
            let edits = [("qemu-virt", board), ("256M", "900M"), ("probe.elf", probe)];
            type_lines(bench, &name, &edits.map(|(from, to)| (from.into(), to.into())))
        })
    });
    std::iter::once(usual).chain(boards)
}

fn type_lines(bench: &Bench, name: &str, edits: &[(String, String)]) -> Result<()> {
    let bundle = bench.pack(&bench.described(&description(NAME), edits)?)?;
    let mut talk = Conversation::with(bundle.layout().vms.into_iter().map(|vm| vm.name));
    let run = bench.session(&bundle, LIMIT)?.within(REAL_LIMIT).run(|now| {
        talk.go_on(now);
        talk.failure.is_some()
    })?;
    let mut objections: Vec<_> = talk.failure.iter().cloned().collect();
    if run.end != End::PoweredOff {
        objections.push("the machine stays on".into());
    }
    for (vm, name) in talk.vms.iter().enumerate() {
        let heard = &run.said.guests[vm].probe.heard;
        let wanted: Vec<_> = (0..LINES).map(|line| format!("{name} {line}")).collect();
        if *heard != wanted {
            objections.push(format!("{name} heard {heard:?}"));
        }
    }
    bench.judge(&run, figures::outcome(name, &run), &objections)
}

/// Types a line to each guest, and waits for all that were typed to before it goes on: their
/// receive FIFOs hold no more than a few lines. It types while the machine is held, so that
/// the guests hear the same at the same time in each run.
struct Conversation {
    vms: Vec<String>,
    /// Lines typed to each.
    typed: usize,
    failure: Option<String>,
}

impl Conversation {
    fn with(vms: impl IntoIterator<Item = String>) -> Self {
        Self { vms: vms.into_iter().collect(), typed: 0, failure: None }
    }

    fn go_on(&mut self, now: &Moment) {
        let mut guests = now.said.guests.iter().map(|guest| &guest.probe);
        let all_answered = guests.all(|guest| guest.listens && guest.heard.len() >= self.typed);
        if !all_answered || self.typed == LINES {
            return;
        }
        for (vm, name) in self.vms.iter().enumerate() {
            let text = format!("{name} {}\n", self.typed);
            if let Err(error) = now.machine.consoles.send(channel(vm), text.as_bytes()) {
                self.failure = Some(format!("cannot type to {name}: {error}"));
            }
        }
        self.typed += 1;
    }
}
