//! Where our own connection IDs come from.

use courser_wire::ConnectionId;

use crate::rng::Rng;

/// Makes the connection IDs under which an endpoint wants to be addressed.
///
/// The length never changes: a short header does not say how long its ID is (RFC 9000 §5.2),
/// and a reset token derived from an ID needs the whole of it (RFC 9000 §10.3.2).
pub trait ConnectionIdGenerator: Send {
    /// Makes an ID of [`ConnectionIdGenerator::len`] bytes that tells an observer nothing about
    /// other IDs of the same connection (RFC 9000 §5.1).
    ///
    /// The endpoint asks again when the ID is taken.
    fn generate(&mut self, rng: &mut Rng) -> ConnectionId;

    /// Length of every ID, in bytes.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for generators that users bring")
    )]
    fn len(&self) -> usize;
}

/// IDs that are random from the first byte to the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomGenerator {
    len: usize,
}

impl RandomGenerator {
    /// Length that [`RandomGenerator::default`] uses, in bytes.
    pub const DEFAULT_LEN: usize = 8;

    /// IDs of `len` bytes; `None` above [`ConnectionId::MAX_LEN`].
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
