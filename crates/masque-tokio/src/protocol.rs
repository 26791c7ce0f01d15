//! The protocols of tunnels: UDP payloads or IP packets.

use std::fmt;
use std::task::{Context, Poll};

use courser_http3_tokio::Code;
use courser_masque::datagram::MAX_PAYLOAD;
use courser_masque::ip::{self, limits::LONGEST_PACKET};
use courser_masque::request::{self, Carrier, Refused};
use http::Response;

use crate::tunnel::{Ended, Tunnel};

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
pub(crate) trait Control: Send {
    /// Reads a capsule.
    fn on_capsule(&mut self, tunnel: &Tunnel, kind: u64, value: &[u8]) -> Result<(), Fault>;

    /// Polls for a reason to end the tunnel.
    fn poll(&mut self, cx: &mut Context<'_>, tunnel: &Tunnel) -> Poll<Fault>;
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

    pub(crate) fn on_capsule(
        &mut self,
        tunnel: &Tunnel,
        kind: u64,
        value: &[u8],
    ) -> Result<(), Fault> {
        match self {
            Self::Udp => Ok(()), // None is accepted.
            Self::Ip { control, .. } => control.on_capsule(tunnel, kind, value),
        }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, tunnel: &Tunnel) -> Poll<Fault> {
        match self {
            Self::Udp => Poll::Pending,
            Self::Ip { control, .. } => control.poll(cx, tunnel),
        }
    }
}

impl fmt::Debug for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}
