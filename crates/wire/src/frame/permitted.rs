//! The frames that each kind of packet may carry. RFC 9000 §12.4 Table 3, §12.5.

use super::FrameType;
use crate::packet::PacketKind;

/// Returns true if a packet of this kind may carry a frame of this type. Returns false for unknown
/// types.
///
/// A frame in a packet that may not carry it is a PROTOCOL_VIOLATION. This function ignores the
/// sender, although only servers may send NEW_TOKEN and HANDSHAKE_DONE.
#[inline]
pub const fn is_permitted(frame_type: u64, kind: PacketKind) -> bool {
    let packets = match kind {
        // 1-RTT packets may carry all frames.
        PacketKind::OneRtt => {
            return frame_type <= FrameType::IMMEDIATE_ACK.0
                || matches!(
                    FrameType(frame_type),
                    FrameType::ACK_FREQUENCY
                        | FrameType::RESET_STREAM_AT
                        | FrameType::DATAGRAM
                        | FrameType::DATAGRAM_WITH_LENGTH
                );
        }
        PacketKind::Initial => INITIAL,
        PacketKind::Handshake => HANDSHAKE,
        PacketKind::ZeroRtt => ZERO_RTT,
        PacketKind::Retry | PacketKind::VersionNegotiation => return false,
    };
    permitted_in(FrameType(frame_type)) & packets != 0
}

/// Returns the packets other than 1-RTT that may carry the frame, as bits.
///
/// Frames without the bit for 0-RTT are those that a client has no reason to send there. Table 3
/// permits RETIRE_CONNECTION_ID in 0-RTT, §12.5 does not: before the server has answered, there is
/// nothing to retire. Among the extension frames, DATAGRAM and RESET_STREAM_AT have the bit, because
/// a client may remember what the server supports (RFC 9221 §3,
/// draft-ietf-quic-reliable-stream-reset-10 §3). An end must not remember that its peer supported the
/// other extensions (draft-ietf-quic-ack-frequency-12 §3).
const fn permitted_in(frame_type: FrameType) -> u8 {
    match frame_type {
        FrameType::PADDING | FrameType::PING | FrameType::CONNECTION_CLOSE => {
            INITIAL | HANDSHAKE | ZERO_RTT
        }
        FrameType::ACK | FrameType::ACK_ECN | FrameType::CRYPTO => INITIAL | HANDSHAKE,
        FrameType::NEW_TOKEN
        | FrameType::RETIRE_CONNECTION_ID
        | FrameType::PATH_RESPONSE
        | FrameType::HANDSHAKE_DONE => 0,
        FrameType::DATAGRAM | FrameType::DATAGRAM_WITH_LENGTH | FrameType::RESET_STREAM_AT => {
            ZERO_RTT
        }
        FrameType(known) if known <= FrameType::HANDSHAKE_DONE.0 => ZERO_RTT,
        FrameType(_) => 0,
    }
}

const INITIAL: u8 = 1;
const HANDSHAKE: u8 = 2;
const ZERO_RTT: u8 = 4;

#[cfg(test)]
mod tests;
