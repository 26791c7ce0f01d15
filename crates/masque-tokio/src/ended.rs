//! The ends of tunnels.

use std::io;

use courser_http3_tokio::{self as h3, Code};
use courser_masque::datagram;
use courser_masque::ip::CapsuleError;
use courser_quic::ConnectionError;

/// The reason why a tunnel has ended.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// This end has closed the tunnel.
    #[error("this end has closed the tunnel")]
    Closed,
    /// The other end has closed the tunnel: a proxy does that if no packet has passed for too long.
    #[error("the other end has closed the tunnel")]
    ByPeer,
    /// The other end has sent a malformed datagram.
    #[error("the other end has sent {0}")]
    Malformed(datagram::Malformed),
    /// The other end has sent a capsule that breaks a rule of IP proxies.
    #[error("the other end has sent an invalid capsule: {0}")]
    Capsule(CapsuleError),
    /// The path does not carry the packets that IPv6 needs (RFC 9484 §7.2).
    #[error(
        "the path carries packets of {0} bytes, and IPv6 needs 1280; without addresses of IPv6 it would do"
    )]
    Narrow(usize),
    /// The other end has sent a capsule that is too long, or has ended the stream inside of one (RFC 9297 §3.3).
    #[error("the other end has sent a malformed stream: {reason}")]
    Stream {
        /// The code with which the stream is reset.
        code: Code,
        /// The rule that was violated.
        reason: &'static str,
    },
    /// The stream or its connection was lost.
    #[error("the stream of the tunnel was lost: {0}")]
    Lost(LostStream),
}

/// The reason why the stream of a tunnel was lost.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LostStream {
    /// The QUIC connection is closed or lost.
    #[error("connection lost: {0}")]
    Connection(ConnectionError),
    /// The other end has reset the stream with this code. A proxy does so with `H3_CONNECT_ERROR` if it cannot reach the
    /// target, or ends itself.
    #[error("the other end has reset it with {0}")]
    Reset(Code),
    /// Reading or writing the stream over HTTP/2 or HTTP/1.1 has failed.
    #[error("{text}")]
    Io {
        /// The kind of error.
        kind: io::ErrorKind,
        /// Its text.
        text: String,
    },
    /// The request over HTTP/3 has failed otherwise.
    #[error("{0}")]
    Http3(String),
    /// The runtime has ended, and with it the task of the tunnel.
    #[error("the runtime has ended")]
    Runtime,
}

impl From<io::Error> for LostStream {
    fn from(error: io::Error) -> Self {
        Self::Io {
            kind: error.kind(),
            text: error.to_string(),
        }
    }
}

impl From<h3::Error> for LostStream {
    fn from(error: h3::Error) -> Self {
        match error {
            h3::Error::Connection(error) => Self::Connection(error),
            h3::Error::Http {
                origin: h3::Origin::Peer,
                code,
                ..
            } => Self::Reset(code),
            error => Self::Http3(error.to_string()),
        }
    }
}
