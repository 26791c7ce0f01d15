//! Generation of our own connection IDs.

use courser_wire::ConnectionId;

use crate::rng::Rng;

/// Makes the connection IDs under which an endpoint wants to be addressed.
///
/// The length never changes: a short header does not contain the length of its ID (RFC 9000 §5.2),
/// and a reset token derived from an ID needs the whole of it (RFC 9000 §10.3.2).
pub trait ConnectionIdGenerator: Send {
    /// Makes an ID of [`ConnectionIdGenerator::len`] bytes that an observer cannot correlate with
    /// other IDs of the same connection (RFC 9000 §5.1).
    ///
    /// The endpoint calls this again if the ID is taken.
    fn generate(&mut self, rng: &mut Rng) -> ConnectionId;

    /// Length of every ID, in bytes.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for generators that users bring")
    )]
    fn len(&self) -> usize;
}

/// Makes IDs of random bytes only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomGenerator {
    len: usize,
}

impl RandomGenerator {
    /// The length in bytes that [`RandomGenerator::default`] uses.
    pub const DEFAULT_LEN: usize = 8;

    /// Creates a generator of IDs of `len` bytes; `None` above [`ConnectionId::MAX_LEN`].
    ///
    /// An endpoint can have no more connections than there are IDs, which matters below 4 bytes.
    pub fn new(len: usize) -> Option<Self> {
        (len <= ConnectionId::MAX_LEN).then_some(Self { len })
    }
}

impl Default for RandomGenerator {
    fn default() -> Self {
        Self {
            len: Self::DEFAULT_LEN,
        }
    }
}

impl ConnectionIdGenerator for RandomGenerator {
    fn generate(&mut self, rng: &mut Rng) -> ConnectionId {
        let mut bytes = [0; ConnectionId::MAX_LEN];
        let id = &mut bytes[..self.len];
        rng.fill(id);
        ConnectionId::new(id).expect("the length was checked at construction")
    }

    fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests;
