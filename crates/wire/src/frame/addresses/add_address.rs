//! ADD_ADDRESS frames: candidates of a server. draft-seemann-quic-nat-traversal-02 §4.

use std::net::SocketAddr;

use super::numbered::{self, Types};
use crate::error::DecodeError;
use crate::frame::FrameType;
use crate::reader::Reader;
use crate::writer::Writer;

/// An address at which the server may be reached directly. draft-seemann-quic-nat-traversal-02 §4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddAddress {
    /// Number of the address, which REMOVE_ADDRESS names.
    pub sequence: u64,
    /// The address.
    pub address: SocketAddr,
}

impl AddAddress {
    const TYPES: Types = Types {
        ipv4: FrameType::ADD_ADDRESS_IPV4,
        ipv6: FrameType::ADD_ADDRESS_IPV6,
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
            numbered::decode(reader, frame_type == FrameType::ADD_ADDRESS_IPV6)?;
        Ok(Self { sequence, address })
    }
}
