//! An address of ours that the peer has reported, and how many are kept.

use std::net::SocketAddr;

use courser_wire::PathId;

/// An address of ours that the peer has reported for a path.
///
/// This is a claim: a peer can report any address. Use it as a candidate only if several independent peers report the
/// same address, or if this peer is trusted (draft-ietf-quic-address-discovery-00 §6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObservedPath {
    /// The path, which is 0 on a connection with one path.
    pub path: PathId,
    /// The address of this end as the peer sees it.
    pub address: SocketAddr,
}

/// Paths whose observations are kept, each way (limit K284).
pub(super) const MAX_OBSERVED: usize = 8;
