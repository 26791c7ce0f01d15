//! How many forged packets a connection endures. RFC 9001 §6.6.
//!
//! How many packets one key may seal is counted where the keys are, in
//! [`OneRttKeys`](crate::OneRttKeys): Initial and Handshake keys never live that long.

use crate::CipherSuite;

/// Counts packets that failed authentication, over all keys of a connection.
#[derive(Clone, Debug)]
pub struct ForgeryCounter {
    failures: u64,
    limit: u64,
}

impl ForgeryCounter {
    /// Starts at zero with the integrity limit of `suite`.
    pub fn new(suite: CipherSuite) -> Self {
        Self::with_limit(suite.integrity_limit())
    }

    /// Starts at zero with a limit of the caller's own, for tests.
    pub fn with_limit(limit: u64) -> Self {
        Self { failures: 0, limit }
    }

    /// Adopts the limit of the negotiated suite and keeps the count. A limit only ever shrinks:
    /// failures under Initial keys count as well.
    pub fn on_suite(&mut self, suite: CipherSuite) {
        self.limit = self.limit.min(suite.integrity_limit());
    }

    /// Counts one failure. True when the limit is exceeded: the connection then ends at once
    /// with AEAD_LIMIT_REACHED and processes no more packets.
    #[must_use]
    pub fn on_failure(&mut self) -> bool {
        self.failures += 1;
        self.failures > self.limit
    }

    /// Failures so far.
    pub fn failures(&self) -> u64 {
        self.failures
    }
}

impl Default for ForgeryCounter {
    /// The limit of the suite of Initial packets; see [`ForgeryCounter::on_suite`].
    fn default() -> Self {
        Self::new(CipherSuite::Aes128Gcm)
    }
}

#[cfg(test)]
mod tests;
