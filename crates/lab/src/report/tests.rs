use super::*;
use crate::dataset::{Dataset, Unit};
use crate::observe::Distribution;
use crate::results::{Check, Goal};
use roxmltree::{Document, Node, ParsingOptions};

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
    let values = latencies.iter().map(|(ticks, count)| (f64::from(ticks), count));
    let data = Dataset::of("latencies", "", values)
        .column("latency", Unit::Nanoseconds, |row| row.0)
        .name("activations", |row| row.1)
        .done();
    let plot = Plot::histogram(&data, "latency_ns", "activations");
    report.section("Latency", figure(&plot.draw(), "caption"));
    let mut table = Table::new("Percentiles", ["", "p50"]);
    table.row(["dispatch".to_owned(), "9 µs".to_owned()]);
    report.table(&table);
    (report, outcome)
}

/// The page as XML, which lets no tag be left open and no text be left unescaped. HTML
/// wants `meta` without its end, XML with it.
fn as_xml(page: &str) -> String {
    let mut parts = page.split("<meta ");
    let head = parts.next().unwrap_or_default().to_owned();
    parts.fold(head, |xml, part| format!("{xml}<meta {}", part.replacen('>', "/>", 1)))
}

fn parse(xml: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(xml, options).unwrap_or_else(|error| panic!("{error}\n{xml}"))
}

/// Every element `name`, of that class if one is given.
fn elements<'a>(
    page: &'a Document,
    name: &'static str,
    class: &'static str,
) -> impl Iterator<Item = Node<'a, 'a>> {
    let is_of = |node: &Node, class| {
        node.attribute("class").is_some_and(|classes| classes.split(' ').any(|one| one == class))
    };
    page.descendants()
        .filter(move |node| node.tag_name().name() == name)
        .filter(move |node| class.is_empty() || is_of(node, class))
}

fn texts(page: &Document, name: &'static str, class: &'static str) -> Vec<String> {
    let text = |node: Node| {
        node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect()
    };
    elements(page, name, class).map(text).collect()
}

#[test]
fn the_page_is_well_formed_and_stands_alone() {
    let (report, outcome) = sample_report();
    let text = report.render(&outcome);
    parse(&as_xml(&text));
    for outside in ["href=", "src=", "url(", "@import", "http:", "https:"] {
        assert!(!text.contains(outside), "{outside}");
    }
}

#[test]
fn plots_stand_on_the_page() {
    let (report, outcome) = sample_report();
    let xml = as_xml(&report.render(&outcome));
    let page = parse(&xml);
    assert_eq!(elements(&page, "svg", "").count(), 1);
    assert_eq!(elements(&page, "path", "series").count(), 1);
}

#[test]
fn checks_show_whether_they_hold_and_text_is_escaped() {
    let (report, outcome) = sample_report();
    let xml = as_xml(&report.render(&outcome));
    let page = parse(&xml);
    assert_eq!(texts(&page, "td", "good"), ["holds"]);
    assert_eq!(texts(&page, "td", "bad"), ["FAILS"]);
    assert_eq!(texts(&page, "p", "verdict"), ["✗ 1 of 2 checks do not hold"]);
    assert_eq!(texts(&page, "h1", ""), ["Demo & more"]);
    assert!(texts(&page, "th", "").contains(&"hackbench runs <fast>".to_owned()));
    assert!(texts(&page, "pre", "")[0].contains("a <b> & c"));
}
