//! The generated part of `docs/ROBUSTNESS.md`.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::store::Store;

/// The first line of the generated part. Text outside of the part is preserved.
const BEGIN: &str = "<!-- figures: written by `cargo xtask robustness` -->";
const END: &str = "<!-- end of figures -->";

/// Replaces the generated part of the document.
pub(super) fn write(path: &Path, store: &Store) -> Result<(), String> {
    let old = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let new = replace(&old, &figures(store))
        .ok_or_else(|| format!("{} has no lines `{BEGIN}` and `{END}`", path.display()))?;
    std::fs::write(path, new).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn replace(old: &str, figures: &str) -> Option<String> {
    let (before, rest) = old.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{figures}\n{END}{after}"))
}

fn figures(store: &Store) -> String {
    let mut text = String::from(
        "| figure | aim | measured | | CPU s, server / clients | how | took | date |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for figure in store.figures() {
        let word = |name: &str| figure[name].as_str().unwrap_or("").replace('|', "\\|");
        let cpu = &figure["cpuSeconds"];
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        let quick = if figure["quick"] == true {
            " (quick)"
        } else {
            ""
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.2} / {:.2} | {} | {:.0} s{quick} | {} |",
            word("title"),
            word("aim"),
            word("measured"),
            word("verdict"),
            number(&cpu["server"]),
            number(&cpu["clients"]),
            word("method"),
            number(&figure["tookSeconds"]),
            word("date"),
        );
    }
    let _ = write!(text, "\n{}{}", machines(store), attacks(store));
    text
}

/// Returns a table with a line for every attack on a server.
fn attacks(store: &Store) -> String {
    let figure = store.get("attack-goodput");
    let Some(rows) = figure.and_then(|figure| figure["detail"].as_array()) else {
        return String::new();
    };
    let mut text = String::from(
        "\n| attack | sent | dropped | us / datagram, hostile and honest | requests/s, alone and beside | p99 \
         ms, alone and beside | arrivals served | MiB before, peak, after |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let number = |value: &Value, scale: f64, digits: usize| match value.as_f64() {
            Some(value) => format!("{:.digits$}", value * scale),
            None => "-".to_owned(),
        };
        let (requests, p99, rss) = (
            &row["requestsPerSecond"],
            &row["p99Seconds"],
            &row["rssKib"],
        );
        let mib = |name: &str| number(&rss[name], 1.0 / 1024.0, 0);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} / {} | {} / {} | {} / {} | {} of {} | {}, {}, {} |",
            row["attack"].as_str().unwrap_or(""),
            row["sent"],
            row["droppedByKernel"],
            number(&row["hostileUs"], 1.0, 1),
            number(&row["honestUs"], 1.0, 1),
            number(&requests["alone"], 1.0, 0),
            number(&requests["beside"], 1.0, 0),
            number(&p99["alone"], 1e3, 1),
            number(&p99["beside"], 1e3, 1),
            row["arrivals"]["served"],
            row["arrivals"]["started"],
            mib("before"),
            mib("peak"),
            mib("after"),
        );
    }
    text
}

/// Returns the distinct machines and profiles of the figures.
fn machines(store: &Store) -> String {
    let mut lines: Vec<String> = Vec::new();
    for figure in store.figures() {
        let word = |name: &str| figure[name].as_str().unwrap_or("");
        let line = format!(
            "Machine: {}. Profile: {}.\n",
            word("machine"),
            word("profile")
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_around_the_figures_stays() {
        let old = format!("# Title\n\n{BEGIN}\nold\n{END}\n\nProse.\n");
        let new = replace(&old, "| new |\n").expect("a document with both lines");
        assert_eq!(
            new,
            format!("# Title\n\n{BEGIN}\n\n| new |\n\n{END}\n\nProse.\n")
        );
        assert_eq!(replace("no lines", ""), None);
    }
}
