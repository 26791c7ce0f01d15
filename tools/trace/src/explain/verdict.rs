//! Describes the end of a connection in sentences.

use super::delivery::Streams;
use super::ending::Ending;
use super::explanation::Explanation;

/// Returns the end of a connection as sentences.
pub(super) fn sentences(explanation: &Explanation) -> Vec<String> {
    let ending = explanation.close.as_ref();
    let closed = ending.map_or_else(|| "the trace has no close".to_owned(), Ending::text);
    let mut lines = vec![closed];
    let verdict = match (explanation.is_complete, explanation.unknown) {
        (Some(true), _) => "the transfer was complete".to_owned(),
        (Some(false), _) => "the transfer was incomplete".to_owned(),
        (None, Some(why)) => format!(
            "whether the transfer was complete is unknown, because {}",
            why.text()
        ),
        // There were no streams.
        (None, None) => return lines,
    };
    let parts = [
        (
            explanation.streams_sent,
            "sent",
            "and acknowledged to the end",
        ),
        (explanation.streams_received, "received", "to the end"),
    ];
    let parts: Vec<_> = parts
        .into_iter()
        .filter_map(|(streams, verb, end)| describe_streams(streams?, verb, end))
        .collect();
    match parts.is_empty() {
        true => lines.push(verdict),
        false => lines.push(format!("{verdict}: {}", parts.join(", "))),
    }
    lines
}

/// Describes the counts of the streams of one direction. Returns `None` if there were no streams.
fn describe_streams(streams: Streams, verb: &str, end: &str) -> Option<String> {
    let Streams {
        begun,
        complete,
        reset,
        open,
    } = streams;
    let (all, plural) = (complete == begun, if begun == 1 { "" } else { "s" });
    let text = match all {
        true => format!("{begun} stream{plural} {verb}"),
        false => format!("{complete} of {begun} stream{plural} {verb} {end}"),
    };
    let reset = (reset > 0).then(|| format!("{reset} reset"));
    let open = (open > 0).then(|| format!("{open} open"));
    let rest: Vec<_> = reset.into_iter().chain(open).collect();
    let text = match rest.is_empty() {
        true => text,
        false => format!("{text} ({})", rest.join(", ")),
    };
    (begun > 0).then_some(text)
}
