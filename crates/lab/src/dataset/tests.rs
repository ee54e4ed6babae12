use super::*;
use serde_json::json;

/// Two policies, one of which lacks its time.
fn runs() -> Dataset {
    Dataset::of("runs", "Runs", [("a, b", Some(0.0925), 12_345_u64), ("c", None, 7)])
        .name("policy", |row| row.0)
        .head("")
        .column("mean", Unit::Seconds, |row| row.1)
        .digits(4)
        .column("all_runs", Unit::Seconds, |row| row.1.map(|s| vec![s, 2.0 * s]))
        .for_programs()
        .column("above", Unit::Change, |row| row.1.map(|s| 100.0 * s))
        .column("switches", Unit::None, |row| row.2)
        .column("goal", Unit::None, |_| "<= 3")
        .for_people()
        .done()
}

#[test]
fn people_read_heads_units_and_a_dash_for_what_is_missing() {
    let expected = "Runs\n            mean   above  switches  goal\n  \
                    a, b  0.0925 s  +9.2 %    12,345  <= 3\n  \
                    c            -       -         7  <= 3\n";
    assert_eq!(runs().table().to_string(), expected);
}

#[test]
fn a_comma_in_a_name_makes_no_column() {
    let csv = String::from_utf8(runs().csv().unwrap()).unwrap();
    let expected = "policy,mean_s,all_runs_s,above_percent,switches\n\
                    \"a, b\",0.0925,0.0925 0.185,9.25,12345\nc,,,,7\n";
    assert_eq!(csv, expected);
}

#[test]
fn programs_get_numbers_under_names_that_end_in_their_unit() {
    let first = json!({
        "policy": "a, b", "mean_s": 0.0925, "all_runs_s": [0.0925, 0.185],
        "above_percent": 9.25, "switches": 12_345,
    });
    assert_eq!(runs().json()[0], first);
    assert_eq!(runs().json()[1]["mean_s"], json!(null));
}

#[test]
fn a_distribution_is_summed_up_in_its_unit() {
    let mut ticks = Distribution::default();
    ticks.record_many(500, 96);
    ticks.record_many(4_000, 4);
    let nothing = Distribution::default();
    let data = Dataset::of("latency", "Latencies", [("x", &ticks), ("y", &nothing)])
        .name("what", |row| row.0)
        .summary(Unit::Microseconds, |_| 1e-3, |row| Some(row.1))
        .done();
    let expected = json!({
        "what": "x", "samples": 100, "min_us": 0.5, "mean_us": 0.64, "p50_us": 0.5,
        "p99_us": 4.0, "p99.9_us": null, "max_us": 4.0,
    });
    assert_eq!(data.json()[0], expected);
    let cells = ["100", "500 ns", "640 ns", "500 ns", "4.00 µs", "-", "4.00 µs"];
    assert_eq!(data.table().rows[0][1..], cells, "100 values do not tell a thousandth");
    assert_eq!(data.table().rows[1][1..4], ["0", "-", "-"]);
}

#[test]
fn rows_are_chosen_by_a_cell() {
    let some = runs().only("policy", &["c"]);
    assert_eq!((some.rows, some.table().rows.len()), (1, 1));
    assert_eq!(some.column("switches").0, [Cell::Count(7)]);
    assert!(some.only("policy", &[]).is_empty() && some.known("mean_s").is_empty());
}

#[test]
fn each_unit_reads_as_people_write_it() {
    let text = |unit: Unit, value: f64| unit.text(&Cell::Real(value), None);
    assert_eq!(text(Unit::Microseconds, 9.2126), "9.21 µs");
    assert_eq!(text(Unit::Nanoseconds, 769.4), "769 ns");
    assert_eq!(text(Unit::Share, 0.375), "37.5 %");
    assert_eq!(text(Unit::Change, -1.54), "-1.5 %");
    assert_eq!(text(Unit::Instructions, 196.0), "196");
    assert_eq!(text(Unit::None, f64::NAN), "-");
    let data = Dataset::of("x", "", [0.10024_f64]).column("mean", Unit::Seconds, |s| *s);
    let data = data.shown_in(Unit::Milliseconds, 1).done();
    assert_eq!(
        (data.table().rows[0][0].as_str(), &data.json()[0]["mean_s"]),
        ("100.2 ms", &json!(0.10024))
    );
    assert_eq!(Unit::Milliseconds.text(&Cell::Real(99.28), Some(1)), "99.3 ms");
}
