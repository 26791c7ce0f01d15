//! REACH_OUT frames: candidates of a client, and the start of a round. draft-seemann-quic-nat-traversal-02 §4.

use std::net::SocketAddr;

use super::numbered::{self, Types};
use crate::error::DecodeError;
use crate::frame::FrameType;
use crate::reader::Reader;
use crate::writer::Writer;

/// A request of the client to probe one of its addresses. draft-seemann-quic-nat-traversal-02 §4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReachOut {
    /// Number of the round of probes. A larger number ends the round before.
    pub round: u64,
    /// The address of the client to which the server should send probes.
    pub address: SocketAddr,
}

impl ReachOut {
    const TYPES: Types = Types {
        ipv4: FrameType::REACH_OUT_IPV4,
        ipv6: FrameType::REACH_OUT_IPV6,
    };

    /// Returns the type of the frame, which depends on the family of the address.
    pub fn frame_type(&self) -> FrameType {
        Self::TYPES.of(self.address)
    }

    /// Returns the number of bytes of the frame, including its type.
    pub fn encoded_len(&self) -> usize {
        numbered::encoded_len(Self::TYPES, self.round, self.address)
    }

    /// Writes the frame, including its type.
    pub fn encode(&self, writer: &mut Writer<'_>) {
        numbered::encode(writer, Self::TYPES, self.round, self.address);
    }

    /// Reads the fields that follow the frame type.
    ///
    /// # Errors
    /// Fails if the input is truncated.
    pub fn decode(reader: &mut Reader<'_>, frame_type: FrameType) -> Result<Self, DecodeError> {
        let (round, address) = numbered::decode(reader, frame_type == FrameType::REACH_OUT_IPV6)?;
        Ok(Self { round, address })
    }
}
