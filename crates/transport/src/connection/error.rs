//! Reasons why connections end.

use std::fmt;

use bytes::Bytes;
use courser_wire::{ApplicationErrorCode, TransportErrorCode, Versions};

use crate::error::TransportError;

/// The reason why a connection is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectionError {
    /// The server supports none of our versions (RFC 9000 §6.2).
    VersionMismatch {
        /// The versions that we support.
        supported: Versions,
        /// The versions that the server listed.
        offered: Vec<u32>,
    },
    /// The peer broke a rule, or TLS failed on our side.
    TransportError(TransportError),
    /// The peer closed because of a transport error.
    ConnectionClosed(PeerClose),
    /// The peer's application closed.
    ApplicationClosed {
        /// The code that the peer's application chose.
        code: ApplicationErrorCode,
        /// For humans; any bytes.
        reason: Bytes,
    },
    /// The peer has lost the connection's state (RFC 9000 §10.3).
    Reset,
    /// No packet arrived for the idle timeout.
    TimedOut,
    /// The handshake did not finish in time.
    HandshakeTimedOut,
    /// As many probe timeouts in a row as
    /// [`TransportConfig::max_ptos`](crate::TransportConfig::max_ptos) allows brought no acknowledgement.
    PathSilent,
    /// Our application closed the connection.
    LocallyClosed,
}

/// The peer's CONNECTION_CLOSE of type 0x1c.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerClose {
    /// The error code, which may be one that RFC 9000 §20.1 does not define.
    pub code: TransportErrorCode,
    /// The frame type that caused the error, 0 for none.
    pub frame_type: u64,
    /// For humans; any bytes.
    pub reason: Bytes,
}

impl ConnectionError {
    /// Returns true when a timeout ended the connection, rather than a close of either end.
    pub fn is_timeout(&self) -> bool {
        matches!(
            self,
            Self::TimedOut | Self::HandshakeTimedOut | Self::PathSilent
        )
    }

    /// Returns true when our own application closed the connection.
    pub fn is_local_close(&self) -> bool {
        matches!(self, Self::LocallyClosed)
    }

    /// Returns true if another connection to the same server may succeed with the same settings: after a timeout,
    /// after a restart of the server, and if it closed without an error or because it was busy.
    ///
    /// It is false if either end broke a rule, if TLS, the version or the application protocol was refused, and if
    /// this end closed. It is also false after a close of the peer's application, whose code only the application
    /// can judge: match on [`ApplicationClosed`](Self::ApplicationClosed).
    ///
    /// Whether the peer has processed data of the lost connection is another question. A request that is repeated
    /// may be executed twice, unless the application prevents that.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::TimedOut | Self::HandshakeTimedOut | Self::PathSilent | Self::Reset => true,
            Self::ConnectionClosed(close) => matches!(
                close.code,
                TransportErrorCode::NO_ERROR | TransportErrorCode::CONNECTION_REFUSED
            ),
            Self::VersionMismatch { .. }
            | Self::TransportError(_)
            | Self::ApplicationClosed { .. }
            | Self::LocallyClosed => false,
        }
    }

    /// Returns true when the two ends have no application protocol in common (RFC 9001 §8.1).
    pub fn is_protocol_mismatch(&self) -> bool {
        let alert = match self {
            Self::TransportError(error) => error.code.alert(),
            Self::ConnectionClosed(close) => close.code.alert(),
            _ => None,
        };
        alert == Some(120)
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VersionMismatch { supported, offered } => {
                write!(f, "no common QUIC version: we speak")?;
                for version in supported.iter() {
                    write!(f, " {:#010x}", version.value())?;
                }
                write!(f, ", the server offered")?;
                offered
                    .iter()
                    .try_for_each(|version| write!(f, " {version:#010x}"))
            }
            Self::TransportError(error) => write!(f, "{error}"),
            Self::ConnectionClosed(close) => {
                write!(f, "closed by peer: {}", close.code)?;
                write_reason(f, &close.reason)
            }
            Self::ApplicationClosed { code, reason } => {
                write!(f, "closed by peer's application with code {}", code.0)?;
                write_reason(f, reason)
            }
            Self::Reset => write!(f, "reset by peer: it has no state of this connection"),
            Self::TimedOut => write!(f, "timed out: no packet received within the idle timeout"),
            Self::HandshakeTimedOut => write!(f, "timed out: the handshake did not finish"),
            Self::PathSilent => write!(f, "timed out: no answer to probes"),
            Self::LocallyClosed => write!(f, "closed by us"),
        }
    }
}

/// Maximum number of bytes of a peer's reason that are shown.
const SHOWN_REASON: usize = 256;

/// Writes a reason, escaped and truncated, because the peer can choose any bytes (RFC 9000 §19.19).
fn write_reason(f: &mut fmt::Formatter<'_>, reason: &[u8]) -> fmt::Result {
    if reason.is_empty() {
        return Ok(());
    }
    let shown = &reason[..reason.len().min(SHOWN_REASON)];
    write!(
        f,
        " (\"{}\")",
        String::from_utf8_lossy(shown).escape_debug()
    )
}

impl std::error::Error for ConnectionError {}

impl From<TransportError> for ConnectionError {
    fn from(error: TransportError) -> Self {
        Self::TransportError(error)
    }
}

#[cfg(test)]
mod tests {
    use courser_wire::{VERSION_1, Version};

    use super::*;

    #[test]
    fn versions_of_both_ends_are_named() {
        let error = |supported: &[Version], offered| {
            let supported = supported.iter().copied().collect();
            ConnectionError::VersionMismatch { supported, offered }.to_string()
        };
        assert_eq!(
            error(&[Version::V2], vec![VERSION_1, 0x5aaa_fa8a]),
            "no common QUIC version: we speak 0x6b3343cf, the server offered 0x00000001 0x5aaafa8a"
        );
        let both = error(&[Version::V2, Version::V1], vec![0x1a2a_3a4a]);
        let end = "we speak 0x6b3343cf 0x00000001, the server offered 0x1a2a3a4a";
        assert!(both.ends_with(end), "{both}");
    }

    #[test]
    fn connections_are_retried_after_outages_and_not_after_refusals() {
        let closed = |code| {
            ConnectionError::ConnectionClosed(PeerClose {
                code,
                frame_type: 0,
                reason: Bytes::new(),
            })
        };
        for error in [
            ConnectionError::TimedOut,
            ConnectionError::HandshakeTimedOut,
            ConnectionError::PathSilent,
            ConnectionError::Reset,
            closed(TransportErrorCode::NO_ERROR),
            closed(TransportErrorCode::CONNECTION_REFUSED),
        ] {
            assert!(error.is_retryable(), "{error}");
        }
        for error in [
            ConnectionError::LocallyClosed,
            ConnectionError::ApplicationClosed {
                code: ApplicationErrorCode(0),
                reason: Bytes::new(),
            },
            closed(TransportErrorCode::PROTOCOL_VIOLATION),
            closed(TransportErrorCode::crypto(120)),
            ConnectionError::VersionMismatch {
                supported: [Version::V1].into_iter().collect(),
                offered: Vec::new(),
            },
        ] {
            assert!(!error.is_retryable(), "{error}");
        }
    }

    #[test]
    fn reason_of_the_peer_is_escaped_and_truncated() {
        let mut reason = b"\x1b[31m\xff\n".to_vec();
        reason.extend([b'a'; 1000]);
        let shown = ConnectionError::ApplicationClosed {
            code: ApplicationErrorCode(7),
            reason: Bytes::from(reason),
        }
        .to_string();
        assert!(shown.starts_with("closed by peer's application with code 7 (\"\\u{1b}[31m"));
        assert!(!shown.contains('\n') && !shown.contains('\x1b'));
        assert!(shown.len() < 600);
    }
}
