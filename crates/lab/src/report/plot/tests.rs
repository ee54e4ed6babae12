use super::*;
use crate::report::file;

fn curves() -> Dataset {
    let rows = [("DSwO", 5, 100.0), ("DSwO", 10, 50.0), ("PSwO", 5, f64::NAN), ("PSwO", 10, 0.0)];
    Dataset::of("schedulable", "", rows)
        .name("scheme", |row| row.0)
        .column("period", Unit::None, |row| row.1 as u64)
        .head("vCPU period (ms)")
        .column("schedulable", Unit::Percent, |row| row.2)
        .done()
}

#[test]
fn a_line_leaves_out_what_is_missing_and_its_text_says_every_value() {
    let plot = Plot::lines(&curves(), "period", "schedulable_percent").by("scheme").up_to(100.0);
    let drawn = plot.rule("half", 50.0).draw().into_string();
    assert_eq!(drawn.matches("curve\" d=").count(), 2);
    assert!(drawn.contains("vCPU period (ms) 10\nDSwO 50.0 %\nPSwO 0.0 %"), "{drawn}");
    assert!(drawn.contains("vCPU period (ms) 5\nDSwO 100.0 %<"), "{drawn}");
    assert!(!drawn.contains("NaN"));
    // The rule stands where the curve has 50 %.
    let half = (44.0 + 288.0) / 2.0;
    assert!(drawn.contains(&format!("y1=\"{half:.1}\" y2=\"{half:.1}\"")), "{drawn}");
    assert!(drawn.contains(&format!(" {half:.1}\"")), "{drawn}");
}

#[test]
fn curves_stand_where_their_numbers_are() {
    let rows = [("a", 0.0, 50.0), ("a", 1.0, 100.0), ("a", 4.0, 0.0), ("b", 2.0, f64::NAN)];
    let data = Dataset::of("x", "", rows)
        .name("what", |row| row.0)
        .column("time", Unit::Seconds, |row| row.1)
        .column("speed", Unit::None, |row| row.2)
        .done();
    let drawn = Plot::curves(&data, "time_s", "speed").by("what").draw().into_string();
    // From 62 to 834: at 0, a quarter, and the end of the range; from 288 up to 44.
    assert!(drawn.contains("d=\"M62.0 166.0L255.0 44.0L834.0 288.0\""), "{drawn}");
    assert!(!drawn.contains("NaN"));
}

#[test]
fn an_interval_is_drawn_where_there_is_one() {
    let rows = [(1_u64, 50.0, Some((25.0, 75.0))), (2, 60.0, None)];
    let data = Dataset::of("x", "", rows)
        .column("at", Unit::None, |row| row.0)
        .column("time", Unit::Milliseconds, |row| row.1)
        .column("low", Unit::Milliseconds, |row| row.2.map(|(low, _)| low))
        .column("high", Unit::Milliseconds, |row| row.2.map(|(_, high)| high))
        .done();
    let plot = Plot::lines(&data, "at", "time_ms").up_to(100.0);
    let drawn = plot.clone().interval("low_ms", "high_ms").draw().into_string();
    // From 288 up to 44: a quarter and three of them.
    assert_eq!(drawn.matches("y1=\"227.0\" y2=\"105.0\"").count(), 1, "{drawn}");
    assert_eq!(plot.draw().into_string().matches("y1=\"227.0\" y2=\"105.0\"").count(), 0);
}

#[test]
fn long_names_take_more_rows_of_the_legend() {
    let rows = (0..12_u32).map(|n| (format!("a-policy-with-a-long-name-{n}"), n));
    let data = Dataset::of("x", "", rows)
        .name("policy", |row| row.0.as_str().to_owned())
        .name("at", |_| "1")
        .column("time", Unit::Milliseconds, |row| row.1)
        .done();
    let plot = Plot::dots(&data, "at", "time_ms").by("policy");
    let series = series::of(&plot);
    assert_eq!(plot.legend(&series).rows(), 6);
    assert_eq!(series.iter().map(|one| &one.color[..]).filter(|color| *color == "s3").count(), 2);
}

#[test]
fn every_dot_is_drawn_and_each_group_has_its_mean() {
    let rows = [("a", "one", 1.0), ("a", "one", 3.0), ("a", "two", 4.0), ("b", "two", 9.0)];
    let data = Dataset::of("x", "", rows)
        .name("mode", |row| row.0)
        .name("cores", |row| row.1)
        .column("time", Unit::Milliseconds, |row| row.2)
        .done();
    let drawn = Plot::dots(&data, "cores", "time_ms").by("mode").draw().into_string();
    assert_eq!(drawn.matches("<circle").count(), 4);
    assert!(drawn.contains("a: mean 2.00 ms\n1.00 ms, 3.00 ms"), "{drawn}");
}

#[test]
fn a_bar_is_as_long_as_its_value_and_tells_when_it_is_over() {
    let rows = [("half", Some(50.0), 100.0), ("over", Some(100.0), 75.0), ("none", None, 10.0)];
    let data = Dataset::of("x", "", rows)
        .name("event", |row| row.0)
        .column("median", Unit::Instructions, |row| row.1)
        .column("goal", Unit::Instructions, |row| row.2)
        .done();
    let plot = Plot::bars(&data, "event", "median_instructions").goal("goal_instructions");
    let drawn = plot.draw().into_string();
    let whole = RIGHT - 190.0 - (20.0 + 4.0 * 6.8);
    for width in [whole / 2.0, whole, 0.0] {
        assert!(drawn.contains(&format!("width=\"{width:.1}\"")), "{width}: {drawn}");
    }
    assert_eq!(drawn.matches("class=\"over\"").count(), 2, "what is missing meets no goal");
    assert!(drawn.contains("over: 100 of at most 75"), "{drawn}");
}

#[test]
fn areas_stand_upon_each_other() {
    let rows =
        [(0.0, 1.0, "a", 0.5), (0.0, 1.0, "b", 0.25), (1.0, 2.0, "a", 0.0), (1.0, 2.0, "b", 1.0)];
    let data = Dataset::of("x", "", rows)
        .column("begin", Unit::Seconds, |row| row.0)
        .column("end", Unit::Seconds, |row| row.1)
        .name("vcpu", |row| row.2)
        .column("share", Unit::Share, |row| row.3)
        .done();
    let plot = Plot::areas(&data, "begin_s", "end_s", "share").by("vcpu");
    let drawn = plot.draw().into_string();
    // 0.75 of the height from 160 up to 44 is 73: the upper edge of b on top of a.
    assert!(drawn.contains("M62.0 73.0H448.0L448.0 44.0H834.0"), "{drawn}");
    assert!(drawn.contains("0.0 s to 1.0 s\na: 50.0 %\nb: 25.0 %"), "{drawn}");
}

#[test]
fn a_histogram_draws_extremes_too_and_nothing_is_said_to_be_nothing() {
    let of = |rows: &[(&'static str, f64, u64)]| {
        let data = Dataset::of("x", "", rows.to_vec())
            .name("what", |row| row.0)
            .column("latency", Unit::Nanoseconds, |row| row.1)
            .column("activations", Unit::None, |row| row.2)
            .done();
        Plot::histogram(&data, "latency_ns", "activations").by("what")
    };
    let plot = of(&[("x", 0.0, 3), ("x", 600.0, 99), ("y", 4_294_967_295.0, 1)]);
    let drawn = plot.draw().into_string();
    assert_eq!(drawn.matches("<path class=\"series").count(), 2);
    assert!(drawn.contains("x p50: 600 ns") && drawn.contains("y max: 4.29 s"), "{drawn}");
    assert!(!drawn.contains("NaN") && file(&plot.draw()).unwrap().contains("xmlns"));
    assert!(of(&[]).draw().into_string().contains("Nothing was measured"));
    assert_eq!(file(&of(&[]).draw()), None);
}
