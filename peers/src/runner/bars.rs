//! The figures of a run as bars with whiskers, in one SVG image.
//!
//! courser's charts have two axes of numbers; bars have names on one of theirs. What is shared is the
//! stylesheet, so that bars follow the reader's light or dark setting and have the same colours.

use std::fmt::Write;

use courser_measure::Estimate;
use courser_plot::{escape, stylesheet};

use super::plan::Plan;
use super::report::{Intervals, Row, Summary};
use super::workload::Workload;

/// Draws a row of panels for each workload: its first figure, and the CPU time of each end.
pub(crate) fn draw(plan: &Plan, summary: &Summary) -> String {
    let groups = groups(plan, summary);
    let height = groups.iter().fold(HEAD, |sum, group| sum + height(group));
    let width = LABELS + PANELS * PANEL;
    let (title, machine) = (escape(TITLE), escape(&summary.machine));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"courser-plot\" role=\"img\" \
         viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         aria-label=\"{title}\"><style>{style}</style>\
         <rect class=\"bg\" width=\"{width}\" height=\"{height}\"/>\
         <text class=\"title\" x=\"{EDGE}\" y=\"22\">{title}</text>\
         <text class=\"sub dim\" x=\"{EDGE}\" y=\"40\">{machine}</text>",
        style = stylesheet(),
    );
    let mut top = HEAD;
    for group in &groups {
        draw_group(&mut out, group, top);
        top += self::height(group);
    }
    out.push_str("</svg>\n");
    out
}

/// Takes the figure of a panel.
type Choice = fn(&Intervals) -> Estimate;

/// The rows of a workload.
struct Group<'a> {
    workload: Workload,
    rows: Vec<&'a Row>,
}

fn groups<'a>(plan: &Plan, summary: &'a Summary) -> Vec<Group<'a>> {
    let of = |workload: Workload| Group {
        workload,
        rows: summary
            .rows
            .iter()
            .filter(|row| row.workload == workload)
            .collect(),
    };
    let mut groups: Vec<Group<'a>> = plan.workloads.iter().copied().map(of).collect();
    groups.retain(|group| !group.rows.is_empty());
    groups
}

fn height(group: &Group<'_>) -> usize {
    GROUP_HEAD + group.rows.len() * BAR
}

fn draw_group(out: &mut String, group: &Group<'_>, top: usize) {
    let name = escape(&group.workload.to_string());
    // Writing to a `String` cannot fail, here and below.
    let _ = write!(
        out,
        "<text class=\"title\" x=\"{EDGE}\" y=\"{}\">{name}</text>",
        top + HEADING
    );
    for (at, row) in group.rows.iter().enumerate() {
        let _ = write!(
            out,
            "<text class=\"end\" x=\"{}\" y=\"{}\">{}</text>",
            LABELS - EDGE,
            top + GROUP_HEAD + at * BAR + BASELINE,
            escape(&row.stack)
        );
    }
    let figure = group.workload.figure();
    let (client, server) = if figure.is_of_bytes() {
        ("client CPU s/GB", "server CPU s/GB")
    } else {
        ("client CPU us each", "server CPU us each")
    };
    let panels: [(&str, Choice); PANELS] = [
        (figure.unit(), |all| all.speed),
        (client, |all| all.client_cost),
        (server, |all| all.server_cost),
    ];
    for (column, (unit, of)) in panels.into_iter().enumerate() {
        let estimates: Vec<Estimate> = group.rows.iter().map(|row| of(&row.intervals)).collect();
        draw_panel(out, unit, &estimates, LABELS + column * PANEL, top);
    }
}

fn draw_panel(out: &mut String, unit: &str, estimates: &[Estimate], left: usize, top: usize) {
    let _ = write!(
        out,
        "<text class=\"dim\" x=\"{left}\" y=\"{}\">{}</text>",
        top + HEADING,
        escape(unit)
    );
    let ends = estimates.iter().map(|one| one.high);
    let most = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
    for (at, estimate) in estimates.iter().enumerate() {
        // Without a value there is no bar.
        if most > 0.0 && estimate.median.is_finite() {
            let colour = at % COLOURS + 1;
            let top = top + GROUP_HEAD + at * BAR;
            let _ = write!(out, "<g class=\"c{colour}\">");
            draw_bar(out, *estimate, most, left, top);
            out.push_str("</g>");
        }
    }
    let (top, bottom) = (top + GROUP_HEAD, top + GROUP_HEAD + estimates.len() * BAR);
    let _ = write!(out, "<path class=\"axis\" d=\"M{left} {top}V{bottom}\"/>");
}

/// Draws a bar to the median, a whisker over the interval, and the value behind both.
fn draw_bar(out: &mut String, estimate: Estimate, most: f64, left: usize, top: usize) {
    let scale = |value: f64| value.max(0.0) / most * SPAN;
    let left = left as f64;
    let (low, high) = (left + scale(estimate.low), left + scale(estimate.high));
    let middle = top + BAR / 2;
    let _ = write!(
        out,
        "<rect class=\"stack\" x=\"{left}\" y=\"{}\" width=\"{:.1}\" height=\"{}\"/>",
        top + GAP,
        scale(estimate.median),
        BAR - 2 * GAP
    );
    let _ = write!(
        out,
        "<path class=\"axis\" d=\"M{low:.1} {}v{CAP}M{high:.1} {}v{CAP}M{low:.1} {middle}H{high:.1}\"/>",
        middle - CAP / 2,
        middle - CAP / 2
    );
    let _ = write!(
        out,
        "<text class=\"num\" x=\"{:.1}\" y=\"{}\">{}</text>",
        high + 5.0,
        top + BASELINE,
        value(estimate.median)
    );
}

/// Three digits that matter.
fn value(number: f64) -> String {
    let places = match number.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{number:.places$}")
}

const TITLE: &str = "Medians; whiskers are 95 % intervals of the medians";

/// Pixels, here and below: the head of the image, and that of a workload.
const HEAD: usize = 52;
const GROUP_HEAD: usize = 32;
/// Baseline of the heading of a workload, from its top.
const HEADING: usize = 22;
/// Height of a row of bars, with a gap above and below each bar, and the baseline of its text.
const BAR: usize = 20;
const GAP: usize = 3;
const BASELINE: usize = 14;
/// Height of the ends of a whisker.
const CAP: usize = 8;
const EDGE: usize = 12;
/// Width of the names of stacks, of a panel, and of the longest bar in it.
const LABELS: usize = 150;
const PANEL: usize = 270;
const SPAN: f64 = 190.0;
const PANELS: usize = 3;
/// Colours of the stylesheet.
const COLOURS: usize = 8;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn row(stack: &str, workload: &str, values: [f64; 3]) -> Row {
        let [low, median, high] = values;
        let estimate = Estimate { median, low, high };
        Row {
            workload: workload.parse().unwrap(),
            stack: stack.to_owned(),
            version: "1".to_owned(),
            runs: 3,
            speed: median,
            slowest: low,
            fastest: high,
            client_cost: 1.0,
            server_cost: 1.0,
            client_mib: 1.0,
            server_mib: 1.0,
            p50_us: None,
            p99_us: None,
            beside_gbits: None,
            datagrams_lost: None,
            most_drops: None,
            link: None,
            intervals: Intervals {
                speed: estimate,
                client_cost: estimate,
                server_cost: estimate,
            },
        }
    }

    fn draw(workloads: &str, rows: Vec<Row>) -> String {
        let plan = Plan::parse_from(["peers", "--workloads", workloads]);
        let summary = Summary {
            machine: "a <machine>".to_owned(),
            rows,
            disturbed: 0,
            measurements: 1,
            discarded: 0,
        };
        super::draw(&plan, &summary)
    }

    #[test]
    fn bars_and_whiskers_are_to_scale() {
        let rows = vec![
            row("fast", "up", [18.0, 19.0, 20.0]),
            row("slow", "up", [5.0, 10.0, 15.0]),
        ];
        let svg = draw("up", rows);
        // The longest whisker is as long as the span; the panel begins at 150.
        assert!(svg.contains("width=\"180.5\""), "{svg}");
        assert!(svg.contains("width=\"95.0\""), "{svg}");
        assert!(
            svg.contains("M197.5 110v8M292.5 110v8M197.5 114H292.5"),
            "{svg}"
        );
        assert!(
            svg.contains(">19.0</text>") && svg.contains("Gbit/s"),
            "{svg}"
        );
        assert_eq!(svg.matches("<rect class=\"stack\"").count(), 6, "{svg}");
        assert!(svg.contains("a &lt;machine&gt;"), "{svg}");
    }

    #[test]
    fn workloads_without_rows_are_left_out() {
        let svg = draw("up,idle-5", vec![row("one", "idle-5", [1.0, 2.0, 3.0])]);
        assert!(
            svg.contains(">idle-5<") && svg.contains("KiB a connection"),
            "{svg}"
        );
        assert!(
            !svg.contains(">up<") && svg.contains("client CPU us each"),
            "{svg}"
        );
    }

    #[test]
    fn what_is_no_number_has_no_bar() {
        let svg = draw("latency-up", vec![row("one", "latency-up", [f64::NAN; 3])]);
        assert!(
            !svg.contains("NaN") && !svg.contains("<rect class=\"stack\""),
            "{svg}"
        );
        assert!(svg.contains(">one<"), "{svg}");
    }
}
