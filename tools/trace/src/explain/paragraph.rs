//! An explanation as lines of text.

use courser_units::{bits, seconds, size};

use super::direction::Direction;
use super::explanation::Explanation;
use super::finding::Finding;
use super::ledger::Stretch;
use super::verdict;
use super::words::percent;

/// Returns an explanation as lines of text: a headline, and for each finding a sentence, its evidence
/// and the advice.
pub fn sentences(explanation: &Explanation) -> Vec<String> {
    let mut lines = vec![headline(explanation)];
    lines.extend(verdict::sentences(explanation));
    if explanation.findings.is_empty() {
        lines.push(
            "nothing to explain: the trace has no packets, or all at the same time".to_owned(),
        );
    }
    for finding in &explanation.findings {
        lines.push(String::new());
        lines.push(sentence(finding));
        lines.extend(evidence(finding));
        if !finding.advice.is_empty() {
            lines.push(format!("    -> {}", finding.advice));
        }
    }
    for note in &explanation.notes {
        lines.push(String::new());
        lines.push(format!("note: {}", note.text));
        lines.extend(evidence(note));
        if !note.advice.is_empty() {
            lines.push(format!("    -> {}", note.advice));
        }
    }
    lines
}

fn headline(explanation: &Explanation) -> String {
    let (verb, bytes) = match explanation.direction {
        Direction::Sent => ("sent", explanation.bytes_sent),
        Direction::Received => ("received", explanation.bytes_received),
    };
    let mut text = format!(
        "{verb} {} in {}",
        size(bytes),
        seconds(explanation.duration)
    );
    if explanation.duration > explanation.active {
        text += &format!(", active for {}", seconds(explanation.active));
    }
    if explanation.rate > 0.0 {
        text += &format!(", {}", bits(explanation.rate));
    }
    if let Some(rtt) = explanation.min_rtt {
        text += &format!(", shortest round trip {}", seconds(rtt));
    }
    text
}

fn sentence(finding: &Finding) -> String {
    let of = if finding.of_all { " of all" } else { "" };
    format!(
        "{:>7}{of} ({})  {}: {}",
        percent(finding.share),
        seconds(finding.seconds),
        finding.cause.name(),
        finding.text
    )
}

fn evidence(finding: &Finding) -> Option<String> {
    let shown: Vec<_> = finding.evidence.iter().map(stretch).collect();
    if shown.is_empty() {
        return None;
    }
    let more = finding.stretches.saturating_sub(shown.len() as u64);
    let more = match more {
        0 => String::new(),
        more => format!(", and {more} shorter"),
    };
    Some(format!("    at {}{more}", shown.join(", ")))
}

fn stretch(stretch: &Stretch) -> String {
    let Stretch { from, to } = stretch;
    if from.line == to.line {
        return format!("{} (line {})", seconds(from.time), from.line);
    }
    format!(
        "{} to {} (lines {} to {})",
        seconds(from.time),
        seconds(to.time),
        from.line,
        to.line
    )
}
