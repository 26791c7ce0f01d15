//! The end of a connection: which end closed it, why, and whether the transfer was complete.

use courser_units::seconds;
use serde::Serialize;

use super::codes;
use super::delivery::Streams;
use super::facts::Facts;
use super::ledger::Mark;

/// The end of a connection, as a trace shows it.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Ending {
    /// The end that closed the connection: `local` or `remote`. `None` if the trace does not say.
    pub initiator: Option<String>,
    /// The name of the error code, if it has one: `H3_NO_ERROR`, `PROTOCOL_VIOLATION`.
    pub name: Option<String>,
    /// The error code, if the trace has it.
    pub code: Option<u64>,
    /// The reason phrase.
    pub reason: Option<String>,
    /// The cause, spelled as in the trace: `idle_timeout`, `application`, `error`...
    pub trigger: Option<String>,
    /// Seconds from the first event to the close.
    pub time: f64,
    /// The line of the close in the trace.
    pub line: u64,
}

impl Ending {
    pub(super) fn of(facts: &Facts) -> Option<Self> {
        let (closed, at) = facts.close.as_ref()?;
        let (name, code) = codes::resolve(closed, facts.is_http3);
        let Mark { time, line } = *at;
        Some(Self {
            initiator: closed.initiator.clone(),
            name,
            code,
            reason: closed.reason.clone(),
            trigger: closed.trigger.clone(),
            time,
            line,
        })
    }

    fn text(&self) -> String {
        let by = match self.initiator.as_deref() {
            Some("local") => "closed by this end",
            Some("remote") => "closed by the peer",
            _ => "closed",
        };
        let code = self.code.map(|code| format!("{code:#x}"));
        let why = match (self.trigger.as_deref(), &self.name, code) {
            // The reason says the same again.
            (Some("idle_timeout"), ..) => return self.at("ended by the idle timeout"),
            (Some("stateless_reset"), ..) => {
                return self.at("ended by a stateless reset: the peer had lost its state");
            }
            (_, Some(name), Some(code)) => format!(": {name} ({code})"),
            (_, Some(name), None) => format!(": {name}"),
            (_, None, Some(code)) => format!(": error code {code}"),
            (Some(trigger), None, None) => format!(": {}", crate::text::clean(trigger)),
            (None, None, None) => String::new(),
        };
        let reason = self.reason.as_deref().map(crate::text::clean);
        let reason = reason.map_or_else(String::new, |reason| format!(", \"{reason}\""));
        self.at(&format!("{by}{why}{reason}"))
    }

    fn at(&self, text: &str) -> String {
        format!("{text}, at {} (line {})", seconds(self.time), self.line)
    }
}

/// Returns the end of a connection as sentences.
pub(super) fn sentences(
    ending: Option<&Ending>,
    sent: Option<Streams>,
    received: Option<Streams>,
) -> Vec<String> {
    let closed = ending.map_or_else(|| "the trace has no close".to_owned(), Ending::text);
    let mut lines = vec![closed];
    let (Some(sent), Some(received)) = (sent, received) else {
        lines.push("too many streams were open at once to tell which were complete".to_owned());
        return lines;
    };
    if sent.begun + received.begun == 0 {
        return lines;
    }
    let is_complete = is_complete(sent, received);
    let verdict = if is_complete {
        "complete"
    } else {
        "incomplete"
    };
    let way = |streams: Streams, verb: &str, end: &str| {
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
        match rest.is_empty() {
            true => text,
            false => format!("{text} ({})", rest.join(", ")),
        }
    };
    let parts = [
        (sent, "sent", "and acknowledged to the end"),
        (received, "received", "to the end"),
    ];
    let parts = parts.into_iter().filter(|(streams, ..)| streams.begun > 0);
    let parts: Vec<_> = parts
        .map(|(streams, verb, end)| way(streams, verb, end))
        .collect();
    lines.push(format!("the transfer was {verdict}: {}", parts.join(", ")));
    lines
}

/// Returns true if each stream came to its end.
pub(super) const fn is_complete(sent: Streams, received: Streams) -> bool {
    sent.complete == sent.begun && received.complete == received.begun
}
