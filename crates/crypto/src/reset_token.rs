//! Stateless reset tokens. RFC 9000 §10.3.2.

use std::fmt;

use aws_lc_rs::{constant_time, hmac};
use courser_wire::ConnectionId;

/// The static key from which an endpoint derives all its stateless reset tokens.
///
/// Endpoints that serve each other's connections need the same key. An endpoint that keeps its key
/// across a restart can reset connections whose state it lost.
#[derive(Clone)]
pub struct ResetKey(hmac::Key);

impl ResetKey {
    /// Creates the key from 32 random bytes.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }
}

impl fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetKey(..)")
    }
}

/// Derives the token of a connection ID: HMAC-SHA256, truncated to 16 bytes.
pub fn derive(key: &ResetKey, id: &ConnectionId) -> [u8; TOKEN_LEN] {
    let tag = hmac::sign(&key.0, id);
    *tag.as_ref().first_chunk().expect("SHA-256 has 32 bytes")
}

/// Compares two tokens in constant time, so that timing does not reveal where they differ. RFC 9000
/// §10.3.1.
pub fn equal(a: &[u8; TOKEN_LEN], b: &[u8; TOKEN_LEN]) -> bool {
    constant_time::verify_slices_are_equal(a, b).is_ok()
}

/// Length of a stateless reset token in bytes.
pub const TOKEN_LEN: usize = 16;

#[cfg(test)]
mod tests;
