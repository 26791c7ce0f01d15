//! The last resort of an endpoint that lost a connection's state (RFC 9000 §10.3).

use crate::cid::ResetToken;
use crate::rng::Rng;

/// Bytes below which a datagram is no QUIC packet and no reset (RFC 9000 §10.3).
pub const MIN_LEN: usize = 21;

/// Datagrams shorter than this are not answered (limit K18). Packets of honest peers are longer,
/// and two endpoints without state can not go on for ever, because each answer is shorter.
pub const MIN_TRIGGER_LEN: usize = 43;

/// Returns the reset that answers a datagram of `trigger_len` bytes, sent to the connection ID
/// that `token` belongs to; `None` when the datagram is too short to be answered.
///
/// It looks like a packet with a short header, is always shorter than its trigger (RFC 9000
/// §10.3.3), and has no length of its own to be known by. How often this is sent is up to the
/// caller: see [`super::limits::ReplyLimiter`].
pub fn build(trigger_len: usize, token: &ResetToken, rng: &mut Rng) -> Option<Vec<u8>> {
    if trigger_len < MIN_TRIGGER_LEN {
        return None;
    }
    let most_extra = (trigger_len - MIN_TRIGGER_LEN).min(MAX_EXTRA);
    let extra = usize::try_from(rng.below(most_extra as u64 + 1)).expect("at most MAX_EXTRA");
    let mut reset = vec![0; MIN_TRIGGER_LEN - 1 + extra];
    let (unpredictable, end) = reset.split_at_mut(MIN_TRIGGER_LEN - 1 + extra - token.len());
    rng.fill(unpredictable);
    unpredictable[0] = (unpredictable[0] | FIXED_BIT) & !LONG_HEADER;
    end.copy_from_slice(token);
    debug_assert!(reset.len() >= MIN_LEN && reset.len() < trigger_len);
    Some(reset)
}

/// The token that a datagram would carry if it were a reset, whatever kind of packet it looks
/// like (RFC 9000 §10.3). `None` when it is too short.
pub fn token_of(datagram: &[u8]) -> Option<ResetToken> {
    if datagram.len() < MIN_LEN {
        return None;
    }
    datagram.last_chunk().copied()
}

/// Most bytes added to the shortest reset.
const MAX_EXTRA: usize = 64;
const LONG_HEADER: u8 = 0x80;
const FIXED_BIT: u8 = 0x40;

#[cfg(test)]
mod tests;
