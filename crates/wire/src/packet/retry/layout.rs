//! The layout of a Retry packet after its connection IDs. RFC 9000 §17.2.5.

use std::ops::Range;

use crate::error::DecodeError;

/// Length of the Retry Integrity Tag in bytes. RFC 9001 §5.8.
pub const TAG_LEN: usize = 16;

/// Returns the ranges of token and tag, given that the fields before them end at `start`. A Retry
/// packet has no Length field and extends to the end of the datagram.
pub(in crate::packet) fn token_and_tag(
    datagram: &[u8],
    start: usize,
) -> Result<(Range<usize>, Range<usize>), DecodeError> {
    let tag = datagram
        .len()
        .checked_sub(TAG_LEN)
        .filter(|&tag| tag >= start)
        .ok_or(DecodeError::truncated(start))?;
    // RFC 9000 §17.2.5.2: a Retry without a token is discarded.
    if tag == start {
        return Err(DecodeError::invalid("Retry has no token", start));
    }
    Ok((start..tag, tag..datagram.len()))
}
