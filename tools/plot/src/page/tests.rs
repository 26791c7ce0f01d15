use roxmltree::Document;

use super::*;
use crate::{Axis, Series, Unit};

const HOSTILE: &str = "</pre></script><img src=x onerror=alert(1)>\u{202e}&";

fn page() -> String {
    let chart = Chart::new(HOSTILE, Axis::time(), Axis::new(HOSTILE, Unit::Seconds)).series(
        Series::line(HOSTILE, (0..500).map(|at| (f64::from(at), 1.0))),
    );
    let table = Table::new(HOSTILE, ["name", HOSTILE])
        .row([
            Cell::text(HOSTILE).section(2),
            Cell::number("1").detail(HOSTILE),
        ])
        .row([Cell::good("yes"), Cell::bad("no")]);
    let section = || Section::new(HOSTILE).text(HOSTILE).code(HOSTILE);
    Page::new(HOSTILE)
        .line(HOSTILE)
        .section(section().table(table))
        .section(section().chart(chart.clone()).chart(chart).folded())
        .section(Section::new("last"))
        .to_html()
}

/// Returns the body of a page, which is XML as well: only the `meta` elements of the head are not
/// closed.
fn body(html: &str) -> String {
    let at = html.find("<body>").expect("a body");
    html[at..].trim_end().trim_end_matches("</html>").to_owned()
}

#[test]
fn page_is_well_formed_with_hostile_text() {
    let body = body(&page());
    let document = Document::parse(&body).expect("well-formed");
    let has = |name: &str| {
        document
            .descendants()
            .any(|node| node.tag_name().name() == name)
    };
    assert!(!has("img") && !has("script"));
    assert!(has("table") && has("svg") && has("details"));
}

#[test]
fn page_does_not_use_the_network() {
    let html = page().replace("http://www.w3.org/2000/svg", "");
    for text in ["http", "src=\"", "@import", "url("] {
        assert!(!html.contains(text), "{text}");
    }
}

#[test]
fn links_are_to_existing_sections() {
    let body = body(&page());
    let document = Document::parse(&body).expect("well-formed");
    let ids: Vec<_> = document
        .descendants()
        .filter_map(|node| node.attribute("id"))
        .collect();
    assert_eq!(ids, ["s1", "s2", "s3"]);
    let links: Vec<_> = document
        .descendants()
        .filter_map(|node| node.attribute("href"))
        .collect();
    assert_eq!(links, ["#s1", "#s2", "#s3", "#s2"]);
}

#[test]
fn results_are_shown_without_colour() {
    let html = page();
    assert!(html.contains("✓ yes") && html.contains("✗ no"));
}

#[test]
fn stylesheet_of_charts_is_included_once() {
    assert_eq!(page().matches(".courser-plot .bg{").count(), 1);
}

#[test]
fn long_tables_of_values_are_thinned_with_a_note() {
    assert!(page().contains("200 of at most 500 values of each series"));
}

#[test]
fn links_are_only_to_plain_file_names() {
    let page = |name: &str| {
        let table = Table::new("", ["a"]).row([Cell::text("x").file(name)]);
        Page::new("")
            .section(Section::new("").table(table))
            .to_html()
    };
    assert!(page("bulk-1.html").contains("<a href=\"bulk-1.html\">"));
    for name in [
        "",
        "javascript:alert(1)",
        "../x",
        "//host",
        "a b",
        "\"onclick=",
    ] {
        assert!(!page(name).contains("<a "), "{name}");
    }
}
