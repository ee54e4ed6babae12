//! The drawing's own account, and what is on the paper.

use super::budget::Piece;
use super::*;
use sim::World;
use sim::case_study::{Scheme, system};

const MS: u64 = 1_000_000;

fn seen(system: &System, end: u64) -> Timeline {
    let mut world = World::watched(system, Timeline::until(end)).unwrap();
    world.run_until(end);
    world.into_observer()
}

fn schedule<'a>(
    system: &'a System,
    timeline: &'a Timeline,
    resources: &'a [String],
) -> Schedule<'a> {
    Schedule {
        title: "A & B",
        system,
        pcpus: &[0, 1, 2, 3],
        resources,
        timeline,
        lanes: &[],
        end: timeline.end(),
    }
}

#[test]
fn a_budget_falls_while_its_vcpu_runs_and_not_otherwise() {
    let system = system(Scheme::DeferrableWithOverrun);
    let timeline = seen(&system, 12 * MS);
    // v2: 1.0 to 4.1, the gcs's last tenth beyond the budget; then 10.0 to 12.0.
    let tenths = |piece: &Piece| {
        let tenth = MS / 10;
        let signed = tenth.cast_signed();
        (piece.from / tenth, piece.to / tenth, piece.begin / signed, piece.end / signed)
    };
    let pieces: Vec<_> = schedule(&system, &timeline, &[]).pieces(1).iter().map(tenths).collect();
    let mut merged: Vec<(u64, u64, i64, i64)> = Vec::new();
    for piece in pieces {
        match merged.last_mut() {
            Some(last)
                if last.1 == piece.0
                    && last.3 == piece.2
                    && (last.2 == last.3) == (piece.2 == piece.3)
                    && piece.2 > 0 =>
            {
                (last.1, last.3) = (piece.1, piece.3)
            }
            _ => merged.push(piece),
        }
    }
    assert_eq!(
        merged,
        [(0, 10, 30, 30), (10, 40, 30, 0), (40, 41, 0, -1), (41, 100, -1, -1), (100, 120, 30, 10)]
    );
}

#[test]
fn everything_that_happened_is_on_the_paper() {
    let system = system(Scheme::DeferrableWithOverrun);
    let timeline = seen(&system, 30 * MS);
    let resources = ["R".to_owned()];
    let svg = schedule(&system, &timeline, &resources).svg();
    for vcpu in &system.vcpus {
        assert!(svg.contains(&format!(">{}<", vcpu.name)), "{}", vcpu.name);
    }
    for part in ["A &amp; B", ">core 3<", ">τ8<", "3 ms / 10 ms", "time, ms", "class=\"overrun\""]
    {
        assert!(svg.contains(part), "{part}");
    }
    // Eight jobs and the legend; seven tasks wait at least once.
    assert_eq!(svg.matches("class=\"completion\"").count(), 9);
    assert_eq!(svg.matches("class=\"arrival\"").count(), 9);
    assert_eq!(svg.matches("class=\"wait\"").count(), timeline.waits.len() + 1);
    assert_eq!(svg.matches("class=\"hover\"").count(), svg.matches("class=\"has ").count());
    assert!(svg.contains("<title>v2\n1 ms to "), "{svg}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn lanes_stand_below_their_vcpus() {
    let system = system(Scheme::DeferrableWithOverrun);
    let timeline = seen(&system, 30 * MS);
    let span = |name: &str, from, to| Span { name: name.into(), from, to };
    let lane = Lane {
        vcpu: 2,
        name: "tasks".into(),
        spans: vec![
            span("wide", 0, 10 * MS),
            span("narrow", 10 * MS, 10 * MS + 1),
            span("beyond", 31 * MS, 32 * MS),
        ],
        moments: vec![Moment { text: "<here>".into(), at: 2 * MS }],
    };
    let none = schedule(&system, &timeline, &[]);
    let with = Schedule { lanes: &[lane], ..none };
    let svg = with.svg();
    assert_eq!(svg.matches("class=\"span s2\"").count(), 2, "what is behind the end is not drawn");
    assert!(svg.contains(">wide<") && !svg.contains(">narrow<") && !svg.contains("beyond"));
    assert!(svg.contains("<title>narrow\n10 ms to 10 ms</title>"), "{svg}");
    assert!(svg.contains("<title>&lt;here&gt;\n2 ms</title>") && svg.contains("event, marker"));
    assert!(!none.svg().contains("event, marker"));
    let order = |svg: &str| {
        let places = [">v3<", ">tasks<", ">core 3<"].map(|text| svg.find(text).unwrap());
        places.is_sorted()
    };
    assert!(order(&svg), "{svg}");
}

#[test]
fn times_are_short() {
    assert_eq!(
        [0, 999, 1_500, 3_000_000, 1_100_000].map(short),
        ["0 ns", "999 ns", "1.5 µs", "3 ms", "1.1 ms"]
    );
}

/// Where the first such text begins or ends.
fn place_of(svg: &str, text: &str) -> f64 {
    let said = format!(">{text}<");
    let mut tags = svg.match_indices(&said).map(|(end, _)| {
        let begin = svg[..end].rfind('<').unwrap_or(0);
        &svg[begin..end]
    });
    let tag = tags.find(|tag| tag.starts_with("<text ")).unwrap();
    let x = tag.split(" x=\"").nth(1).unwrap();
    x.split('"').next().unwrap().parse().unwrap()
}

#[test]
fn long_names_do_not_run_into_budgets_or_the_plot() {
    let mut system = system(Scheme::DeferrableWithOverrun);
    system.vcpus[0].name = "realtime-controller.0".into();
    system.tasks[0].name = format!("realtime-controller/{}", "z".repeat(40));
    let timeline = seen(&system, 30 * MS);
    let schedule = Schedule { pcpus: &[5, 6, 7, 8], ..schedule(&system, &timeline, &[]) };
    let svg = schedule.svg();
    let cut = format!("realtime-controller/{}…", "z".repeat(27));
    let (plot, budget) = (schedule.left(), place_of(&svg, "3 ms / 10 ms"));
    // DejaVu Sans has 7.2 to a bold letter at this size, on average, 7 to others.
    assert!(place_of(&svg, "realtime-controller.0") + 21.0 * 7.2 < budget - 12.0 * 7.0);
    assert!(place_of(&svg, &cut) + 48.0 * 7.0 < plot && budget < plot);
    assert!(svg.contains(">core 5<") && !svg.contains(">core 0<"));
}

/// As a trace may have them that nothing of ours has written.
#[test]
fn periods_that_cannot_be_shown_are_not() {
    let mut system = system(Scheme::DeferrableWithOverrun);
    let timeline = seen(&system, 30 * MS);
    assert!(!schedule(&system, &timeline, &[]).pieces(0).is_empty());
    for period in [0, 1] {
        system.vcpus[0].server.as_mut().unwrap().period.0 = period;
        assert_eq!(schedule(&system, &timeline, &[]).pieces(0), []);
    }
}
