//! A waiting client for the application.

use std::net::{IpAddr, SocketAddr};

use courser_base::FourTuple;
use courser_wire::ConnectionId;

use super::tokens::address_token::AddressProof;

/// A client that wants to connect. Return it through [`crate::endpoint::Endpoint::accept`],
/// [`crate::endpoint::Endpoint::refuse`], [`crate::endpoint::Endpoint::retry`] or [`crate::endpoint::Endpoint::ignore`]; until
/// then it counts against [`crate::ServerConfig::max_incoming`].
#[derive(Debug)]
pub struct Incoming {
    pub(in crate::endpoint) id: u64,
    pub(in crate::endpoint) path: FourTuple,
    pub(in crate::endpoint) proof: AddressProof,
    pub(in crate::endpoint) original_destination: ConnectionId,
}

impl Incoming {
    /// Returns the source address of the client, which may be forged.
    pub fn peer(&self) -> SocketAddr {
        self.path.peer
    }

    /// Returns the local address that it connected to, if the platform reports it.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.path.local
    }

    /// Returns true if a token has validated the client's address.
    pub fn is_address_validated(&self) -> bool {
        matches!(
            self.proof,
            AddressProof::Retry(_) | AddressProof::Validation(_)
        )
    }

    /// Returns false if the client has already answered a Retry, because it accepts only one (RFC 9000
    /// §17.2.5.2).
    pub fn may_retry(&self) -> bool {
        !matches!(self.proof, AddressProof::Retry(_))
    }

    /// Returns the client's first Destination Connection ID.
    pub fn original_destination(&self) -> &ConnectionId {
        &self.original_destination
    }
}
