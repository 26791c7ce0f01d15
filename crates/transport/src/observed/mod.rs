//! Address discovery: each end may report the address from which it receives the packets of a path.
//! draft-ietf-quic-address-discovery-00.
//!
//! [`Reports`] decides what this end reports, and [`Claims`] keeps what the peer has reported. A connection
//! whose ends have not agreed on the extension has neither.

mod claims;
mod observed_path;
mod reports;

use std::net::SocketAddr;
use std::time::Duration;

use courser_base::Time;
use courser_wire::transport_parameters::AddressDiscovery;
use courser_wire::{ObservedAddress, PathId};

use self::claims::Claims;
pub use self::observed_path::ObservedPath;
use self::reports::Reports;
use crate::build::packet_builder::PacketBuilder;
use crate::error::TransportError;

/// The use of observed addresses. draft-ietf-quic-address-discovery-00 §3.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AddressObservations {
    /// The extension is not offered to the peer.
    #[default]
    None,
    /// A peer that asks is told the address from which its packets arrive. Not for an end behind a load balancer
    /// or a NAT that rewrites this address: it would report the address of an inner machine (§6.2).
    Provide,
    /// The peer is asked for our address.
    Receive,
    /// Both.
    Both,
}

impl AddressObservations {
    pub(crate) fn to_parameter(self) -> Option<AddressDiscovery> {
        match self {
            Self::None => None,
            Self::Provide => Some(AddressDiscovery::Provides),
            Self::Receive => Some(AddressDiscovery::Receives),
            Self::Both => Some(AddressDiscovery::Both),
        }
    }
}

/// The observed addresses of a connection whose ends have agreed to report them.
#[derive(Debug)]
pub(crate) struct Observed {
    reports: Option<Reports>,
    claims: Option<Claims>,
}

impl Observed {
    /// Returns the state that follows from the offers of both ends; `None` if nothing is reported either way.
    pub(crate) fn agree(
        own: Option<AddressDiscovery>,
        peer: Option<AddressDiscovery>,
    ) -> Option<Box<Self>> {
        let own = own?;
        let reports = own.provides() && peer.is_some_and(AddressDiscovery::receives);
        // A peer that was asked may report without an offer of its own.
        let claims = own.receives();
        (reports || claims).then(|| {
            Box::new(Self {
                reports: reports.then(Reports::default),
                claims: claims.then(Claims::default),
            })
        })
    }

    /// Processes OBSERVED_ADDRESS on a path. Returns true if it changes the claim.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION if this end has not asked for it (draft-ietf-quic-address-discovery-00 §4.1).
    pub(crate) fn on_frame(
        &mut self,
        path: PathId,
        frame: ObservedAddress,
    ) -> Result<bool, TransportError> {
        match &mut self.claims {
            Some(claims) => Ok(claims.on_frame(path, frame)),
            None => Err(not_requested()),
        }
    }

    /// Returns the claims of the peer, the latest one last.
    pub(crate) fn claims(&self) -> impl Iterator<Item = ObservedPath> + '_ {
        self.claims.iter().flat_map(Claims::iter)
    }

    /// Removes and returns a claim that the application has not been told of.
    pub(crate) fn take_new(&mut self) -> Option<ObservedPath> {
        self.claims.as_mut()?.take_new()
    }

    /// Decides whether a report is due on a path, whose peer is at `peer` now.
    pub(crate) fn refresh(&mut self, now: Time, path: PathId, peer: SocketAddr, rtt: Duration) {
        if let Some(reports) = &mut self.reports {
            reports.refresh(now, path, peer, rtt);
        }
    }

    /// Returns true if a report was found to be due on a path.
    #[inline]
    pub(crate) fn is_due(&self, path: PathId) -> bool {
        self.reports.as_ref().is_some_and(|it| it.is_due(path))
    }

    /// Finds the reports that may be sent from now on.
    pub(crate) fn on_timeout(&mut self, now: Time) {
        if let Some(reports) = &mut self.reports {
            reports.on_timeout(now);
        }
    }

    /// Returns the time from which a delayed report may be sent.
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.reports.as_ref()?.next_timeout()
    }

    /// Writes the report for a path, if it is due and fits.
    pub(crate) fn write(
        &mut self,
        now: Time,
        path: PathId,
        peer: SocketAddr,
        packet: &mut PacketBuilder<'_>,
    ) {
        if let Some(reports) = &mut self.reports {
            reports.write(now, path, peer, packet);
        }
    }

    /// Repeats a lost report on its path, unless a newer one exists (draft-ietf-quic-address-discovery-00 §4.1).
    pub(crate) fn on_lost(&mut self, path: PathId, sequence: u64) {
        if let Some(reports) = &mut self.reports {
            reports.on_lost(path, sequence);
        }
    }
}

/// Returns the error for OBSERVED_ADDRESS at an end that has not asked for it.
pub(crate) fn not_requested() -> TransportError {
    TransportError::protocol_violation("OBSERVED_ADDRESS was not asked for")
}

#[cfg(test)]
mod tests;
