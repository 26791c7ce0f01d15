//! The limit on forged packets per connection. RFC 9001 §6.6.
//!
//! [`OneRttKeys`](crate::OneRttKeys) counts the packets that one key seals. Initial and Handshake
//! keys are discarded before they can reach that limit.

use crate::CipherSuite;

/// Counts packets that failed authentication, over all keys of a connection.
#[derive(Clone, Debug)]
pub struct ForgeryCounter {
    failures: u64,
    limit: u64,
}

impl ForgeryCounter {
    /// Creates a counter at zero with the integrity limit of `suite`.
    pub fn new(suite: CipherSuite) -> Self {
        Self::with_limit(suite.integrity_limit())
    }

    /// Creates a counter at zero with a custom limit, for tests.
    pub fn with_limit(limit: u64) -> Self {
        Self { failures: 0, limit }
    }

    /// Adopts the limit of the negotiated suite and keeps the count. The limit never rises, because
    /// failures under Initial keys count as well.
    pub fn on_suite(&mut self, suite: CipherSuite) {
        self.limit = self.limit.min(suite.integrity_limit());
    }

    /// Counts one failure and returns true if the limit is exceeded. The connection must then end
    /// at once with AEAD_LIMIT_REACHED and process no more packets.
    #[must_use]
    pub fn on_failure(&mut self) -> bool {
        self.failures += 1;
        self.failures > self.limit
    }

    /// Returns the number of failures so far.
    pub fn failures(&self) -> u64 {
        self.failures
    }
}

impl Default for ForgeryCounter {
    /// Creates a counter with the limit of the suite of Initial packets; see
    /// [`ForgeryCounter::on_suite`].
    fn default() -> Self {
        Self::new(CipherSuite::Aes128Gcm)
    }
}

#[cfg(test)]
mod tests;
