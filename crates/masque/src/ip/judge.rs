//! Judgement of packets: which may enter or leave a tunnel (RFC 9484 §7).

use std::net::IpAddr;

use courser_base::Side;

use super::end::End;
use super::icmp;
use super::packet::{Header, Malformed};
use crate::prefix::Prefix;

/// The reason why a packet is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The packet is malformed.
    #[error("it is malformed: {0}")]
    Malformed(#[from] Malformed),
    /// An address is link-local, and no router forwards it (RFC 9484 §7.1).
    #[error("a link-local address")]
    LinkLocal,
    /// The destination is a group.
    #[error("the destination is a group")]
    Multicast,
    /// The source was not assigned to the sender (BCP 38).
    #[error("the source {0} is none of the sender")]
    Source(IpAddr),
    /// No route to the destination was advertised.
    #[error("no route to {0}")]
    Destination(IpAddr),
    /// The policy of the proxy prohibits the destination.
    #[error("the destination {0} is prohibited")]
    Prohibited(IpAddr),
    /// The hop limit is used up.
    #[error("the hop limit is used up")]
    HopLimit,
    /// The packet is longer than the path carries.
    #[error("{size} bytes, and the path carries {max}")]
    TooBig {
        /// Length of the packet in bytes.
        size: usize,
        /// Longest packet that can be sent at present, in bytes.
        max: usize,
    },
    /// An ICMP redirect: only a router on the link of the host may tell it of another one.
    #[error("a redirect")]
    Redirect,
    /// An ICMP error quotes a packet that its receiver has not sent.
    #[error("an ICMP error about a packet of another host")]
    Quote,
}

/// A packet that may not pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Rejected {
    /// The reason.
    pub reason: Reason,
    /// The ICMP error for the sender, where one is due.
    pub icmp: Option<icmp::Error>,
}

impl Rejected {
    /// Creates a rejection with the ICMP error that belongs to the reason.
    pub const fn new(reason: Reason) -> Self {
        let icmp = match reason {
            Reason::Source(_) => Some(icmp::Error::Source),
            Reason::Destination(_) => Some(icmp::Error::NoRoute),
            Reason::Prohibited(_) => Some(icmp::Error::Prohibited),
            Reason::HopLimit => Some(icmp::Error::TimeExceeded),
            Reason::TooBig { max, .. } => Some(icmp::Error::TooBig { mtu: max }),
            _ => None,
        };
        Self { reason, icmp }
    }

    const fn silent(reason: Reason) -> Self {
        Self { reason, icmp: None }
    }
}

impl From<Malformed> for Rejected {
    fn from(error: Malformed) -> Self {
        Self::silent(Reason::Malformed(error))
    }
}

impl End {
    /// Judges a packet that the other end has sent.
    ///
    /// # Errors
    /// Returns the reason if the packet has to be dropped.
    pub fn judge_incoming(&self, packet: &[u8]) -> Result<Header, Rejected> {
        let header = Header::parse(packet)?;
        check_places(&header)?;
        let Header {
            source,
            destination,
            protocol,
            ..
        } = header;
        let is_error = icmp::is_error(&header, packet);
        if has_single(self.own.iter().copied(), source) {
            return Err(Rejected::silent(Reason::Source(source)));
        }
        let given = self.given.iter().map(|entry| entry.prefix);
        let is_known = covers(given, source) || self.routes.contains(source, protocol);
        // Routers on the way answer too (RFC 9484 §7.2.1).
        let is_router = matches!(self.side, Side::Client) && is_error;
        if !is_known && !is_router {
            return Err(Rejected::new(Reason::Source(source)));
        }
        let is_own = covers(self.own.iter().copied(), destination);
        if !is_own && !self.advertised.contains(destination, protocol) {
            return Err(Rejected::new(Reason::Destination(destination)));
        }
        self.check_quote(&header, packet, is_error, is_own)?;
        Ok(header)
    }

    /// Judges a packet for the other end. The caller compares its length with what the path carries, and
    /// [lowers](super::packet::lower_hop_limit) its hop limit if this end [forwards](Self::lowers_hop_limit).
    ///
    /// # Errors
    /// Returns the reason if the packet has to be dropped.
    pub fn judge_outgoing(&self, packet: &[u8]) -> Result<Header, Rejected> {
        let header = Header::parse(packet)?;
        check_places(&header)?;
        let Header {
            source,
            destination,
            protocol,
            ..
        } = header;
        let is_error = icmp::is_error(&header, packet);
        let is_own = covers(self.own.iter().copied(), source);
        let given = self.given.iter().map(|entry| entry.prefix);
        if has_single(given, source) {
            return Err(Rejected::silent(Reason::Source(source)));
        }
        let is_router = matches!(self.side, Side::Server) && is_error;
        if !is_own && !is_router && !self.advertised.contains(source, protocol) {
            return Err(Rejected::new(Reason::Source(source)));
        }
        let mut given = self.given.iter().map(|entry| entry.prefix);
        let is_given = given.any(|prefix| prefix.covers(destination));
        if !is_given && !self.routes.contains(destination, protocol) {
            return Err(Rejected::new(Reason::Destination(destination)));
        }
        self.check_quote(&header, packet, is_error, is_given)?;
        match self.is_router && header.hop_limit <= 1 {
            true => Err(Rejected::new(Reason::HopLimit)),
            false => Ok(header),
        }
    }

    /// Returns true if the hop limit of packets that are sent is lowered.
    pub const fn lowers_hop_limit(&self) -> bool {
        self.is_router
    }

    /// Checks that an ICMP error for a host is no redirect, and quotes a packet of this host, so that no other client learns
    /// of it (RFC 9484 §11).
    fn check_quote(
        &self,
        header: &Header,
        packet: &[u8],
        is_error: bool,
        is_for_host: bool,
    ) -> Result<(), Rejected> {
        if !is_error || !is_for_host {
            return Ok(());
        }
        if icmp::is_redirect(header, packet) {
            return Err(Rejected::silent(Reason::Redirect));
        }
        let quoted = icmp::quoted_source(header, packet);
        match quoted.is_none_or(|quoted| quoted == header.destination) {
            true => Ok(()),
            false => Err(Rejected::silent(Reason::Quote)),
        }
    }
}

fn covers(mut prefixes: impl Iterator<Item = Prefix>, address: IpAddr) -> bool {
    prefixes.any(|prefix| prefix.covers(address))
}

/// Returns true if an address is assigned alone: no packet from it comes from the other side of the tunnel, and a host
/// might take it for one of its own.
fn has_single(mut prefixes: impl Iterator<Item = Prefix>, address: IpAddr) -> bool {
    prefixes.any(|prefix| prefix.is_single() && prefix.first() == address)
}

/// Checks that both addresses are of hosts that packets may be forwarded between.
fn check_places(header: &Header) -> Result<(), Rejected> {
    let (source, destination) = (header.source, header.destination);
    if is_link_local(source) || is_link_local(destination) {
        return Err(Rejected::silent(Reason::LinkLocal));
    }
    if !icmp::is_host(source) {
        return Err(Rejected::silent(Reason::Source(source)));
    }
    if destination.is_multicast() {
        return Err(Rejected::silent(Reason::Multicast));
    }
    if !icmp::is_host(destination) {
        return Err(Rejected::silent(Reason::Destination(destination)));
    }
    Ok(())
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests;
