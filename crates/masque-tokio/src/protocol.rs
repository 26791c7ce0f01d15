//! The protocols of tunnels: UDP payloads or IP packets.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use courser_http3_tokio::Code;
use courser_masque::datagram::MAX_PAYLOAD;
use courser_masque::ip::{self, limits::LONGEST_PACKET};
use courser_masque::request::{self, Carrier, Refused};
use http::Response;

use crate::ended::Ended;
use crate::ip::transport::{RECEIVED, RECEIVED_BYTES};

/// The protocol of a tunnel, with what reads its capsules beside datagrams.
pub(crate) enum Protocol {
    Udp,
    Ip {
        control: Box<dyn Control>,
        /// The first capsules of this end, with their types.
        first: Vec<(u64, Vec<u8>)>,
    },
}

/// The part of a tunnel that its task runs.
pub(crate) trait Control: Send + Sync {
    /// Acts on a capsule, and returns the one that answers it.
    fn on_capsule(&mut self, kind: u64, value: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Fault>;

    /// Returns the size of payloads that the path has to carry at least, in bytes.
    fn smallest_payload(&self) -> usize;

    /// Returns what can show that the other end receives payloads of this size.
    fn probe(&self) -> Arc<dyn Probe>;
}

/// Asks the other end of a tunnel whether a payload of the smallest size arrives.
pub(crate) trait Probe: Send + Sync {
    /// Returns a datagram that the other end answers, with its context. `None` if it can send none now.
    fn request(&self) -> Option<Bytes>;

    /// Returns true if the last request was answered.
    fn is_answered(&self) -> bool;
}

/// A reason to reset the stream of a tunnel, with the code.
pub(crate) struct Fault(pub(crate) Ended, pub(crate) Code);

impl Protocol {
    /// Returns the value of `:protocol` and `Upgrade`.
    pub(crate) const fn token(&self) -> &'static str {
        match self {
            Self::Udp => request::UPGRADE_TOKEN,
            Self::Ip { .. } => ip::request::UPGRADE_TOKEN,
        }
    }

    /// Returns the types of capsules beside datagrams, with the longest values.
    pub(crate) const fn capsules(&self) -> &'static [(u64, usize)] {
        match self {
            Self::Udp => &[],
            Self::Ip { .. } => &ip::capsule::KINDS,
        }
    }

    /// Takes the capsules that are sent before those of the other end are read.
    pub(crate) fn take_first(&mut self) -> Vec<(u64, Vec<u8>)> {
        match self {
            Self::Udp => Vec::new(),
            Self::Ip { first, .. } => std::mem::take(first),
        }
    }

    /// Returns the longest payload of a datagram, in bytes.
    pub(crate) const fn longest_payload(&self) -> usize {
        match self {
            Self::Udp => MAX_PAYLOAD,
            Self::Ip { .. } => LONGEST_PACKET,
        }
    }

    /// Returns the bounds of received datagrams, in number and bytes, of protocols with bounds of their own.
    pub(crate) const fn receive_limits(&self) -> Option<(usize, usize)> {
        match self {
            Self::Udp => None,
            Self::Ip { .. } => Some((RECEIVED, RECEIVED_BYTES)),
        }
    }

    pub(crate) fn check_response<B>(
        &self,
        carrier: Carrier,
        response: &Response<B>,
    ) -> Result<(), Refused> {
        match self {
            Self::Udp => request::check_response(carrier, response),
            Self::Ip { .. } => ip::request::check_response(carrier, response),
        }
    }

    /// Acts on a capsule, and returns the one that answers it.
    pub(crate) fn on_capsule(
        &mut self,
        kind: u64,
        value: &[u8],
    ) -> Result<Option<(u64, Vec<u8>)>, Fault> {
        match self {
            Self::Udp => Ok(None), // None is accepted.
            Self::Ip { control, .. } => control.on_capsule(kind, value),
        }
    }

    /// Returns the size of payloads that the path has to carry at least, in bytes. 0 if any is enough.
    pub(crate) fn smallest_payload(&self) -> usize {
        match self {
            Self::Udp => 0,
            Self::Ip { control, .. } => control.smallest_payload(),
        }
    }

    /// Returns what shows that the path carries the smallest payload, for protocols with one.
    pub(crate) fn probe(&self) -> Option<Arc<dyn Probe>> {
        match self {
            Self::Udp => None,
            Self::Ip { control, .. } => Some(control.probe()),
        }
    }
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}
