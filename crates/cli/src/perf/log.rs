//! What a server says while it runs.

use std::fmt::Display;
use std::net::SocketAddr;

use serde_json::json;

use super::server::Moved;
use crate::output;

/// How a server says what happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Log {
    Silent,
    Text,
    /// One JSON object a line.
    Json,
}

impl Log {
    pub(crate) fn listening(self, protocol: &str, address: SocketAddr) {
        match self {
            Self::Silent => {}
            Self::Text => output::line(format!("listening on {address} ({protocol})")),
            Self::Json => {
                let event = json!({"event": "listening", "protocol": protocol, "address": address});
                output::line(event.to_string());
            }
        }
    }

    pub(crate) fn closed(self, protocol: &str, peer: SocketAddr, moved: Moved) {
        match self {
            _ if moved.received + moved.sent < WORTH_A_LINE => {}
            Self::Silent => {}
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

    /// Something went wrong with one client; the others go on.
    pub(crate) fn failed(self, protocol: &str, peer: SocketAddr, error: &dyn Display) {
        match self {
            Self::Silent => {}
            Self::Text => output::note(format!("{peer} ({protocol}): {error}")),
            Self::Json => {
                let event = json!({
                    "event": "failed",
                    "protocol": protocol,
                    "peer": peer,
                    "error": error.to_string(),
                });
                output::line(event.to_string());
            }
        }
    }
}

/// Bytes. A line for each of thousands of handshakes would cost more than they do.
const WORTH_A_LINE: u64 = 1000;
