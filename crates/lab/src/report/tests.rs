use super::*;
use crate::observe::{Distribution, Layout, Span, VcpuName, VmLayout};
use crate::results::Goal;
use scraper::{Html, Selector};

fn sample_report() -> (Report, Outcome) {
    let mut outcome = Outcome::new("demo");
    outcome.parameter("system", "[board]\nkind = \"a <b> & c\"\n");
    outcome.parameter("qemu", "10.0.2");
    outcome.check(Check::new("missed activations", 0.0, "", Goal::Exactly(0.0)));
    outcome.check(Check::new("hackbench runs <fast>", 1.0, "runs", Goal::AtLeast(3.0)));
    let mut report = Report::new("Demo & more", "Two systems <share> cores.");
    report.tile("12,000", "activations");
    let mut latencies = Distribution::default();
    latencies.extend((0..4_000_u32).map(|n| 300 + n * n % 977));
    let series = [
        Series { name: "response", values: &latencies },
        Series { name: "dispatch", values: &latencies },
    ];
    report.section("Latency", figure(&histogram(&series, 62_500_000), "caption"));
    let (spans, layout) = run();
    for pcpu in 0..2 {
        report.section("Shares", figure(&shares(&spans, &layout, pcpu), "caption"));
    }
    let mut table = Table::new("Percentiles", ["", "p50"]);
    table.row(["dispatch".to_owned(), "9 µs".to_owned()]);
    report.table(&table);
    (report, outcome)
}

fn run() -> (Vec<Span>, Layout) {
    let vm =
        |name: &str, vcpus| VmLayout { name: name.into(), realtime: false, vcpus, report: None };
    let layout = Layout {
        status_pa: 0,
        pcpus: 2,
        vms: vec![vm("linux", 0..1), vm("rtos", 1..2)],
        vcpus: vec![VcpuName { vm: 0, index: 0 }, VcpuName { vm: 1, index: 0 }],
    };
    let span = |n: u32| Span {
        begin_s: f64::from(n),
        end_s: f64::from(n + 1),
        shares: vec![(1, 0.5), (1, 0.25 + 0.01 * f64::from(n % 20))],
    };
    ((0..60).map(span).collect(), layout)
}

fn texts(page: &Html, selector: &str) -> Vec<String> {
    let selector = Selector::parse(selector).unwrap();
    page.select(&selector).map(|element| element.text().collect()).collect()
}

#[test]
fn the_page_is_well_formed_and_stands_alone() {
    let (report, outcome) = sample_report();
    let text = report.render(&outcome);
    let page = Html::parse_document(&text);
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    for outside in ["href=", "src=", "url(", "@import", "http:", "https:"] {
        assert!(!text.contains(outside), "{outside}");
    }
}

#[test]
fn figures_are_drawn() {
    let (report, outcome) = sample_report();
    let page = Html::parse_document(&report.render(&outcome));
    assert_eq!(texts(&page, "svg").len(), 3);
    assert_eq!(texts(&page, "svg path.series").len(), 2);
    assert_eq!(texts(&page, "svg path.area").len(), 2, "both vCPUs on pCPU 1, none on pCPU 0");
    let path = Selector::parse("svg path").unwrap();
    for path in page.select(&path) {
        let data = path.value().attr("d").unwrap();
        assert!(data.starts_with('M') && data.ends_with('Z') && !data.contains("NaN"), "{data}");
    }
}

#[test]
fn checks_show_whether_they_hold_and_text_is_escaped() {
    let (report, outcome) = sample_report();
    let page = Html::parse_document(&report.render(&outcome));
    assert_eq!(texts(&page, "td.good"), ["✓"]);
    assert_eq!(texts(&page, "td.bad"), ["✗"]);
    assert_eq!(texts(&page, ".verdict"), ["✗ 1 of 2 checks do not hold"]);
    assert_eq!(texts(&page, "h1"), ["Demo & more"]);
    assert!(texts(&page, "th").contains(&"hackbench runs <fast>".to_owned()));
    assert!(texts(&page, "pre")[0].contains("a <b> & c"));
}

#[test]
fn nothing_measured_is_said_and_not_drawn() {
    let empty = Distribution::default();
    let drawing = histogram(&[Series { name: "x", values: &empty }], 1).into_string();
    assert!(drawing.contains("Nothing was measured"));
    let (_, layout) = run();
    assert!(shares(&[], &layout, 0).into_string().contains("too short"));
}
