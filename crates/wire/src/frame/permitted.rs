//! The frames that each kind of packet may carry. RFC 9000 §12.4 Table 3, §12.5.

use super::FrameType;
use super::kind::has_letter;
use crate::packet::PacketKind;

/// Returns true if a packet of this kind may carry a frame of this type. Returns false for unknown
/// types.
///
/// A frame in a packet that may not carry it is a PROTOCOL_VIOLATION. This function ignores the
/// sender, although only servers may send NEW_TOKEN and HANDSHAKE_DONE.
#[inline]
pub const fn is_permitted(frame_type: u64, kind: PacketKind) -> bool {
    let (types, letter) = match kind {
        PacketKind::OneRtt => (ONE_RTT, b'1'),
        PacketKind::Initial => (INITIAL, b'I'),
        PacketKind::Handshake => (HANDSHAKE, b'H'),
        PacketKind::ZeroRtt => (ZERO_RTT, b'0'),
        PacketKind::Retry | PacketKind::VersionNegotiation => return false,
    };
    if frame_type < u64::BITS as u64 {
        return types >> frame_type & 1 == 1;
    }
    has_letter(FrameType(frame_type).packets(), letter)
}

const INITIAL: u64 = types_in(b'I');
const HANDSHAKE: u64 = types_in(b'H');
const ZERO_RTT: u64 = types_in(b'0');
const ONE_RTT: u64 = types_in(b'1');

/// Returns the types below 64 that packets with this letter may carry, as bits: nearly every frame
/// is one of them, and each received frame is checked.
const fn types_in(letter: u8) -> u64 {
    let mut types = 0;
    let mut frame_type = 0;
    while frame_type < u64::BITS as u64 {
        if has_letter(FrameType(frame_type).packets(), letter) {
            types |= 1 << frame_type;
        }
        frame_type += 1;
    }
    types
}

#[cfg(test)]
mod tests;
