//! What a server asks programs about its tokens.

use std::time::Duration;

/// A log of the NEW_TOKEN tokens that clients have used, instead of the endpoint's own: shared by several servers with
/// one key, for example, so that a token counts once for all of them (RFC 9000 §8.1.4).
///
/// A log is called under the lock of the endpoint. It must neither block nor use the endpoint or its connections. If it
/// panics, the token does not count.
pub trait TokenLog: Send + Sync {
    /// Records the use of a token, and returns true if it is the first one.
    ///
    /// `nonce` is the random number of the token, `issued` the time since the start of 1970 at which it was issued, in
    /// whole seconds, and `lifetime` the time for which it is valid from then on: the token need not be remembered for
    /// longer. False makes the client validate its address by another mechanism.
    fn use_once(&self, nonce: u128, issued: Duration, lifetime: Duration) -> bool;
}

/// A source of the time of day, for the times at which tokens are issued and expire.
///
/// It is called under the lock of the endpoint. It must neither block nor use the endpoint or its connections. If it
/// panics, the time of day is the one at the start of the endpoint plus the time since then.
pub trait TimeOfDay: Send + Sync {
    /// Returns the time since the start of 1970.
    fn since_1970(&self) -> Duration;
}
