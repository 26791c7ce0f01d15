//! Remembers which NEW_TOKEN tokens were used, so that each is worth one connection.

use std::collections::VecDeque;
use std::fmt;
use std::mem;

use super::address_token::{CLOCK_SKEW, SystemSeconds, VALIDATION_LIFETIME, ValidationToken};

/// A memory of used tokens that never takes a used one for new (RFC 9000 §8.1.4, limit K23).
///
/// The newest uses are kept exactly, so that a small server is exact altogether. Older ones go
/// into a Bloom filter, of which there are two: after the lifetime of a token, or when it is
/// full, the younger takes the place of the older, which is forgotten. With it all tokens are
/// refused that could have been in it. So a flood of uses costs other clients the benefit of
/// their older tokens, but costs us neither memory nor a replay.
///
/// Fewer than 1 % of unused tokens are taken for used. Nonces are random, secret and
/// authenticated, so nobody can aim at that.
#[derive(Clone)]
pub struct TokenFilter {
    /// At most [`TokenFilter::MAX_NEWEST`].
    newest: VecDeque<Nonce>,
    /// Uses since `begun`, and those that left `newest` since then.
    current: Bloom,
    previous: Bloom,
    begun: SystemSeconds,
    /// Tokens that are not younger may have been used and forgotten.
    issued_after: Option<SystemSeconds>,
    /// Uses that each filter has room for.
    capacity: usize,
}

/// What tells one token from all others.
pub type Nonce = [u8; 16];

impl TokenFilter {
    /// Uses that one filter has room for by default: 96 KiB for each of the two.
    pub const DEFAULT_CAPACITY: usize = 1 << 16;

    /// Uses that are kept exactly.
    pub const MAX_NEWEST: usize = 256;

    /// An empty memory with room for `capacity` uses in each of its filters, which are allocated
    /// when they are needed and take 12 bits a use.
    pub fn new(capacity: usize, now: SystemSeconds) -> Self {
        Self {
            newest: VecDeque::new(),
            current: Bloom::default(),
            previous: Bloom::default(),
            begun: now,
            issued_after: None,
            capacity: capacity.max(1),
        }
    }

    /// Notes the use of a token. True when it is the first; false when it is not, or might not
    /// be: then the token counts for nothing.
    pub fn use_once(&mut self, token: &ValidationToken, now: SystemSeconds) -> bool {
        // What is forgotten then was issued before the filter was begun, give or take the clocks,
        // and is no longer good anyway.
        if now.saturating_since(self.begun) > VALIDATION_LIFETIME + CLOCK_SKEW {
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

    /// Forgets the older filter. Whatever is in it was used before the younger one was begun,
    /// and issued no later than that as far as clocks agree.
    fn rotate(&mut self, now: SystemSeconds) {
        if self.previous.len > 0 {
            self.issued_after = Some(self.begun + CLOCK_SKEW);
        }
        self.previous = mem::take(&mut self.current);
        self.begun = now;
    }

    /// Bytes that the memory takes.
    #[cfg(test)]
    pub fn memory(&self) -> usize {
        let filters = self.current.words.capacity() + self.previous.words.capacity();
        filters * size_of::<u64>() + self.newest.capacity() * size_of::<Nonce>()
    }
}

/// Bits of a filter for each use that it has room for: with [`HASHES`], 0.31 % of unknown nonces
/// look known in a full filter, and 0.63 % in two.
const BITS_PER_USE: usize = 12;

/// Bits that each use sets.
const HASHES: u64 = 8;

/// A set that may claim to hold what it does not, but not the other way round.
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

/// The bits of a nonce. A nonce is random already, so its halves serve as the two hashes that
/// all others are made of.
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

/// Nonces are secrets and stay out of logs.
impl fmt::Debug for TokenFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (newest, current, previous) = (self.newest.len(), self.current.len, self.previous.len);
        write!(f, "TokenFilter({newest} + {current} + {previous} uses)")
    }
}

#[cfg(test)]
mod tests;
