//! OBSERVED_ADDRESS frames: the address of the peer as the sender sees it. draft-ietf-quic-address-discovery-00 §4.1.

use std::net::SocketAddr;

use super::numbered::{self, Types};
use crate::error::DecodeError;
use crate::frame::FrameType;
use crate::reader::Reader;
use crate::writer::Writer;

/// The address from which the sender receives packets of a path. draft-ietf-quic-address-discovery-00 §4.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObservedAddress {
    /// Sequence number, which increases with each observation of the connection.
    pub sequence: u64,
    /// The address of the receiver.
    pub address: SocketAddr,
}

impl ObservedAddress {
    const TYPES: Types = Types {
        ipv4: FrameType::OBSERVED_ADDRESS_IPV4,
        ipv6: FrameType::OBSERVED_ADDRESS_IPV6,
    };

    /// Returns the type of the frame, which depends on the family of the address.
    pub fn frame_type(&self) -> FrameType {
        Self::TYPES.of(self.address)
    }

    /// Returns the number of bytes of the frame, including its type.
    pub fn encoded_len(&self) -> usize {
        numbered::encoded_len(Self::TYPES, self.sequence, self.address)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        numbered::encode(writer, Self::TYPES, self.sequence, self.address);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'_>, frame_type: FrameType) -> Result<Self, DecodeError> {
        let (sequence, address) =
            numbered::decode(reader, frame_type == FrameType::OBSERVED_ADDRESS_IPV6)?;
        Ok(Self { sequence, address })
    }
}
