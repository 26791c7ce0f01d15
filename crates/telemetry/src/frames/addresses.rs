//! Frames that carry addresses, as they are recorded. draft-ietf-quic-address-discovery-00 §4.1,
//! draft-seemann-quic-nat-traversal-02 §4.

use std::net::SocketAddr;

use courser_wire::frame::{AddAddress, FrameType, ObservedAddress, ReachOut, RemoveAddress};

/// Record of one frame that carries an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressRecord {
    /// An OBSERVED_ADDRESS frame: the address of its receiver as the sender sees it.
    Observed {
        /// Sequence number of the observation.
        sequence: u64,
        /// The address.
        address: SocketAddr,
    },
    /// An ADD_ADDRESS frame: a candidate of the server.
    Add {
        /// Number of the address.
        sequence: u64,
        /// The address.
        address: SocketAddr,
    },
    /// A REACH_OUT frame: a candidate of the client, which the server should probe.
    ReachOut {
        /// Number of the round.
        round: u64,
        /// The address.
        address: SocketAddr,
    },
    /// A REMOVE_ADDRESS frame: the end of a candidate of the server.
    Remove {
        /// Number of the address.
        sequence: u64,
    },
}

impl AddressRecord {
    /// Returns the type of the frame.
    pub const fn frame_type(&self) -> FrameType {
        match self {
            Self::Observed { address, .. } if address.is_ipv4() => FrameType::OBSERVED_ADDRESS_IPV4,
            Self::Observed { .. } => FrameType::OBSERVED_ADDRESS_IPV6,
            Self::Add { address, .. } if address.is_ipv4() => FrameType::ADD_ADDRESS_IPV4,
            Self::Add { .. } => FrameType::ADD_ADDRESS_IPV6,
            Self::ReachOut { address, .. } if address.is_ipv4() => FrameType::REACH_OUT_IPV4,
            Self::ReachOut { .. } => FrameType::REACH_OUT_IPV6,
            Self::Remove { .. } => FrameType::REMOVE_ADDRESS,
        }
    }
}

impl From<ObservedAddress> for AddressRecord {
    fn from(frame: ObservedAddress) -> Self {
        Self::Observed {
            sequence: frame.sequence,
            address: frame.address,
        }
    }
}

impl From<AddAddress> for AddressRecord {
    fn from(frame: AddAddress) -> Self {
        Self::Add {
            sequence: frame.sequence,
            address: frame.address,
        }
    }
}

impl From<ReachOut> for AddressRecord {
    fn from(frame: ReachOut) -> Self {
        Self::ReachOut {
            round: frame.round,
            address: frame.address,
        }
    }
}

impl From<RemoveAddress> for AddressRecord {
    fn from(frame: RemoveAddress) -> Self {
        Self::Remove {
            sequence: frame.sequence,
        }
    }
}
