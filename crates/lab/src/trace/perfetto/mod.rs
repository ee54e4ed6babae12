//! A history as Perfetto reads it: lines for pCPUs, for vCPUs and for mutexes, and arrows for
//! migrations and grants; below vCPUs what their guests recorded of themselves.

mod lanes;
mod message;

use super::file::Trace;
use super::guests::Guests;
use super::history::{Flow, History, Hold, Mark, State};
use super::subject::Subject;
use abi::status::EXIT_NAMES;
use abi::trace::Kind;
use lanes::lanes;
use message::{Annotation, Event, Ordering, Packet, Track, Type};
use prost::Message;

/// Lines, by number: each kind has a range of its own.
const PCPUS: u64 = 0x1_0000;
const VMS: u64 = 0x2_0000;
const VCPUS: u64 = 0x3_0000;
const RAISED: u64 = 0x4_0000;
const MUTEXES: u64 = 0x5_0000;
const WAITS: u64 = 0x6_0000;
const ACTIVATIONS: u64 = 0x7_0000;
const TASKS: u64 = 0x8_0000;
const MARKERS: u64 = 0x9_0000;
const OVERRUNS: u64 = 0xa_0000;
/// Between two lines of one kind that may have several lanes.
const LANES: u64 = 0x100;

/// All of it goes into one sequence.
const SEQUENCE: u32 = 1;

/// The packets so far.
struct Writer<'a> {
    subject: &'a Subject,
    packets: Vec<Packet>,
}

impl Trace {
    /// Returns a file in Perfetto's format.
    #[must_use]
    pub fn perfetto(&self, history: &History) -> Vec<u8> {
        let mut writer = Writer { subject: &self.subject, packets: Vec::new() };
        writer.pcpus(history);
        writer.vcpus(history);
        writer.mutexes(history);
        writer.activations(self);
        writer.guests(&Guests::of(self, history));
        message::Trace { packet: writer.packets }.encode_to_vec()
    }
}

impl Writer<'_> {
    fn pcpus(&mut self, history: &History) {
        self.group(PCPUS, "pCPUs", 0);
        for pcpu in 0..self.subject.pcpus {
            self.line(pcpu_line(pcpu), &format!("pCPU {pcpu}"), PCPUS, pcpu);
        }
        for turn in &history.turns {
            let mut name = self.subject.label(turn.vcpu);
            if turn.idles {
                name += " (idles its budget away)";
            }
            self.slice(pcpu_line(turn.pcpu), "run", &name, (turn.from, turn.to));
        }
        for (number, flow) in history.flows.iter().enumerate() {
            self.flow(flow, number as u64 + 1);
        }
        history.marks.iter().for_each(|mark| self.mark(mark));
    }

    fn vcpus(&mut self, history: &History) {
        for (vm, name) in self.subject.vms.iter().enumerate() {
            self.group(VMS + 1 + vm as u64, &format!("VM {name}"), 1 + vm);
        }
        for (id, vcpu) in self.subject.vcpus.iter().enumerate() {
            let vm = VMS + 1 + vcpu.vm as u64;
            self.line(vcpu_line(id), &format!("vCPU {}", self.subject.label(id)), vm, vcpu.index);
        }
        for phase in history.phases.iter().filter(|phase| phase.state != State::Off) {
            let name = match phase.state {
                State::Running => "running",
                State::Idling => "idling",
                State::Ready => "ready",
                State::Sleeping => "sleeping",
                State::Throttled => "throttled",
                State::Off => "off",
            };
            self.slice(vcpu_line(phase.vcpu), "state", name, (phase.from, phase.to));
        }
        self.holds(&history.raised, RAISED, "raised", |_| "raised".into());
        self.holds(&history.overruns, OVERRUNS, "overruns", |_| "overruns its budget".into());
        let subject = self.subject;
        let name = |wait: &Hold| format!("waits for {}", subject.mutex(wait.mutex));
        self.holds(&history.waits, WAITS, "waits", name);
    }

    /// Lines below those of the vCPUs.
    fn holds(&mut self, all: &[Hold], lines: u64, what: &str, name: impl Fn(&Hold) -> String) {
        for vcpu in 0..self.subject.vcpus.len() {
            let own: Vec<&Hold> = all.iter().filter(|hold| hold.vcpu == vcpu).collect();
            let label = format!("{} {what}", self.subject.label(vcpu));
            let line = lines + vcpu as u64 * LANES;
            self.in_lanes(
                line,
                &label,
                vcpu_line(vcpu),
                &own,
                |hold| (hold.from, hold.to),
                |hold| (what.to_owned(), name(hold)),
            );
        }
    }

    fn mutexes(&mut self, history: &History) {
        if self.subject.mutexes.is_empty() {
            return;
        }
        self.group(MUTEXES, "Mutexes", 1 + self.subject.vms.len());
        for mutex in 0..self.subject.mutexes.len() {
            self.line(
                mutex_line(mutex),
                &format!("mutex {}", self.subject.mutex(mutex)),
                MUTEXES,
                mutex,
            );
        }
        for hold in &history.holds {
            let name = self.subject.label(hold.vcpu);
            self.slice(mutex_line(hold.mutex), "held", &name, (hold.from, hold.to));
        }
    }

    /// What guests report: for each activation the time until the handler and until the task.
    fn activations(&mut self, trace: &Trace) {
        for of in &trace.samples {
            let ns = |ticks: u64| self.subject.ns(ticks);
            let spans: Vec<[u64; 3]> = of
                .samples
                .iter()
                .map(|sample| {
                    let [begin, response, dispatch] = [0, sample.response, sample.dispatch]
                        .map(|t| ns(sample.raised.saturating_add(u64::from(t))));
                    [begin, response, dispatch.max(response)]
                })
                .collect();
            let vm = VMS + 1 + of.vm as u64;
            let name = self.subject.vms.get(of.vm).map_or("?", String::as_str);
            let (line, label) = (ACTIVATIONS + of.vm as u64 * LANES, format!("{name} activations"));
            let spans: Vec<&[u64; 3]> = spans.iter().collect();
            self.in_lanes(
                line,
                &label,
                vm,
                &spans,
                |span| (span[0], span[2]),
                |_| ("guest".into(), "activation, until its task runs".into()),
            );
            // Within those: of one lane, as they are shorter and begin together.
            for (lane, all) in lanes(&spans, |span| (span[0], span[2])).iter().enumerate() {
                for span in all {
                    let name = "interrupt, until its handler runs";
                    self.slice(line + lane as u64, "guest", name, (span[0], span[1]));
                }
            }
        }
    }

    /// What guests recorded of themselves: which task had each vCPU, and what was marked.
    fn guests(&mut self, guests: &Guests) {
        for vcpu in 0..self.subject.vcpus.len() {
            let label = self.subject.label(vcpu);
            let turns = || guests.turns.iter().filter(|turn| turn.vcpu == vcpu);
            let markers = || guests.markers.iter().filter(|mark| mark.vcpu == vcpu);
            let (line, marks) = (TASKS + vcpu as u64, MARKERS + vcpu as u64);
            if turns().next().is_some() {
                self.line(line, &format!("{label} tasks"), vcpu_line(vcpu), 98);
            }
            for turn in turns() {
                let begin = Event {
                    debug_annotations: vec![annotation("task", turn.task.into())],
                    categories: vec!["task".into()],
                    name: Some(turn.name.clone()),
                    ..event(Type::SliceBegin, line)
                };
                self.event(turn.from, begin);
                self.event(turn.to, event(Type::SliceEnd, line));
            }
            if markers().next().is_some() {
                self.line(marks, &format!("{label} markers"), vcpu_line(vcpu), 99);
            }
            for marker in markers() {
                let instant = Event {
                    debug_annotations: vec![annotation("task", marker.task.into())],
                    categories: vec!["marker".into()],
                    name: Some(marker.text.clone()),
                    ..event(Type::Instant, marks)
                };
                self.event(marker.at, instant);
            }
        }
    }

    /// Draws spans of which several may be at once, each lane as a line.
    fn in_lanes<T>(
        &mut self,
        line: u64,
        label: &str,
        parent: u64,
        spans: &[&T],
        extent: impl Fn(&T) -> (u64, u64),
        name: impl Fn(&T) -> (String, String),
    ) {
        for (lane, all) in lanes(spans, &extent).iter().enumerate() {
            self.line(line + lane as u64, label, parent, 100 + lane);
            for span in all {
                let (category, name) = name(span);
                self.slice(line + lane as u64, &category, &name, extent(span));
            }
        }
    }

    fn flow(&mut self, flow: &Flow, number: u64) {
        let label = self.subject.label(flow.vcpu);
        let (leaves, arrives) = match flow.mutex {
            None => (format!("{label} leaves"), format!("{label} arrives")),
            Some(mutex) => {
                let mutex = self.subject.mutex(mutex);
                (format!("grants {mutex} to {label}"), format!("{label} has {mutex}"))
            }
        };
        let category = if flow.mutex.is_none() { "migration" } else { "grant" };
        for ((pcpu, at), name) in [(Some(flow.from), leaves), (flow.to, arrives)]
            .into_iter()
            .filter_map(|(place, name)| Some((place?, name)))
        {
            let event = Event { flow_ids: vec![number], ..event(Type::Instant, pcpu_line(pcpu)) };
            self.event(at, Event { categories: vec![category.into()], name: Some(name), ..event });
        }
    }

    /// What is an instant, and no flow.
    fn mark(&mut self, mark: &Mark) {
        let name = match mark.kind {
            Kind::Migrate | Kind::Arrive | Kind::Grant | Kind::Granted => return,
            Kind::Exit => EXIT_NAMES.get(mark.argument as usize).copied().unwrap_or("exit"),
            kind => kind.name(),
        };
        let name = format!("{name} {}", self.subject.label(mark.vcpu));
        self.event(
            mark.at,
            Event {
                debug_annotations: vec![annotation("argument", mark.argument.into())],
                categories: vec![mark.kind.name().into()],
                name: Some(name),
                ..event(Type::Instant, pcpu_line(mark.pcpu))
            },
        );
    }

    fn group(&mut self, uuid: u64, name: &str, rank: usize) {
        self.track(Track {
            uuid: Some(uuid),
            name: Some(name.into()),
            parent_uuid: None,
            child_ordering: Some(Ordering::Explicit.into()),
            sibling_order_rank: i32::try_from(rank).ok(),
        });
    }

    fn line(&mut self, uuid: u64, name: &str, parent: u64, rank: usize) {
        self.track(Track {
            uuid: Some(uuid),
            name: Some(name.into()),
            parent_uuid: Some(parent),
            child_ordering: Some(Ordering::Explicit.into()),
            sibling_order_rank: i32::try_from(rank).ok(),
        });
    }

    fn track(&mut self, track: Track) {
        self.packets.push(Packet {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(track),
            ..Packet::default()
        });
    }

    fn slice(&mut self, line: u64, category: &str, name: &str, (from, to): (u64, u64)) {
        let begin = Event {
            categories: vec![category.into()],
            name: Some(name.into()),
            ..event(Type::SliceBegin, line)
        };
        self.event(from, begin);
        self.event(to, event(Type::SliceEnd, line));
    }

    fn event(&mut self, at: u64, event: Event) {
        self.packets.push(Packet {
            timestamp: Some(at),
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_event: Some(event),
            track_descriptor: None,
        });
    }
}

fn event(what: Type, line: u64) -> Event {
    Event { r#type: Some(what.into()), track_uuid: Some(line), ..Event::default() }
}

fn annotation(name: &str, value: u64) -> Annotation {
    Annotation { name: Some(name.into()), uint_value: Some(value) }
}

const fn pcpu_line(pcpu: usize) -> u64 {
    PCPUS + 1 + pcpu as u64
}

const fn vcpu_line(vcpu: usize) -> u64 {
    VCPUS + 1 + vcpu as u64
}

const fn mutex_line(mutex: usize) -> u64 {
    MUTEXES + 1 + mutex as u64
}
