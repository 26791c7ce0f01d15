//! A record of used NEW_TOKEN tokens, so that each is accepted once.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::time::Duration;

use super::validation_token::{CLOCK_SKEW, Nonce, SystemSeconds, ValidationToken};
use crate::config::VALIDATION_LIFETIME;

/// A record of used tokens that never accepts a used one as new (RFC 9000 §8.1.4, limit K23).
///
/// The newest uses are stored exactly, which suffices for a small server. Older ones are added to one
/// of two Bloom filters. After the lifetime of a token, or when it is full, the younger filter
/// replaces the older one, which is dropped. From then on all tokens that could have been in the
/// dropped one are refused. So a flood of uses makes older tokens of other clients useless, but it
/// neither takes more memory nor allows a replay.
///
/// Fewer than 1 % of unused tokens are mistaken for used ones. Nonces are random, secret and
/// authenticated, so an attacker cannot cause this on purpose.
#[derive(Clone)]
pub struct TokenFilter {
    /// The newest uses, at most [`TokenFilter::MAX_NEWEST`].
    newest: VecDeque<Nonce>,
    /// Uses since `started_at`, and those that have left `newest` since then.
    current: Bloom,
    previous: Bloom,
    started_at: SystemSeconds,
    /// Tokens issued at or before this time may have been used and dropped.
    issued_after: Option<SystemSeconds>,
    /// Number of uses that fit into each filter.
    capacity: usize,
    /// The time for which a token is valid.
    lifetime: Duration,
}

impl TokenFilter {
    /// Default number of uses that fit into one filter, which takes 96 KiB.
    pub const DEFAULT_CAPACITY: usize = 1 << 16;

    /// Number of uses that are stored exactly.
    pub const MAX_NEWEST: usize = 256;

    /// Creates an empty record for `capacity` uses in each of its filters. They are allocated on demand
    /// and take 12 bits per use.
    pub fn new(capacity: usize, now: SystemSeconds) -> Self {
        Self {
            newest: VecDeque::new(),
            current: Bloom::default(),
            previous: Bloom::default(),
            started_at: now,
            issued_after: None,
            capacity: capacity.max(1),
            lifetime: VALIDATION_LIFETIME,
        }
    }

    /// Changes the time for which tokens are valid.
    pub fn set_lifetime(&mut self, lifetime: Duration) {
        self.lifetime = lifetime;
    }

    /// Records the use of a token. Returns true if it is the first one, and false if the token was or may
    /// have been used before.
    pub fn use_once(&mut self, token: &ValidationToken, now: SystemSeconds) -> bool {
        // Tokens in the dropped filter were issued before this filter was begun, up to clock skew,
        // and have expired.
        if now.saturating_since(self.started_at) > self.lifetime + CLOCK_SKEW {
            self.rotate(now);
        }
        if !self.is_unused(token) {
            return false;
        }
        self.newest.push_back(token.nonce);
        if self.newest.len() > Self::MAX_NEWEST {
            self.move_oldest_to_filter(now);
        }
        true
    }

    /// Returns false for each token that was used, and for some that were not.
    pub fn is_unused(&self, token: &ValidationToken) -> bool {
        self.issued_after.is_none_or(|limit| token.issued > limit)
            && !self.newest.contains(&token.nonce)
            && !self.current.contains(&token.nonce)
            && !self.previous.contains(&token.nonce)
    }

    fn move_oldest_to_filter(&mut self, now: SystemSeconds) {
        if self.current.len >= self.capacity {
            self.rotate(now);
        }
        if let Some(nonce) = self.newest.pop_front() {
            self.current.insert(&nonce, self.capacity);
        }
    }

    /// Drops the older filter. All tokens in it were used before the younger one was begun, and
    /// were issued no later than that, up to clock skew.
    fn rotate(&mut self, now: SystemSeconds) {
        if self.previous.len > 0 {
            self.issued_after = Some(self.started_at + CLOCK_SKEW);
        }
        self.previous = mem::take(&mut self.current);
        self.started_at = now;
    }

    /// Returns the memory of the record in bytes.
    #[cfg(test)]
    pub fn memory(&self) -> usize {
        let filters = self.current.words.capacity() + self.previous.words.capacity();
        filters * size_of::<u64>() + self.newest.capacity() * size_of::<Nonce>()
    }
}

/// Bits of a filter for each use that fits into it. With [`HASHES`], a full filter has 0.31 % of false
/// positives, and two have 0.63 %.
const BITS_PER_USE: usize = 12;

/// Bits that each use sets.
const HASHES: u64 = 8;

/// A set with false positives but no false negatives.
#[derive(Clone, Default)]
struct Bloom {
    words: Vec<u64>,
    len: usize,
}

impl Bloom {
    fn insert(&mut self, nonce: &Nonce, capacity: usize) {
        if self.words.is_empty() {
            self.words = vec![0; (capacity * BITS_PER_USE).div_ceil(64)];
        }
        for (word, bit) in positions(nonce, self.words.len()) {
            self.words[word] |= bit;
        }
        self.len += 1;
    }

    fn contains(&self, nonce: &Nonce) -> bool {
        !self.words.is_empty()
            && positions(nonce, self.words.len()).all(|(word, bit)| self.words[word] & bit != 0)
    }
}

/// Returns the bits of a nonce. A nonce is random already, so its halves serve as the two hashes
/// from which all others are computed.
fn positions(nonce: &Nonce, words: usize) -> impl Iterator<Item = (usize, u64)> {
    let (halves, _) = nonce.as_chunks();
    let (first, step) = (
        u64::from_be_bytes(halves[0]),
        u64::from_be_bytes(halves[1]) | 1,
    );
    (0..HASHES).map(move |index| {
        let hash = first.wrapping_add(step.wrapping_mul(index));
        let word = usize::try_from(hash % words as u64).expect("less than the number of words");
        (word, 1 << (hash >> 58))
    })
}

/// Omits the nonces, which are secrets and stay out of logs.
impl fmt::Debug for TokenFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (newest, current, previous) = (self.newest.len(), self.current.len, self.previous.len);
        write!(f, "TokenFilter({newest} + {current} + {previous} uses)")
    }
}

#[cfg(test)]
mod tests;
