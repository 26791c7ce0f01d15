//! The end of a session.

use std::fmt;

use courser_http3::{Code, Error};

use crate::capsule::CloseReason;
use crate::code::{self, ApplicationCode};

/// The reason why a session has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Closed {
    /// The application of this end has closed it.
    Local(CloseReason),
    /// The application of the peer has closed it. A clean end without a reason reads as code 0 with an empty
    /// message (draft-ietf-webtrans-http3-16 §6).
    Peer(CloseReason),
    /// The application of this end has reset the CONNECT stream with this code, which gives no reason.
    LocalReset(Code),
    /// The peer has reset the CONNECT stream, or asked to stop sending on it.
    Reset(Code),
    /// The peer has violated the protocol. The CONNECT stream is reset with this code.
    Violation(Error),
    /// The connection has ended.
    ConnectionLost,
}

impl Closed {
    /// Returns the code and message of the application that has closed the session.
    pub const fn reason(&self) -> Option<&CloseReason> {
        match self {
            Self::Local(reason) | Self::Peer(reason) => Some(reason),
            Self::LocalReset(_) | Self::Reset(_) | Self::Violation(_) | Self::ConnectionLost => {
                None
            }
        }
    }

    /// Returns true if the peer has caused the end.
    pub const fn is_by_peer(&self) -> bool {
        matches!(self, Self::Peer(_) | Self::Reset(_))
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (who, reason) = match self {
            Self::Local(reason) => ("this end", reason),
            Self::Peer(reason) => ("the peer", reason),
            Self::LocalReset(code) | Self::Reset(code) => {
                let who = match self {
                    Self::Reset(_) => "the peer",
                    _ => "this end",
                };
                return match code::name(*code) {
                    Some(name) => write!(f, "{who} has reset the session with {name}"),
                    None => write!(f, "{who} has reset the session with {code}"),
                };
            }
            Self::Violation(error) => {
                return write!(f, "the peer has violated the protocol: {}", error.reason);
            }
            Self::ConnectionLost => return f.write_str("the connection has ended"),
        };
        let ApplicationCode(code) = reason.code;
        match reason.message.as_str() {
            "" => write!(f, "{who} has closed the session with code {code}"),
            message => write!(
                f,
                "{who} has closed the session with code {code}: {message}"
            ),
        }
    }
}
