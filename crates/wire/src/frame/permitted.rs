//! Which frame may be in which packet. RFC 9000 §12.4 Table 3, §12.5.

use super::FrameType;
use crate::packet::PacketKind;

/// True when a frame of this type may be in a packet of this kind; false for unknown types.
///
/// A frame where it is not permitted is a PROTOCOL_VIOLATION. Who may send it is another
/// question: NEW_TOKEN and HANDSHAKE_DONE come from servers only.
#[inline]
pub const fn is_permitted(frame_type: u64, kind: PacketKind) -> bool {
    let packets = match kind {
        // 1-RTT packets carry all there is.
        PacketKind::OneRtt => {
            return frame_type <= FrameType::IMMEDIATE_ACK.0
                || matches!(
                    FrameType(frame_type),
                    FrameType::ACK_FREQUENCY
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

/// The packets besides 1-RTT that may carry the frame.
///
/// The frames without a bit for 0-RTT are those that a client has no cause to send there. Table 3
/// leaves RETIRE_CONNECTION_ID out of them, §12.5 does not: before the server answered there is
/// nothing to retire. Of the frames of extensions DATAGRAM has one, for clients that remember the
/// server's limit (RFC 9221 §3); of the others an end must not remember that its peer knew them
/// (draft-ietf-quic-ack-frequency-12 §3).
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
        FrameType::DATAGRAM | FrameType::DATAGRAM_WITH_LENGTH => ZERO_RTT,
        FrameType(known) if known <= FrameType::HANDSHAKE_DONE.0 => ZERO_RTT,
        FrameType(_) => 0,
    }
}

const INITIAL: u8 = 1;
const HANDSHAKE: u8 = 2;
const ZERO_RTT: u8 = 4;

#[cfg(test)]
mod tests;
