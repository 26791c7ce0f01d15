//! The end of a connection: which end closed it, why, and whether the transfer was complete.

use courser_units::seconds;
use serde::Serialize;

use super::codes;
use super::delivery::{Streams, Unknown};
use super::facts::TraceFacts;
use super::ledger::Mark;

/// The end of a connection, as a trace shows it.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Ending {
    /// The end that closed the connection: `local` or `remote`. `None` if the trace does not record it.
    pub initiator: Option<String>,
    /// The name of the error code, if it has one: `H3_NO_ERROR`, `PROTOCOL_VIOLATION`.
    pub name: Option<String>,
    /// The error code, if the trace has it.
    pub code: Option<u64>,
    /// The reason phrase of the CONNECTION_CLOSE frame, as the peer or this end wrote it.
    pub reason: Option<String>,
    /// The cause, spelled as in the trace: `idle_timeout`, `application`, `error`...
    pub trigger: Option<String>,
    /// Seconds from the first event to the close.
    pub time: f64,
    /// The line of the close in the trace.
    pub line: u64,
}

impl Ending {
    pub(super) fn of(facts: &TraceFacts) -> Option<Self> {
        let (closed, at) = facts.close.as_ref().or(facts.close_frame.as_ref())?;
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

    pub(super) fn text(&self) -> String {
        let by = match self.initiator.as_deref() {
            Some("local") => "closed by this end",
            Some("remote") => "closed by the peer",
            _ => "closed",
        };
        let code = self.code.map(|code| format!("{code:#x}"));
        let why = match (self.trigger.as_deref(), &self.name, code) {
            // The reason phrase would repeat the trigger.
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

impl Unknown {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Gaps => "records are missing in the trace or cannot be read",
            Self::BeginsLate => "the trace begins after its connection did",
            Self::TooManyStreams => "too many streams were open at once to follow them",
            Self::TooManyParts => "a stream had too many gaps at once to follow them",
            Self::TooManyPackets => "too many packets were unacknowledged at once to follow them",
        }
    }
}

/// Returns whether each stream was transferred completely. `None` if that is unknown, or if there were
/// no streams, as after a failed handshake.
pub(super) fn is_complete(
    sent: Option<Streams>,
    received: Option<Streams>,
    unknown: Option<Unknown>,
) -> Option<bool> {
    let (sent, received) = sent.zip(received).filter(|_| unknown.is_none())?;
    let is_complete = sent.complete == sent.begun && received.complete == received.begun;
    (sent.begun > 0 || received.begun > 0).then_some(is_complete)
}
