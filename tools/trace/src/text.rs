//! The summary of a trace as text.

use courser_units::{bits, seconds, size, three_digits};

use crate::qlog::{About, Summary, Traffic};

/// Returns the origin of a trace: `client, JSON-SEQ, quic-13`.
pub(crate) fn origin(about: &About) -> String {
    let schema = about.schema.as_deref().map(|schema| {
        let short = schema.strip_prefix("urn:ietf:params:qlog:events:");
        short.map_or_else(|| format!("version {schema}"), str::to_owned)
    });
    let parts = [
        about.vantage_point.clone(),
        Some(about.format.to_owned()),
        schema,
    ];
    let shown: Vec<_> = parts
        .into_iter()
        .flatten()
        .map(|part| clean(&part))
        .collect();
    shown.join(", ")
}

/// Returns the rows of a summary as names and values. Values that the trace lacks are left out.
pub(crate) fn rows(summary: &Summary) -> Vec<(&'static str, String)> {
    let mut rows = vec![(
        "duration",
        format!("{}, {} events", seconds(summary.duration), summary.events),
    )];
    if let Some(handshake) = summary.handshake {
        rows.push(("handshake", seconds(handshake)));
    }
    rows.push(("sent", traffic(&summary.sent)));
    rows.push(("received", traffic(&summary.received)));
    rows.push(("lost", lost(summary)));
    if let Some(share) = summary.repeated_share() {
        let bytes = size(summary.stream_bytes_repeated);
        rows.push((
            "retransmitted",
            format!("{bytes}, {} of stream data", percent(share)),
        ));
    }
    if !summary.dropped.is_empty() {
        let reasons = summary.dropped.iter();
        let reasons: Vec<_> = reasons
            .map(|(why, count)| format!("{count} {}", clean(why)))
            .collect();
        rows.push(("dropped", reasons.join(", ")));
    }
    if let Some(rtt) = summary.rtt {
        let [min, median, p95, max] = [rtt.min, rtt.median, rtt.p95, rtt.max].map(seconds);
        rows.push((
            "rtt",
            format!("min {min}, median {median}, p95 {p95}, max {max}"),
        ));
    }
    rows.extend(recovery(summary));
    rows.extend(states(summary));
    rows
}

/// Returns a warning for each reason why a summary may be incomplete.
pub(crate) fn warnings(about: &About, summary: &Summary) -> Vec<String> {
    let mut warnings = Vec::new();
    if summary.unreadable_lines > 0 {
        let (count, first) = (summary.unreadable_lines, summary.unreadable.first());
        let first = first.map_or("", String::as_str);
        warnings.push(format!(
            "skipped {count} unreadable lines, the first: {first}"
        ));
    }
    if summary.records_dropped > 0 {
        let count = summary.records_dropped;
        warnings.push(format!(
            "{count} records are missing because its writer was too slow: counts are too low"
        ));
    }
    warnings.extend(ignored(about));
    warnings
}

/// Returns a warning about the traces of a file that were not read.
pub(crate) fn ignored(about: &About) -> Option<String> {
    let count = about.other_traces;
    (count > 0).then(|| format!("ignored {count} further traces in the file"))
}

fn recovery(summary: &Summary) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let sizes = [
        ("window max", summary.congestion_window_max),
        ("in flight max", summary.bytes_in_flight_max),
        ("datagram size", summary.mtu),
    ];
    for (name, bytes) in sizes {
        if let Some(bytes) = bytes {
            rows.push((name, size(bytes)));
        }
    }
    rows.push(("probe timeouts", summary.probe_timeouts.to_string()));
    if !summary.limited_by.is_empty() {
        let total: f64 = summary.limited_by.values().sum();
        let mut limits: Vec<_> = summary.limited_by.iter().collect();
        limits.sort_by(|left, right| right.1.total_cmp(left.1));
        let limits = limits.into_iter().map(|(by, time)| {
            format!(
                "{} {}",
                clean(by),
                percent(time / total.max(f64::MIN_POSITIVE))
            )
        });
        rows.push(("limited by", limits.collect::<Vec<_>>().join(", ")));
    }
    if summary.congestion_state_changes > 0 {
        let shown = sequence(&summary.congestion_states);
        rows.push(("congestion", shown));
    }
    rows
}

fn states(summary: &Summary) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if !summary.states.is_empty() {
        rows.push(("states", sequence(&summary.states)));
    }
    if let Some(close) = &summary.close {
        let by = match close.initiator.as_deref() {
            Some("local") => "locally",
            Some("remote") => "by the peer",
            _ => "",
        };
        let error = close
            .error
            .as_deref()
            .map(|error| format!("error {}", clean(error)));
        let reason = close
            .reason
            .as_deref()
            .map(|reason| format!("\"{}\"", clean(reason)));
        let trigger = close.trigger.as_deref().map(clean);
        let parts = [
            Some(by.to_owned()).filter(|by| !by.is_empty()),
            trigger,
            error,
            reason,
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        rows.push(("closed", parts.join(", ")));
    }
    rows
}

fn traffic(traffic: &Traffic) -> String {
    let mut text = format!("{} packets, {}", traffic.packets, size(traffic.bytes));
    if traffic.mean_rate > 0.0 {
        let [mean, peak] = [traffic.mean_rate, traffic.peak_rate].map(bits);
        text += &format!(", mean {mean}, peak {peak}");
    }
    text
}

fn lost(summary: &Summary) -> String {
    let lost = &summary.lost;
    let mut text = format!("{} packets", lost.packets);
    if let Some(share) = summary.loss_share() {
        text += &format!(", {} of those sent", percent(share));
    }
    let triggers = [
        (lost.reordering_threshold, "by the packet threshold"),
        (lost.time_threshold, "by the time threshold"),
        (lost.pto_expired, "by a probe timeout"),
        (lost.unrecorded, "for an unknown reason"),
        (lost.spurious, "spuriously"),
    ];
    for (count, why) in triggers.into_iter().filter(|(count, _)| *count > 0) {
        text += &format!(", {count} {why}");
    }
    text
}

/// Returns the first few states with the times at which they began.
fn sequence(states: &[(f64, String)]) -> String {
    let shown = states.iter().take(SHOWN_STATES);
    let shown = shown.map(|(time, state)| format!("{} at {}", clean(state), seconds(*time)));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if states.len() > SHOWN_STATES {
        text += ", ...";
    }
    text
}

pub(crate) fn percent(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}

/// Makes text of a trace safe to print: escapes control characters, which terminals interpret, and cuts
/// it to [`LONGEST_WORD`] characters.
pub(crate) fn clean(text: &str) -> String {
    let shown: String = text.chars().take(LONGEST_WORD).collect();
    shown.escape_debug().to_string().replace("\\'", "'")
}

/// Largest number of states in one line of text.
const SHOWN_STATES: usize = 8;
/// Largest number of characters of a text from a trace.
const LONGEST_WORD: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_in_a_trace_are_escaped_and_long_text_is_cut() {
        assert_eq!(clean("\u{1b}[2Jit's"), "\\u{1b}[2Jit's");
        assert!(clean(&"x".repeat(5000)).len() == LONGEST_WORD);
    }

    #[test]
    fn limits_are_shares_of_the_time() {
        let mut summary = Summary::default();
        summary.limited_by.insert("application".to_owned(), 1.0);
        summary
            .limited_by
            .insert("congestion_control".to_owned(), 3.0);
        let rows = recovery(&summary);
        let row = rows
            .iter()
            .find(|row| row.0 == "limited by")
            .expect("a row");
        assert_eq!(row.1, "congestion_control 75.0 %, application 25.0 %");
    }
}
