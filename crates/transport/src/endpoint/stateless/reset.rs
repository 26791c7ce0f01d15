//! Builds and detects stateless resets (RFC 9000 §10.3).

use crate::cid::ResetToken;
use crate::rng::Rng;

/// Length in bytes below which a datagram is neither a QUIC packet nor a reset (RFC 9000 §10.3).
pub const MIN_LEN: usize = 21;

/// Length below which datagrams are not answered (limit K18). Packets of honest peers are longer.
/// Two endpoints without state stop answering each other, because each answer is shorter than its
/// trigger.
pub const MIN_TRIGGER_LEN: usize = 43;

/// Returns the reset that answers a datagram of `trigger_len` bytes, sent to the connection ID that
/// `token` belongs to; `None` if the datagram is too short to be answered.
///
/// It looks like a packet with a short header, is always shorter than its trigger (RFC 9000
/// §10.3.3), and has no characteristic length. The caller limits the rate: see
/// [`super::reply_limiter::ReplyLimiter`].
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

/// Returns the token that a datagram would carry if it were a reset, whatever kind of packet it
/// looks like (RFC 9000 §10.3). Returns `None` if it is too short.
pub fn token_of(datagram: &[u8]) -> Option<ResetToken> {
    if datagram.len() < MIN_LEN {
        return None;
    }
    datagram.last_chunk().copied()
}

/// Maximum of bytes added to the shortest reset.
const MAX_EXTRA: usize = 64;
const LONG_HEADER: u8 = 0x80;
const FIXED_BIT: u8 = 0x40;

#[cfg(test)]
mod tests;
