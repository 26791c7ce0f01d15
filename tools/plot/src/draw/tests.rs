use roxmltree::{Document, Node};

use crate::{Axis, Chart, Colour, Marker, Marks, Reference, Series, Unit};

const HOSTILE: &str = "</title><script>alert('x')</script>&\"\u{0}\u{202e}\n]]>";

fn chart() -> Chart {
    Chart::new("Window", Axis::time(), Axis::new("bytes", Unit::Bytes))
}

/// Parses an image. Panics if it is not well-formed XML.
fn parsed(svg: &str) -> Document<'_> {
    Document::parse(svg).expect("well-formed")
}

fn all<'a, 'input>(document: &'a Document<'input>, name: &'a str) -> Vec<Node<'a, 'input>> {
    let has_name = |node: &Node| node.tag_name().name() == name;
    document.descendants().filter(has_name).collect()
}

/// Returns the last path with a class: symbols of the legend come before the data.
fn path<'a>(document: &'a Document<'_>, class: &str) -> Option<&'a str> {
    let mut paths = all(document, "path").into_iter();
    let found = paths.rfind(|path| path.attribute("class") == Some(class));
    found.and_then(|path| path.attribute("d"))
}

fn noise(count: u32) -> impl Iterator<Item = (f64, f64)> {
    let mut state = 3_u32;
    (0..count).map(move |index| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (f64::from(index) / 1000.0, f64::from(state >> 12))
    })
}

/// Returns a chart with every kind of series, events and levels.
fn every_kind(points: u32, name: &str) -> Chart {
    let band = noise(points).map(|(x, y)| (x, y, y * 1.5));
    let chart = chart()
        .subtitle(name)
        .series(Series::line(name, noise(points)))
        .series(Series::step(name, noise(points)))
        .series(Series::area(name, noise(points)))
        .series(Series::band(name, band))
        .series(Series::stacked(name, noise(points)))
        .series(Series::stacked(name, noise(points)))
        .series(Series::dots(name, noise(points)))
        .series(Series::markers(name, Marker::Cross, noise(points)))
        .marks(Marks::ticks(name, noise(points).map(|point| point.0)))
        .marks(Marks::lines(
            name,
            noise(points).map(|point| (point.0, name)),
        ))
        .reference(Reference::new(name, 1e6));
    Chart {
        title: name.to_owned(),
        ..chart
    }
}

#[test]
fn image_is_well_formed_with_hostile_names() {
    let svg = every_kind(50, HOSTILE).to_svg();
    let document = parsed(&svg);
    assert!(all(&document, "script").is_empty());
    let titles = all(&document, "title");
    assert!(
        titles
            .iter()
            .any(|title| title.text().is_some_and(|text| text.contains("<script>")))
    );
}

#[test]
fn no_element_has_an_id() {
    let svg = every_kind(50, "x").to_svg();
    let document = parsed(&svg);
    assert!(
        document
            .descendants()
            .all(|node| node.attribute("id").is_none())
    );
}

#[test]
fn image_has_a_role_and_a_description() {
    let svg = every_kind(50, "window").to_svg();
    let document = parsed(&svg);
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    let label = root.attribute("aria-label").expect("a label");
    assert!(label.contains("window: 50 values, lowest"), "{label}");
}

#[test]
fn fragment_is_the_image_without_a_stylesheet() {
    let fragment = every_kind(50, "x").to_fragment();
    assert!(all(&parsed(&fragment), "style").is_empty());
    assert_eq!(
        all(&parsed(&every_kind(50, "x").to_svg()), "style").len(),
        1
    );
}

#[test]
fn image_of_a_million_points_is_small() {
    let svg = every_kind(100_000, "flow").to_svg();
    parsed(&svg);
    assert!(svg.len() < 150_000, "{} bytes", svg.len());
    let lines = (0..24).fold(chart(), |chart, line| {
        chart.series(Series::step(format!("{line}"), noise(50_000)))
    });
    let svg = lines.to_svg();
    assert!(svg.len() < 150_000, "{} bytes", svg.len());
}

#[test]
fn series_beyond_the_limit_are_only_in_the_table() {
    let many = (0..100).fold(chart(), |chart, line| {
        chart.series(Series::line(format!("flow {line}"), noise(10)))
    });
    let svg = many.to_svg();
    let document = parsed(&svg);
    let lines = all(&document, "path");
    let is_series = |node: &&Node| {
        node.attribute("class") == Some("line")
            && node.attribute("d").is_some_and(|d| d.contains('l'))
    };
    assert_eq!(
        lines.iter().filter(is_series).count(),
        super::shown::MAX_SERIES
    );
    assert!(many.to_csv().contains("flow 99"));
}

#[test]
fn longest_spike_is_drawn_at_full_height() {
    let points = (0..100_000).map(|x| (f64::from(x), if x == 54_321 { 1e6 } else { 1.0 }));
    let axis = Axis::new("", Unit::Plain).to(1e6);
    let spike = Chart::new("Spike", Axis::time(), axis).series(Series::line("a", points));
    let svg = spike.to_svg();
    let document = parsed(&svg);
    let line = path(&document, "line").expect("a line");
    let layout = super::Layout::new(&spike);
    // The line moves from the bottom to the top by the height of the plot.
    let height = crate::path::pixels(layout.plot.height);
    assert!(line.contains(&format!("-{height}")), "{height} {line}");
}

#[test]
fn gap_breaks_the_line() {
    let points = [
        (0.0, 1.0),
        (1.0, 2.0),
        (2.0, f64::NAN),
        (3.0, 2.0),
        (4.0, 1.0),
    ];
    let svg = chart().series(Series::line("a", points)).to_svg();
    let line = path(&parsed(&svg), "line").expect("a line").to_owned();
    assert_eq!(line.matches('M').count(), 2, "{line}");
}

#[test]
fn extreme_numbers_result_in_an_image() {
    let values = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        -0.0,
        5e-324,
    ];
    for first in values {
        for second in values {
            let points = [(first, second), (second, first), (1.0, second)];
            for axis in [
                Axis::time(),
                Axis::time().logarithmic(),
                Axis::time().from(first).to(second),
            ] {
                let chart = Chart::new("Odd", axis.clone(), axis)
                    .series(Series::line("a", points))
                    .series(Series::area("b", points))
                    .series(Series::stacked("c", points))
                    .series(Series::dots("d", points))
                    .series(Series::markers("e", Marker::Circle, points))
                    .marks(Marks::ticks("f", [first, second]))
                    .reference(Reference::new("g", second));
                let svg = chart.to_svg();
                parsed(&svg);
                assert!(
                    !svg.contains("NaN\"") && !svg.contains("inf\""),
                    "{first} {second}"
                );
            }
        }
    }
}

#[test]
fn empty_chart_shows_no_data() {
    let svg = chart().to_svg();
    let document = parsed(&svg);
    let texts = all(&document, "text");
    assert!(texts.iter().any(|text| text.text() == Some("no data")));
}

#[test]
fn stacked_series_are_added() {
    let first = Series::stacked("a", [(0.0, 1.0), (1.0, 1.0)]);
    let second = Series::stacked("b", [(0.0, 2.0), (0.5, 2.0), (1.0, 2.0)]);
    let edges = super::stack::edges(&[&first, &second]);
    assert_eq!(edges[0], [(0.0, 1.0), (0.5, 1.0), (1.0, 1.0)]);
    assert_eq!(edges[1], [(0.0, 3.0), (0.5, 3.0), (1.0, 3.0)]);
}

#[test]
fn merged_events_are_counted_in_the_tooltip() {
    let losses = Marks::ticks("losses", [1.0, 1.0001, 1.0002, 5.0]);
    let svg = chart()
        .series(Series::line("a", [(0.0, 1.0), (10.0, 2.0)]))
        .marks(losses)
        .to_svg();
    let document = parsed(&svg);
    let titles = all(&document, "title");
    let has = |expected: &str| titles.iter().any(|title| title.text() == Some(expected));
    assert!(
        has("losses at 1 s (3 events)") && has("losses at 5 s"),
        "{svg}"
    );
}

#[test]
fn tooltip_of_a_column_shows_every_value() {
    let svg = chart()
        .series(Series::line("a", [(0.0, 0.0), (60.0, 60_000.0)]))
        .series(Series::step("b", [(0.0, 5000.0), (60.0, 7000.0)]))
        .to_svg();
    let document = parsed(&svg);
    let titles = all(&document, "title");
    let expected = "30.5 s\na: 30.5 kB\nb: 5 kB";
    assert!(
        titles.iter().any(|title| title.text() == Some(expected)),
        "{svg}"
    );
}

#[test]
fn labels_stay_inside_the_image() {
    let long = "a very long name of something in an untrusted trace ".repeat(9);
    let svg = every_kind(30, &long).size(400.0, 300.0).to_svg();
    let document = parsed(&svg);
    for text in all(&document, "text") {
        let Some(([left, right, ..], words)) = text_box(&text) else {
            continue;
        };
        assert!(left >= -0.5 && right <= 400.5, "{left} {right} {words}");
    }
}

#[test]
fn labels_do_not_overlap() {
    let states = [
        "Startup",
        "Drain",
        "ProbeBW_DOWN",
        "ProbeBW_CRUISE",
        "ProbeBW_REFILL",
    ];
    let states = states.into_iter().cycle().take(40).enumerate();
    let states = states.map(|(index, name)| (0.001 * index as f64 * index as f64, name));
    let busy = every_kind(2000, "flow").marks(Marks::lines("states", states));
    for (width, height) in [
        (240.0, 160.0),
        (400.0, 300.0),
        (720.0, 320.0),
        (1600.0, 900.0),
    ] {
        let svg = busy.clone().size(width, height).to_svg();
        let document = parsed(&svg);
        let boxes: Vec<_> = all(&document, "text").iter().filter_map(text_box).collect();
        assert!(boxes.len() > 7, "{}", boxes.len());
        let is_inside = |at: &[f64; 4]| {
            at[2] >= 0.0 && at[3] <= height && at[0] >= -0.5 && at[1] <= width + 0.5
        };
        assert!(
            boxes.iter().all(|(at, _)| is_inside(at)),
            "{boxes:?} at {width}x{height}"
        );
        for (index, (a, a_words)) in boxes.iter().enumerate() {
            for (b, b_words) in &boxes[index + 1..] {
                let is_apart = a[1] <= b[0] || b[1] <= a[0] || a[3] <= b[2] || b[3] <= a[2];
                assert!(
                    is_apart,
                    "{a_words} {a:?} and {b_words} {b:?} at {width}x{height}"
                );
            }
        }
    }
}

/// Returns the left, right, top and bottom of a label, and its text. Names inside areas are left
/// out, because they may lie on lines.
fn text_box(text: &Node<'_, '_>) -> Option<([f64; 4], String)> {
    let words = text.text().unwrap_or_default();
    let class = text.attribute("class").unwrap_or_default();
    let number = |name| {
        text.attribute(name)
            .expect("a place")
            .parse::<f64>()
            .expect("a number")
    };
    let (x, y) = (number("x"), number("y"));
    let size = match class {
        class if class.contains("title") => 15.0,
        class if class.contains("sub") => 12.0,
        class if class.contains("mark") => 10.0,
        _ => 11.0,
    };
    let width = crate::escape::text_width(words, size);
    let left = match class {
        class if class.contains("mid") => x - width / 2.0,
        class if class.contains("end") => x - width,
        _ => x,
    };
    let is_counted = !class.contains("inside");
    is_counted.then(|| ([left, left + width, y - size * 0.75, y], words.to_owned()))
}

#[test]
fn many_long_names_result_in_a_small_image() {
    let long = "x".repeat(200_000);
    let many = (0..200).fold(
        Chart::new(&long, Axis::time(), Axis::new(&long, Unit::Bytes)),
        |chart, _| chart.series(Series::stacked(&long, [(0.0, 1.0), (1.0, 2.0)])),
    );
    assert!(many.to_svg().len() < 150_000);
    assert!(
        many.to_csv_thinned(100).len() < 250_000,
        "{}",
        many.to_csv_thinned(100).len()
    );
}

#[test]
fn small_chart_is_unchanged() {
    let svg = Chart::new("Small", Axis::time(), Axis::new("queue", Unit::Bytes))
        .size(240.0, 160.0)
        .series(Series::step(
            "queue",
            [(0.0, 0.0), (1.0, 3000.0), (2.0, 1500.0)],
        ))
        .marks(Marks::ticks("drops", [1.0]).colour(Colour::Bad))
        .to_fragment();
    let expected = include_str!("small.svg");
    assert_eq!(
        svg.trim(),
        expected.trim(),
        "if the change is intended, write it to src/draw/small.svg"
    );
}
