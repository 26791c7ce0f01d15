//! Formats the report as oha does.

use courser_measure::Stats;
use courser_units::to_f64;

use crate::{PERCENTILES, Summary};

/// Returns the report, with lines for CPU time, handshakes and warnings added to those of oha.
pub fn text(summary: &Summary) -> String {
    let latency = summary.latency.stats();
    let unit = Unit::of(latency.max);
    let mut lines = vec!["Summary:".to_owned()];
    let all = summary.done + summary.errored;
    let rate = if all > 0 {
        100.0 * to_f64(summary.done) / to_f64(all)
    } else {
        0.0
    };
    lines.push(format!("  Success rate:\t{rate:.2}%"));
    for (name, value) in [
        ("Total", summary.elapsed),
        ("Slowest", latency.max),
        ("Fastest", latency.min),
        ("Average", latency.mean),
    ] {
        lines.push(format!("  {name}:\t{}", unit.show(value)));
    }
    lines.push(format!("  Requests/sec:\t{:.4}", summary.over_time(all)));
    lines.push(String::new());
    lines.push(format!("  Total data:\t{}", size(to_f64(summary.data))));
    let per_request = match summary.done {
        0 => "NaN".to_owned(),
        done => size(to_f64(summary.data / done)),
    };
    lines.push(format!("  Size/request:\t{per_request}"));
    lines.push(format!(
        "  Size/sec:\t{}",
        size(summary.over_time(summary.data))
    ));
    if let Some(cpu) = summary.cpu_per_answer() {
        lines.push(format!("  CPU/request:\t{:.2} us (client)", cpu * 1e6));
    }
    lines.push(String::new());
    lines.push("Response time histogram:".to_owned());
    lines.extend(histogram(summary, unit));
    lines.push(String::new());
    lines.push("Response time distribution:".to_owned());
    for share in PERCENTILES {
        let value = unit.show(summary.latency.quantile(share / 100.0));
        lines.push(format!("  {share:.2}% in {value}"));
    }
    lines.push(String::new());
    lines.extend(details(summary, unit));
    lines.push(String::new());
    lines.push("Status code distribution:".to_owned());
    for (status, count) in most_first(&summary.statuses) {
        lines.push(format!("  [{status}] {count} responses"));
    }
    if !summary.errors.is_empty() {
        lines.push(String::new());
        lines.push("Error distribution:".to_owned());
        for (label, count) in most_first(&summary.errors) {
            lines.push(format!("  [{count}] {label}"));
        }
    }
    if !summary.warnings.is_empty() {
        lines.push(String::new());
        lines.push("Warnings:".to_owned());
        let warnings = summary.warnings.iter();
        lines.extend(warnings.map(|warning| format!("  {warning}")));
    }
    lines.join("\n")
}

fn details(summary: &Summary, unit: Unit) -> Vec<String> {
    let triple = |name: &str, stats: &Stats| {
        let [average, fastest, slowest] =
            [stats.mean, stats.min, stats.max].map(|value| unit.show(value));
        format!("  {name}:\t{average}, {fastest}, {slowest}")
    };
    let mut lines = vec![
        "Details (average, fastest, slowest):".to_owned(),
        // The name is looked up once, before the run.
        triple("DNS+dialup", &summary.connects()),
        triple("First byte", &summary.head.stats()),
    ];
    if let Some(handshakes) = &summary.handshakes {
        lines.push(format!("  Handshakes:\t{handshakes}"));
    }
    lines.extend(summary.moves.map(|moves| format!("  Moves:\t{moves}")));
    lines
}

/// Returns a bar for each of eleven classes of latency, from the fastest to the slowest.
fn histogram(summary: &Summary, unit: Unit) -> Vec<String> {
    let classes = summary.latency.classes();
    let largest = classes.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let width = classes
        .iter()
        .map(|(_, count)| count.to_string().len())
        .max();
    let width = width.unwrap_or(1);
    let labels: Vec<_> = classes
        .iter()
        .map(|(upper, _)| format!("{:.3} {}", upper / unit.in_seconds, unit.name))
        .collect();
    let label_width = labels.iter().map(String::len).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (label, (_, count)) in labels.iter().zip(&classes) {
        let filled = count * BAR / largest.max(1);
        let bar = "■".repeat(usize::try_from(filled).unwrap_or(0));
        let number = format!("[{count}]");
        let width = width + 2;
        lines.push(format!("  {label:>label_width$} {number:<width$} |{bar}"));
    }
    lines
}

fn most_first<K: Clone>(counts: &std::collections::BTreeMap<K, u64>) -> Vec<(K, u64)> {
    let mut sorted: Vec<_> = counts
        .iter()
        .map(|(what, count)| (what.clone(), *count))
        .collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sorted
}

/// The unit of all times, which fits the slowest one.
#[derive(Clone, Copy, Debug)]
struct Unit {
    in_seconds: f64,
    name: &'static str,
}

impl Unit {
    fn of(slowest: f64) -> Self {
        let (in_seconds, name) = match slowest {
            s if s >= 1.0 => (1.0, "sec"),
            s if s >= 1e-3 => (1e-3, "ms"),
            _ => (1e-6, "us"),
        };
        Self { in_seconds, name }
    }

    fn show(self, seconds: f64) -> String {
        format!("{:.4} {}", seconds / self.in_seconds, self.name)
    }
}

/// Formats a size in binary units: `4.46 MiB`.
fn size(bytes: f64) -> String {
    let (mut value, mut unit) = (bytes, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if unit == "B" {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.2} {unit}")
    }
}

/// The length of the longest bar in characters.
const BAR: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unit_fits_the_slowest() {
        assert_eq!(Unit::of(2.0).show(0.5), "0.5000 sec");
        assert_eq!(Unit::of(0.5).show(0.001), "1.0000 ms");
        assert_eq!(Unit::of(1e-5).show(1e-6), "1.0000 us");
    }

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(size(12.0), "12 B");
        assert_eq!(size(1536.0), "1.50 KiB");
    }
}
