//! The log of a server: lines of text, or JSON.

use std::net::SocketAddr;

use courser_perf::{Event, Moved};
use serde_json::json;

use crate::output;

/// The format of a server's log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Log {
    Text,
    /// One JSON object per line.
    Json,
}

impl Log {
    /// Prints an event of a server.
    pub(crate) fn print(self, event: &Event) {
        match event {
            Event::Closed {
                protocol,
                peer,
                moved,
            } => self.closed(protocol, *peer, *moved),
            Event::Failed {
                protocol,
                peer,
                error,
            } => self.failed(protocol, *peer, error),
        }
    }

    pub(crate) fn listening(self, protocol: &str, address: SocketAddr) {
        match self {
            Self::Text => output::line(format!("listening on {address} ({protocol})")),
            Self::Json => {
                let event = json!({"event": "listening", "protocol": protocol, "address": address});
                output::line(event.to_string());
            }
        }
    }

    fn closed(self, protocol: &str, peer: SocketAddr, moved: Moved) {
        match self {
            _ if moved.received + moved.sent < MIN_BYTES_LOGGED => {}
            Self::Text => output::line(format!(
                "{peer} ({protocol}) disconnected: {} received, {} sent",
                output::size(moved.received),
                output::size(moved.sent),
            )),
            Self::Json => {
                let event = json!({
                    "event": "closed",
                    "protocol": protocol,
                    "peer": peer,
                    "received_bytes": moved.received,
                    "sent_bytes": moved.sent,
                });
                output::line(event.to_string());
            }
        }
    }

    /// Prints the error of one client; the server continues.
    fn failed(self, protocol: &str, peer: SocketAddr, error: &str) {
        match self {
            Self::Text => output::note(format!("{peer} ({protocol}): {error}")),
            Self::Json => {
                let event = json!({
                    "event": "failed",
                    "protocol": protocol,
                    "peer": peer,
                    "error": error,
                });
                output::line(event.to_string());
            }
        }
    }
}

/// The least number of bytes of a connection that is logged at its end. Printing a line for each of thousands of
/// handshakes would cost more than the handshakes.
const MIN_BYTES_LOGGED: u64 = 1000;
