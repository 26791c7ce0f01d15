//! The state of a connection, from handshaking to drained.

use courser_base::Time;

use super::closing::Closing;

/// The states of a connection. RFC 9000 §10, RFC 9001 §4.1.
///
/// ```text
/// Handshaking ─► Complete ─► Confirmed ─┬─► Closing ──┬─► Drained
///      └────────────┴───────────────────┴─► Draining ─┘
/// ```
#[derive(Debug)]
pub(crate) enum State {
    /// The TLS handshake is not complete.
    Handshaking,
    /// The TLS handshake is complete, and a client waits for HANDSHAKE_DONE. A server is confirmed at once.
    Complete,
    /// The handshake is confirmed, so the peer has completed it too (RFC 9001 §4.1.2).
    Confirmed,
    /// We sent CONNECTION_CLOSE and repeat it when packets arrive (§10.2.1).
    Closing(Box<Closing>),
    /// The peer sent CONNECTION_CLOSE. Nothing more is sent but one answer (§10.2.2).
    Draining {
        /// The time at which the state may be forgotten.
        until: Time,
        /// One last CONNECTION_CLOSE, so that the peer need not wait.
        answer: Option<Box<Closing>>,
    },
    /// The closing or draining period has ended, and the endpoint may forget the connection.
    Drained,
}

impl State {
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Handshaking | Self::Complete | Self::Confirmed)
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        matches!(self, Self::Handshaking)
    }

    pub(crate) fn is_confirmed(&self) -> bool {
        matches!(self, Self::Confirmed)
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Handshaking => "handshaking",
            Self::Complete => "complete",
            Self::Confirmed => "confirmed",
            Self::Closing(_) => "closing",
            Self::Draining { .. } => "draining",
            Self::Drained => "drained",
        }
    }
}
