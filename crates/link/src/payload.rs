//! Changes of payloads: corruption, truncation, extension.

use bytes::Bytes;

use crate::probability::Numbers;

/// Returns the payload with one of its first 50 bytes changed. An empty payload stays empty.
pub(super) fn corrupted(payload: &Bytes, mut numbers: Numbers) -> Bytes {
    let corruptible = payload.len().min(CORRUPTIBLE_BYTES);
    let mut bytes = payload.to_vec();
    let position = usize::try_from(numbers.below(corruptible as u64)).unwrap_or(0);
    // Adding 1 to 255 never gives the same value.
    let difference = u8::try_from(1 + numbers.below(255)).unwrap_or(1);
    if let Some(byte) = bytes.get_mut(position) {
        *byte = byte.wrapping_add(difference);
    }
    bytes.into()
}

/// Returns the payload without a random part of its end. At least one byte is removed and one is
/// kept.
pub(super) fn truncated(payload: &Bytes, mut numbers: Numbers) -> Bytes {
    let removable = payload.len().saturating_sub(1) as u64;
    let kept = 1 + usize::try_from(numbers.below(removable)).unwrap_or(0);
    payload.slice(..kept.min(payload.len()))
}

/// Returns the payload with 1 to 32 random bytes appended, at removable the largest UDP datagram.
pub(super) fn extended(payload: &Bytes, mut numbers: Numbers) -> Bytes {
    let length = 1 + usize::try_from(numbers.below(MAX_EXTENSION)).unwrap_or(0);
    let room = MAX_PAYLOAD.saturating_sub(payload.len());
    let mut bytes = payload.to_vec();
    bytes.extend((0..length.min(room)).map(|_| numbers.next().to_le_bytes()[0]));
    bytes.into()
}

/// Returns true for a Version Negotiation packet: a long header with version 0 (RFC 9000 §17.2.1).
///
/// Such packets are never corrupted, as in the interop runner's simulator, because clients cannot
/// detect changes in packets without integrity protection.
pub(super) fn is_version_negotiation(payload: &[u8]) -> bool {
    matches!(payload, [first, 0, 0, 0, 0, ..] if first & 0x80 != 0)
}

/// Number of bytes at the start of a payload of which corruption changes one. Changed headers test
/// more than changed data.
const CORRUPTIBLE_BYTES: usize = 50;

const MAX_EXTENSION: u64 = 32;

/// The largest payload of a datagram over IPv4.
const MAX_PAYLOAD: usize = 65_507;

#[cfg(test)]
mod tests;
