//! Files that pass for traces.

use crate::bytes::Bytes;
use lab::trace::{Guests, History, Subject, Trace, Vcpu};

/// Either any bytes, or blocks behind a subject that there may be.
pub fn read(input: &[u8]) {
    let mut bytes = Bytes(input);
    let trace = match bytes.byte() {
        0 => Trace::parse(bytes.0),
        _ => Trace::parse(&file(&mut bytes)),
    };
    trace.iter().for_each(use_all);
}

/// Everything that `cassata trace` does with one.
pub fn use_all(trace: &Trace) {
    let history = History::of(trace);
    for turn in &history.turns {
        assert!(turn.from <= turn.to, "{turn:?}");
    }
    let guests = Guests::of(trace, &history);
    drop(trace.perfetto(&history));
    drop(trace.draw_beginning(&history, "fuzz"));
    drop(trace.draw(&history, "fuzz", history.begin(), history.end));
    drop(trace.json(&guests).to_string());
    trace.data(&guests).iter().for_each(|data| drop(data.table().to_string()));
    drop(trace.loss(&guests));
}

/// The subject's figures, then blocks: what, of which, how many were lost, and the content.
fn file(bytes: &mut Bytes) -> Vec<u8> {
    let vcpu = |index: usize| Vcpu {
        vm: index / 2,
        index: index % 2,
        pcpu: index % 2,
        priority: 1,
        budget_ns: 0,
        period_ns: 0,
        overrun_ns: 0,
        offset_ns: 0,
        idles: false,
    };
    let mut vcpus: Vec<_> = (0..3).map(vcpu).collect();
    (vcpus[2].budget_ns, vcpus[2].period_ns) = (bytes.word(), bytes.word());
    let (counter_hz, boot) = (bytes.word(), bytes.word());
    let (vms, mutexes) = (vec!["one".into(), "two".into()], vec!["page".into()]);
    let subject = Subject { pcpus: 2, vms, vcpus, mutexes, counter_hz, boot };
    let subject = serde_json::to_vec(&subject).expect("it is written as JSON");
    let mut file = b"CASTRF\x01\n".to_vec();
    file.extend((subject.len() as u64).to_le_bytes());
    file.extend(subject);
    while !bytes.is_empty() {
        let (tag, index, count) = (bytes.below(4) as u32, bytes.below(4) as u32, bytes.below(8));
        file.extend(tag.to_le_bytes());
        file.extend(index.to_le_bytes());
        file.extend((count as u64).to_le_bytes());
        file.extend(bytes.word().to_le_bytes());
        for _ in 0..count {
            let (time, what) = (bytes.word(), bytes.word());
            file.extend(time.to_le_bytes());
            file.extend(what.to_le_bytes());
            if tag == 2 {
                let mut text = [0; 48];
                let said = bytes.take(usize::from(what as u8 & 15));
                text[..said.len()].copy_from_slice(said);
                file.extend(text);
            }
        }
    }
    file
}
